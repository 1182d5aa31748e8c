//! `tine sync` with a server: bytes transferred, and interruptions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::damage::flips::Dice;
use crate::harness::{Home, Server};

/// How many turns are synced before a thousandth of them is new; 100,000 is the real size.
const TURNS: &str = "TINE_TEST_SYNC_TURNS";

/// Number of kills.
const KILLS: &str = "TINE_TEST_SYNC_KILLS";

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A session of Claude Code with so many turns, each of about a kilobyte.
fn session(id: &str, turns: u64) -> String {
    let line = |nth: u64| {
        let parent = match nth {
            0 => "null".to_owned(),
            nth => format!("\"{id}-{}\"", nth - 1),
        };
        let (hour, minute, second) = (nth / 3_600, nth / 60 % 60, nth % 60);
        let said = format!("turn {nth} of {id} {}", "and some more words ".repeat(48));
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{id}-{nth}\",\"parentUuid\":{parent},\
             \"sessionId\":\"{id}\",\"cwd\":\"/home/me/app\",\
             \"timestamp\":\"2026-01-01T{hour:02}:{minute:02}:{second:02}Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{said}\"}}}}\n"
        )
    };
    (0..turns).map(line).collect()
}

/// Brings sessions of so many turns each into a store, or makes those that are there longer.
fn grow(home: &Home, ids: &[String], turns: u64) {
    let files: Vec<String> =
        ids.iter().map(|id| home.write(&format!("{id}.jsonl"), session(id, turns))).collect();
    let mut arguments = vec!["import"];
    arguments.extend(files.iter().map(String::as_str));
    home.ok(&arguments);
}

fn sessions(prefix: &str, count: u64) -> Vec<String> {
    (0..count).map(|nth| format!("{prefix}-{nth}")).collect()
}

/// Passes connections on to a server, and counts every byte.
struct Counter {
    url: String,
    bytes: Arc<AtomicU64>,
}

