//! Files of other programs in, other programs' forms out, and two stores that sync.

use std::fs;

use crate::harness::{Home, Server};

const CALLS: &[(&str, &str, &str)] = &[
    ("u1", "", "Find the failing test"),
    ("u2", "u1", "In which file?"),
    ("u3", "u1", "Rewound and asked again"),
];

/// A session of Claude Code with so many lines.
fn session(lines: usize) -> String {
    let line = |(nth, (uuid, parent, said)): (usize, &(&str, &str, &str))| {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"s-1\",\
             \"cwd\":\"/home/me/app\",\"timestamp\":\"2026-01-01T00:00:0{nth}Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{said}\"}}}}\n"
        )
    };
    CALLS.iter().take(lines).enumerate().map(line).collect()
}

#[test]
fn a_session_is_imported_extended_and_not_repeated() {
    let home = Home::new();
    let file = home.write("s-1.jsonl", session(1));
    let done = home.json(&["import", &file]);
    assert_eq!((&done["conversations"], &done["turns"]), (&1.into(), &1.into()));
    home.write("s-1.jsonl", session(3) + "{\"type\":\"us");
    let done = home.json(&["import", &file]);
    assert_eq!((&done["extended"], &done["turns"]), (&1.into(), &2.into()));
    assert_eq!(done["notes"][0]["line"], 4, "the truncated line is reported");
    assert!(home.ok(&["import", &file]).contains("1 unchanged"));
    let tree = home.ok(&["tree", "-c", "claude-code:s-1"]);
    assert!(tree.contains("[main] Rewound and asked again"), "{tree}");
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[test]
fn working_folders_can_become_projects() {
    let home = Home::new();
    let file = home.write("s-1.jsonl", session(2));
    let done = home.ok(&["import", &file, "--by-folder"]);
    assert!(done.contains("projects:\n  app: 1 conversation\n"), "{done}");
    assert_eq!(home.json(&["import", &file, "--by-folder"])["files"], 0);
    assert_eq!(home.ok(&["ls", "--ids", "--project", "app"]), "claude-code:s-1\n");
}

#[test]
fn missing_paths_do_not_stop_an_import() {
    let home = Home::new();
    let file = home.write("s-1.jsonl", session(2));
    let ran = home.run(&["import", "absent", &file]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("absent does not exist; everything else was imported"), "{ran:?}");
    assert_eq!(home.ok(&["ls", "--ids"]), "claude-code:s-1\n");
    home.refused("not_found", &["import", "absent", "gone"]);
    let bundle = home.path("all.jsonl");
    let bundle = bundle.to_str().unwrap();
    home.ok(&["export", "--all", "-o", bundle]);
    assert_eq!(home.run(&["import", bundle, "absent.jsonl"]).code, 3, "also beside a bundle");
}

#[test]
fn an_import_of_nothing_fails() {
    let home = Home::new();
    let file = home.write("conversations.json", "[{\"title\":\"a\",\"mapping\":{\"x\":{\"id\":");
    for format in ["chatgpt", "claude-ai"] {
        let ran = home.run(&["import", "--format", format, &file]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("nothing was imported"), "{ran:?}");
    }
}

#[test]
fn unknown_and_missing_files_create_no_store() {
    let home = Home::new();
    let file = home.write("letter.json", "{\"dear\":\"sir\"}");
    for (arguments, code) in
        [(vec!["import", &file], 2), (vec!["import", "absent.zip"], 3), (vec!["import"], 2)]
    {
        let ran = home.run(&arguments);
        assert_eq!(ran.code, code, "{ran:?}");
    }
    assert!(!home.path("store").exists(), "a misspelt name creates nothing");
}

#[test]
fn agent_history_on_the_computer_is_discovered() {
    let home = Home::new();
    let folder = home.path("home/.claude/projects/app");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("s-1.jsonl"), session(3)).unwrap();
    let mut command = home.command(&["import", "--discover", "--json"]);
    command.env("HOME", home.path("home")).env_remove("CLAUDE_CONFIG_DIR");
    let found = crate::harness::finish(&mut command, b"");
    assert!(found.out.contains("\"format\":\"Claude Code\",\"files\":1"), "{}", found.out);
}

#[test]
fn every_export_format_is_written_and_trees_round_trip() {
    let home = Home::new();
    let file = home.write("s-1.jsonl", session(3));
    home.ok(&["import", &file]);
    for format in ["bundle", "html", "chatgpt", "openai", "anthropic", "markdown"] {
        let out =
            home.path(&format!("out-{format}.{}", if format == "html" { "html" } else { "json" }));
        let out = out.to_str().unwrap();
        home.ok(&["export", "claude-code:s-1", "--format", format, "-o", out]);
        let written = fs::read_to_string(out).unwrap();
        assert!(written.contains("Rewound and asked again"), "{format}");
        assert!(written.contains("In which file?"), "{format}: tails too");
        if matches!(format, "bundle" | "html" | "chatgpt") {
            let other = Home::new();
            let done = other.json(&["import", out]);
            assert_eq!(
                (&done["conversations"], &done["turns"]),
                (&1.into(), &3.into()),
                "{format}"
            );
        }
    }
    let path = home.ok(&["export", "claude-code:s-1", "--format", "markdown", "--to", "main~1"]);
    assert!(path.contains("Find the failing test") && !path.contains("Rewound"));
    home.refused("invalid", &["export", "claude-code:s-1", "--to", "main"]);
}

