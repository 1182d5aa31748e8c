//! `tine entity`, `observations` and `timeline`.

use super::{AT, items, only, person, shown, text, with_task};
use crate::harness::Home;

#[test]
fn a_turn_key_names_its_message_and_several_are_ambiguous() {
    let home = Home::new();
    home.ok(&["store", "turn", "trip", "--turn-id", "1", "--created-at", AT, "Where to?"]);
    assert!(home.ok(&["observations", "trip:1"]).contains("Where to?"));
    let answer = ["store", "turn", "trip", "--turn-id", "1", "-r", "assistant", "To Kyoto."];
    home.ok(&answer);
    let said = home.refused("ambiguous", &["observations", "trip:1"]);
    assert!(said.contains("  user       trip:1\n"), "{said}");
    assert!(said.contains("  assistant  trip:1:assistant\n"), "{said}");
    insta::assert_snapshot!("observations", shown(&home, &["observations", "trip:1:user"]));
    assert!(home.ok(&["observations", "trip:1:assistant"]).contains("To Kyoto."));
    let id = text(&home.json(&["entity", "show", "trip:1:assistant"]), "/entity_id");
    assert!(home.ok(&["observations", &id]).contains("To Kyoto."));
    home.refused("not_found", &["observations", "trip:2"]);
    home.refused("not_found", &["observations", "ent_00000000000000000000000000000000"]);
    assert!(home.refused("invalid", &["observations", "trip"]).contains("CONVERSATION:TURN"));
}

#[test]
fn a_turn_key_is_found_wherever_its_ids_hold_colons() {
    let home = Home::new();
    let store = |conversation: &str, turn: &str, more: &[&str]| {
        let said = format!("{conversation} {turn}");
        let all = [&["store", "turn", conversation, "--turn-id", turn], more, &[&said]].concat();
        home.ok(&all);
    };
    store("a:b", "c:1", &[]);
    store("a", "x:assistant", &[]);
    store("a", "y", &["-r", "tool", "--tool-call-id", "call:1"]);
    assert!(home.ok(&["observations", "a:b:c:1"]).contains("a:b c:1"));
    assert!(home.ok(&["observations", "a:b:c:1:user"]).contains("a:b c:1"));
    assert!(home.ok(&["observations", "a:x:assistant"]).contains("a x:assistant"));
    assert!(home.ok(&["observations", "a:y"]).contains("a y"));
    assert!(home.ok(&["observations", "a:y:tool:call:1"]).contains("a y"));
    home.refused("not_found", &["observations", "a:y:tool:call"]);
    home.refused("not_found", &["observations", "a:b:c"]);
    store("a:b:c", "1", &[]);
    let said = home.refused("ambiguous", &["observations", "a:b:c:1"]);
    assert_eq!(said.matches("ent_").count(), 2, "{said}");
}

#[test]
fn versions_of_a_deleted_turn_are_retracted() {
    let home = Home::new();
    home.ok(&["store", "turn", "trip", "--turn-id", "1", "Where to?"]);
    home.ok(&["delete", "main"]);
    let observed = home.ok(&["observations", "trip:1"]);
    assert!(observed.contains("(retracted)"), "{observed}");
    assert!(observed.contains("(retracts "), "{observed}");
}

#[test]
fn entities_are_listed_by_type_and_words_and_shown() {
    let home = with_task();
    let all = home.ok(&["entity", "list"]);
    assert!(all.contains("task") && all.contains("agent_message"), "{all}");
    assert_eq!(home.ok(&["entity", "list", "--type", "task"]).lines().count(), 1);
    assert!(home.ok(&["entity", "list", "--text", "HOTEL"]).contains("task"));
    assert_eq!(home.ok(&["entity", "list", "--type", "nothing_of_it"]), "");
    let task = only(&home, "task");
    let shown = shown(&home, &["entity", "show", &task]);
    insta::assert_snapshot!("entity_show", shown);
    home.refused("invalid", &["entity", "list", "--type", "No Type"]);
    home.refused("not_found", &["entity", "show", "ent_00000000000000000000000000000000"]);
    home.refused("invalid", &["entity", "show", &task, "--at", "once"]);
}

