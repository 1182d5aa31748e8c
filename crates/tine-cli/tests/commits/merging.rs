//! `tine merge`, `resolve` and `inject`.

use super::{trip, with_osaka};
use crate::harness::{Home, finish, hash_of, stable};

#[test]
fn a_rehearsal_says_everything_and_writes_nothing() {
    let home = with_osaka();
    let before = home.everything();
    let out = home.ok(&["merge", "osaka", "--dry-run"]);
    assert!(out.contains("would get this merge; nothing was changed"), "{out}");
    assert!(out.contains("budget: 2000 → 1500") && out.contains("side 2: Osaka"), "{out}");
    assert_eq!(home.everything(), before);
}

#[test]
fn a_merge_says_what_changes_and_what_is_left_to_decide() {
    let home = with_osaka();
    let out = home.ok(&["merge", "osaka"]);
    insta::assert_snapshot!("merge", stable(&out, &home.path("")));
    insta::assert_snapshot!("resolve_list", stable(&home.ok(&["resolve"]), &home.path("")));
    assert!(home.ok(&["merge", "osaka"]).contains("is up to date"));
    assert!(home.ok(&["commits", "-n", "1"]).contains("(2 conflicts)"));
    home.refused("not_found", &["merge", "nothing"]);
}

#[test]
fn several_fields_are_decided_in_one_call() {
    let home = with_osaka();
    home.ok(&["merge", "osaka"]);
    let (trip, side) = (trip(&home), "2");
    let (city, hotel) = (format!("{trip}.city"), format!("{trip}.hotel"));
    let decided = ["resolve", &city, "--side", side, &hotel, "--value", r#""Ryokan""#];
    let made = home.json(&decided);
    assert_eq!(made["facet_snapshot"]["conflicts"], serde_json::json!([]));
    let fields = &made["facet_snapshot"]["facts"][&trip]["fields"];
    assert_eq!((&fields["city"], &fields["hotel"]), (&"Osaka".into(), &"Ryokan".into()));
    assert!(home.ok(&["resolve"]).contains("no conflicts on main"));
    let why = home.refused("invalid", &["resolve", &city, "--nothing"]);
    assert!(why.contains("is not in conflict"), "{why}");
}

#[test]
fn decisions_that_make_no_sense_are_refused() {
    let home = with_osaka();
    home.ok(&["merge", "osaka"]);
    let city = format!("{}.city", trip(&home));
    let calls: [(&[&str], &str); 7] = [
        (&["resolve", &city], "--side N, --value JSON or --nothing"),
        (&["resolve", "--side", "1", &city], "--side N, --value JSON or --nothing"),
        (&["resolve", &city, "--side", "1", "--nothing"], "only one of"),
        (&["resolve", "--nothing"], "name the field before"),
        (&["resolve", &city, "--side", "3"], "give 1 to 2"),
        (&["resolve", &city, "--value", "{"], "invalid JSON"),
        (&["resolve", "city", "--side", "1"], "expected a field"),
    ];
    for (arguments, why) in calls {
        let error = home.refused("invalid", arguments);
        assert!(error.contains(why), "{arguments:?}: {error}");
    }
    home.ok(&["resolve", &city, "--nothing", "-m", "Anywhere"]);
    let negative = format!("{}.hotel", trip(&home));
    home.ok(&["resolve", &negative, "--value", "-5"]);
}

#[test]
fn what_the_other_side_learned_can_be_said_in_a_turn() {
    let home = with_osaka();
    let out = home.ok(&["merge", "osaka", "--summary"]);
    assert!(out.contains("said in turn"), "{out}");
    let said = home.ok(&["show"]);
    assert!(said.contains("From the branch osaka:") && said.contains("budget is 1500"), "{said}");
    home.ok(&["undo"]);
    home.ok(&["merge", "osaka", "--summary", "Osaka is cheaper."]);
    assert!(home.ok(&["show"]).contains("Osaka is cheaper."));
}

#[test]
fn an_editor_changes_what_is_said() {
    let home = with_osaka();
    let script =
        "#!/bin/sh\ngrep -q 'From the branch osaka:' \"$1\" && echo 'In my words.' > \"$1\"\n";
    let editor = format!("sh {}", home.write("editor.sh", script));
    let ran = finish(home.command(&["merge", "osaka", "--edit"]).env("EDITOR", &editor), b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(home.ok(&["show"]).contains("In my words."));
    home.ok(&["undo"]);
    let empty = format!("sh {}", home.write("empty.sh", "#!/bin/sh\n: > \"$1\"\n"));
    for editor in [empty.as_str(), "false", "no-such-editor"] {
        let ran = finish(home.command(&["merge", "osaka", "--edit"]).env("EDITOR", editor), b"");
        assert_eq!(ran.code, 2, "{editor}: {ran:?}");
    }
    assert_eq!(home.ok(&["commits"]).lines().count(), 1, "nothing was merged");
}

#[test]
fn a_merge_goes_to_the_branch_that_is_named() {
    let home = with_osaka();
    let out =
        home.ok(&["merge", "main", "--into", "osaka", "-m", "Take main in", "--author", "Ada"]);
    assert!(out.starts_with("[osaka] ") && out.contains("Take main in"), "{out}");
    assert!(out.contains("--side 1 --branch osaka"), "{out}");
    home.ok(&["branch", "rename", "osaka", "two words"]);
    assert!(home.ok(&["resolve", "-b", "two words"]).contains("--branch 'two words'"));
    let merge = &home.json(&["commits", "-n", "1"])["items"][0];
    assert_eq!(merge["author"], "Ada");
    assert_eq!(merge["parent_hashes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_turn_is_said_again_elsewhere() {
    let home = with_osaka();
    let out = home.ok(&["inject", "osaka"]);
    assert!(out.contains("Osaka is cheaper") && out.contains("[main] ends on"), "{out}");
    let copied = home.json(&["show", "main"]);
    assert_eq!(copied["derived_from"], home.json(&["show", "osaka"])["turn_id"]);
    home.ok(&["new", "notes"]);
    home.ok(&["append", "-c", "notes", "Things to remember"]);
    home.ok(&["inject", "osaka", "-c", "trip", "--to", "notes"]);
    let notes = home.json(&["path", "-c", "notes"]);
    assert_eq!(notes["turns"][1]["content"][0]["text"], "Osaka is cheaper and has better food.");
    // An id or a hash says by itself where it comes from.
    let hash = hash_of_in(&home, "osaka", "trip");
    home.ok(&["inject", &hash, "--to", "notes"]);
    home.refused("not_found", &["inject", "osaka", "-c", "trip", "--to", "nowhere"]);
}

fn hash_of_in(home: &Home, reference: &str, conversation: &str) -> String {
    let turn = home.json(&["show", reference, "-c", conversation]);
    turn["turn_hash"].as_str().unwrap().to_owned()
}

#[test]
fn injecting_keeps_the_original_where_it_is() {
    let home = with_osaka();
    let before = hash_of(&home, "osaka");
    home.ok(&["inject", "osaka~1", "--branch", "main"]);
    assert_eq!(hash_of(&home, "osaka"), before);
}
