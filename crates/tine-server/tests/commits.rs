//! Rings, commits, and what can be done with them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tine_core::sign::PrivateKey;
use tine_core::{Limits, Timestamp};
use tine_engine::Clock;
use tine_server::Options;

use crate::harness::{Answer, Served, encoded};

const COMMITS: &str = "/api/v1/commits";

/// Three turns about Tokyo in `conv_456` of the project `proj_123`; their hashes.
fn tokyo(served: &Served) -> Vec<String> {
    served.post("/api/v1/projects", json!({"project_id": "proj_123"})).expect(201);
    let conversation = json!({"project_id": "proj_123", "conversation_id": "conv_456"});
    served.post("/api/v1/conversations", conversation).expect(201);
    let messages = json!({"project_id": "proj_123", "messages": [
        {"role": "user", "content": "What's the best time to visit Tokyo?"},
        {"role": "assistant", "content": "Late March, for the cherry blossoms."},
        {"role": "user", "content": "Let's go with a 3-day itinerary on a budget."},
    ]});
    let made = served.post("/api/v1/conversations/conv_456/turns", messages).expect(201).json();
    let hash = |turn: &Value| turn["turn_hash"].as_str().expect("a hash").to_owned();
    made["turns"].as_array().expect("turns").iter().map(hash).collect()
}

/// The body of the request that the documentation of commits shows.
fn body(start: &str, end: &str) -> String {
    format!(
        r#"{{
"project_id": "proj_123",
"conversation_id": "conv_456",
"turn_window": {{
"start_turn_hash": "{start}",
"end_turn_hash": "{end}"
}},
"message": "Finalized plan"
}}"#
    )
}

fn at(path: &str) -> String {
    let join = if path.contains('?') { '&' } else { '?' };
    format!("/api/v1{path}{join}project_id=proj_123")
}

#[test]
fn a_range_of_turns_is_committed_as_documented() {
    let served = Served::new();
    let hashes = tokyo(&served);
    let made = served.post_text(COMMITS, &body(&hashes[0], &hashes[2])).expect(201);
    let commit = made.json();
    for (member, value) in [
        ("project_id", json!("proj_123")),
        ("conversation_id", json!("conv_456")),
        ("branch", json!("main")),
        ("message", json!("Finalized plan")),
        ("parent_hashes", json!([])),
        ("turn_count", json!(3)),
        ("turn_window", json!({"start_turn_hash": hashes[0], "end_turn_hash": hashes[2]})),
        ("heads", json!(["main"])),
        ("conflicts", json!(0)),
    ] {
        assert_eq!(commit[member], value, "{member}");
    }
    let facets = &commit["facet_snapshot"];
    for (list, text) in [("entities", "Tokyo"), ("keywords", "budget"), ("topics", "travel")] {
        let texts = facets[list].as_array().expect("a list");
        assert!(texts.contains(&json!(text)), "{list}: {facets}");
    }
    for list in ["entities", "keywords", "topics"] {
        for text in facets[list].as_array().expect("a list") {
            let evidence = &facets["evidence"][list][text.as_str().expect("a text")];
            assert!(evidence["turns"].as_u64() >= Some(1), "{text}: {facets}");
        }
    }
    let hash = commit["commit_hash"].as_str().expect("a hash");
    let found = served.get(&at(&format!("/commits/{}", encoded(hash)))).expect(200);
    assert_eq!(found.json(), commit);
    let short = served.get(&at(&format!("/commits/{}", &hash[7..17]))).expect(200);
    assert_eq!(short.json(), commit);
}