#[test]
fn two_stores_exchange_missing_turns_and_keep_both_lines() {
    let (home, other) = (Home::with_trip(), Home::new());
    let there = other.path("store");
    let there = there.to_str().unwrap();
    home.refused("not_found", &["sync", there]);
    let done = home.json(&["sync", there, "--create"]);
    assert_eq!(done["pushed"]["conversations"], 1);
    assert_eq!(other.everything(), home.everything());
    home.ok(&["append", "said here"]);
    other.ok(&["append", "said there"]);
    let done = home.json(&["sync", there]);
    assert_eq!((&done["pulled"]["diverged"], &done["pushed"]["turns"]), (&1.into(), &1.into()));
    for side in [&home, &other] {
        let tree = side.ok(&["tree"]);
        assert!(tree.contains("said here") && tree.contains("said there"), "{tree}");
        assert!(tree.contains("main-1"), "{tree}");
        assert_eq!(side.json(&["verify"])["ok"], true);
    }
    let (before, beyond) = (home.everything(), other.everything());
    home.ok(&["sync", there]);
    assert_eq!((home.everything(), other.everything()), (before, beyond), "again there is nothing");
    let own = home.path("store");
    home.refused("invalid", &["sync", own.to_str().unwrap()]);
}

#[test]
fn a_dry_run_counts_what_a_sync_transfers() {
    let (home, other) = (Home::with_trip(), Home::new());
    let there = other.path("store");
    let there = there.to_str().unwrap();
    home.refused("not_found", &["sync", there, "--dry-run"]);
    assert!(!other.path("store").exists());
    home.ok(&["sync", there, "--create"]);
    home.ok(&["append", "said here"]);
    other.ok(&["append", "said there", "and more"]);
    other.ok(&["new", "notes"]);
    home.ok(&["new", "own"]);
    home.ok(&["append", "-c", "own", "a note"]);
    for side in [&["--pull"][..], &["--push"], &[]] {
        let (before, beyond) = (home.everything(), other.everything());
        let planned = home.json(&[&["sync", there, "--dry-run"][..], side].concat());
        assert_eq!((home.everything(), other.everything()), (before, beyond));
        if side.is_empty() {
            assert_eq!(planned["pulled"]["turns"], 0, "all of it came with --pull");
            continue;
        }
        let done = home.json(&[&["sync", there][..], side].concat());
        for way in ["pulled", "pushed"] {
            for figure in ["conversations", "diverged", "turns", "operations"] {
                assert_eq!(planned[way][figure], done[way][figure], "{side:?} {way} {figure}");
            }
        }
    }
    assert!(home.ok(&["sync", there, "--dry-run"]).contains("would be pulled: "));
}

#[test]
fn a_store_and_a_server_exchange_missing_turns() {
    let (home, other) = (Home::with_trip(), Home::new());
    let server = Server::start(&other.path("store"), "127.0.0.1:0", &[]);
    let url = server.url.clone();
    home.ok(&["sync", &url]);
    assert_eq!(other.everything(), home.everything());
    other.ok(&["append", "said there"]);
    home.ok(&["sync", &url]);
    assert_eq!(other.everything(), home.everything());
    home.ok(&["append", "said here"]);
    other.ok(&["append", "said there again"]);
    home.ok(&["sync", &url]);
    for side in [&home, &other] {
        let tree = side.ok(&["tree"]);
        assert!(tree.contains("said here") && tree.contains("said there again"), "{tree}");
    }
    let (before, beyond) = (home.everything(), other.everything());
    home.ok(&["sync", &url]);
    assert_eq!((home.everything(), other.everything()), (before, beyond), "again there is nothing");
    assert_eq!(home.json(&["verify"])["ok"], true);
}

/// What looks like another machine is not made a folder of this one, as if it had been sent there.
#[test]
fn an_address_is_not_taken_for_a_folder() {
    let home = Home::with_trip();
    for name in ["ssh://host/x", "me@host:tine", "127.0.0.1:8000", "htp://127.0.0.1:8000"] {
        let said = home.refused("invalid", &["sync", name, "--create"]);
        assert!(said.contains(&format!("./{name} for a folder")), "{said}");
        let ran = home.run(&["new", "x", "--store", name]);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    let elsewhere = home.path("odd:name");
    home.ok(&["sync", elsewhere.to_str().unwrap(), "--create"]);
}
