//! Help texts, older spellings of commands, and what is suggested for unknown ones.

use std::fmt::Write as _;

use clap::Command;

use crate::commits::with_osaka;
use crate::harness::{Home, hash_of};
use crate::learned::with_task;

/// Where the options of every command begin.
const GLOBAL: &str = "Global options:\n";

#[test]
fn the_top_level_help_fits_on_a_screen_and_lists_every_command() {
    let help = Home::new().ok(&["--help"]);
    insta::assert_snapshot!("help", help);
    let commands = &help[..help.find("A turn is named").expect("the commands come first")];
    let lines: Vec<&str> = commands.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(lines.len() <= 45, "{} commands", lines.len());
    let more = commands.find("More:").expect("families come last");
    let daily = commands[..more].lines().filter(|line| line.starts_with("  ")).count();
    assert!(daily <= 24, "{daily} daily commands");
    for command in shown(&tine_cli::command()) {
        let listed = lines.iter().any(|line| {
            line.split("  ").nth(1).is_some_and(|names| names.split(", ").any(|it| it == command))
        });
        assert!(listed, "`tine --help` does not list `{command}`");
    }
    assert!(help.find("Examples:") < help.find(GLOBAL), "global options come last");
}

fn shown(command: &Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    shown.map(|it| it.get_name().to_owned()).collect()
}

/// Adds the help of a command and of those below it, without the options that all of them take.
fn add(all: &mut String, home: &Home, path: &[&str], command: &Command, globals: &str) {
    let help = home.ok(&[path, &["--help"]].concat());
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{path:?}: {help}");
    let (own, global) = help.split_once(GLOBAL).unwrap_or_else(|| panic!("{path:?}: {help}"));
    assert_eq!(global, globals, "{path:?}");
    let _ = write!(all, "$ tine {} --help\n{}\n\n", path.join(" "), own.trim_end());
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        add(all, home, &[path, &[below.get_name()]].concat(), below, globals);
    }
}

#[test]
fn help_of_every_command_is_as_written() {
    let home = Home::new();
    let one = home.ok(&["ls", "--help"]);
    let (_, globals) = one.split_once(GLOBAL).expect("the options of every command");
    let root = tine_cli::command();
    let mut all = String::new();
    for command in root.get_subcommands() {
        let name = command.get_name();
        let before = all.len();
        add(&mut all, &home, &[name], command, globals);
        assert!(all[before..].contains("Examples:"), "`tine {name} --help` has no examples");
        if command.is_hide_set() {
            all.truncate(before);
        }
    }
    insta::assert_snapshot!("help_commands", all);
}

#[test]
fn older_spellings_answer_as_the_new_ones() {
    let home = with_osaka();
    home.ok(&["commit", "-m", "Where to stay"]);
    home.ok(&["merge", "osaka"]);
    let pairs: [(&[&str], &[&str]); 14] = [
        (&["turns"], &["turn", "list"]),
        (&["path", "osaka"], &["turn", "path", "osaka"]),
        (&["tag", "main"], &["turn", "tag", "main"]),
        (&["title", "main"], &["turn", "title", "main"]),
        (&["tails"], &["branch", "tails"]),
        (&["branch"], &["branch", "list"]),
        (&["bookmark"], &["bookmark", "list"]),
        (&["commits"], &["commit", "list"]),
        (&["resolve"], &["commit", "resolve"]),
        (&["blame", "Gion"], &["commit", "blame", "Gion"]),
        (&["bisect", "--contains", "Gion"], &["commit", "bisect", "--contains", "Gion"]),
        (&["drift"], &["commit", "drift"]),
        (&["verify"], &["store", "verify"]),
        (&["config"], &["config", "list"]),
    ];
    for (old, new) in pairs {
        assert_eq!(home.json(old), home.json(new), "{old:?}");
    }
    assert!(home.ok(&["store", "stats"]).contains("operations"));
    assert_eq!(home.ok(&["commit", "key", "list"]), home.ok(&["key", "list"]));
    home.ok(&["turn", "inject", "osaka", "--branch", "main"]);
    home.ok(&["turn", "split", "main", "5"]);
    home.ok(&["revert", "main~1"]);
    home.ok(&["branch", "restore"]);
    home.ok(&["store", "purge", "main", "--yes"]);
}

