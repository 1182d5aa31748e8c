//! Each kind of bad input has a named error and leaves the store unchanged.

use std::fs;

use crate::harness::{Home, hash_of};

/// Two first turns of one time whose hashes begin with the same eight digits.
const TWINS: [&str; 2] = ["twin 25950", "twin 105094"];
const TWIN_PREFIX: &str = "0aa793d6";

fn refused_message(code: &str, message: &str) -> String {
    let home = Home::with_trip();
    home.refused_with(code, &["append", "--messages", "-"], message.as_bytes())
}

#[test]
fn empty_content_is_invalid() {
    let home = Home::with_trip();
    assert!(home.refused("invalid", &["append", ""]).contains("empty"));
    home.refused_with("invalid", &["append", "-"], b"");
    home.refused_with("invalid", &["append", "-"], b"\n");
    home.refused("invalid", &["edit", "main", ""]);
    refused_message("invalid", r#"{"role":"user","content":[]}"#);
    refused_message("invalid", "[]");
}

#[test]
fn an_unknown_role_is_invalid() {
    let error = refused_message("invalid", r#"{"role":"robot","content":"x"}"#);
    assert!(error.contains("user, assistant, tool or system"), "{error}");
    Home::with_trip().refused("invalid", &["append", "--role", "robot", "x"]);
}

#[test]
fn a_tool_turn_without_its_call_is_invalid() {
    let home = Home::with_trip();
    let error = home.refused("invalid", &["append", "--role", "tool", "42"]);
    assert!(error.contains("tool_call_id"), "{error}");
    home.refused("invalid", &["append", "--tool-call-id", "a", "42"]);
    refused_message("invalid", r#"{"role":"tool","content":"x"}"#);
}

#[test]
fn tool_use_by_a_user_is_invalid() {
    let block = r#"{"type":"tool-use","id":"a","name":"b","parameters":{}}"#;
    refused_message("invalid", &format!(r#"{{"role":"user","content":[{block}]}}"#));
}

#[test]
fn invalid_utf_8_is_invalid_and_its_offset_is_named() {
    let home = Home::with_trip();
    let error = home.refused_with("invalid", &["append", "-"], b"caf\xe9");
    assert!(error.contains("offset 3"), "{error}");
    let file = home.write("messages.json", b"{\"role\":\"user\",\"content\":\"\xff\"}");
    let error = home.refused("invalid", &["append", "--messages", &file]);
    assert!(error.contains("byte 26"), "{error}");
}

#[test]
fn json_of_129_levels_is_too_large() {
    let nested = format!("{}{}", "[".repeat(126), "]".repeat(126));
    let message =
        |nested: &str| format!(r#"{{"role":"user","content":[{{"type":"x","data":{nested}}}]}}"#);
    refused_message("too_large", &message(&nested));
    // 128 are allowed: the object, the content, the block, and 125 of its own.
    let home = Home::with_trip();
    home.ok_with(&["append", "-m", "-"], message(&nested[1..nested.len() - 1]).as_bytes());
}

#[test]
fn duplicate_keys_and_numbers_beyond_a_double_are_invalid() {
    refused_message("invalid", r#"{"role":"user","role":"user","content":"x"}"#);
    refused_message("invalid", r#"{"role":"user","content":[{"type":"x","n":1e400}]}"#);
    refused_message("invalid", r#"{"role":"user","content":"\ud800"}"#);
    let home = Home::with_trip();
    home.refused("invalid", &["new", "other", "--config", r#"{"a":1,"a":2}"#]);
}

#[test]
fn a_block_over_16_mib_is_too_large() {
    let home = Home::with_trip();
    let text = vec![b'x'; (16 << 20) + 1];
    home.refused_with("too_large", &["append", "-"], &text);
    home.ok_with(&["append", "-"], &text[..16 << 20]);
}

#[test]
fn input_over_32_mib_is_too_large_and_not_read_to_its_end() {
    let home = Home::with_trip();
    home.refused_with("too_large", &["append", "-m", "-"], &vec![b' '; (32 << 20) + 1]);
    // A stream without end is refused all the same.
    if let Ok(endless) = fs::File::open("/dev/zero") {
        let mut command = home.command(&["append", "-"]);
        let output = command.stdin(endless).output().expect("the command ends");
        assert_eq!(output.status.code(), Some(9));
    }
}

#[test]
fn ten_thousand_and_one_messages_are_too_large() {
    let home = Home::with_trip();
    let lines = "{\"role\":\"user\",\"content\":\"x\"}\n".repeat(10_001);
    home.refused_with("too_large", &["append", "-m", "-"], lines.as_bytes());
}

#[test]
fn one_bad_message_refuses_the_whole_call_and_is_named() {
    let error = refused_message(
        "invalid",
        r#"[{"role":"user","content":"good"},{"role":"user","content":"good"},{"role":"user"}]"#,
    );
    assert!(error.contains("message 2"), "{error}");
    let error = refused_message("invalid", "{\"role\":\"user\",\"content\":\"x\"}\n{nonsense}\n");
    assert!(error.contains("line 2"), "{error}");
    refused_message("invalid", r#"{"messages":[{"role":"user","content":"x"}],"model":"m"}"#);
    refused_message("invalid", r#"{"role":"user","content":"x","name":"y"}"#);
}

#[test]
fn a_parent_in_another_conversation_is_not_found() {
    let home = Home::with_trip();
    let parent = hash_of(&home, "main");
    home.ok(&["new", "other"]);
    home.refused("not_found", &["append", "-c", "other", "--parent", &parent, "-b", "b", "x"]);
}

#[test]
fn a_deleted_parent_is_not_found_and_the_undo_named() {
    let home = Home::with_trip();
    let parent = hash_of(&home, "main");
    home.ok(&["delete", &parent]);
    let error = home.refused("not_found", &["append", "--parent", &parent, "-b", "b", "x"]);
    assert!(error.contains("tine undo 4"), "{error}");
}

#[test]
fn a_prefix_of_two_hashes_is_ambiguous_and_both_are_named() {
    let home = Home::with_trip();
    for (branch, text) in ["one", "two"].iter().zip(TWINS) {
        let at = "2024-01-15T10:30:00Z";
        home.ok(&["append", "--at", at, "--parent", "root", "--branch", branch, text]);
    }
    let error = home.refused("ambiguous", &["show", TWIN_PREFIX]);
    assert_eq!(error.matches("sha256:0aa793d6").count(), 2, "{error}");
    let error = home.refused("ambiguous", &["append", "--parent", TWIN_PREFIX, "-b", "c", "x"]);
    assert!(error.contains("sha256:"), "{error}");
    let longer = &hash_of(&home, "two")["sha256:".len()..][..12];
    home.ok(&["show", longer]);
}

#[test]
fn a_hash_in_several_conversations_is_ambiguous_without_one() {
    let home = Home::with_trip();
    home.ok(&["new", "other"]);
    let question = "What's the best time to visit Tokyo?";
    home.ok(&["append", "-c", "other", "--at", "2024-01-15T10:30:00Z", question]);
    let error = home.refused("ambiguous", &["show", "a9d2e63be84c"]);
    assert!(error.contains("in trip") && error.contains("in other"), "{error}");
    assert!(error.contains("-c ") && !error.contains("digits"), "{error}");
    home.ok(&["show", "a9d2e63be84c", "-c", "other"]);
}

#[test]
fn an_offset_inside_an_emoji_is_invalid() {
    let home = Home::with_trip();
    home.ok(&["append", "👩‍🚀 up"]);
    let error = home.refused("invalid", &["split", "main", "1"]);
    assert!(error.contains("use 0 or 3"), "{error}");
    home.refused("invalid", &["split", "main", "0"]);
    home.refused("invalid", &["split", "main", "99"]);
}

#[test]
fn the_root_cannot_be_deleted() {
    let home = Home::with_trip();
    home.refused("protected", &["delete", "root"]);
    home.refused("protected", &["delete", "root", "--force"]);
}

#[test]
fn changes_with_dependents_cannot_be_undone() {
    let home = Home::with_trip();
    let error = home.refused("protected", &["undo", "2"]);
    assert!(error.contains("hint: tine undo 3"), "{error}");
}

#[test]
fn not_found_errors_name_the_command_that_lists() {
    let home = Home::with_trip();
    for (arguments, command) in [
        (&["log", "-c", "nowhere"][..], "`tine ls`"),
        (&["show", "nothing"], "`tine tree`"),
        (&["branch", "-d", "nothing"], "`tine branch`"),
        (&["entity", "show", "ent_00000000000000000000000000000000"], "`tine entity list`"),
    ] {
        let error = home.refused("not_found", arguments);
        let (sentence, hint) = error.split_once("hint: ").expect("a hint");
        assert!(!sentence.contains("`tine ") && hint.contains(command), "{error}");
    }
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_alone() {
    let home = Home::with_trip();
    let database = home.path("store").join("tine.db");
    let mut bytes = fs::read(&database).expect("a closed store is one file");
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes()); // SQLite's user_version
    fs::write(&database, &bytes).expect("the store can be written");
    let ran = home.run(&["append", "x"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("format 99") && ran.err.contains("newer release"), "{}", ran.err);
    assert_eq!(fs::read(&database).expect("it is still there"), bytes);
}

#[test]
fn a_path_that_is_not_a_store_is_invalid_and_left_alone() {
    let home = Home::with_trip();
    let file = home.write("letter.txt", "Dear Sir");
    home.refused("invalid", &["new", "x", "--store", &file]);
    let folder = home.path("letters");
    fs::create_dir(&folder).expect("a new folder");
    fs::write(folder.join("a.txt"), "Dear Sir").expect("a new file");
    let folder_name = folder.to_str().expect("a plain name");
    let error = home.refused("invalid", &["new", "x", "--store", folder_name]);
    assert!(error.contains("is not a Tine store"), "{error}");
    assert_eq!(fs::read_dir(&folder).expect("it is still there").count(), 1);
    fs::write(folder.join("tine.db"), "Dear Sir").expect("a new file");
    home.refused("invalid", &["ls", "--store", folder_name]);
}

#[test]
fn an_invalid_call_creates_no_store() {
    let home = Home::new();
    let calls: [&[&str]; 5] = [
        &["new", ""],
        &["new", "x", "--system", "@missing.txt"],
        &["append", "--create", "-c", "x", ""],
        &["import", "missing.jsonl"],
        &["ls"],
    ];
    for call in calls {
        assert_ne!(home.run(call).code, 0, "{call:?}");
        assert!(!home.path("store").exists(), "{call:?} made a store");
    }
}

/// Conversations are private by default.
#[test]
#[cfg(unix)]
fn a_new_store_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let folder = home.path("mine");
    home.ok(&["new", "x", "--store", folder.to_str().unwrap()]);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let chosen = home.path("chosen");
    std::fs::create_dir(&chosen).unwrap();
    std::fs::set_permissions(&chosen, std::fs::Permissions::from_mode(0o750)).unwrap();
    home.ok(&["new", "x", "--store", chosen.to_str().unwrap()]);
    assert_eq!(mode(&chosen), 0o750);
}
