//! `tine relate`, `relations` and `unrelate`.

use super::{items, only, shown, text, with_task};

#[test]
fn relationships_are_added_listed_and_removed() {
    let home = with_task();
    let (task, source) =
        (only(&home, "task"), text(&items(&home, &["source", "list"])[0], "/source_id"));
    let relate = ["relate", "depends-on", &task, "main"];
    insta::assert_snapshot!("relate", shown(&home, &relate));
    assert!(home.ok(&relate).trim_end().ends_with("reused"));
    home.ok(&["relate", "REFERS_TO", "conversation:trip", &source, "--metadata", r#"{"page":3}"#]);
    insta::assert_snapshot!("relations", shown(&home, &["relations"]));
    let of = |more: &[&str]| items(&home, &[&["relations", task.as_str()], more].concat()).len();
    assert_eq!((of(&[]), of(&["--direction", "out"]), of(&["--direction", "in"])), (2, 1, 1));
    assert_eq!(of(&["--type", "DEPENDS_ON"]), 1);
    assert!(home.ok(&["unrelate", "DEPENDS_ON", &task, "main"]).contains("undo --project-log"));
    assert_eq!(of(&["--type", "DEPENDS_ON"]), 0);
    home.ok(&["undo", "--project-log"]);
    assert_eq!(of(&["--type", "DEPENDS_ON"]), 1);
}

#[test]
fn invalid_relationships_are_refused() {
    let home = with_task();
    let task = only(&home, "task");
    let said = home.refused("invalid", &["relate", "LIKES", &task, "main"]);
    assert!(said.contains("PART_OF"), "it tells the types: {said}");
    home.refused("invalid", &["relate", "PART_OF", &task, &task]);
    home.refused("not_found", &["relate", "PART_OF", &task, "nowhere"]);
    home.refused("not_found", &["relate", "PART_OF", &task, "conversation:nowhere"]);
    home.refused(
        "not_found",
        &["relate", "PART_OF", "src_00000000000000000000000000000000", &task],
    );
    home.refused("invalid", &["relate", "PART_OF", &task, "main", "--metadata", "3"]);
    home.refused("not_found", &["unrelate", "SETTLES", &task, "main"]);
    let message = text(&home.json(&["entity", "show", "trip:1"]), "/entity_id");
    let made_by_tine = ["unrelate", "PART_OF", &message, "conversation:trip"];
    home.refused("unsupported", &made_by_tine);
    home.refused("invalid", &["relations", "--direction", "in"]);
}