impl Counter {
    fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bytes = Arc::new(AtomicU64::new(0));
        let (address, counted) = (server.url.replace("http://", ""), bytes.clone());
        thread::spawn(move || {
            for caller in listener.incoming() {
                let Ok(caller) = caller else { return };
                let Ok(called) = TcpStream::connect(&address) else { return };
                let (back, forth) = (called.try_clone().unwrap(), caller.try_clone().unwrap());
                for (from, to) in [(caller, called), (back, forth)] {
                    let counted = counted.clone();
                    thread::spawn(move || pass_on(from, to, &counted));
                }
            }
        });
        Counter { url, bytes }
    }

    /// What went through since the last look.
    fn take(&self) -> u64 {
        self.bytes.swap(0, Ordering::SeqCst)
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, counted: &AtomicU64) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(size @ 1..) = from.read(&mut piece) {
        counted.fetch_add(size as u64, Ordering::SeqCst);
        if to.write_all(&piece[..size]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[test]
fn a_small_change_transfers_few_bytes() {
    let (home, other) = (Home::new(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    let way = Counter::before(&server);
    let each = 500;
    let ids = sessions("a", number(TURNS, 5_000) / each);
    grow(&home, &ids, each);
    home.ok(&["sync", &way.url]);
    let whole = way.take();
    // Of half of the conversations each side has one new turn.
    let (mine, theirs) = ids.split_at(ids.len() / 2);
    grow(&home, mine, each + 1);
    let done = home.json(&["sync", &way.url]);
    assert_eq!(done["pushed"]["turns"], mine.len());
    let pushed = way.take();
    grow(&other, theirs, each + 1);
    let done = home.json(&["sync", &way.url]);
    assert_eq!(done["pulled"]["turns"], theirs.len());
    let pulled = way.take();
    home.ok(&["sync", &way.url]);
    let again = way.take();
    println!("{whole} bytes for all; then {pushed} pushed, {pulled} pulled, {again} for nothing");
    assert!((pushed + pulled) * 100 < whole, "{pushed} and {pulled} of {whole}");
    assert!(other.everything() == home.everything(), "both hold the same bytes");
}

#[test]
fn common_imports_are_compared_once() {
    let (home, other) = (Home::new(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    let way = Counter::before(&server);
    for side in [&home, &other] {
        grow(side, &sessions("a", 3), 200);
    }
    let done = home.json(&["sync", &way.url]);
    assert_eq!((&done["pulled"]["turns"], &done["pushed"]["turns"]), (&0.into(), &0.into()));
    let first = way.take();
    home.ok(&["sync", &way.url]);
    let again = way.take();
    println!("{first} bytes to compare, then {again}");
    assert!(first > 500_000 && again < 20_000, "{first}, then {again}");
    grow(&other, &sessions("a", 1), 201);
    assert_eq!(home.json(&["sync", &way.url])["pulled"]["turns"], 1);
    assert!(way.take() < 40_000, "only what is new travels");
}

/// What a store holds: whole conversations to the byte, but of those that both sides went on with
/// only the turns, which are what both share.
fn holdings(home: &Home) -> BTreeMap<String, BTreeSet<String>> {
    let mut held: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in home.everything().lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(id) = record["conversation_id"].as_str() {
            current = id.to_owned();
        }
        let kept = match record["record"].as_str() {
            _ if current.is_empty() => continue,
            Some("end") => continue,
            Some("turn") if current == "both" => {
                format!("{} {}", record["turn_id"], record["turn_hash"])
            }
            _ if current == "both" => continue,
            _ => line.to_owned(),
        };
        held.entry(current.clone()).or_default().insert(kept);
    }
    held
}

fn check_equal(one: &Home, other: &Home) {
    for home in [one, other] {
        assert_eq!(home.json(&["verify"])["ok"], true);
    }
    let (mine, theirs) = (holdings(one), holdings(other));
    assert!(mine.len() > 1);
    for (id, records) in &mine {
        assert_eq!(Some(records), theirs.get(id), "{id}");
    }
    assert_eq!(mine.len(), theirs.len());
}

/// A sync that can be killed.
fn begun(home: &Home, url: &str, way: Option<&str>) -> Child {
    let mut command = home.command(&["sync", url]);
    command.args(way).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A sync that is whole: nothing is noted, and again there is nothing to do.
fn completed(home: &Home, url: &str) {
    let done = home.json(&["sync", url]);
    assert_eq!(done["notes"], serde_json::json!([]));
    let again = home.json(&["sync", url]);
    for way in ["pulled", "pushed"] {
        assert_eq!((&again[way]["turns"], &again[way]["operations"]), (&0.into(), &0.into()));
    }
}

#[test]
fn an_interrupted_sync_is_completed_by_the_next() {
    let (home, other) = (Home::new(), Home::new());
    let (mine, theirs) = (sessions("a", 4), sessions("b", 4));
    home.ok(&["new", "both"]);
    let mut server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    home.ok(&["sync", &server.url]);
    // How long a whole one takes, so that kills fall anywhere in it.
    grow(&home, &mine, 10);
    grow(&other, &theirs, 10);
    let start = Instant::now();
    completed(&home, &server.url);
    let longest = u64::try_from(start.elapsed().as_micros()).unwrap() / 2;
    let mut dice = Dice::new(10);
    for round in 0..number(KILLS, 20) {
        grow(&home, &mine, 10 + 3 * (round + 1));
        grow(&other, &theirs, 10 + 2 * (round + 1));
        for (side, said) in [(&home, "here"), (&other, "there")] {
            side.ok(&["append", "-c", "both", &format!("said {said} in round {round}")]);
        }
        let way = [None, Some("--pull"), Some("--push")][dice.below(3) as usize];
        let mut sync = begun(&home, &server.url, way);
        thread::sleep(Duration::from_micros(dice.below(longest)));
        if round % 3 == 2 {
            server.kill();
            sync.wait().unwrap();
            server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
        } else {
            sync.kill().unwrap();
            sync.wait().unwrap();
        }
        completed(&home, &server.url);
        check_equal(&home, &other);
    }
    let tree = home.ok(&["tree", "-c", "both"]);
    assert!(tree.contains("said here in round 0") && tree.contains("main-1"), "{tree}");
}

#[test]
fn two_clients_sync_with_one_server_at_once() {
    let (one, two, shared) = (Home::new(), Home::new(), Home::new());
    let server = Server::start(&shared.path("store"), "127.0.0.1:0", &[]);
    one.ok(&["new", "both"]);
    one.ok(&["sync", &server.url]);
    two.ok(&["sync", &server.url]);
    for round in 0..3 {
        grow(&one, &sessions("a", 3), 5 + round);
        grow(&two, &sessions("b", 3), 5 + round);
        for (side, said) in [(&one, "one"), (&two, "two")] {
            side.ok(&["append", "-c", "both", &format!("said by {said} in round {round}")]);
        }
        for mut sync in [begun(&one, &server.url, None), begun(&two, &server.url, None)] {
            assert!(sync.wait().unwrap().success());
        }
        for side in [&one, &two, &one] {
            side.ok(&["sync", &server.url]);
        }
        completed(&two, &server.url);
        check_equal(&one, &shared);
        check_equal(&two, &shared);
    }
}

#[test]
fn the_project_log_syncs_unless_it_diverged() {
    let (home, other) = (Home::with_trip(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    let person = |name: &str| {
        let fields = serde_json::json!({ "name": name });
        serde_json::json!({ "entities": [{ "entity_type": "person", "fields": fields }] })
            .to_string()
    };
    home.ok_with(&["store", "facts"], person("Alice Chen").as_bytes());
    completed(&home, &server.url);
    assert_eq!(other.everything(), home.everything());
    home.ok_with(&["store", "facts"], person("Bo Li").as_bytes());
    completed(&home, &server.url);
    assert_eq!(other.everything(), home.everything());
    home.ok_with(&["store", "facts"], person("Carol").as_bytes());
    other.ok_with(&["store", "facts"], person("Dan").as_bytes());
    // That is said, and everything else is synced all the same.
    home.ok(&["append", "-c", "trip", "and more"]);
    let ran = home.run(&["--json", "sync", &server.url]);
    assert_eq!(ran.code, i32::from(tine_core::ErrorKind::Unsupported.exit_code()), "{ran:?}");
    let done: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(done["pushed"]["turns"], 1, "{done}");
    let kept = done["kept_back"].as_array().unwrap();
    assert_eq!((kept.len(), &kept[0]["conversation_id"]), (1, &"~project".into()), "{done}");
    assert!(kept[0]["message"].to_string().contains("went different ways"), "{done}");
    assert!(ran.err.contains("skipped") && ran.err.contains("unsupported"), "{ran:?}");
    let ran = home.run(&["sync", &server.url]);
    assert!(ran.out.contains("skipped: ~project: ") && ran.code != 0, "{ran:?}");
    check_verified(&[&home, &other]);
}

#[test]
fn a_conflicting_bookmark_is_renamed_and_reported() {
    let (home, other) = (Home::new(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    for (side, id) in [(&home, "mine"), (&other, "theirs")] {
        side.ok(&["new", id]);
        side.ok(&["append", "-c", id, "said"]);
        side.ok(&["bookmark", "mark", "-c", id, "main"]);
    }
    let done = home.json(&["sync", &server.url]);
    let notes = done["notes"].to_string();
    assert!(
        notes.contains("here, where it is named `mark-1`")
            && notes.contains("in the remote, where it is named `mark-1`"),
        "{notes}"
    );
    completed(&home, &server.url);
    for side in [&home, &other] {
        let found = side.json(&["bookmark"]).to_string();
        assert!(found.contains("\"mark\"") && found.contains("\"mark-1\""), "{found}");
    }
    check_verified(&[&home, &other]);
}

#[test]
fn remote_erasures_apply_only_with_erase() {
    let (home, other) = (Home::new(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    for id in ["one", "two"] {
        home.ok(&["new", id]);
        home.ok(&["append", "-c", id, "a secret"]);
    }
    home.ok(&["store", "source", &home.write("note.txt", "a secret of its own")]);
    completed(&home, &server.url);
    other.ok(&["purge", "main", "-c", "one", "--yes"]);
    other.ok(&["append", "-c", "two", "more"]);
    let source = other.ok(&["source", "list"]).split_whitespace().next().unwrap().to_owned();
    other.ok(&["purge", &source, "--yes"]);
    for pull in [&["--json", "sync", &server.url, "--pull"][..], &["--json", "sync", &server.url]] {
        let ran = home.run(pull);
        assert_eq!(ran.code, i32::from(tine_core::ErrorKind::Protected.exit_code()), "{ran:?}");
        let done: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let kept = done["kept_back"].as_array().unwrap();
        let ids: BTreeSet<&str> =
            kept.iter().map(|it| it["conversation_id"].as_str().unwrap()).collect();
        assert_eq!(ids, BTreeSet::from(["one", "~project"]), "{done}");
        assert!(kept[0]["message"].as_str().unwrap().contains("--erase"), "{done}");
        assert!(home.ok(&["log", "-c", "one"]).contains("a secret"));
        assert!(home.ok(&["log", "-c", "two"]).contains("more"), "all else is there");
        assert_eq!(home.ok(&["source", "cat", &source]), "a secret of its own");
    }
    home.ok(&["sync", &server.url, "--erase"]);
    assert!(!home.ok(&["log", "-c", "one"]).contains("a secret"));
    completed(&home, &server.url);
    assert_eq!(other.everything(), home.everything());
}

#[test]
fn a_pending_erasure_is_reported_after_divergence_too() {
    let (home, other) = (Home::new(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    home.ok(&["new", "one"]);
    home.ok(&["append", "-c", "one", "a secret"]);
    completed(&home, &server.url);
    other.ok(&["purge", "main", "-c", "one", "--yes"]);
    let protected = i32::from(tine_core::ErrorKind::Protected.exit_code());
    assert_eq!(home.run(&["sync", &server.url]).code, protected);
    for said in ["x", "y"] {
        home.ok(&["append", "-c", "one", said]);
        let ran = home.run(&["--json", "sync", &server.url]);
        assert_eq!(ran.code, protected, "{ran:?}");
        let done: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert!(done["kept_back"][0]["message"].as_str().unwrap().contains("--erase"), "{done}");
        assert!(other.ok(&["log", "-c", "one"]).contains(said), "what was said travels");
    }
    assert!(home.ok(&["log", "-c", "one"]).contains("a secret"));
    home.ok(&["sync", &server.url, "--erase"]);
    assert!(!home.ok(&["log", "-c", "one"]).contains("a secret"));
    home.ok(&["sync", &server.url]);
    check_verified(&[&home, &other]);
}

#[test]
fn skipped_conversations_of_all_projects_are_named() {
    let (home, other) = (Home::new(), Home::new());
    let folder = other.path("store");
    let facts = serde_json::json!({
        "entities": [{ "entity_type": "person", "fields": { "name": "Alice Chen" } }]
    })
    .to_string();
    for project in ["one", "two"] {
        for side in [&home, &other] {
            side.ok_with(&["--project", project, "store", "facts"], facts.as_bytes());
        }
    }
    let ran = home.run(&["--json", "sync", folder.to_str().unwrap()]);
    let done: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let kept = done["kept_back"].as_array().unwrap();
    let named: Vec<_> = kept.iter().map(|it| it["project_id"].as_str().unwrap()).collect();
    assert_eq!(named, ["one", "two"], "{done}");
    assert!(ran.err.contains("and 1 more were skipped"), "{ran:?}");
}

fn check_verified(homes: &[&Home]) {
    for home in homes {
        assert_eq!(home.json(&["verify"])["ok"], true);
    }
}
