//! Who may do what.

use serde_json::json;
use tine_server::{Options, Token, TokenFile, TokenRule, token_digest};

use crate::harness::{Client, Following, Served};

/// A server that knows tokens, and the file of them.
struct Guarded {
    served: Served,
    file: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

pub fn token(word: &str, project: Option<&str>, write: bool) -> Token {
    Token {
        name: word.to_owned(),
        digest: token_digest(word),
        project: project.map(str::to_owned),
        write,
        created_at: "2024-01-15T10:30:00Z".to_owned(),
    }
}

impl Guarded {
    fn new() -> Self {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let file = folder.path().join("tokens.json");
        let options = Options {
            tokens: Some(file.clone()),
            token_rule: TokenRule::Always,
            ..Options::default()
        };
        let guarded = Guarded { served: Served::with(options), file, _folder: folder };
        guarded.valid(&[
            token("everything", None, true),
            token("trips-writer", Some("trips"), true),
            token("trips-reader", Some("trips"), false),
            token("reader", None, false),
        ]);
        let all = guarded.served.bearing("everything");
        for project in ["trips", "default"] {
            let body = json!({"conversation_id": "c", "project_id": project});
            all.post("/api/v1/conversations", body).expect(201);
        }
        guarded
    }

    fn valid(&self, tokens: &[Token]) {
        TokenFile { tokens: tokens.to_vec() }.write(&self.file).expect("written");
    }
}

#[test]
fn without_a_valid_token_every_route_is_closed() {
    let guarded = Guarded::new();
    let served = &guarded.served;
    // Health checks need no token.
    served.get("/healthz").expect(200);
    let paths = [
        "/metrics",
        "/docs",
        "/api/v1/openapi.json",
        "/api/v1/events",
        "/api/v1/export",
        "/api/v1/conversations",
        "/api/v1/stats",
        "/api/none",
    ];
    for path in paths {
        let refused = served.get(path);
        refused.refused(401, "unauthorized");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        served.bearing("wrong").get(path).refused(401, "unauthorized");
        served.bearing("").get(path).refused(401, "unauthorized");
        served.and("authorization", "Basic eDp5").get(path).refused(401, "unauthorized");
    }
    served.post("/api/v1/conversations", json!({})).refused(401, "unauthorized");
}

#[test]
fn as_soon_as_a_token_exists_requests_need_one() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let file = folder.path().join("tokens.json");
    let served = Served::with(Options { tokens: Some(file.clone()), ..Options::default() });
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    let mut following = Following::with(&served, "", None, "");
    TokenFile { tokens: vec![token("everything", None, true)] }.write(&file).expect("written");
    served.get("/api/v1/conversations").refused(401, "unauthorized");
    let owner = served.bearing("everything");
    owner.say("c", "after the token").expect(201);
    assert_eq!(following.next(), None, "a follower without a token is cut off");
    TokenFile::default().write(&file).expect("written");
    served.get("/api/v1/conversations").expect(200);
}

