//! Every command that changes something, on its happy path.

use crate::harness::{Home, hash_of, stable};

fn texts(home: &Home, reference: &str) -> Vec<String> {
    let path = home.json(&["path", reference]);
    let turns = path["turns"].as_array().expect("a path has turns");
    let text = |turn: &serde_json::Value| turn["content"][0]["text"].as_str().map(str::to_owned);
    turns.iter().map(|turn| text(turn).expect("a text")).collect()
}

#[test]
fn a_conversation_is_created_titled_archived_and_listed() {
    let home = Home::new();
    assert_eq!(home.ok(&["new", "trip", "--title", "A trip"]), "conversation trip\n");
    home.write("prompt.txt", "Be brief.\n");
    home.ok(&[
        "new",
        "other",
        "--system",
        "@prompt.txt",
        "--config",
        r#"{"seed":9007199254740993}"#,
    ]);
    let other = home.json(&["show", "root", "-c", "other"]);
    assert_eq!(other["system_prompt"], "Be brief.");
    assert!(home.ok(&["show", "root", "-c", "other"]).contains("9007199254740993"));
    assert!(home.ok(&["ls"]).contains("A trip"));
    home.ok(&["archive", "trip"]);
    assert!(!home.ok(&["ls"]).contains("A trip"));
    assert!(home.ok(&["ls", "--archived"]).contains("A trip (archived)"));
    home.ok(&["archive", "trip", "--undo"]);
    home.ok(&["title", "--whole", "-c", "other", "The other"]);
    let listing = home.json(&["ls"]);
    assert_eq!(listing["items"].as_array().unwrap().len(), 2);
    insta::assert_snapshot!("ls", stable(&home.ok(&["ls", "--long"]), &home.path("")));
    let minted = home.json(&["new"]);
    assert_eq!(minted["conversation_id"].as_str().unwrap().len(), 36);
}

#[test]
fn another_prompt_makes_another_conversation() {
    let home = Home::with_trip();
    let derive = ["derive", "trip", "--system", "Be long.", "--at", "main", "--as", "long"];
    assert_eq!(home.ok(&derive), "conversation long (created, 2 turns copied)\n");
    assert!(home.ok(&derive[..4]).contains("existing"));
    assert_eq!(home.json(&["path", "-c", "long"])["root"]["system_prompt"], "Be long.");
}

