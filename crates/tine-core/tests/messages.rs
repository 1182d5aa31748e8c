//! Messages on the way in: canonical form, legacy form, and everything that is refused.

use tine_core::json::{self, Json};
use tine_core::message::MessageError;
use tine_core::{Body, Limits, Message, Role, Status};

fn read(text: &str) -> Result<Message, MessageError> {
    let limits = Limits::default();
    Message::from_json(json::parse(text.as_bytes(), limits.json_depth).unwrap(), &limits)
}

/// What a message is kept as.
fn check(text: &str, blocks: &str) {
    assert_eq!(read(text).unwrap().body.to_blocks_string(), blocks, "{text}");
}

fn refused(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn a_string_is_one_text_block() {
    check(r#"{"role":"user","content":"Hi"}"#, r#"[{"text":"Hi","type":"text"}]"#);
}

#[test]
fn unknown_blocks_are_kept_value_for_value() {
    check(
        r#"{"role":"user","content":[{"type":"hologram","depth":3.0,"id":9007199254740993,"x":{"b":1,"a":[null]}}]}"#,
        r#"[{"depth":3,"id":9007199254740993,"type":"hologram","x":{"a":[null],"b":1}}]"#,
    );
}

#[test]
fn legacy_text_comes_before_legacy_tool_calls() {
    check(
        r#"{"role":"assistant","content":"Looking.","tool_calls":[
            {"id":"c1","type":"function","function":{"name":"find","arguments":"{\"q\":\"Tokyo\"}"}},
            {"id":"c2","name":"now","parameters":{}},
            {"id":"c3","function":{"name":"blank","arguments":"  "}}]}"#,
        concat!(
            r#"[{"text":"Looking.","type":"text"},"#,
            r#"{"id":"c1","name":"find","parameters":{"q":"Tokyo"},"type":"tool-use"},"#,
            r#"{"id":"c2","name":"now","parameters":{},"type":"tool-use"},"#,
            r#"{"id":"c3","name":"blank","parameters":{},"type":"tool-use"}]"#
        ),
    );
}

#[test]
fn a_legacy_call_without_text_is_an_assistant_turn_of_tool_use_alone() {
    check(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"[{"id":"c","name":"f","parameters":{},"type":"tool-use"}]"#,
    );
}

#[test]
fn legacy_arguments_that_are_no_object_are_refused() {
    for arguments in [r#""[1]""#, r#""{broken""#, "[1]", r#""null""#] {
        let text = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","name":"f","arguments":{arguments}}}]}}"#
        );
        assert!(read(&text).is_err(), "{text}");
    }
}