#[test]
fn the_hash_of_a_commit_can_be_recomputed_from_its_answer() {
    let served = Served::new();
    let hashes = tokyo(&served);
    let made = served.post_text(COMMITS, &body(&hashes[0], &hashes[2])).expect(201).json();
    let mut hashed = made.clone();
    let members = hashed.as_object_mut().expect("an object");
    for beside in ["commit_hash", "project_id", "anchor_turn_id", "heads", "conflicts", "signature"]
    {
        members.remove(beside);
    }
    // Members of a map are in order, and nothing here needs an escape: canonical as it is.
    let digest = Sha256::digest(hashed.to_string().as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(made["commit_hash"], format!("sha256:{hex}"));
}

#[test]
fn invalid_ranges_and_missing_commits_are_refused() {
    let served = Served::new();
    let hashes = tokyo(&served);
    let refused = served.post_text(COMMITS, &body(&hashes[2], &hashes[0])).refused(400, "invalid");
    assert!(refused["detail"].as_str().is_some_and(|it| it.contains("swap them")), "{refused}");
    let unknown = format!("sha256:{}", "0".repeat(64));
    served.post_text(COMMITS, &body(&unknown, &hashes[2])).refused(404, "not_found");
    let with = |member: &str, value: Value| {
        let mut body: Value = serde_json::from_str(&body(&hashes[0], &hashes[2])).expect("JSON");
        body[member] = value;
        served.post(COMMITS, body)
    };
    with("message", json!("  ")).refused(400, "invalid");
    with("message", json!("x".repeat(65 << 10))).refused(413, "too_large");
    with("conversation_id", json!("other")).refused(404, "not_found");
    with("branch", json!("side")).refused(404, "not_found");
    with("turn_windows", json!({})).refused(400, "invalid");
    let more = json!({"start_turn_hash": hashes[0], "end_turn_hash": hashes[2], "step": 1});
    with("turn_window", more).refused(400, "invalid");

    for path in ["/commits/0123456789", "/commits/main", &format!("/commits/{unknown}")] {
        served.get(&at(path)).refused(404, "not_found");
    }
    served.get(&at("/commits?branch=main")).refused(400, "invalid");
    served.get(&at("/commits?conversation_id=other")).refused(404, "not_found");
    served.get(&at("/commits?limit=0")).refused(400, "invalid");
    served.get(&at("/commits?cursor=x")).refused(400, "invalid");
    served.get(&at("/conversations/other/commits")).refused(404, "not_found");
    served.get(&at("/drift?conversation_id=conv_456&branch=x")).refused(404, "not_found");
    served.get(&at("/diff?from=main&to=x&conversation_id=conv_456")).refused(404, "not_found");
    for path in ["/blame?conversation_id=conv_456", "/bisect?conversation_id=conv_456"] {
        served.get(&at(path)).refused(400, "invalid");
        served.get(&at(&format!("{path}&field=x"))).refused(400, "invalid");
        served.get(&at(&format!("{path}&entity_id=x&field=x"))).refused(400, "invalid");
    }
    served.get(&at("/blame?conversation_id=conv_456&text=Osaka")).refused(404, "not_found");
}

#[test]
fn a_commit_can_be_signed() {
    let served = Served::new();
    let hashes = tokyo(&served);
    let made = served.post_text(COMMITS, &body(&hashes[0], &hashes[2])).expect(201);
    let hash = made.text("/commit_hash");
    let path = at(&format!("/commits/{}/signature", &hash[7..]));
    let key = PrivateKey::from_random([9; 32]);
    let sign =
        |value: String| served.post(&path, json!({"public_key": key.public(), "value": value}));
    sign(key.sign("something else")).refused(400, "invalid");
    let signed = sign(key.sign(&hash)).expect(200).json();
    assert_eq!(signed["signature"]["valid"], true);
    assert_eq!(signed["signature"]["public_key"], key.public());
    assert_eq!(signed["commit_hash"], hash);
    assert_eq!(sign(key.sign(&hash)).expect(200).json(), signed);
    let other = PrivateKey::from_random([8; 32]);
    let second = json!({"public_key": other.public(), "value": other.sign(&hash)});
    served.post(&path, second).refused(409, "conflict");
}

#[test]
fn a_retried_commit_is_the_same_one_and_commits_are_listed_in_pages() {
    let served = Served::new();
    let hashes = tokyo(&served);
    let keyed = served.and("idempotency-key", "once");
    let made = |answer: Answer| answer.expect(201).text("/commit_hash");
    let first = made(keyed.post_text(COMMITS, &body(&hashes[0], &hashes[0])));
    assert_eq!(made(keyed.post_text(COMMITS, &body(&hashes[0], &hashes[0]))), first);
    let other = keyed.post_text(COMMITS, &body(&hashes[0], &hashes[1]));
    other.refused(409, "idempotency_mismatch");
    let mut all = vec![first];
    for hash in &hashes[1..] {
        all.push(made(served.post_text(COMMITS, &body(hash, hash))));
    }
    all.reverse();
    for list in ["/commits", "/commits?conversation_id=conv_456&branch=main"] {
        let path = at(list);
        let join = format!("{path}&limit=2");
        let listed = served.walk(&join, "items");
        let listed: Vec<&str> =
            listed.iter().filter_map(|commit| commit["commit_hash"].as_str()).collect();
        assert_eq!(listed, all, "{list}");
    }
    let page = served.get(&at("/conversations/conv_456/commits?limit=2")).expect(200).json();
    assert_eq!(page["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(page["items"][0]["parent_hashes"], json!([page["items"][1]["commit_hash"]]));
    assert!(page["next"].is_string());
    assert_eq!(served.get(COMMITS).expect(200).json()["items"], json!([]), "another project");
}

#[test]
fn the_rings_of_a_turn_are_returned() {
    let served = Served::new();
    let hashes = tokyo(&served);
    let path = |rest: &str| at(&format!("/turns/{}{rest}", encoded(&hashes[0])));
    let turn = served.get(&path("")).expect(200).json();
    let rings = &turn["rings"];
    assert_eq!(rings["ring1"]["keywords"], json!(["Tokyo", "best time", "visit"]));
    assert_eq!(rings["ring1"]["spans"], json!([[30, 35], [11, 20], [24, 29]]));
    assert_eq!(rings["ring2"]["intent"], "question");
    assert_eq!(rings["ring2"]["facets"], json!(["timing", "travel"]));
    assert_eq!(rings["ring3"]["segments"], json!(["What's the best time to visit Tokyo?"]));
    assert_eq!(rings["ring3"]["offsets"], json!([[0, 36]]));
    assert!(rings["extractor"].as_str().is_some_and(|it| it.starts_with("rings/")), "{rings}");
    let alone = served.get(&path("/rings")).expect(200).json();
    assert_eq!(alone["text"], "What's the best time to visit Tokyo?");
    for member in ["ring1", "ring2", "ring3", "names", "extractor"] {
        assert_eq!(alone[member], rings[member], "{member}");
    }
    assert!(
        served.get(&at(&format!("/turns/{}?rings=false", hashes[0]))).json()["rings"].is_null()
    );
    let listed = served.get(&at("/conversations/conv_456/turns")).expect(200).json();
    assert!(listed["turns"][0]["rings"].is_null(), "{listed}");

    let plan = served.post(&path("/purge"), json!({})).expect(200).text("/confirm");
    served.post(&path("/purge"), json!({"confirm": plan})).expect(200);
    assert!(served.get(&path("")).expect(200).json()["rings"].is_null());
    served.get(&path("/rings")).refused(400, "invalid");
}

/// `trip` with a branch `side` that disagrees with `main` about a budget and alone knows a city;
/// the entity.
fn parted(served: &Served) -> String {
    let (question, answer) = served.trip();
    let know = |turn: &str, fields: Value| {
        let fact = json!({"entity_type": "trip", "turn": turn, "fields": fields});
        served.post("/api/v1/store", json!({"entities": [fact]})).expect(201)
    };
    let entity = know(&question, json!({"name": "the trip", "budget": 5000}));
    let entity = entity.text("/entities/0/entity_id");
    know(&answer, json!({"name": "the trip", "budget": 6000}));
    served
        .post("/api/v1/conversations/trip/branches", json!({"name": "side", "at": question}))
        .expect(201);
    let said = json!({"role": "user", "content": "Rather Kyoto.", "branch": "side"});
    let theirs = served.post("/api/v1/conversations/trip/turns", said).expect(201);
    let theirs = theirs.text("/turns/0/turn_id");
    know(&theirs, json!({"name": "the trip", "budget": 7000, "city": "Kyoto"}));
    entity
}

#[test]
fn branches_are_merged_and_their_conflicts_resolved() {
    let served = Served::new();
    let entity = parted(&served);
    let merges = "/api/v1/merges";
    let merge = json!({"conversation_id": "trip", "from": "side"});
    let with = |member: &str, value: Value| {
        let mut merge = merge.clone();
        merge[member] = value;
        merge
    };
    let rehearsed = served.post(merges, with("dry_run", json!(true))).expect(200).json();
    assert_eq!((&rehearsed["commit"], &rehearsed["dry_run"]), (&Value::Null, &json!(true)));
    assert_eq!(served.get(COMMITS).json()["items"], json!([]), "nothing was written");
    served.post(merges, with("from", json!("main"))).refused(400, "invalid");
    served.post(merges, with("from", json!("other"))).refused(404, "not_found");
    served.post(merges, with("into", json!("other"))).refused(404, "not_found");
    served.post(merges, with("summary", json!(" "))).refused(400, "invalid");
    served.post(merges, with("summary", json!(7))).refused(400, "invalid");

    let branch = "/api/v1/conversations/trip/branches/main";
    let seen = served.get(branch).expect(200).header("etag").expect("a tag").to_owned();
    let keyed = served.and("idempotency-key", "k").and("if-match", &seen);
    let merged = keyed.post(merges, with("summary", json!("They rather go to Kyoto.")));
    let merged = merged.expect(201).json();
    assert_eq!(merged["commit"]["parent_hashes"].as_array().map(Vec::len), Some(2));
    assert_eq!(merged["committed"].as_array().map(Vec::len), Some(2));
    assert_eq!(merged["commit"]["conflicts"], 1);
    let change = |field: &str| {
        let changes = merged["changes"].as_array().expect("changes").iter();
        let mut changes = changes.filter(|it| it["field"] == field);
        changes.next().expect("a change").clone()
    };
    assert_eq!(change("city")["from"], Value::Null);
    assert_eq!(change("city")["to"]["value"], "Kyoto");
    let [conflict] = &merged["conflicts"].as_array().expect("a list")[..] else {
        panic!("{merged}")
    };
    assert_eq!((&conflict["entity_id"], &conflict["field"]), (&json!(entity), &json!("budget")));
    let side = |nth: usize| &conflict["sides"][nth]["value"];
    assert_eq!((side(0), side(1)), (&json!(6000), &json!(7000)));
    assert_eq!(conflict["bases"][0]["value"], 5000);
    let turn = merged["turn_id"].as_str().expect("a turn");
    let said = served.get(&format!("/api/v1/turns/{turn}")).expect(200);
    assert_eq!(said.text("/content/0/text"), "They rather go to Kyoto.");
    let again = keyed.post(merges, with("summary", json!("They rather go to Kyoto.")));
    assert_eq!(again.expect(201).json(), merged, "the same call is answered the same");
    served.and("if-match", &seen).post(merges, merge.clone()).refused(412, "conflict");
    assert_eq!(served.post(merges, merge.clone()).expect(200).json()["up_to_date"], true);

    let resolutions = "/api/v1/conversations/trip/branches/main/resolutions";
    let decide = |decision: Value| {
        let mut one = json!({"entity_id": entity, "field": "budget"});
        for (name, value) in decision.as_object().expect("an object") {
            one[name] = value.clone();
        }
        served.post(resolutions, json!({"decisions": [one], "message": "Decided"}))
    };
    for none in [json!({}), json!({"side": 1, "nothing": true}), json!({"nothing": false})] {
        decide(none).refused(400, "invalid");
    }
    decide(json!({"side": 3})).refused(400, "invalid");
    served.post(resolutions, json!({"decisions": []})).refused(400, "invalid");
    served
        .and("if-match", &seen)
        .post(
            resolutions,
            json!({"decisions": [
                {"entity_id": entity, "field": "budget", "side": 2},
            ]}),
        )
        .refused(412, "conflict");
    let decided = decide(json!({"side": 2})).expect(201).json();
    assert_eq!((&decided["message"], &decided["conflicts"]), (&json!("Decided"), &json!(0)));
    let known = &decided["facet_snapshot"]["facts"][&entity]["fields"];
    assert_eq!((&known["budget"], &known["city"]), (&json!(7000), &json!("Kyoto")));
    decide(json!({"value": 1})).refused(400, "invalid");

    let drift = served.get("/api/v1/drift?conversation_id=trip").expect(200).json();
    let drift = drift["items"].as_array().expect("a list").clone();
    assert_eq!(drift.len(), 3);
    assert!(drift[0]["from_parent"].is_null() && drift[1]["from_parent"].is_number());
}

#[test]
fn sides_are_compared_and_facts_are_traced_to_their_turns() {
    let served = Served::new();
    let entity = parted(&served);
    let diff = served.get("/api/v1/diff?from=main&to=side&conversation_id=trip").expect(200).json();
    assert_eq!((&diff["from"]["turns"], &diff["to"]["turns"]), (&json!(1), &json!(1)));
    let kinds = |diff: &Value| -> Vec<String> {
        let changes = diff["changes"].as_array().expect("changes").iter();
        changes.map(|it| it["change"].as_str().expect("a kind").to_owned()).collect()
    };
    assert_eq!(kinds(&diff), ["lost", "gained"]);
    let budget = diff["facts"].as_array().expect("facts").iter().find(|it| it["field"] == "budget");
    assert_eq!(budget.expect("the budget")["to"]["value"], 7000);
    let gained = diff["entities"]["gained"].as_array().expect("names");
    let kyoto = gained.iter().find(|it| it["text"] == "Kyoto").expect("a name");
    assert_eq!((&kyoto["span"], &kyoto["turn_hash"]), (&json!([7, 12]), &diff["to"]["turn_hash"]));
    let page = "/api/v1/diff?from=main&to=side&conversation_id=trip&limit=1";
    let first = served.get(page).expect(200).json();
    assert_eq!((kinds(&first).len(), &first["left_out"]), (1, &json!(1)));

    let commit = |branch: &str| {
        let body = json!({"conversation_id": "trip", "branch": branch, "message": branch});
        served.post(COMMITS, body).expect(201).text("/commit_hash")
    };
    let (main, side) = (commit("main"), commit("side"));
    let of_commits = served.get(&format!("/api/v1/diff?from={main}&to={side}")).expect(200).json();
    assert_eq!(of_commits["from"]["commit_hash"], main);
    assert_eq!(of_commits["to"]["commits"], json!([side]));

    let blame = |rest: &str| served.get(&format!("/api/v1/blame?conversation_id=trip&{rest}"));
    let found = blame("at=side&text=Kyoto").expect(200).json();
    assert_eq!(found["items"][0]["span"], json!([7, 12]));
    assert_eq!(found["items"][0]["commit_hash"], side);
    let of_field = blame(&format!("at=side&entity_id={entity}&field=city")).expect(200).json();
    assert_eq!(of_field["items"][0]["turn_id"], found["items"][0]["turn_id"]);
    assert_eq!(of_field["items"][0]["value"], "Kyoto");
    blame("text=Kyoto").refused(404, "not_found");

    let bisect = |rest: &str| served.get(&format!("/api/v1/bisect?conversation_id=trip&{rest}"));
    let said = bisect("contains=March").expect(200).json();
    assert_eq!((&said["turn"]["role"], &said["path"]), (&json!("assistant"), &json!(2)));
    let of_budget = |value: &str| bisect(&format!("entity_id={entity}&field=budget{value}"));
    assert_eq!(of_budget("&value=6000").expect(200).json()["turn"]["role"], "assistant");
    assert_eq!(of_budget("").expect(200).json()["turn"]["role"], "user");
    of_budget("&value=%226000%22").refused(400, "invalid");
    let city = format!("at=side&entity_id={entity}&field=city&value=Kyoto");
    assert_eq!(bisect(&city).expect(200).json()["turn"]["depth"], 2);
}

#[test]
fn a_turn_is_copied_to_another_conversation() {
    let served = Served::new();
    let (question, _) = served.trip();
    served.post("/api/v1/conversations", json!({"conversation_id": "other"})).expect(201);
    served.say("other", "Hello").expect(201);
    let path = |turn: &str| format!("/api/v1/turns/{turn}/inject");
    let into = |id: &str| json!({"conversation_id": id});
    let branch = served.get("/api/v1/conversations/other/branches/main").expect(200);
    let seen = branch.header("etag").expect("a tag");
    let keyed = served.and("if-match", seen).and("idempotency-key", "k");
    let done = keyed.post(&path(&question), into("other")).expect(201);
    assert_eq!(done.text("/turn/derived_from"), question);
    assert_eq!(done.text("/turn/conversation_id"), "other");
    assert_eq!(done.text("/branch/tip"), done.text("/turn/turn_id"));
    assert_eq!(keyed.post(&path(&question), into("other")).expect(201).json(), done.json());
    served.and("if-match", seen).post(&path(&question), into("other")).refused(412, "conflict");
    served
        .and("if-match", done.header("etag").expect("a tag"))
        .post(&path(&question), into("other"))
        .expect(201);
    served.post(&path("main~1"), into("other")).refused(409, "ambiguous");
    let mut named = into("other");
    named["from_conversation_id"] = json!("trip");
    let again = served.post(&path("main~1"), named).expect(201);
    assert_eq!(again.text("/turn/derived_from"), question);
    served.post(&path(&question), into("none")).refused(404, "not_found");
    served.post(&path(&question), json!({})).refused(400, "invalid");
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        "2024-01-15T10:30:00Z".parse().expect("a time")
    }
}

/// The message under which a commit that was seen would have each of many hashes: its first eight
/// digits, and the message.
fn hashes(seen: &Value) -> impl Iterator<Item = (u32, String)> + '_ {
    let mut hashed = seen.clone();
    let members = hashed.as_object_mut().expect("an object");
    for beside in ["commit_hash", "project_id", "anchor_turn_id", "heads", "conflicts"] {
        members.remove(beside);
    }
    let text = hashed.to_string();
    let (before, after) = text.split_once("MESSAGE").expect("its message");
    let (before, after) = (before.to_owned(), after.to_owned());
    let begun = Sha256::new_with_prefix(before.as_bytes());
    (0..1_000_000_u32).map(move |nth| {
        let message = format!("{nth:07}");
        let digest = begun.clone().chain_update(&message).chain_update(&after).finalize();
        (u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]), message)
    })
}