#[test]
fn appending_takes_text_words_standard_input_and_files() {
    let home = Home::with_trip();
    home.ok(&["append", "two", "words"]);
    home.ok_with(&["append", "-"], b"from a pipe\n");
    home.ok_with(&["append", "-m", "-"], br#"[{"role":"user","content":"an array"}]"#);
    home.ok_with(&["append", "-m", "-"], br#"{"messages":[{"role":"user","content":"wrapped"}]}"#);
    home.ok_with(&["append", "-m", "-"], br#"{"role":"user","content":"one"}"#);
    let file = home.write(
        "m.jsonl",
        "{\"role\":\"user\",\"content\":\"line 1\"}\n\n{\"role\":\"assistant\",\"content\":\"line 2\"}",
    );
    let out = home.ok(&["append", "--messages", &file]);
    insta::assert_snapshot!("append", stable(&out, &home.path("")));
    let expected = ["two words", "from a pipe", "an array", "wrapped", "one", "line 1", "line 2"];
    assert_eq!(texts(&home, "main")[2..], expected);
}

#[test]
fn a_rendered_path_can_be_appended_and_renders_the_same() {
    let home = Home::with_trip();
    let call = r#"{"type":"tool_use","id":"c1","name":"find","input":{"q":"Tokyo"}}"#;
    let result = r#"{"type":"tool_result","tool_use_id":"c1","content":"none","is_error":true}"#;
    let messages = format!(
        r#"[{{"role":"user","content":"Look."}},{{"role":"assistant","content":[{call}]}},
            {{"role":"user","content":[{result},{{"type":"text","text":"Again."}}]}}]"#
    );
    home.ok_with(&["append", "-c", "tools", "--create", "-m", "-"], messages.as_bytes());
    let roles = home.json(&["path", "-c", "tools"]);
    let roles = roles["turns"].as_array().unwrap().iter().map(|turn| turn["role"].clone());
    assert_eq!(roles.collect::<Vec<_>>(), ["user", "assistant", "tool", "user"]);
    for format in ["anthropic", "openai", "tine"] {
        let sent = home.ok(&["path", "-c", "tools", "--format", format]);
        home.ok_with(&["append", "-c", format, "--create", "-m", "-"], sent.as_bytes());
        assert_eq!(home.ok(&["path", "-c", format, "--format", format]), sent);
    }
}

#[test]
fn a_request_brings_its_system_prompt_to_a_new_conversation_only() {
    let home = Home::new();
    home.ok(&["new", "first", "--system", "Be brief."]);
    home.ok(&["append", "-c", "first", "Hi"]);
    let sent = home.ok(&["path", "-c", "first", "--format", "anthropic"]);
    let append = |talk: &str, sent: &str| {
        home.run_with(&["append", "-c", talk, "--create", "-p", "root", "-m", "-"], sent.as_bytes())
    };
    assert_eq!(append("second", &sent).code, 0);
    assert_eq!(home.ok(&["path", "-c", "second", "--format", "anthropic"]), sent);
    assert_eq!(append("second", &sent).code, 0, "it has that prompt");
    let refused = append("second", &sent.replace("Be brief.", "Be verbose."));
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("another system prompt"), "{}", refused.err);
    assert_eq!(append("third", r#"{"system":7,"messages":[]}"#).code, 2);
    assert_eq!(append("third", r#"{"model":"x","messages":[]}"#).code, 2);
}

#[test]
fn appending_equal_turns_reuses_them() {
    let home = Home::with_trip();
    let before = home.everything();
    let out = home.ok(&["append", "--parent", "root", "What's the best time to visit Tokyo?"]);
    assert!(out.contains("(reused)"), "{out}");
    assert_eq!(home.everything(), before);
    home.ok(&[
        "append",
        "--no-reuse",
        "--parent",
        "main~1",
        "-b",
        "b",
        "-r",
        "assistant",
        "Late March 🌸",
    ]);
    assert_ne!(hash_of(&home, "b"), hash_of(&home, "main"));
}

#[test]
fn append_creates_store_and_conversation_on_request() {
    let home = Home::new();
    assert_eq!(home.run(&["append", "-c", "notes", "x"]).code, 3);
    home.ok(&["append", "-c", "notes", "--create", "x"]);
    home.ok(&["append", "-c", "notes", "--create", "y"]);
    assert_eq!(texts(&home, "main"), ["x", "y"]);
}

#[test]
fn a_partial_turn_and_a_tool_turn_keep_what_they_are() {
    let home = Home::with_trip();
    home.ok(&["append", "-r", "assistant", "--partial", "The best"]);
    assert_eq!(home.json(&["show"])["status"], "partial");
    home.ok(&["append", "-r", "tool", "--tool-call-id", "call-1", ""]);
    assert_eq!(home.json(&["show"])["tool_call_id"], "call-1");
}

#[test]
fn branches_are_created_listed_renamed_and_deleted() {
    let home = Home::with_trip();
    home.ok(&["branch", "early", "--at", "main~1"]);
    home.ok(&["branch", "late"]);
    home.ok(&["branch", "rename", "early", "earlier"]);
    home.ok(&["branch", "-m", "late", "later"]);
    insta::assert_snapshot!("branches", stable(&home.ok(&["branch"]), &home.path("")));
    assert_eq!(home.ok(&["branch"]), home.ok(&["branch", "list"]));
    home.ok(&["branch", "delete", "earlier"]);
    home.ok(&["branch", "-d", "later"]);
    assert_eq!(home.json(&["branch"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_fork_includes_its_turn_unless_exclusive() {
    let home = Home::with_trip();
    home.ok(&["fork", "main", "--name", "with"]);
    home.ok(&["fork", "main", "--name", "without", "--before"]);
    assert_eq!(hash_of(&home, "with"), hash_of(&home, "main"));
    assert_eq!(hash_of(&home, "without"), hash_of(&home, "main~1"));
    assert_eq!(home.ok(&["fork", "root"]), "[fork-1] ends on root\n");
    assert!(home.ok(&["tree"]).contains("◆ [fork-1] trip"));
}

#[test]
fn an_edit_makes_a_sibling_and_keeps_the_old_version() {
    let home = Home::with_trip();
    let old = hash_of(&home, "main");
    assert!(home.ok(&["edit", &old, "November"]).contains("no branch moved"));
    assert_eq!(hash_of(&home, "main"), old);
    home.ok(&["edit", &old, "May", "--branch", "main"]);
    assert_eq!(texts(&home, "main")[1], "May");
    let blocks = home
        .write("blocks.json", r#"[{"type":"thinking","text":"hm"},{"type":"text","text":"June"}]"#);
    home.ok(&["edit", &old, "--content", &blocks, "--branch", "main"]);
    let shown = home.json(&["show", &old, "--siblings", "--versions"]);
    assert_eq!(shown["siblings"].as_array().unwrap().len(), 4);
    assert_eq!(shown["versions"].as_array().unwrap().len(), 4);
    assert!(shown.get("children").is_none());
}

#[test]
fn a_split_turn_is_shown_as_two() {
    let home = Home::with_trip();
    home.ok(&["split", "main", "5"]);
    assert_eq!(texts(&home, "main")[1..], ["Late ", "March 🌸"]);
    assert!(home.json(&["show", "main"])["part_of"].is_string());
}

#[test]
fn a_deletion_can_be_previewed_done_and_undone() {
    let home = Home::with_trip();
    home.ok(&["bookmark", "answer", "main"]);
    let before = home.ok(&["tree"]);
    let preview = home.ok(&["delete", "main~1", "--dry-run"]);
    assert!(preview.starts_with("would delete 2 turns"), "{preview}");
    assert!(preview.contains("the bookmark answer is deleted too"), "{preview}");
    assert_eq!(home.ok(&["tree"]), before);
    let middle = hash_of(&home, "main~1");
    home.ok(&["delete", &middle, "--mode", "reparent"]);
    assert_eq!(texts(&home, "main"), ["Late March 🌸"]);
    let all = home.ok(&["tree", "--all"]);
    assert!(all.contains("(deleted)"), "{all}");
    home.ok(&["undo"]);
    assert_eq!(home.ok(&["tree"]), before);
    home.ok(&["redo"]);
    assert_eq!(texts(&home, "main").len(), 1);
}

#[test]
fn a_reverted_tail_is_listed_and_restored() {
    let home = Home::with_trip();
    let tip = hash_of(&home, "main");
    assert_eq!(home.ok(&["tails"]), "");
    home.ok(&["revert", "main~1"]);
    assert_eq!(texts(&home, "main").len(), 1);
    let tails = home.json(&["tails"]);
    assert_eq!(tails["items"][0]["leaf_hash"], tip);
    assert!(home.ok(&["tails"]).contains("Late March"));
    home.ok(&["restore"]);
    assert_eq!(hash_of(&home, "main"), tip);
    home.ok(&["revert", "main", "main~1"]);
    home.ok(&["restore", "main"]);
    home.ok(&["revert", "main~1"]);
    home.ok(&["restore", &tip]);
    home.ok(&["revert", "main~1"]);
    home.ok(&["restore", "main", &tip]);
    assert_eq!(hash_of(&home, "main"), tip);
}

#[test]
fn changes_are_listed_undone_and_redone() {
    let home = Home::with_trip();
    home.ok(&["--actor", "somebody", "append", "x"]);
    home.ok(&["undo"]);
    insta::assert_snapshot!("ops", stable(&home.ok(&["ops"]), &home.path("")));
    let first = home.json(&["ops", "-n", "2"]);
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    assert_eq!(first["items"][1]["actor"], "somebody");
    assert!(first["next"].is_string());
    home.ok(&["redo"]);
    assert_eq!(texts(&home, "main").len(), 3);
}

#[test]
fn bookmarks_tags_and_titles_are_set_shown_and_removed() {
    let home = Home::with_trip();
    home.ok(&["bookmark", "answer"]);
    home.ok(&["bookmark", "question", "main~1"]);
    assert_eq!(hash_of(&home, "question"), hash_of(&home, "main~1"));
    assert_eq!(home.ok(&["bookmark"]).lines().count(), 2);
    home.ok(&["bookmark", "-d", "question"]);
    assert_eq!(home.json(&["bookmark"])["items"].as_array().unwrap().len(), 1);
    assert!(
        home.ok(&["tag", "main", "good", "+short", "--add", "-odd-"])
            .contains("#-odd- #good #short")
    );
    assert!(home.ok(&["tag", "main", "--remove", "short"]).contains("#-odd- #good"));
    assert!(!home.ok(&["tag", "main"]).contains("short"));
    home.ok(&["title", "main", "The answer"]);
    assert!(home.ok(&["title", "main"]).contains("The answer"));
    home.ok(&["title", "main", "--clear", "--force"]);
    home.ok(&["title", "main", "--auto", "By a machine"]);
    let tree = home.ok(&["tree"]);
    assert!(tree.contains("[★ answer]") && tree.contains("By a machine"), "{tree}");
    home.ok(&["title", "root", "The whole"]);
    assert_eq!(home.json(&["ls"])["items"][0]["title"], "The whole");
}

#[test]
fn a_purge_without_confirmation_erases_nothing() {
    let home = Home::with_trip();
    let error = home.refused("invalid", &["purge", "main"]);
    assert!(error.contains("--yes"), "{error}");
    let plan = home.run(&["purge", "main"]);
    assert!(plan.out.contains("would erase") && plan.out.contains("Late March"), "{}", plan.out);
    home.ok(&["purge", "main", "--yes"]);
    let gone = home.json(&["show", "main"]);
    assert_eq!((gone["content"].is_null(), &gone["purged"]), (true, &true.into()));
    assert!(home.ok(&["tree"]).contains("(purged)"));
    assert!(!home.everything().contains("Late March"));
    let checked = home.json(&["verify"]);
    assert_eq!((&checked["ok"], &checked["purged_turns"]), (&true.into(), &1.into()));
}

#[test]
fn a_purged_conversation_leaves_the_others_alone() {
    let home = Home::with_trip();
    home.ok(&["append", "-c", "other", "--create", "Something else"]);
    home.ok(&["purge", "--whole", "-c", "trip", "--yes"]);
    assert!(!home.everything().contains("Tokyo"));
    assert_eq!(texts(&home, &hash_of_in(&home, "other")), ["Something else"]);
    assert_eq!(home.json(&["verify"])["ok"], true);
}

fn hash_of_in(home: &Home, conversation: &str) -> String {
    let turn = home.json(&["show", "main", "-c", conversation]);
    turn["turn_hash"].as_str().expect("a turn has a hash").to_owned()
}
