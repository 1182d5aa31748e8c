//! Paths as provider requests, and what they cost.

use crate::harness::{Home, stable};
use crate::reading::with_demo;

/// An open tool call, and turns with token usage.
const MESSAGES: &str = r#"
{"role":"user","content":"Book it."}
{"role":"assistant","content":[{"type":"thinking","text":"Which one?"},{"type":"tool-use","id":"call-1","name":"book","parameters":{"nights":7}}],"metadata":{"source_info":{"model":"gpt-x","usage":{"prompt_tokens":1200,"completion_tokens":30},"cost_usd":0.0125}}}
{"role":"user","content":"And?"}
{"role":"assistant","content":"Booked.","metadata":{"source_info":{"model":"claude-x","usage":{"input_tokens":10,"cache_read_input_tokens":1190,"output_tokens":20}}}}
"#;

fn with_open_call() -> Home {
    let home = Home::new();
    home.ok(&["new", "trip", "--system", "Be brief."]);
    home.ok_with(&["append", "-m", "-"], MESSAGES.trim().as_bytes());
    home
}

#[test]
fn a_path_is_written_for_every_provider() {
    let home = with_demo();
    for format in ["openai", "anthropic", "gemini", "markdown"] {
        let ran = home.run(&["path", "flights", "--format", format]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let shown = format!("{}\n{}", ran.out, ran.err);
        insta::assert_snapshot!(format!("path_{format}"), stable(&shown, &home.path("")));
    }
}

#[test]
fn notes_are_part_of_the_document() {
    let home = with_open_call();
    let document = home.json(&["path", "--format", "openai"]);
    let pretty = serde_json::to_string_pretty(&document).expect("a document");
    insta::assert_snapshot!("path_document", stable(&pretty, &home.path("")));
    let tine = home.json(&["path", "--format", "tine", "--max-tokens", "30"]);
    assert_eq!(tine["tokens"]["exact"], false);
    assert_eq!(tine["turns_cut"], 2);
}

#[test]
fn open_calls_are_refused_where_they_are_to_be_reported() {
    let home = with_open_call();
    let refused = ["path", "--format", "openai", "--open-calls", "report"];
    let said = home.refused("unsupported", &refused);
    assert!(said.contains("call-1 of turn") && said.contains("hint: --open-calls close"), "{said}");
    let mut with_json = vec!["--json"];
    with_json.extend(refused);
    let document: serde_json::Value = serde_json::from_str(&home.run(&with_json).err).unwrap();
    assert_eq!(document["error"]["open_calls"][0]["call_ids"][0], "call-1");
    let kept = home.run(&["path", "--format", "openai", "--open-calls", "keep"]);
    assert!(!kept.out.contains("No result was recorded"), "{kept:?}");
    assert!(kept.err.contains("note: kept: the tool call `call-1`"), "{kept:?}");
}

#[test]
fn a_limit_that_is_too_small_names_one_that_would_do() {
    let home = with_demo();
    let said = home.refused("too_large", &["path", "--format", "anthropic", "--max-tokens", "9"]);
    let (_, hint) = said.split_once("hint: ").expect("a hint");
    let mut arguments = vec!["path", "--format", "anthropic"];
    arguments.extend(hint.split_whitespace());
    assert_eq!(home.run(&arguments).code, 0, "{hint}");
}

#[test]
fn limits_and_open_calls_go_with_a_format() {
    let home = with_demo();
    home.refused("invalid", &["path", "--max-tokens", "100"]);
    home.refused("invalid", &["path", "--open-calls", "close"]);
    home.refused(
        "invalid",
        &["path", "--format", "openai", "--around", "hotel", "--max-tokens", "9"],
    );
    let around = home.json(&["path", "--format", "openai", "--around", "hotel", "--before", "0"]);
    assert_eq!(around["request"]["messages"][0]["role"], "assistant");
}

#[test]
fn stats_tell_tokens_and_cost() {
    let home = with_open_call();
    home.ok(&["fork", "main~2", "--name", "other"]);
    let shown = home.ok(&["stats", "-c", "trip"]);
    let (_, usage) = shown.split_once("  tokens").expect("a table");
    insta::assert_snapshot!("stats_usage", format!("  tokens{usage}"));
    let document = home.json(&["stats", "-c", "trip"]);
    let pretty = serde_json::to_string_pretty(&document["usage"]).expect("a document");
    insta::assert_snapshot!("stats_usage_document", pretty);
    let all = home.json(&["stats", "--usage"]);
    assert_eq!(all["usage"]["total"], document["usage"]["total"]);
    assert_eq!(all["usage"]["conversations"][0]["name"], "trip");
    assert!(home.json(&["stats"]).get("usage").is_none());
    assert!(!home.ok(&["stats"]).contains("tokens"));
}