#[test]
fn provenance_leads_from_a_value_to_the_bytes() {
    let home = with_task();
    let task = only(&home, "task");
    insta::assert_snapshot!("provenance", shown(&home, &["entity", "provenance", &task]));
    let one = home.json(&["entity", "provenance", &task, "due"]);
    let evidence = &one["items"][0]["evidence"][0];
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    assert_eq!(evidence["interpretation"]["interpreter"], "rules");
    let source = text(evidence, "/source/source_id");
    assert!(home.ok(&["source", "cat", &source]).contains(&text(evidence, "/observation/quote")));
    let said = home.refused("not_found", &["entity", "provenance", &task, "colour"]);
    assert!(said.contains("`due`"), "it tells what there is: {said}");
}

#[test]
fn a_correction_outlasts_later_stores_and_is_undone_by_the_projects_log() {
    let home = Home::new();
    let ada = person(&home, "Ada", "ada@old.example");
    let right = ["entity", "correct", &ada, "email=ada@new.example", "--at", AT];
    insta::assert_snapshot!("correct", shown(&home, &right));
    person(&home, "Ada", "ada@older.example");
    let email = || home.json(&["entity", "show", &ada])["fields"]["email"].clone();
    assert_eq!(email(), "ada@new.example");
    insta::assert_snapshot!(
        "provenance_of_a_correction",
        shown(&home, &["entity", "provenance", &ada, "email"])
    );
    insta::assert_snapshot!("ops_of_project", shown(&home, &["ops", "--project-log"]));
    assert_eq!(home.ok(&["undo", "2", "--project-log"]), "operation 2 (correct) is undone\n");
    assert_eq!(email(), "ada@older.example");
    assert_eq!(home.ok(&["redo", "--project-log"]), "operation 2 (correct) is redone\n");
    assert_eq!(email(), "ada@new.example");
    home.ok(&["entity", "correct", &ada, "--json-value", "email=null"]);
    assert!(email().is_null());
}

#[test]
fn a_bad_correction_is_refused() {
    let home = with_task();
    let task = only(&home, "task");
    let calls: [&[&str]; 5] = [
        &["due"],
        &["due=tomorrow"],
        &["due=2025-01-01", "due=2025-01-02"],
        &["--json-value", "due=2025-01-01"],
        &[],
    ];
    for more in calls {
        home.refused("invalid", &[&["entity", "correct", task.as_str()], more].concat());
    }
    let said = home.refused("unsupported", &["entity", "correct", "trip:1", "content=x"]);
    assert!(said.contains("edit the turn"), "{said}");
    assert_eq!(items(&home, &["observations", &task]).len(), 1, "nothing was observed");
}

#[test]
fn entities_are_merged_and_separated() {
    let home = Home::new();
    let (ada, countess) =
        (person(&home, "Ada", "a@x.example"), person(&home, "Countess", "c@x.example"));
    let merged = home.ok(&["entity", "merge", &countess, &ada]);
    assert!(merged.starts_with(&ada) && merged.contains("2 observations"), "{merged}");
    assert_eq!(only(&home, "person"), ada);
    assert!(home.ok(&["entity", "show", &countess]).contains(&format!("merged from {countess}")));
    home.refused("invalid", &["entity", "merge", &ada, &ada]);
    home.ok(&["undo", "--project-log"]);
    assert_eq!(items(&home, &["entity", "list", "--type", "person"]).len(), 2);

    person(&home, "Ada", "other@x.example");
    let second = text(&items(&home, &["observations", &ada])[1], "/observation_id");
    let (_, end) = second.rsplit_once('_').unwrap();
    assert!(home.ok(&["observations", &ada]).contains(&format!("\n{end}  ")), "{end} is shown");
    let parted = home.json(&["entity", "separate", &ada, end]);
    assert_eq!(parted["fields"]["email"], "other@x.example");
    assert_eq!(home.json(&["entity", "show", &ada])["fields"]["email"], "a@x.example");
    let other = text(&items(&home, &["observations", &countess])[0], "/observation_id");
    home.refused("invalid", &["entity", "separate", &ada, &other]);
    home.refused("invalid", &["entity", "separate", &ada, "obs_1"]);
    let into = ["entity", "separate", &countess, &other, "--into", &ada];
    assert_eq!(home.json(&into)["entity_id"], ada.as_str());
}