#[test]
fn an_ambiguous_prefix_is_refused_with_its_candidates() {
    let folder = TempDir::new().expect("a temporary folder");
    let served = Served::at(folder, Options::default(), Limits::default(), Arc::new(Still));
    let seen = ["a", "b"].map(|id| {
        served.post("/api/v1/conversations", json!({"conversation_id": id})).expect(201);
        served.say(id, "Hello").expect(201);
        let body = json!({"conversation_id": id, "message": "MESSAGE"});
        let seen = served.post(COMMITS, body).expect(201).json();
        let undo = format!("/api/v1/operations/latest/undo?conversation_id={id}");
        served.post(&undo, json!({})).expect(200);
        seen
    });
    let ones: HashMap<u32, String> = hashes(&seen[0]).take(300_000).collect();
    let mut others = hashes(&seen[1]);
    let (prefix, message) =
        others.find(|(prefix, _)| ones.contains_key(prefix)).expect("two that begin alike");
    let commit = |id: &str, message: &str| {
        let body = json!({"conversation_id": id, "message": message});
        served.post(COMMITS, body).expect(201).text("/commit_hash")
    };
    let both = [commit("a", &ones[&prefix]), commit("b", &message)];
    let prefix = format!("{prefix:08x}");
    assert!(both.iter().all(|hash| hash.starts_with(&format!("sha256:{prefix}"))), "{both:?}");
    let refused = served.get(&format!("{COMMITS}/{prefix}")).refused(409, "ambiguous");
    let candidates = refused["candidates"].as_array().expect("candidates").iter();
    let mut told: Vec<&str> = candidates.filter_map(|it| it["commit_hash"].as_str()).collect();
    told.sort_unstable();
    let mut both = both.iter().map(String::as_str).collect::<Vec<_>>();
    both.sort_unstable();
    assert_eq!(told, both);
    served.get(&format!("{COMMITS}/{}", &both[0][7..27])).expect(200);
}

#[test]
fn a_redacting_server_redacts_commits() {
    let served = Served::with(Options { redact: true, ..Options::default() });
    served.trip();
    let secret = "see https://me:hunter2@example.org/";
    let commit = json!({"conversation_id": "trip", "message": secret});
    let made = served.post(COMMITS, commit).expect(201);
    assert_eq!(made.text("/message"), "see https://me:[redacted:url_password]@example.org/");
    let log = served.get("/api/v1/operations?conversation_id=trip&limit=1").expect(200).json();
    assert_eq!(log["items"][0]["detail"]["facts"]["redacted"], json!({"url_password": 1}), "{log}");
}
