//! `tine demo`.

use crate::harness::{Home, finish, stable};

#[test]
fn the_demo_shows_a_tree_and_next_steps() {
    let home = Home::new();
    let first = home.demo(&[]);
    insta::assert_snapshot!("demo", stable_path(&first, &home));
    assert_eq!(home.demo(&[]), first, "running it again just shows it");
    assert_eq!(home.demo(&["--fresh"]), first, "created again, it is the same");
    assert_eq!(home.json(&["verify"])["ok"], true);
    let next = first.lines().skip_while(|line| !line.starts_with("Try next")).skip(2);
    for line in next {
        let command = line.split("   ").next().unwrap().trim().trim_start_matches("tine ");
        // Runs until it is stopped.
        if command == "serve" {
            continue;
        }
        let mut arguments: Vec<&str> = Vec::new();
        match command.split_once('\'') {
            Some((before, text)) => {
                arguments.extend(before.split_whitespace());
                arguments.push(text.trim_end_matches('\''));
            }
            None => arguments.extend(command.split_whitespace()),
        }
        home.ok(&arguments);
    }
}

/// Hashes stay: they are equal on every machine.
fn stable_path(text: &str, home: &Home) -> String {
    let folder = home.path("");
    text.replace(folder.to_str().expect("a plain name").trim_end_matches('/'), "HOME")
}

#[test]
fn without_an_option_the_demo_has_its_own_store() {
    let home = Home::new();
    let run = |arguments: &[&str]| finish(home.command(arguments).env_remove("TINE_STORE"), b"");
    assert_eq!(run(&["demo"]).code, 0);
    assert!(home.path(".local/share/tine-demo/tine.db").exists());
    assert!(!home.path(".local/share/tine").exists());
    assert_eq!(run(&["ls"]).code, 3, "the user's own store is still not there");
    assert_eq!(run(&["new", "mine"]).code, 0);
    assert_eq!(run(&["demo", "--fresh"]).code, 0);
    assert!(run(&["ls"]).out.contains("mine"));

    let named = Home::with_trip();
    let shown = named.ok(&["demo"]);
    assert!(shown.contains("tine-demo TINE_CONVERSATION"), "{shown}");
    assert!(!named.ok(&["ls"]).contains("tokyo"), "the store of the environment is left alone");
}

#[test]
fn fresh_deletes_only_a_demo_store() {
    let home = Home::with_trip();
    home.demo(&[]);
    let store = home.path("store");
    let fresh = ["demo", "--fresh", "--store", store.to_str().unwrap()];
    let error = home.refused("protected", &fresh);
    assert!(stable(&error, &home.path("")).contains("was not created by `tine demo`"), "{error}");
    assert!(home.ok(&["ls"]).contains("trip"));

    let other = Home::new();
    other.demo(&[]);
    other.write("store/letter.txt", "Dear Sir");
    let store = other.path("store");
    other.refused("protected", &["demo", "--fresh", "--store", store.to_str().unwrap()]);
    assert!(other.path("store/letter.txt").exists());
}