#[test]
fn families_of_facts_answer_as_the_older_spellings() {
    let home = with_task();
    let source = home.ok(&["source", "list"]).split_whitespace().next().unwrap().to_owned();
    let entity = home.ok(&["entity", "list"]).split_whitespace().next().unwrap().to_owned();
    let run = home.ok(&["run", "list", &source]).split_whitespace().next().unwrap().to_owned();
    let pairs: [(&[&str], &[&str]); 6] = [
        (&["interpret", "--of", &source], &["run", "list", &source]),
        (&["interpret", "--status"], &["run", "status"]),
        (&["interpret", "--show", &run], &["run", "show", &run]),
        (&["observations", &entity], &["entity", "observations", &entity]),
        (&["timeline"], &["entity", "timeline"]),
        (&["relations"], &["relation", "list"]),
    ];
    for (old, new) in pairs {
        assert_eq!(home.json(old), home.json(new), "{old:?}");
    }
    home.ok(&["relation", "add", "DEPENDS_ON", &entity, &source]);
    home.ok(&["relation", "remove", "DEPENDS_ON", &entity, &source]);
    assert!(home.ok(&["run", "start", &source, "--wait"]).contains("int_"));
    let file = home.write("note.txt", "Pay Anna by Friday.");
    assert!(home.ok(&["source", "add", &file, "--interpret", "none"]).contains("src_"));
}

#[test]
fn bookmarks_and_branches_are_set_and_deleted_as_typed() {
    let home = Home::with_trip();
    home.ok(&["bookmark", "set", "cheap", "main~1"]);
    assert_eq!(hash_of(&home, "cheap"), hash_of(&home, "main~1"));
    home.ok(&["bookmark", "set", "cheap"]);
    assert_eq!(hash_of(&home, "cheap"), hash_of(&home, "main"));
    home.ok(&["bookmark", "delete", "cheap"]);
    home.refused("not_found", &["show", "cheap"]);
    home.ok(&["branch", "create", "osaka", "--at", "main~1"]);
    assert_eq!(hash_of(&home, "osaka"), hash_of(&home, "main~1"));
}

#[test]
fn a_number_after_a_dash_is_how_many_are_shown() {
    let home = Home::with_trip();
    assert_eq!(home.ok(&["log", "-1", "--oneline"]), home.ok(&["log", "-n", "1", "--oneline"]));
    assert_eq!(home.ok(&["turn", "list", "-1"]).lines().count(), 1);
    home.ok(&["append", "--", "-3"]);
    assert_eq!(home.json(&["show", "main"])["content"][0]["text"], "-3");
    home.refused("invalid", &["tree", "-3"]);
}

#[test]
fn a_turn_can_come_from_a_pipe() {
    let home = Home::with_trip();
    home.ok_with(&["append"], b"from a pipe\n");
    assert_eq!(home.json(&["show", "main"])["content"][0]["text"], "from a pipe");
    home.ok_with(&["edit", "main", "--branch", "main"], b"from another\n");
    assert_eq!(home.json(&["show", "main"])["content"][0]["text"], "from another");
    let error = home.refused("invalid", &["append"]);
    assert!(error.contains("standard input is empty"), "{error}");
}

