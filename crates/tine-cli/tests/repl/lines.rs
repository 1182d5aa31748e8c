//! Lines from a pipe.

use super::{answers, repl};
use crate::commits::with_osaka;
use crate::harness::{Home, Server, finish, hash_of, stable};

#[test]
fn lines_are_turns_and_slashes_begin_commands() {
    let home = Home::new();
    let out = answers(
        &home,
        &[
            "/conversation trip --system 'Be brief.'",
            "It's a \"quoted\" line, with -- and # and \\ in it",
            "/say --role assistant 'Late March'",
            "//usr/bin is full",
            "-",
            "",
            "/turns",
        ],
    );
    let turns: Vec<&str> = out.lines().rev().take(4).collect();
    assert!(turns[3].contains("It's a \"quoted\" line, with -- and # and \\ in it"), "{out}");
    assert!(turns[2].contains("assistant  Late March"), "{out}");
    assert!(turns[1].contains("user       /usr/bin is full"), "{out}");
    assert!(turns[0].ends_with("user       -"), "{out}");
    assert!(!out.contains("tine>"), "no prompt without a terminal: {out}");
}

#[test]
fn documented_examples_work_verbatim() {
    let home = Home::with_trip();
    let out = answers(&home, &["/turns --n 10", "/turns --role user"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    // The same with real turns, which go by their hashes.
    let (start, end) = (hash_of(&home, "main~1"), hash_of(&home, "main"));
    let range = format!("/commit {} {} --msg \"Specific range\"", &start[7..19], &end[7..19]);
    let out = answers(&home, &[&range, "/commits", "/log --n 5"]);
    assert_eq!(out.matches("Specific range").count(), 3, "{out}");
    assert!(out.contains("2 turns: a9d2e63be84c … e38bb1328f49"), "{out}");
}

#[test]
fn a_command_with_api_goes_to_the_server() {
    let (here, there) = (Home::new(), Home::new());
    let server = Server::start(&there.path("store"), "127.0.0.1:0", &[]);
    let settings = here.path(".config/tine");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("tine.toml"), format!("server = \"{}\"\n", server.url)).unwrap();
    let run = |lines: &str, more: &[&str]| {
        let mut command = here.command(&["repl", "-c", "trip"]);
        command.env_remove("TINE_SERVER").env("TINE_STORE", here.path("store")).args(more);
        let ran = finish(&mut command, lines.as_bytes());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{lines}: {}", ran.out);
        ran.out
    };
    let url = &server.url;
    run("/new trip --api\n/say --api Hello there\n/new trip\nHello here\n", &[]);
    // Without an address it is the server of the settings, and without those port 8000.
    let out = run("/commit --api --msg \"Research complete\"\n", &[]);
    assert!(out.contains("Research complete"), "{out}");
    let hash = run(&format!("/turns --api {url} --json\n"), &[]);
    let hash: serde_json::Value = serde_json::from_str(&hash).unwrap();
    assert_eq!(hash["turns"][0]["content"][0]["text"], "Hello there");
    let turn = hash["turns"][0]["turn_hash"].as_str().unwrap();
    let range =
        format!("/commit --api {turn} {turn} --msg \"Again\"\n/commits --api={url}\n/commits\n");
    let out = run(&range, &[]);
    assert_eq!(out.matches("Research complete").count(), 1, "only over the server: {out}");
    // The whole session can go there.
    let out = run("/turns\n/commits\n", &["--api", url]);
    assert!(out.contains("Hello there") && out.contains("Again"), "{out}");
    let ran = finish(
        here.command(&["ls", "--api", url]).env_remove("TINE_SERVER").env_remove("TINE_STORE"),
        b"",
    );
    assert!(ran.out.contains("trip"), "and so can any command: {ran:?}");
}

#[test]
fn api_without_settings_means_port_8000() {
    let home = Home::new();
    let mut command = home.command(&["config", "--api"]);
    let ran = finish(command.env_remove("TINE_SERVER").env_remove("TINE_STORE"), b"");
    assert!(ran.out.contains("http://127.0.0.1:8000"), "{ran:?}");
}

#[test]
fn quotes_keep_messages_together() {
    let home = Home::with_trip();
    let lines = [
        r#"/commit main~1 main~1 --msg "Ada said \"yes\", it's settled""#,
        "/commit main main -m 'single \"double\" inside'",
        "/say one more",
        r"/commit --msg a\ b\\c",
    ];
    answers(&home, &lines);
    let commits = home.json(&["commits"]);
    let messages: Vec<&str> =
        (0..3).map(|at| commits["items"][at]["message"].as_str().unwrap()).collect();
    assert_eq!(messages[2], "Ada said \"yes\", it's settled");
    assert_eq!(messages[1], "single \"double\" inside");
    assert_eq!(messages[0], r"a b\c");
}

#[test]
fn no_error_ends_the_session() {
    let home = Home::with_trip();
    let ran = repl(
        &home,
        &[
            "/frobnicate",
            "/commit --msg \"left open",
            "/show nothing",
            "/commit",
            "/checkout nothing",
            "/serve",
            "/watch",
            "/repl",
            "/",
            "/turns --role nobody",
            "/ls --api http://127.0.0.1:1",
            "/turns --n 1",
            "/quit",
            "never read",
        ],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.err.matches("error: ").count(), 11, "{}", ran.err);
    assert!(ran.err.contains("is not closed"), "{}", ran.err);
    assert!(ran.out.contains("Late March") && ran.out.lines().count() == 1, "{}", ran.out);
    assert_eq!(home.json(&["path"])["turns"].as_array().unwrap().len(), 2);
}

#[test]
fn an_invalid_line_is_refused_and_the_next_one_read() {
    let home = Home::with_trip();
    let ran = finish(&mut home.command(&["repl"]), b"caf\xe9\n/turns --n 1");
    assert!(ran.code == 0 && ran.err.contains("not valid UTF-8"), "{ran:?}");
    assert!(ran.out.contains("Late March"), "the last line needs no end: {ran:?}");
}

#[test]
fn the_current_branch_is_kept_between_lines() {
    let home = Home::with_trip();
    let out = answers(
        &home,
        &[
            "/checkout -b osaka main~1",
            "Osaka instead?",
            "/commit --msg \"Osaka\"",
            "/checkout",
            "/checkout -b third",
            "And a third way",
            "/checkout main",
            "Good.",
            "/diff main osaka --stat",
            "/branch fourth",
            "/fork --name fifth",
            "/exit",
        ],
    );
    assert!(out.contains("conversation trip [osaka]"), "{out}");
    let text = |branch: &str| {
        let turn = home.json(&["show", branch]);
        turn["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text("osaka"), "Osaka instead?");
    assert_eq!(text("third"), "And a third way");
    assert_eq!(hash_of(&home, "third~1"), hash_of(&home, "osaka"), "from where one was");
    assert_eq!((text("main").as_str(), text("fifth").as_str()), ("Good.", "Good."));
    assert_eq!(text("fourth"), "Good.");
    assert!(home.ok(&["commits", "--branch", "osaka"]).contains("Osaka"));
}

#[test]
fn branches_are_compared_and_merged_by_their_names() {
    let home = with_osaka();
    let out = answers(
        &home,
        &[
            "/diff main osaka --stat",
            "/checkout osaka",
            "/diff main",
            "/turns --n 1",
            "/log",
            "/merge main --dry-run",
            "/merge main",
            "/log --graph --n 1",
            "/resolve",
            "/tree",
            "/show",
            "/search cheaper",
            "/undo",
            "/redo",
            "/blame cheaper",
            "/drift",
        ],
    );
    assert!(out.contains("[osaka] would get this merge"), "{out}");
    assert!(out.contains("2 fields to resolve on osaka"), "{out}");
    assert!(home.ok(&["commits", "-b", "osaka", "-n", "1"]).contains("(merge)"));
}

#[test]
fn switching_conversations_selects_main() {
    let home = with_osaka();
    let out = answers(
        &home,
        &[
            "/checkout osaka",
            "/conversation notes --new",
            "A note",
            "/turns",
            "/turns -c trip --n 1",
            "/conversation trip",
            "/turns --n 1",
            "/conversation",
        ],
    );
    assert!(out.contains("conversation notes [main]"), "{out}");
    assert!(out.contains("conversation trip [main]"), "{out}");
    assert_eq!(out.matches("Rather Kyoto").count(), 2, "main, and not osaka: {out}");
    let ran = repl(&home, &["/conversation trip --system 'Be long.'"]);
    assert!(ran.err.contains("trip"), "{ran:?}");
}

#[test]
fn a_misspelt_conversation_is_not_created() {
    let home = Home::with_trip();
    let ran = repl(&home, &["/conversation tirp", "Where am I?"]);
    assert!(ran.err.contains("tirp") && ran.err.contains("--new"), "{ran:?}");
    assert_eq!(home.json(&["ls"])["items"].as_array().unwrap().len(), 1);
    assert_eq!(home.json(&["path"])["turns"].as_array().unwrap().len(), 3);
}

#[test]
fn exit_quit_and_help_are_commands_without_a_slash() {
    let home = Home::with_trip();
    let out = answers(&home, &["help", "/say help", "exit", "never read"]);
    assert!(out.contains("/say TEXT"), "{out}");
    assert_eq!(home.json(&["path"])["turns"].as_array().unwrap().len(), 3);
    assert_eq!(home.json(&["show", "main"])["content"][0]["text"], "help");
    answers(&home, &["quit", "never read"]);
    let ran = repl(&home, &["/append", "/init"]);
    assert!(ran.err.contains("no text given") && ran.err.contains("did you mean /new?"), "{ran:?}");
    assert_eq!(home.json(&["path"])["turns"].as_array().unwrap().len(), 3);
}

#[test]
fn help_lists_and_describes_commands() {
    let home = Home::new();
    let out = answers(&home, &["/help"]);
    insta::assert_snapshot!("repl_help", out);
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    let commit = answers(&home, &["/help commit"]);
    assert!(commit.contains("/commit") && commit.contains("--message"), "{commit}");
    assert!(answers(&home, &["/commit --help"]).contains("--message"));
    assert!(answers(&home, &["/help /checkout"]).contains("-b"));
    let ran = repl(&home, &["/help nothing"]);
    assert!(ran.err.contains("no command /nothing"), "{ran:?}");
}

#[test]
fn json_applies_to_every_line() {
    let home = Home::with_trip();
    let mut command = home.command(&["repl", "--json"]);
    let ran = finish(&mut command, b"/commit --msg x\n/commits\n/commit --msg y\n/nothing\n");
    let documents: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents[0]["commit_hash"], documents[1]["items"][0]["commit_hash"]);
    let refusals: Vec<serde_json::Value> =
        ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(refusals.iter().all(|it| it["error"]["code"] == "invalid"), "{refusals:?}");
    assert_eq!(refusals.len(), 2);
}

#[test]
fn usage_of_a_command_names_it_with_its_slash() {
    let home = Home::with_trip();
    let ran = repl(&home, &["/commit"]);
    insta::assert_snapshot!("repl_usage", stable(&ran.err, &home.path("")));
}
