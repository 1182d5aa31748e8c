//! Pipes, colours, widths, completions and manual pages.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::{Home, finish};
use crate::reading::with_demo;

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = Home::new();
    home.ok(&["new", "long"]);
    let lines: String = (0..5_000)
        .map(|number| {
            format!("{{\"role\":\"user\",\"content\":\"turn {number} {}\"}}\n", "x".repeat(80))
        })
        .collect();
    home.ok_with(&["append", "-m", "-"], lines.as_bytes());
    let commands: [&[&str]; 6] = [
        &["tree"],
        &["log"],
        &["path"],
        &["export"],
        &["tree", "--json"],
        &["path", "--format", "tine"],
    ];
    for arguments in commands {
        let mut command = home.command(arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        let mut stdout = BufReader::with_capacity(64, child.stdout.take().expect("piped"));
        stdout.read_line(&mut line).expect("one line or a part of it");
        drop(stdout);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn long_conversations_are_read_page_by_page() {
    let home = Home::new();
    let lines = "{\"role\":\"user\",\"content\":\"again\"}\n".repeat(2_500);
    home.ok_with(&["append", "-c", "long", "--create", "-m", "-"], lines.as_bytes());
    assert_eq!(home.ok(&["tree"]).lines().count(), 2_501);
    assert_eq!(home.ok(&["log", "--oneline"]).lines().count(), 2_500);
    assert_eq!(home.ok(&["log", "--oneline", "-n", "1200"]).lines().count(), 1_200);
    assert_eq!(home.json(&["path"])["turns"].as_array().unwrap().len(), 2_500);
}

#[test]
fn colours_appear_only_on_request() {
    let home = with_demo();
    assert!(!home.ok(&["tree"]).contains('\u{1b}'));
    assert!(home.ok(&["tree", "--color", "always"]).contains("\u{1b}[32m"));
    assert!(!home.ok(&["tree", "--color", "never"]).contains('\u{1b}'));
}

#[test]
fn lines_are_cut_to_a_narrow_terminal_only() {
    let home = with_demo();
    let narrow = finish(home.command(&["tree"]).env("COLUMNS", "60"), b"").out;
    insta::assert_snapshot!("tree_narrow", narrow);
    for line in narrow.lines() {
        assert!(tine_cli::terminal::text::width(line) <= 60, "{line}");
    }
    let wrapped = finish(home.command(&["path"]).env("COLUMNS", "40"), b"").out;
    for line in wrapped.lines().filter(|line| line.starts_with("    ")) {
        assert!(tine_cli::terminal::text::width(line) <= 40, "{line}");
    }
    let free = finish(home.command(&["tree"]).env_remove("COLUMNS"), b"").out;
    assert_eq!(free.matches('…').count(), 1, "only previews are cut: {free}");
}

#[test]
fn every_reading_command_prints_one_json_document() {
    let home = with_demo();
    let commands: [&[&str]; 19] = [
        &["turns"],
        &["commits"],
        &["log", "--graph"],
        &["log", "--commits"],
        &["drift"],
        &["diff", "main~2", "main"],
        &["ls"],
        &["log"],
        &["path"],
        &["path", "--around", "hotel"],
        &["show", "hotel"],
        &["tree"],
        &["branch"],
        &["tails"],
        &["ops"],
        &["bookmark"],
        &["tag", "hotel"],
        &["title", "hotel"],
        &["stats"],
    ];
    for arguments in commands {
        assert_eq!(home.json(arguments)["project_id"], "default", "{arguments:?}");
    }
}

#[test]
fn completions_exist_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ok(&["completions", shell]);
        assert!(script.contains("bookmark"), "{shell}");
    }
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let home = Home::new();
    home.ok(&["manual", "man/man1"]);
    let page = |name: &str| std::fs::read_to_string(home.path(&format!("man/man1/{name}.1")));
    for command in tine_cli::command().get_subcommands().filter(|it| !it.is_hide_set()) {
        let page = page(&format!("tine-{}", command.get_name())).unwrap();
        assert!(page.contains(".SH OPTIONS"), "{}", command.get_name());
    }
    assert!(page("tine").unwrap().contains("conversations"));
    home.write("file", "");
    let ran = home.run(&["manual", "file"]);
    assert!(ran.code != 0 && ran.err.contains("cannot be written"), "{ran:?}");
}

#[test]
fn terminal_control_bytes_are_not_plain() {
    use tine_cli::terminal::text::is_plain;
    assert!(is_plain("Grüße,\r\n\tKyoto 京都".as_bytes()));
    let cut = "京都".as_bytes();
    assert!(is_plain(&cut[..4]) && is_plain(&cut[1..]), "pieces may cut a character");
    for bytes in [&b"\x1b[2J"[..], b"\0", b"caf\xe9 au lait", b"\x80\x80\x80\x80"] {
        assert!(!is_plain(bytes), "{bytes:?}");
    }
}