#[test]
fn empty_content_is_refused_except_what_a_tool_printed() {
    for content in [r#""""#, "[]", "null", "3", "{}"] {
        assert!(read(&format!(r#"{{"role":"user","content":{content}}}"#)).is_err(), "{content}");
    }
    assert!(read(r#"{"role":"user"}"#).is_err());
    check(r#"{"role":"tool","tool_call_id":"c","content":""}"#, r#"[{"text":"","type":"text"}]"#);
}

#[test]
fn roles_are_the_four_and_no_other() {
    for role in ["user", "assistant", "system"] {
        assert!(read(&format!(r#"{{"role":"{role}","content":"x"}}"#)).is_ok());
    }
    assert!(refused(r#"{"role":"developer","content":"x"}"#).contains("unknown role `developer`"));
    assert!(refused(r#"{"role":7,"content":"x"}"#).contains("`role` must be a string"));
}

#[test]
fn a_tool_turn_names_its_call_and_no_other_turn_does() {
    assert!(matches!(
        read(r#"{"role":"tool","content":"x"}"#),
        Err(MessageError::ToolCallIdMissing)
    ));
    assert!(matches!(
        read(r#"{"role":"user","content":"x","tool_call_id":"c"}"#),
        Err(MessageError::ToolCallIdRole { .. })
    ));
}

#[test]
fn only_an_assistant_uses_tools() {
    let block = r#"[{"type":"tool-use","id":"c","name":"f","parameters":{}}]"#;
    assert!(read(&format!(r#"{{"role":"assistant","content":{block}}}"#)).is_ok());
    assert!(matches!(
        read(&format!(r#"{{"role":"user","content":{block}}}"#)),
        Err(MessageError::ToolUseRole { .. })
    ));
    // A message built in code is checked as strictly.
    let mut message = read(&format!(r#"{{"role":"assistant","content":{block}}}"#)).unwrap();
    message.role = Role::User;
    assert!(message.check(&Limits::default()).is_err());
}

#[test]
fn malformed_blocks_are_named_by_their_position() {
    for (block, why) in [
        ("3", "block 1: a block must be an object"),
        (r#"{"text":"x"}"#, "block 1: a block needs a `type`"),
        (r#"{"type":""}"#, "block 1: `type` must be a non-empty string"),
        (r#"{"type":"text"}"#, "block 1: a `text` block needs `text`"),
        (r#"{"type":"text","text":3}"#, "block 1: `text` must be a string"),
        (r#"{"type":"tool-use","id":"","name":"f","parameters":{}}"#, "`id` must not be empty"),
        (r#"{"type":"tool-use","id":"c","name":"f","parameters":[]}"#, "an object as `parameters`"),
    ] {
        let text =
            format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"a"}},{block}]}}"#);
        assert!(refused(&text).contains(why), "{}", refused(&text));
    }
}

#[test]
fn unknown_fields_are_refused_unless_they_say_nothing() {
    assert!(
        refused(r#"{"role":"user","content":"x","name":"bob"}"#).contains("unknown field `name`")
    );
    assert!(read(r#"{"role":"user","content":"x","refusal":null}"#).is_ok());
}

#[test]
fn a_block_over_the_limit_is_too_large() {
    let limits = Limits { block_bytes: 10, ..Limits::default() };
    for content in
        [Json::from("x".repeat(11)), Json::Array(vec![tine_core::message::text_block("x")])]
    {
        let error = Body::from_content(content, Role::User, &limits).unwrap_err();
        assert!(error.is_too_large(), "{error}");
    }
}

#[test]
fn time_status_and_metadata_travel_with_the_message() {
    let message = read(
        r#"{"role":"assistant","content":"x","created_at":"2024-01-15T10:30:00.5+01:00",
            "status":"partial","metadata":{"title":"T","tags":["b","a","b"],
            "source_info":{"model":"m"},"custom_data":[1],"auto_title":null}}"#,
    )
    .unwrap();
    assert_eq!(message.created_at.unwrap().to_string(), "2024-01-15T09:30:00.5Z");
    assert_eq!(message.status, Status::Partial);
    assert_eq!(
        message.metadata.to_json().to_canonical(),
        r#"{"custom_data":[1],"source_info":{"model":"m"},"tags":["a","b"],"title":"T"}"#
    );
    for bad in [
        r#"{"mood":1}"#,
        r#"{"tags":"a"}"#,
        r#"{"tags":[1]}"#,
        r#"{"title":[]}"#,
        r#"{"source_info":1}"#,
        "3",
    ] {
        assert!(
            read(&format!(r#"{{"role":"user","content":"x","metadata":{bad}}}"#)).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn equality_is_role_content_and_call_and_nothing_else() {
    let plain = read(r#"{"role":"user","content":"x"}"#).unwrap();
    let dressed = read(
        r#"{"role":"user","content":[{"text":"x","type":"text"}],"created_at":"2024-01-15T10:30:00Z","metadata":{"title":"T"}}"#,
    )
    .unwrap();
    assert_eq!(plain.digest(), dressed.digest());
    assert_ne!(plain.digest(), read(r#"{"role":"system","content":"x"}"#).unwrap().digest());
    assert_ne!(plain.digest(), read(r#"{"role":"user","content":"x "}"#).unwrap().digest());
}

#[test]
fn a_preview_is_one_line_of_what_was_said() {
    let message = read(
        r#"{"role":"assistant","content":[{"type":"thinking","text":"hm"},{"type":"text","text":"  Two\n\n words "},
            {"type":"tool-use","id":"c","name":"find","parameters":{}},{"type":"image","url":"u"}]}"#,
    )
    .unwrap();
    assert_eq!(message.body.preview(80), "(hm) Two words → find [image]");
    assert_eq!(Body::Text("x".repeat(100)).preview(80).chars().count(), 80);
    assert!(Body::Text("x".repeat(100)).preview(80).ends_with('…'));
}

fn received(text: &str) -> Result<Vec<Message>, MessageError> {
    let limits = Limits::default();
    Message::from_request(json::parse(text.as_bytes(), limits.json_depth).unwrap(), &limits)
}

/// What a message that a caller sends is kept as: role, call and blocks of each turn.
fn check_received(text: &str, turns: &[(Role, Option<&str>, &str)]) {
    let read = received(text).unwrap();
    let read: Vec<_> = read
        .iter()
        .map(|one| (one.role, one.tool_call_id.clone(), one.body.to_blocks_string()))
        .collect();
    let expected: Vec<_> = turns
        .iter()
        .map(|(role, call, blocks)| (*role, call.map(str::to_owned), (*blocks).to_owned()))
        .collect();
    assert_eq!(read, expected, "{text}");
}

#[test]
fn calls_and_thoughts_in_anthropics_form_become_canonical_blocks() {
    check_received(
        r#"{"role":"assistant","content":[
            {"type":"thinking","thinking":"Hm.","signature":"c2ln"},
            {"type":"thinking","thinking":null,"signature":"c2ln"},
            {"type":"redacted_thinking","data":"eA=="},
            {"type":"text","text":"Looking.","cache_control":{"type":"ephemeral"}},
            {"type":"tool_use","id":"c1","name":"find","input":{"q":"Tokyo"},"caller":{"type":"direct"},"cache_control":{"type":"ephemeral"}},
            {"type":"tool_use","id":"c2","name":"now"}]}"#,
        &[(
            Role::Assistant,
            None,
            concat!(
                r#"[{"signature":"c2ln","text":"Hm.","type":"thinking"},"#,
                r#"{"signature":"c2ln","text":"","type":"thinking"},"#,
                r#"{"data":"eA==","type":"redacted_thinking"},"#,
                r#"{"cache_control":{"type":"ephemeral"},"text":"Looking.","type":"text"},"#,
                r#"{"caller":{"type":"direct"},"id":"c1","name":"find","parameters":{"q":"Tokyo"},"type":"tool-use"},"#,
                r#"{"id":"c2","name":"now","parameters":{},"type":"tool-use"}]"#
            ),
        )],
    );
}

#[test]
fn results_in_a_users_message_are_turns_before_what_else_it_says() {
    check_received(
        r#"{"role":"user","created_at":"2024-01-15T10:30:00Z","content":[
            {"type":"tool_result","tool_use_id":"c1","content":"Sunny."},
            {"type":"tool_result","tool_use_id":"c2","content":[{"type":"image","source":{"type":"url","url":"x"}}]},
            {"type":"tool_result","tool_use_id":"c3","is_error":null},
            {"type":"text","text":"And tomorrow?"}]}"#,
        &[
            (Role::Tool, Some("c1"), r#"[{"text":"Sunny.","type":"text"}]"#),
            (Role::Tool, Some("c2"), r#"[{"source":{"type":"url","url":"x"},"type":"image"}]"#),
            (Role::Tool, Some("c3"), r#"[{"text":"","type":"text"}]"#),
            (Role::User, None, r#"[{"text":"And tomorrow?","type":"text"}]"#),
        ],
    );
    let failed = received(
        r#"{"role":"user","metadata":{"source_info":{"client":"x"},"tags":["t"]},"content":[
            {"type":"tool_result","tool_use_id":"c1","content":"No.","is_error":true},
            {"type":"tool_result","tool_use_id":"c2","content":"Yes.","is_error":false}]}"#,
    )
    .unwrap();
    let info = |at: usize| failed[at].metadata.source_info.clone().unwrap().to_canonical();
    assert_eq!(info(0), r#"{"client":"x","is_error":true}"#);
    assert_eq!(info(1), r#"{"client":"x"}"#);
    assert!(failed.iter().all(|turn| turn.metadata.tags.contains("t")));
}

#[test]
fn what_is_not_in_anthropics_form_is_received_as_it_is_read() {
    for text in [
        r#"{"role":"user","content":"Hi"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","text":"Hm.","thinking":"kept"},{"type":"tool-use","id":"c","name":"f","parameters":{"input":1}}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c","content":[{"type":"tool_result","tool_use_id":"d"},{"type":"tool_use"}]}"#,
        r#"{"role":"user","content":[{"type":"web_search_tool_result","tool_use_id":"c"},{"type":"hologram","input":1}]}"#,
    ] {
        assert_eq!(received(text).unwrap(), [read(text).unwrap()], "{text}");
    }
    for text in ["7", r#"{"role":"user"}"#, r#"{"role":"user","content":[7]}"#] {
        assert_eq!(received(text).unwrap_err(), read(text).unwrap_err(), "{text}");
    }
}

#[test]
fn half_of_anthropics_form_is_refused() {
    let refused = |text: &str| received(text).unwrap_err().to_string();
    for (text, why) in [
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","parameters":{"x":1}}]}"#,
            "a `tool_use` block has `input`",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":"yes"}]}"#,
            "unknown field `is_error`",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}"#,
            "needs `id`",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":7,"name":"f"}]}"#,
            "`id` must be a string",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":"x"}]}"#,
            "an object as `parameters`",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}"#,
            "only an assistant's turn",
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","content":"x"}]}"#,
            "block 1: a `tool_result` block needs",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","more":1}]}"#,
            "unknown field `more`",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"c"}]}"#,
            "only a user's message",
        ),
        (r#"{"role":"assistant","content":[{"type":"thinking","thinking":7}]}"#, "thinking"),
    ] {
        assert!(refused(text).contains(why), "{text}: {}", refused(text));
    }
}

#[test]
fn several_turns_are_refused_where_one_is_taken() {
    let limits = Limits::default();
    let json = |text: &str| json::parse(text.as_bytes(), limits.json_depth).unwrap();
    let one = r#"[{"type":"tool_result","tool_use_id":"c","content":"x"}]"#;
    let two =
        r#"[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"text","text":"y"}]"#;
    let message = |content: &str| json(&format!(r#"{{"role":"user","content":{content}}}"#));
    let alone = Message::single_from_request(message(one), &limits).unwrap();
    assert_eq!(alone, Message::tool("c", "x"));
    let refused = Message::single_from_request(message(two), &limits).unwrap_err();
    assert_eq!(refused, MessageError::SeveralTurns { turns: 2 });
    assert!(refused.to_string().contains("send it in a list of `messages`"), "{refused}");
    for content in [one, two] {
        assert!(Body::from_request(json(content), Role::User, &limits).is_err());
    }
    let body = r#"[{"type":"tool_use","id":"c","name":"f","input":{}}]"#;
    let body = Body::from_request(json(body), Role::Assistant, &limits).unwrap();
    assert!(body.to_blocks_string().contains("tool-use"));
    assert_eq!(
        Body::from_request("x".into(), Role::User, &limits).unwrap(),
        Body::Text("x".into())
    );
}

/// Every result has the metadata of its message: a large one would be as many times as large.
#[test]
fn the_text_shared_by_the_results_of_one_message_is_bounded() {
    let result = r#"{"type":"tool_result","tool_use_id":"c"}"#;
    let message = |bytes: usize| {
        let (note, results) = ("x".repeat(bytes), vec![result; 5_000].join(","));
        format!(
            r#"{{"role":"user","metadata":{{"custom_data":{{"note":"{note}"}}}},"content":[{results}]}}"#
        )
    };
    assert_eq!(received(&message(100)).unwrap().len(), 5_000);
    let why = received(&message(100_000)).unwrap_err().to_string();
    assert!(why.contains("send each as a `tool` message of its own"), "{why}");
}
