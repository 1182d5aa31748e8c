//! `tine store` and `tine source`.

use super::{AT, SAID, items, shown, text, with_task};
use crate::harness::{Home, stable};

#[test]
fn a_turn_is_stored_and_every_store_is_an_observation() {
    let home = Home::new();
    let first = ["store", "turn", "trip", "--turn-id", "1", "--created-at", AT, "Where to?"];
    insta::assert_snapshot!("store_turn", shown(&home, &first));
    assert!(home.ok(&first).contains("reused"), "the same words are the same turn");
    let edited = home.ok(&["store", "turn", "trip", "--turn-id", "1", "Where to in April?"]);
    assert!(edited.contains("supersedes"), "{edited}");
    assert!(home.ok(&first).contains("reused"));
    let observed = shown(&home, &["observations", "trip:1"]);
    assert_eq!(observed.lines().count(), 5, "{observed}");
    let now = home.json(&["entity", "show", "trip:1"]);
    assert_eq!(now["fields"]["content"], "Where to?");
    assert!(home.ok(&["verify"]).contains("all is well"));
}

#[test]
fn a_turns_words_come_from_arguments_pipes_files_and_json() {
    let home = Home::new();
    let store = |turn: &str, more: &[&str], input: &[u8]| {
        let mut all = vec!["--json", "store", "turn", "c", "--turn-id", turn];
        all.extend(more);
        serde_json::from_str::<serde_json::Value>(&home.ok_with(&all, input)).expect("a document")
    };
    store("1", &["two", "words"], b"");
    store("2", &["-"], b"from a pipe\n");
    let file = home.write("said.txt", "from a file\n");
    store("3", &["--file", &file], b"");
    store("4", &["--content-json", r#"[{"type":"text","text":"a block"},{"type":"x"}]"#], b"");
    let turns = home.json(&["path", "-c", "c"])["turns"].as_array().unwrap().clone();
    let said: Vec<_> = turns.iter().map(|turn| &turn["content"][0]["text"]).collect();
    assert_eq!(said, ["two words", "from a pipe", "from a file", "a block"]);
    let tool = store("4", &["-r", "tool", "--tool-call-id", "call", "42"], b"");
    assert_eq!(tool["turn_key"], "c:4:tool:call");
    assert_eq!(tool["slot"]["tool_call_id"], "call");
    let other = store("5", &["--branch", "other", "--parent-message", "1", "Elsewhere"], b"");
    assert_eq!(other["branch"]["name"], "other");
    let minted = store("6", &["--parent", "root", "--branch", "third", "--title", "C", "x"], b"");
    assert_eq!(minted["outcome"], "created");
}

#[test]
fn a_repeated_key_replays_and_another_payload_is_refused() {
    let home = Home::new();
    let store = ["store", "turn", "c", "--key", "k", "Hello"];
    home.ok(&store);
    let again = home.ok(&store);
    assert!(again.contains("(result of an earlier call with this key)"), "{again}");
    assert!(again.contains("c:k"), "the key is the turn's handle: {again}");
    home.refused("idempotency_mismatch", &["store", "turn", "c", "--key", "k", "Bye"]);
}

/// Calls that are wrong whatever is stored.
const BAD_TURNS: [&[&str]; 8] = [
    &["store", "turn", "c", ""],
    &["store", "turn", "c"],
    &["store", "turn", "c", "--role", "robot", "x"],
    &["store", "turn", "c", "--role", "tool", "x"],
    &["store", "turn", "c", "--content-json", "[]"],
    &["store", "turn", "c", "--content-json", "{"],
    &["store", "turn", "c", "--attach", "src_1", "x"],
    &["store", "turn", "c", "--created-at", "yesterday", "x"],
];

#[test]
fn an_invalid_turn_creates_no_store() {
    let home = Home::new();
    for arguments in BAD_TURNS {
        assert_eq!(home.run(arguments).code, 2, "{arguments:?}");
        assert!(!home.path("store").exists(), "{arguments:?} made a store");
    }
}

#[test]
fn an_invalid_turn_is_refused() {
    let home = Home::new();
    home.ok(&["store", "turn", "c", "--turn-id", "1", "x"]);
    for arguments in BAD_TURNS {
        home.refused("invalid", arguments);
    }
    let unknown = "src_00000000000000000000000000000000";
    home.refused("not_found", &["store", "turn", "c", "--attach", unknown, "y"]);
    home.refused("not_found", &["store", "turn", "c", "--parent-message", "9", "y"]);
    home.refused("not_found", &["store", "turn", "c", "--file", "nowhere.txt"]);
    let refused = home.refused(
        "invalid",
        &["store", "turn", "c", "--interpret", "wait", "--interpreter", "x", "y"],
    );
    assert!(refused.contains("available: rules"), "{refused}");
}

#[test]
fn a_source_is_kept_once_and_comes_back_byte_for_byte() {
    let home = Home::new();
    let file = home.write("invoice.txt", "Invoice: 1,250.00 EUR, due 2025-04-01.\n");
    let first = home.json(&["store", "source", &file, "--interpret", "none"]);
    assert_eq!(first["source"]["mime_type"], "text/plain");
    assert_eq!(first["source"]["original_filename"], "invoice.txt");
    insta::assert_snapshot!(
        "store_source",
        shown(&home, &["store", "source", &file, "--interpret", "none"])
    );
    let id = text(&first, "/source_id");
    assert_eq!(home.ok(&["source", "cat", &id]), "Invoice: 1,250.00 EUR, due 2025-04-01.\n");
    insta::assert_snapshot!("source_list", shown(&home, &["source", "list"]));
    insta::assert_snapshot!("source_show", shown(&home, &["source", "show", &id]));
    assert_eq!(home.json(&["source", "show", &id])["size_bytes"], 39);
}

#[test]
fn large_files_and_pipes_are_kept_whole() {
    let home = Home::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    let file = home.write("large.bin", &bytes);
    let stored = home.json(&["store", "source", &file]);
    assert_eq!(stored["source"]["mime_type"], "application/octet-stream");
    assert_eq!(stored["interpretation"], serde_json::Value::Null);
    assert!(text(&stored, "/warnings/0").contains("no text"), "{stored}");
    let piped = ["--json", "store", "source", "-", "--mime", "application/octet-stream"];
    let again = home.ok_with(&piped, &bytes);
    assert!(again.contains("\"outcome\":\"reused\""), "{again}");
    let output = home.command(&["source", "cat", &text(&stored, "/source_id")]).output();
    assert!(output.expect("it runs").stdout == bytes, "the bytes differ");
}

#[test]
fn an_envelope_is_a_source_and_a_turn_under_both_of_its_types() {
    let home = Home::new();
    for (turn, mime) in
        [("1", "application/vnd.tine.turn+json"), ("2", "application/x-neotoma-conversation-turn")]
    {
        let envelope =
            format!(r#"{{"content":"{SAID}","conversation_id":"chat","turn_id":"{turn}"}}"#);
        let stored = home.ok_with(
            &["--json", "store", "source", "-", "--mime", mime, "--interpret", "wait"],
            envelope.as_bytes(),
        );
        let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(stored["turn"]["turn_key"], format!("chat:{turn}"));
        assert_eq!(stored["interpretation"]["status"], "completed");
    }
    assert_eq!(items(&home, &["source", "list"]).len(), 2);
    let bare = [&b"{\"content\":\"Hello\"}"[..], b"{\"text\":\"Hello\"}"];
    // Nothing is left to a server that would read it while the test looks on.
    let mime =
        ["store", "source", "-", "--interpret", "none", "--mime", "application/vnd.tine.turn+json"];
    let warned = home.ok_with(&mime, bare[0]);
    assert!(warned.contains("warning: the envelope has neither turn_id nor timestamp"), "{warned}");
    assert!(home.refused_with("invalid", &mime, bare[1]).contains("needs `content`"));
}

#[test]
fn purging_a_source_removes_its_facts() {
    let home = Home::new();
    let file = home.write("notes.md", "TODO: pay the invoice by 2025-04-01.\n");
    let stored = home.json(&["store", "source", &file, "--interpret", "wait"]);
    let id = text(&stored, "/source_id");
    assert!(home.refused("invalid", &["purge", &id]).contains("--yes"));
    let said = home.ok(&["purge", &id, "--yes"]);
    assert!(said.contains("1 observation, with the bytes of:") && said.contains(&id), "{said}");
    assert_eq!(home.run(&["source", "cat", &id]).code, 8);
    assert!(home.ok(&["source", "list"]).contains("(purged)"));
    assert_eq!(home.ok(&["timeline"]), "");
    home.refused("unsupported", &["store", "source", &file]);
    assert!(home.ok(&["verify"]).contains("all is well"));
}

#[test]
fn a_bad_source_is_refused() {
    let home = with_task();
    home.refused("not_found", &["store", "source", "nowhere.txt"]);
    home.refused("invalid", &["store", "source", "."]);
    let unnamed = home.refused_with("invalid", &["store", "source", "-"], b"bytes");
    assert!(unnamed.contains("--mime"), "{unnamed}");
    home.refused("not_found", &["source", "show", "src_00000000000000000000000000000000"]);
    let ran = home.run(&["source", "cat", "src_00000000000000000000000000000000"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    home.refused("invalid", &["source", "show", "ent_00000000000000000000000000000000"]);
    let id = text(&items(&home, &["source", "list"])[0], "/source_id");
    let ran = home.run(&["--json", "source", "cat", &id]);
    assert_eq!(ran.code, 2, "bytes are no document: {ran:?}");
}

#[test]
fn facts_are_stored_with_their_relationships() {
    let home = Home::new();
    let facts = home.write(
        "facts.json",
        r#"{"entities": [
            {"entity_type": "person", "fields": {"name": "Ada", "email": "ada@example.org"}},
            {"entity_type": "task", "title": "Pay", "due": "2025-04-01", "shade": "blue"}],
          "relationships": [{"type": "DEPENDS_ON", "source_index": 1, "target_index": 0}],
          "agent": {"name": "test"}}"#,
    );
    insta::assert_snapshot!("store_facts", shown(&home, &["store", "facts", &facts]));
    let again = home.ok(&["store", "facts", &facts]);
    assert!(again.contains("reused"), "{again}");
    let ada = home.json(&["entity", "list", "--type", "person"]);
    assert_eq!(ada["items"][0]["fields"]["email"], "ada@example.org");
    assert_eq!(ada["items"][0]["observations"], 2);
}

#[test]
fn invalid_facts_are_refused_as_a_whole() {
    let home = with_task();
    let before = items(&home, &["entity", "list"]);
    let calls = [
        ("{}", "nothing to store"),
        ("[]", "is an object"),
        (r#"{"entity":[]}"#, "no member `entity`"),
        (r#"{"entities":[3]}"#, "entities[0]: an entity is an object"),
        (
            r#"{"entities":[{"fields":{"name":"x"}}]}"#,
            "entities[0]: an entity needs its `entity_type`",
        ),
        (r#"{"entities":[{"entity_type":"person","fields":{"name":"x"},"nmae":1}]}"#, "`nmae`"),
        (r#"{"entities":[{"entity_type":"person","fields":{"name":"x"},"span":[1]}]}"#, "span"),
        (r#"{"entities":[{"entity_type":"person","fields":{"name":7}}]}"#, "takes a string"),
        (r#"{"entities":[{"entity_type":"agent_message","fields":{"x":1}}]}"#, "store the turn"),
        (r#"{"relationships":[{"type":"LIKES","source_index":0,"target_index":1}]}"#, "LIKES"),
        (r#"{"relationships":[{"type":"PART_OF","target_index":1}]}"#, "exactly one of"),
        (r#"{"relationships":[{"type":"PART_OF","sorce_index":1}]}"#, "`sorce_index`"),
        (r#"{"entities":[{"entity_type":"a","fields":{"name":1},"fields":{}}]}"#, "invalid JSON"),
    ];
    for (facts, word) in calls {
        let said = home.refused_with("invalid", &["store", "facts"], facts.as_bytes());
        assert!(said.contains(word), "{facts}: {said}");
    }
    assert_eq!(items(&home, &["entity", "list"]), before);
}

#[test]
fn documents_of_stores_keep_their_shape() {
    let home = Home::new();
    let mut all = String::new();
    let mut add = |arguments: &[&str]| {
        let pretty = serde_json::to_string_pretty(&home.json(arguments)).expect("a document");
        all.push_str(&format!("$ tine {}\n{pretty}\n\n", arguments.join(" ")));
    };
    let said = ["store", "turn", "trip", "--turn-id", "1", "--created-at", AT];
    add(&[&said[..], &["--interpret", "wait", SAID]].concat());
    add(&["source", "list"]);
    add(&["observations", "trip:1"]);
    add(&["entity", "list", "--type", "task"]);
    add(&["timeline"]);
    add(&["relations", "-n", "1"]);
    add(&["interpret", "--status"]);
    let all: Vec<String> = all
        .lines()
        .map(|line| match line.split_once("\"duration_ms\": ") {
            Some((before, _)) => format!("{before}\"duration_ms\": MS,"),
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!("documents", stable(&all.join("\n"), &home.path("")));
}
