//! `tine blame` and `bisect`.

use super::{trip, with_osaka};
use crate::harness::{hash_of, stable};

#[test]
fn blame_names_turn_words_commit_and_merge() {
    let home = with_osaka();
    home.ok(&["merge", "osaka"]);
    let out = home.ok(&["blame", "cheaper"]);
    insta::assert_snapshot!("blame", stable(&out, &home.path("")));
    let found = home.json(&["blame", "cherry blossom"]);
    assert_eq!(found["items"][0]["turn_hash"], hash_of(&home, "main~1"));
    assert!(found["items"][0].get("merge_hash").is_none_or(serde_json::Value::is_null));
    home.refused("not_found", &["blame", "Sapporo"]);
    home.refused("not_found", &["blame", "Gion", "--at", "osaka"]);
    home.ok(&["blame", "Gion"]);
    home.refused("invalid", &["blame"]);
    home.refused("invalid", &["blame", "x", "--entity", &trip(&home), "--field", "city"]);
}

#[test]
fn blame_of_a_field_names_the_observation() {
    let home = with_osaka();
    let out = home.ok(&["blame", "--entity", &trip(&home), "--field", "city", "--at", "osaka"]);
    assert!(out.contains("Osaka") && out.contains("observation"), "{out}");
    let found = home.json(&["blame", "--entity", &trip(&home), "--field", "city"]);
    assert_eq!(found["items"][0]["value"], "Kyoto");
    assert_eq!(found["items"][0]["turn_hash"], hash_of(&home, "main"));
}

#[test]
fn bisect_finds_the_first_turn_that_says_or_tells_something() {
    let home = with_osaka();
    let out = home.ok(&["bisect", "--contains", "Tokyo"]);
    assert!(out.starts_with("the first match is  ") && out.contains("cherry blossom"), "{out}");
    let trip = trip(&home);
    let found =
        home.json(&["bisect", "--entity", &trip, "--field", "city", "--value", r#""Kyoto""#]);
    assert_eq!(found["turn"]["turn_hash"], hash_of(&home, "main"));
    let found = home.json(&["bisect", "--entity", &trip, "--field", "city", "--at", "osaka"]);
    assert_eq!(found["turn"]["turn_hash"], hash_of(&home, "main~1"));
    home.refused("invalid", &["bisect", "--contains", "Sapporo"]);
    home.refused("invalid", &["bisect"]);
    home.refused("invalid", &["bisect", "--contains", "x", "run", "true"]);
}

#[test]
fn a_command_tells_good_from_bad_by_its_exit_code() {
    let home = with_osaka();
    let run = |arguments: &[&str]| home.run(arguments);
    let found = run(&["bisect", "run", "sh", "-c", "if grep -q Gion; then exit 1; fi"]);
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.out.starts_with("the first bad turn is  "), "{found:?}");
    assert!(found.out.contains("Rather Kyoto"), "{found:?}");
    assert!(found.err.contains("good") && found.err.contains("bad"), "{found:?}");
    // 126 and 127 are bad as well; 125 skips a turn.
    for code in ["2", "124", "126", "127"] {
        let script = format!("if grep -q Gion; then exit {code}; fi");
        let found = run(&["bisect", "run", "sh", "-c", &script]);
        assert!(found.out.contains("Rather Kyoto"), "{code}: {found:?}");
    }
    let skipping = "input=$(cat); case $input in *Gion*) exit 1;; *Tokyo*) exit 125;; esac";
    let found = run(&["bisect", "run", "sh", "-c", skipping]);
    assert_eq!(found.code, 2, "{found:?}");
    assert!(found.err.contains("skip") && found.err.contains("one of them"), "{found:?}");
    for script in ["exit 128", "kill -9 $$"] {
        let ended = run(&["bisect", "run", "sh", "-c", script]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.err.contains("it ended with"), "{ended:?}");
    }
    let never = run(&["bisect", "run", "true"]);
    assert!(never.code == 2 && never.err.contains("exits with 0 at the end"), "{never:?}");
    let missing = run(&["bisect", "run", "no-such-command"]);
    assert!(missing.code == 2 && missing.err.contains("cannot start it"), "{missing:?}");
}

#[test]
fn the_command_gets_the_path_so_far_and_the_turn() {
    let home = with_osaka();
    let script = "cat > $TINE_TURN_HASH.json; echo $TINE_TURN_ID; echo said on the side; exit 1";
    let found = home.run(&["--json", "bisect", "--at", "osaka", "run", "sh", "-c", script]);
    let document: serde_json::Value = serde_json::from_str(&found.out).expect("one document");
    assert_eq!(document["turn"]["turn_hash"], hash_of(&home, "main~2"), "bad from the start");
    assert!(found.err.contains("said on the side"), "{found:?}");
    let end = home.json(&["show", "osaka"]);
    assert!(found.err.contains(end["turn_id"].as_str().unwrap()), "{found:?}");
    let file = home.path(&format!("{}.json", end["turn_hash"].as_str().unwrap()));
    let path: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let turns = path["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 4);
    assert_eq!(turns[3]["turn_id"], end["turn_id"]);
    let first = home.json(&["show", "main~2"]);
    let file = home.path(&format!("{}.json", first["turn_hash"].as_str().unwrap()));
    let path: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(path["turns"].as_array().unwrap().len(), 1, "no more than there was: {path}");
}