#[test]
fn an_unknown_command_is_answered_with_one_of_the_same_meaning() {
    let home = Home::with_trip();
    let calls: [(&[&str], &str); 13] = [
        (&["init"], "tine new"),
        (&["push"], "tine sync"),
        (&["pull"], "tine sync"),
        (&["grep", "tokyo"], "tine search"),
        (&["reset", "main~1"], "tine revert"),
        (&["fsck"], "tine store verify"),
        (&["list"], "tine ls"),
        (&["rm", "main"], "tine delete"),
        (&["gc"], "tine store pack"),
        (&["reflog"], "tine ops"),
        (&["entity", "ls"], "tine entity list"),
        (&["server", "token", "new"], "tine server token create"),
        (&["serch", "tokyo"], "tine search"),
    ];
    for (typed, meant) in calls {
        let error = home.refused("invalid", typed);
        assert!(error.contains(&format!("did you mean `{meant}`?")), "{typed:?}: {error}");
    }
    let error = home.refused("invalid", &["frobnicate"]);
    assert!(error.contains("`tine --help` lists the commands"), "{error}");
    let error = home.refused("invalid", &["relation", "frobnicate"]);
    assert!(error.contains("`tine relation --help`"), "{error}");
}

#[test]
fn purge_is_never_suggested() {
    let home = Home::with_trip();
    for typed in ["purg", "purge1", "pruge", "urge", "erase", "wipe", "shred", "destroy"] {
        for path in [&[typed][..], &["store", typed][..]] {
            let error = home.refused("invalid", path);
            assert!(!error.contains("purge`"), "{typed}: {error}");
        }
    }
}

#[test]
fn projects_are_listed_and_a_misspelt_one_is_not_found() {
    let home = Home::with_trip();
    home.ok(&["new", "notes", "--project", "work"]);
    let listed = home.ok(&["projects"]);
    let names: Vec<_> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["default", "work"]);
    assert_eq!(home.json(&["projects"])["items"][1]["project_id"], "work");
    for arguments in [&["ls"][..], &["log"], &["bookmark"], &["entity", "list"], &["append", "x"]] {
        let error = home.refused("not_found", &[&["--project", "wrok"][..], arguments].concat());
        assert!(error.contains("no project `wrok`"), "{arguments:?}: {error}");
        assert!(error.contains("tine projects"), "{error}");
    }
}

/// What a person reads when something is wrong: one line each, by kind.
#[test]
fn errors_are_as_written() {
    let home = Home::with_trip();
    home.ok(&["bookmark", "best", "main"]);
    home.ok(&["title", "main", "Answer"]);
    home.ok(&["append", "--key", "k", "one"]);
    home.ok(&["branch", "other"]);
    let mut all = String::new();
    let calls: [&[&str]; 33] = [
        &["frobnicate"],
        &["init"],
        &["show", "main", "extra"],
        &["show", "main~x"],
        &["append", ""],
        &["append", "--at", "yesterday", "x"],
        &["append", "-m", "missing.json"],
        &["append", "--expected-tip", "main~1", "x"],
        &["append", "--key", "k", "two"],
        &["append", "-b", "nothing", "x"],
        &["append", "-p", "main~1", "x"],
        &["append", "-c", "nothing", "x"],
        &["show", "nothing"],
        &["branch", "delete", "nothing"],
        &["branch", "main"],
        &["bookmark", "delete", "nothing"],
        &["bookmark", "root"],
        &["title", "main~1", "Other"],
        &["title"],
        &["purge", "main"],
        &["delete", "root"],
        &["undo", "99"],
        &["redo"],
        &["split", "main", "99"],
        &["merge", "nothing"],
        &["new", "trip"],
        &["new", ""],
        &["ls", "--project", "nothing"],
        &["ls", "--store", "missing"],
        &["ls", "--store", "ftp://example.org"],
        &["sync", "missing"],
        &["entity", "show", "ent_00000000000000000000000000000000"],
        &["config", "get", "colour"],
    ];
    for arguments in calls {
        let ran = home.run(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}");
        let words: Vec<String> = arguments.iter().map(|it| format!("{it:?}")).collect();
        let _ = write!(all, "$ tine {}\n{}exit {}\n\n", words.join(" "), ran.err, ran.code);
    }
    insta::assert_snapshot!("errors", crate::harness::stable(&all, &home.path("")));
}