#[test]
fn a_deleted_entity_is_hidden_until_it_is_restored() {
    let home = Home::new();
    let ada = person(&home, "Ada", "a@x.example");
    assert!(home.ok(&["entity", "delete", &ada]).contains("(deleted)"));
    assert_eq!(home.ok(&["entity", "list", "--type", "person"]), "");
    assert!(home.ok(&["entity", "list", "--deleted"]).contains("(deleted)"));
    assert!(!home.ok(&["entity", "restore", &ada]).contains("(deleted)"));
    assert_eq!(only(&home, "person"), ada);
    home.ok(&["store", "turn", "trip", "--turn-id", "1", "x"]);
    home.refused("unsupported", &["entity", "delete", "trip:1"]);
}

#[test]
fn as_of_reads_show_earlier_knowledge() {
    let home = Home::new();
    let at = |email: &str, time: &str| {
        let facts = format!(
            r#"{{"entities":[{{"entity_type":"person","name":"Ada","email":"{email}",
            "observed_at":"{time}"}}]}}"#
        );
        home.ok_with(&["store", "facts"], facts.as_bytes());
    };
    at("new@x.example", "2025-06-01T00:00:00Z");
    at("old@x.example", "2025-01-01T00:00:00Z");
    let ada = only(&home, "person");
    let email = |more: &[&str]| {
        home.json(&[&["entity", "show", ada.as_str()], more].concat())["fields"]["email"].clone()
    };
    assert_eq!(email(&[]), "new@x.example");
    assert_eq!(email(&["--at", "2025-03-01"]), "old@x.example");
    assert!(email(&["--at", "2024-03-01"]).is_null());
    assert!(email(&["--at-stored", "2024-01-01T00:00:00Z"]).is_null());
    assert_eq!(email(&["--at-stored", "2100-01-01"]), "new@x.example");
}

#[test]
fn schemas_are_listed_shown_and_registered() {
    let home = with_task();
    let all = home.ok(&["entity", "schemas"]);
    assert!(all.contains("person") && all.contains("task"), "{all}");
    insta::assert_snapshot!("schema", home.ok(&["entity", "schema", "person"]));
    let ship = r#"{"entity_type":"ship","fields":{"name":"name","flags":{"kind":"list"},
        "tons":"number"},"identity":["name"]}"#;
    let file = home.write("ship.json", ship);
    insta::assert_snapshot!("schema_registered", home.ok(&["entity", "register", &file]));
    let next =
        home.ok_with(&["entity", "register", "-"], ship.replace("tons", "length").as_bytes());
    assert!(next.contains("ship, version 2"), "{next}");
    assert!(home.ok(&["entity", "schema", "ship", "--version", "1"]).contains("tons"));
    home.refused_with("invalid", &["entity", "register", "-"], br#"{"entity_type":"Ship"}"#);
    home.refused_with("invalid", &["entity", "register", "-"], b"ship");
    home.refused("not_found", &["entity", "schema", "ship", "--version", "9"]);
    home.refused("not_found", &["entity", "register", "nowhere.json"]);
}

#[test]
fn the_timeline_is_in_order_and_can_be_cut() {
    let home = with_task();
    let facts = r#"{"entities":[{"entity_type":"task","title":"Pay","due":"2025-04-01"}]}"#;
    home.ok_with(&["store", "facts"], facts.as_bytes());
    insta::assert_snapshot!("timeline", shown(&home, &["timeline"]));
    assert!(!home.ok(&["timeline", "--from", "2025-04-01"]).contains("hotel"));
    assert!(!home.ok(&["timeline", "--to", "2025-04-01"]).contains("Pay"));
    assert_eq!(home.ok(&["timeline", "-n", "1"]).lines().count(), 1);
    home.refused("invalid", &["timeline", "--from", "spring"]);
}