#[test]
fn a_token_gives_access_to_no_other_project() {
    let guarded = Guarded::new();
    let client = guarded.served.bearing("trips-writer");
    client.get("/api/v1/conversations/c?project_id=trips").expect(200);
    client
        .post(
            "/api/v1/conversations/c/turns?project_id=trips",
            json!({"role": "user", "content": "x"}),
        )
        .expect(201);
    client.get("/api/v1/projects/trips").expect(200);
    let projects = client.get("/api/v1/projects").expect(200).json();
    assert_eq!(projects["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(projects["items"][0]["project_id"], "trips");
    for path in [
        "/api/v1/conversations",
        "/api/v1/conversations/c",
        "/api/v1/conversations/c?project_id=default",
        "/api/v1/projects/default",
        "/api/v1/export",
        "/api/v1/events?project_id=default",
        "/metrics",
    ] {
        client.get(path).refused(403, "forbidden");
    }
    client.post("/api/v1/conversations", json!({"project_id": "other"})).refused(403, "forbidden");
    client.post("/api/v1/projects", json!({"project_id": "other"})).refused(403, "forbidden");
    client.send("POST", "/api/v1/verify", None).refused(403, "forbidden");
    let import = client.and("content-type", "application/x-ndjson");
    import.send("POST", "/api/v1/import?project_id=other", Some(b"")).refused(403, "forbidden");
    guarded.served.bearing("everything").send("POST", "/api/v1/verify", None).expect(200);
}

#[test]
fn a_read_only_token_changes_nothing() {
    let guarded = Guarded::new();
    let client = guarded.served.bearing("reader");
    client.get("/api/v1/conversations/c").expect(200);
    client.get("/metrics").expect(200);
    client.send("POST", "/api/v1/verify", None).expect(200);
    client.say("c", "x").refused(403, "forbidden");
    client.delete("/api/v1/bookmarks/b").refused(403, "forbidden");
    client.post("/api/v1/projects", json!({"project_id": "p"})).refused(403, "forbidden");
    let import = client.and("content-type", "application/x-ndjson");
    import.send("POST", "/api/v1/import", Some(b"")).refused(403, "forbidden");
}

/// Each route that two stores sync over, for a conversation of a project.
fn synced(project: &str) -> [String; 4] {
    let within = format!("conversation_id=c&project_id={project}");
    [
        format!("/api/v1/sync/logs?project_id={project}"),
        format!("/api/v1/sync/hashes?{within}&seq=1"),
        format!("/api/v1/sync/merges?{within}"),
        format!("/api/v1/sync/delta?{within}"),
    ]
}

#[test]
fn syncing_needs_the_same_access_as_reading_and_writing() {
    let guarded = Guarded::new();
    let served = &guarded.served;
    let lines = |client: &Client, path: &str, body: &[u8]| {
        client.and("content-type", "application/x-ndjson").send("POST", path, Some(body))
    };
    let take = |project: &str| format!("/api/v1/sync/delta?project_id={project}");
    let all = served.bearing("everything");
    let [.., delta] = synced("trips");
    let body = all.get(&delta).expect(200).body;
    // No token, or an invalid one.
    for path in synced("trips") {
        served.get(&path).refused(401, "unauthorized");
        served.bearing("wrong").get(&path).refused(401, "unauthorized");
    }
    lines(served, &take("trips"), &body).refused(401, "unauthorized");
    lines(&served.bearing("wrong"), &take("trips"), &body).refused(401, "unauthorized");
    // Who reads may look and take, and give nothing.
    for word in ["trips-reader", "reader"] {
        let reader = served.bearing(word);
        for path in synced("trips") {
            reader.get(&path).expect(200);
        }
        lines(&reader, &take("trips"), &body).refused(403, "forbidden");
    }
    // Who writes may give as well; in no other project either of it.
    let writer = served.bearing("trips-writer");
    for path in synced("trips") {
        writer.get(&path).expect(200);
    }
    lines(&writer, &take("trips"), &body).expect(200);
    for word in ["trips-reader", "trips-writer"] {
        let client = served.bearing(word);
        for path in synced("default") {
            client.get(&path).refused(403, "forbidden");
        }
        for project in ["default", "other"] {
            lines(&client, &take(project), &body).refused(403, "forbidden");
        }
        client.get("/api/v1/sync/logs").refused(403, "forbidden");
        lines(&client, "/api/v1/sync/delta", &body).refused(403, "forbidden");
    }
    let other = "/api/v1/sync/logs?project_id=other";
    assert_eq!(all.get(other).expect(200).json()["items"], json!([]), "nothing was made there");
}

#[test]
fn a_follower_with_a_token_sees_its_project_only() {
    let guarded = Guarded::new();
    let head = "Authorization: Bearer trips-reader\r\n";
    let mut following = Following::with(&guarded.served, "", None, head);
    let all = guarded.served.bearing("everything");
    all.say("c", "not for them").expect(201);
    all.post(
        "/api/v1/conversations/c/turns?project_id=trips",
        json!({"role": "user", "content": "x"}),
    )
    .expect(201);
    assert_eq!(following.next().expect("an event").data["project_id"], "trips");
}

#[test]
fn a_revoked_token_is_invalid_at_once_and_ends_its_followers() {
    let guarded = Guarded::new();
    let client = guarded.served.bearing("trips-reader");
    // More than once: a change must be seen also when it falls into one tick of the clock.
    for _ in 0..20 {
        guarded
            .valid(&[token("everything", None, true), token("trips-reader", Some("trips"), false)]);
        client.get("/api/v1/conversations?project_id=trips").expect(200);
        guarded.valid(&[token("everything", None, true)]);
        client.get("/api/v1/conversations?project_id=trips").refused(401, "unauthorized");
    }
    guarded.valid(&[token("everything", None, true), token("trips-reader", Some("trips"), false)]);
    let head = "Authorization: Bearer trips-reader\r\n";
    let mut following = Following::with(&guarded.served, "", None, head);
    guarded.valid(&[token("everything", None, true)]);
    let all = guarded.served.bearing("everything");
    all.post(
        "/api/v1/conversations/c/turns?project_id=trips",
        json!({"role": "user", "content": "x"}),
    )
    .expect(201);
    assert_eq!(following.next(), None);
}

#[test]
fn a_change_is_recorded_under_the_name_of_its_token() {
    let guarded = Guarded::new();
    let all = guarded.served.bearing("everything");
    all.and("x-tine-actor", "somebody else").say("c", "x").expect(201);
    let log = all.get("/api/v1/operations?conversation_id=c").expect(200);
    assert_eq!(log.text("/items/0/actor"), "everything");
    let open = Served::new();
    open.trip();
    open.and("x-tine-actor", "ada").say("trip", "x").expect(201);
    let log = open.get("/api/v1/operations?conversation_id=trip").expect(200);
    assert_eq!(log.text("/items/0/actor"), "ada");
}

#[test]
fn a_server_answers_to_its_own_host_names_only() {
    let served = Served::with(Options { hosts: vec!["tine.example".into()], ..Options::default() });
    for host in ["localhost", "127.0.0.1:1", "[::1]:8000", "tine.example", "TINE.example:443"] {
        served.and("host", host).get("/healthz").expect(200);
    }
    for host in [
        "evil.example",
        "localhost.evil.example:8000",
        "tine.example.evil",
        "127.0.0.1:9420.evil.test",
        "127.0.0.2",
        "",
    ] {
        for path in ["/healthz", "/docs", "/none", "/api/v1/conversations"] {
            served.and("host", host).get(path).refused(421, "forbidden");
        }
    }
}

#[test]
fn requests_of_another_origin_are_refused() {
    let served = Served::new();
    let own = served.address.to_string();
    let asked = |origin: &str| {
        served.and("host", &own).and("origin", origin).post("/api/v1/conversations", json!({}))
    };
    asked(&format!("http://{own}")).expect(201);
    let over_tls = format!("https://{own}");
    for origin in ["http://evil.example", "null", "http://localhost:1", "", "file://", &over_tls] {
        asked(origin).refused(403, "forbidden");
    }
    for (site, mode, status) in [
        ("same-origin", "cors", 200),
        ("cross-site", "navigate", 200),
        ("cross-site", "no-cors", 403),
    ] {
        let client = served.and("host", &own).and("sec-fetch-site", site);
        let answer = client.and("sec-fetch-mode", mode).get("/api/v1/conversations");
        answer.expect(status);
    }
}
