//! The JSON documents, which other programs rely on and other surfaces share: a change of shape
//! shows up in review.

use crate::commits::with_osaka;
use crate::harness::{Home, stable};

/// Runs a command, and names its document in the snapshot.
fn add(home: &Home, all: &mut String, arguments: &[&str]) {
    let mut with_json = vec!["--json"];
    with_json.extend(arguments);
    let ran = home.run(&with_json);
    let text = if ran.code == 0 { &ran.out } else { &ran.err };
    let mut document: serde_json::Value = serde_json::from_str(text).expect("a document");
    // What an operation notes down is the engine's business.
    if let Some(detail) = document.pointer_mut("/items/0/detail") {
        *detail = "DETAIL".into();
    }
    let pretty = serde_json::to_string_pretty(&document).expect("a document");
    all.push_str(&format!("$ tine {}\n{pretty}\n\n", arguments.join(" ")));
}

#[test]
fn documents_keep_their_shape() {
    let home = Home::new();
    let mut all = String::new();
    let question = "What's the best time to visit Tokyo?";
    let at = "2024-01-15T10:30:00Z";
    let calls: [&[&str]; 25] = [
        &["new", "trip", "--system", "Be brief.", "--config", r#"{"n":9007199254740993}"#],
        &["append", "--at", at, question],
        &["append", "-r", "assistant", "--at", "2024-01-15T10:30:05Z", "Late March"],
        &["edit", "main", "Early April", "--branch", "main"],
        &["show", "main", "--versions"],
        &["split", "main", "6"],
        &["fork", "main~2", "--name", "other"],
        &["bookmark", "here", "main"],
        &["tag", "here", "good"],
        &["search", "tokyo OR early", "-n", "1"],
        &["tails"],
        &["tree"],
        &["path", "other"],
        &["path", "--around", "here", "--before", "1", "--after", "0"],
        &["delete", "main~1", "--dry-run"],
        &["revert", "main~1"],
        &["ops", "-n", "1"],
        &["undo"],
        &["derive", "trip", "--system", "Be long.", "--as", "long"],
        &["stats", "-c", "trip"],
        &["verify"],
        &["purge", "a9d2e63be84c", "--yes"],
        &["show", "a9d2e63be84c"],
        &["append", "-c", "trip", "--expected-tip", "other", "x"],
        &["undo", "-c", "trip", "2"],
    ];
    for arguments in calls {
        add(&home, &mut all, arguments);
    }
    let bytes = all.lines().map(|line| match line.split_once("\"disk_bytes\": ") {
        Some((before, _)) => format!("{before}\"disk_bytes\": BYTES,"),
        None => line.to_owned(),
    });
    let all = bytes.collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("documents", stable(&all, &home.path("")));
    // Numbers pass through as they were sent.
    assert!(home.ok(&["show", "root", "-c", "trip", "--json"]).contains("9007199254740993"));
}

#[test]
fn documents_of_commits_keep_their_shape() {
    let home = with_osaka();
    let mut all = String::new();
    let calls: [&[&str]; 9] = [
        &["commit", "-m", "Kyoto"],
        &["commits"],
        &["show", "main", "--rings"],
        &["diff", "main", "osaka"],
        &["merge", "osaka"],
        &["resolve"],
        &["blame", "cheaper"],
        &["bisect", "--contains", "Tokyo"],
        &["inject", "osaka"],
    ];
    for arguments in calls {
        add(&home, &mut all, arguments);
    }
    insta::assert_snapshot!("documents_of_commits", stable(&all, &home.path("")));
}
