//! Each rule of `docs/rendering.md` by its name.

use tine_core::{ErrorKind, Json, Role, Status};
use tine_formats::render::{Format, OpenCalls, RenderError};
use tine_store::Content;

use super::stage::{PROVIDERS, Stage, at, notes, request, text, turn_id};
use super::valid;

#[test]
fn adjacent_texts_are_joined_by_a_blank_line_and_split_halves_directly() {
    let mut stage = Stage::new(None);
    stage.user("one").user("two, ha").user("lf").joined().assistant("three");
    stage.user(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#).user("c");
    let openai = stage.plain(Format::OpenAi);
    assert_eq!(text(&openai, "messages/0/content"), "one\n\ntwo, half");
    assert_eq!(text(&openai, "messages/2/content"), "ab\n\nc");
    let anthropic = stage.plain(Format::Anthropic);
    assert_eq!(text(&anthropic, "messages/0/content"), "one\n\ntwo, half");
    let gemini = stage.plain(Format::Gemini);
    assert_eq!(text(&gemini, "contents/0/parts/0/text"), "one\n\ntwo, half");
    let markdown = stage.render(Format::Markdown).text();
    assert!(markdown.starts_with("## User\n\none\n\ntwo, half\n\n## Assistant\n\nthree"));
}

#[test]
fn parts_of_a_split_whose_middle_is_deleted_are_joined_by_a_blank_line() {
    let mut stage = Stage::new(None);
    stage.user("first").user("last");
    stage.last().continues = Some(turn_id(7));
    assert_eq!(text(&stage.plain(Format::OpenAi), "messages/0/content"), "first\n\nlast");
}

#[test]
fn results_of_tools_are_never_coalesced() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f", "b:f"]).tool("a", "1").tool("b", "2").user("thanks");
    let openai = stage.plain(Format::OpenAi);
    assert_eq!(text(&openai, "messages/2/tool_call_id"), "a");
    assert_eq!(text(&openai, "messages/3/tool_call_id"), "b");
    // For Anthropic they are blocks of one message, before what else the user says.
    let anthropic = stage.plain(Format::Anthropic);
    let kinds: Vec<&str> = at(&anthropic, "messages/2/content")
        .as_array()
        .unwrap()
        .iter()
        .map(|block| text(block, "type"))
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
}

#[test]
fn the_root_and_the_leading_system_turns_are_the_system_prompt() {
    let mut stage = Stage::new(Some("Be brief."));
    stage.system("Be kind.").user("Hello");
    assert_eq!(text(&stage.plain(Format::OpenAi), "messages/0/content"), "Be brief.\n\nBe kind.");
    assert_eq!(text(&stage.plain(Format::Anthropic), "system"), "Be brief.\n\nBe kind.");
    let gemini = stage.plain(Format::Gemini);
    assert_eq!(text(&gemini, "systemInstruction/parts/0/text"), "Be brief.\n\nBe kind.");
    stage.path.root = None;
    assert_eq!(notes(&stage.render(Format::OpenAi)), ["left_out - the system prompt"]);
}

#[test]
fn a_later_system_turn_stays_one_for_openai_and_becomes_a_user_message_elsewhere() {
    let mut stage = Stage::new(None);
    stage.user("Hello").assistant("Hi").system("Be kind.").user("Go on");
    assert_eq!(text(&stage.plain(Format::OpenAi), "messages/2/role"), "system");
    for format in [Format::Anthropic, Format::Gemini] {
        let rendering = stage.render(format);
        assert_eq!(notes(&rendering), ["changed 2 a system turn"]);
        assert!(rendering.text().contains(r"<system>\nBe kind.\n</system>"));
        valid::check(format, &request(&rendering));
    }
}

#[test]
fn the_first_message_is_a_user_message_where_required() {
    let mut stage = Stage::new(None);
    stage.assistant("Welcome!").user("Hello");
    assert_eq!(text(&stage.plain(Format::OpenAi), "messages/0/role"), "assistant");
    for format in [Format::Anthropic, Format::Gemini] {
        let rendering = stage.render(format);
        assert_eq!(notes(&rendering), ["added - a user message"]);
        valid::check(format, &request(&rendering));
    }
}

#[test]
fn calls_alone_have_no_content_and_arguments_are_a_json_string() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f"]).tool("a", "1");
    let openai = stage.plain(Format::OpenAi);
    assert!(at(&openai, "messages/1/content").is_null());
    assert_eq!(text(&openai, "messages/1/tool_calls/0/function/arguments"), r#"{"n":1}"#);
}

#[test]
fn large_numbers_in_arguments_keep_their_digits() {
    let mut stage = Stage::new(None);
    stage.user("go").assistant(
        r#"[{"type":"tool-use","id":"a","name":"f","parameters":{"n":9007199254740993}}]"#,
    );
    stage.tool("a", "1");
    for format in PROVIDERS {
        assert!(stage.render(format).text().contains("9007199254740993"), "{format:?}");
    }
}

#[test]
fn a_function_response_has_the_name_of_its_call() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:weather", "b:time"]).tool("b", "noon").tool("a", "sun");
    let gemini = request(&stage.render(Format::Gemini));
    let response = at(&gemini, "contents/2/parts/0/functionResponse");
    assert_eq!((text(response, "name"), text(response, "response/output")), ("time", "noon"));
    assert_eq!(text(&gemini, "contents/2/parts/1/functionResponse/name"), "weather");
    assert_eq!(text(&gemini, "contents/1/role"), "model");
}

#[test]
fn thinking_is_sent_back_only_with_the_same_providers_signature() {
    let mut stage = Stage::new(None);
    let signed =
        r#"[{"type":"thinking","text":"hm","signature":"c2ln"},{"type":"text","text":"yes"}]"#;
    let unsigned = r#"[{"type":"thinking","text":"hm"},{"type":"text","text":"yes"}]"#;
    stage.user("1").assistant(signed).user("2").assistant(unsigned).user("3");
    stage.assistant(signed).by("gemini").user("4");
    let rendering = stage.render(Format::Anthropic);
    assert_eq!(notes(&rendering), ["left_out 3.0 thinking", "left_out 5.0 thinking"]);
    let anthropic = request(&rendering);
    assert_eq!(text(&anthropic, "messages/1/content/0/signature"), "c2ln");
    assert_eq!(text(&anthropic, "messages/3/content"), "yes");
    for format in [Format::OpenAi, Format::Gemini] {
        let rendering = stage.render(format);
        assert_eq!(rendering.notes.len(), 3, "{format:?}");
        assert!(!rendering.text().contains("hm"), "{format:?}");
    }
    assert!(stage.render(Format::Markdown).text().contains("> hm"));
}

#[test]
fn a_message_does_not_end_in_thinking_or_white_space_where_that_is_rejected() {
    let mut stage = Stage::new(None);
    stage.user("1").assistant(r#"[{"type":"thinking","text":"hm","signature":"c2ln"}]"#);
    stage.user("2").assistant("so far \n");
    let rendering = stage.render(Format::Anthropic);
    valid::check(Format::Anthropic, &request(&rendering));
    assert_eq!(text(&request(&rendering), "messages/1/content"), "so far");
    assert!(notes(&rendering).contains(&"left_out 1.0 thinking".to_owned()));
}

#[test]
fn a_call_keeps_its_recorded_signature_or_gets_the_documented_one() {
    let mut stage = Stage::new(None);
    let call =
        |id: &str| format!(r#"{{"type":"tool-use","id":"{id}","name":"f","parameters":{{}}}}"#);
    let thought = r#"{"type":"thinking","text":"hm","signature":"c2ln"}"#;
    stage.user("1").assistant(&format!("[{thought},{},{}]", call("a"), call("b"))).by("google");
    stage.tool("a", "x").tool("b", "y").user("2").calls(&["c:f"]).tool("c", "z");
    let gemini = request(&stage.render(Format::Gemini));
    assert_eq!(text(&gemini, "contents/1/parts/0/thoughtSignature"), "c2ln");
    assert!(at(&gemini, "contents/1/parts/1").get("thoughtSignature").is_none());
    let stand_in = text(&gemini, "contents/3/parts/0/thoughtSignature");
    assert_eq!(stand_in, "skip_thought_signature_validator");
}

#[test]
fn calls_come_last_in_a_message_for_anthropic() {
    let mut stage = Stage::new(None);
    stage.user("go").assistant(
        r#"[{"type":"tool-use","id":"a","name":"f","parameters":{}},{"type":"text","text":"so"}]"#,
    );
    stage.tool("a", "1");
    let rendering = stage.render(Format::Anthropic);
    assert_eq!(notes(&rendering), ["changed 1 the order of blocks"]);
    assert_eq!(text(&request(&rendering), "messages/1/content/1/type"), "tool_use");
}

#[test]
fn open_calls_are_closed_reported_or_kept_as_requested() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f", "b:g"]).tool("a", "1").user("what about it?").calls(&["c:f"]);
    for format in PROVIDERS {
        let closed = stage.with_calls(format, OpenCalls::Close).unwrap();
        valid::check(format, &request(&closed));
        assert_eq!(closed.text().matches("No result was recorded").count(), 2);
        let added = notes(&closed);
        assert!(added.contains(&"added 1.1 a result of the tool call `b`".to_owned()), "{added:?}");
        let kept = stage.with_calls(format, OpenCalls::Keep).unwrap();
        assert!(!kept.text().contains("No result was recorded"));
        assert!(notes(&kept).contains(&"kept 4.0 the tool call `c`".to_owned()));
    }
    for format in Format::ALL {
        let error = stage.with_calls(format, OpenCalls::Report).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let RenderError::OpenCalls(open) = error else { panic!("{error}") };
        let open: Vec<_> = open.into_iter().map(|it| (it.turn, it.calls)).collect();
        assert_eq!(open, [(turn_id(1), vec!["b".to_owned()]), (turn_id(4), vec!["c".to_owned()])]);
    }
    // Where all is answered there is nothing to report.
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f"]).tool("a", "1");
    for format in Format::ALL {
        stage.with_calls(format, OpenCalls::Report).unwrap();
    }
}

#[test]
fn a_result_without_its_call_becomes_a_user_message() {
    let mut stage = Stage::new(None);
    stage.user("go").tool("gone", "42").assistant("Done").user("Thanks");
    for format in PROVIDERS {
        let rendering = stage.render(format);
        valid::check(format, &request(&rendering));
        assert_eq!(notes(&rendering), ["changed 1 the result of the call `gone`"]);
        assert!(rendering.text().contains(r"[Result of the tool call gone]\n\n42"));
    }
}

#[test]
fn a_late_result_follows_its_call() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f"]).user("hurry").tool("a", "1").assistant("Done").user("Thanks");
    for format in PROVIDERS {
        let rendering = stage.render(format);
        valid::check(format, &request(&rendering));
        let moved = "changed 3 the place of the result of the call `a`".to_owned();
        assert!(notes(&rendering).contains(&moved), "{format:?}");
    }
}

#[test]
fn separately_recorded_calls_become_one_message() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f"]).calls(&["b:f"]).tool("a", "1").tool("b", "2").user("ok");
    let openai = request(&stage.render(Format::OpenAi));
    assert_eq!(at(&openai, "messages/1/tool_calls").as_array().unwrap().len(), 2);
    for format in PROVIDERS {
        valid::check(format, &request(&stage.render(format)));
    }
}

#[test]
fn invalid_ids_and_names_are_changed_consistently() {
    let mut stage = Stage::new(None);
    let long = "x".repeat(80);
    stage.user("go").calls(&["call|1:find it", "ok:1st", &format!("{long}:f")]);
    stage.tool("call|1", "1").tool("ok", "2").tool(&long, "3");
    // The same id once more, in another turn.
    stage.user("again").calls(&["ok:f"]).tool("ok", "4").user("end");
    for format in PROVIDERS {
        let rendering = stage.render(format);
        valid::check(format, &request(&rendering));
        let ids = rendering.notes.iter().filter(|note| note.what.starts_with("the id")).count();
        assert_eq!(ids, 3, "{format:?}");
    }
}

#[test]
fn empty_texts_are_left_out_and_empty_results_get_a_placeholder() {
    let mut stage = Stage::new(Some("  "));
    stage.user(r#"[{"type":"text","text":" "},{"type":"image","url":"https://a/b.png","mime_type":"image/png"}]"#);
    stage.calls(&["a:f"]).tool("a", "").user("\n").assistant("yes").user("so");
    for format in PROVIDERS {
        let rendering = stage.render(format);
        valid::check(format, &request(&rendering));
        let left: Vec<_> =
            notes(&rendering).into_iter().filter(|it| it.contains("blank")).collect();
        assert_eq!(
            left,
            ["left_out - a blank text", "left_out 0.0 a blank text", "left_out 3.0 a blank text"]
        );
        assert!(rendering.text().contains("(no output)"));
    }
}

#[test]
fn images_sounds_and_documents_have_each_providers_form() {
    let png =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}"#;
    let acp = r#"{"type":"image","data":"QUJD","mimeType":"image/png"}"#;
    let url = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}"#;
    for image in [png, acp, url] {
        let mut stage = Stage::new(None);
        stage.user(&format!("[{image}]"));
        let openai = stage.plain(Format::OpenAi);
        let data = text(&openai, "messages/0/content/0/image_url/url");
        assert_eq!(data, "data:image/png;base64,QUJD");
        let anthropic = stage.plain(Format::Anthropic);
        assert_eq!(text(&anthropic, "messages/0/content/0/source/data"), "QUJD");
        let gemini = stage.plain(Format::Gemini);
        assert_eq!(text(&gemini, "contents/0/parts/0/inlineData/mimeType"), "image/png");
    }
    let mut stage = Stage::new(None);
    stage.user(r#"[{"type":"audio","data":"QUJD","mimeType":"audio/wav"}]"#).user("hear");
    assert_eq!(
        text(&stage.plain(Format::OpenAi), "messages/0/content/0/input_audio/format"),
        "wav"
    );
    assert_eq!(text(&stage.plain(Format::Gemini), "contents/0/parts/0/inlineData/data"), "QUJD");
    assert_eq!(notes(&stage.render(Format::Anthropic)), ["left_out 0.0 a sound (audio/wav)"]);
    let mut stage = Stage::new(None);
    stage.user(r#"[{"type":"document","data":"QUJD","media_type":"application/pdf"}]"#);
    for format in PROVIDERS {
        valid::check(format, &stage.plain(format));
    }
}

#[test]
fn the_media_type_decides_the_kind_of_a_resource_with_data() {
    let blob = |mime: &str| {
        let mut stage = Stage::new(None);
        stage.user(&format!(
            r#"[{{"type":"resource","resource":{{"uri":"file:///a","mimeType":"{mime}","blob":"QUJD"}}}}]"#
        ));
        let openai = stage.plain(Format::OpenAi);
        text(&openai, "messages/0/content/0/type").to_owned()
    };
    assert_eq!(blob("image/png"), "image_url");
    assert_eq!(blob("audio/wav"), "input_audio");
    assert_eq!(blob("application/pdf"), "file");
}

#[test]
fn unsupported_blocks_of_a_role_are_reported() {
    let mut stage = Stage::new(None);
    let image = r#"{"type":"image","data":"QUJD","mimeType":"image/png"}"#;
    stage.user("draw").assistant(&format!(r#"[{{"type":"text","text":"here"}},{image}]"#));
    stage.user("again").calls(&["a:f"]).tool("a", &format!("[{image}]")).user("fine");
    let openai = notes(&stage.render(Format::OpenAi));
    assert_eq!(openai, ["left_out 1.1 an image (image/png)", "left_out 4.0 an image (image/png)"]);
    let anthropic = stage.render(Format::Anthropic);
    assert_eq!(notes(&anthropic), ["left_out 1.1 an image (image/png)"]);
    let result = at(&request(&anthropic), "messages/4/content/0/content/0").clone();
    assert_eq!(text(&result, "type"), "image");
    for format in PROVIDERS {
        valid::check(format, &request(&stage.render(format)));
    }
}

#[test]
fn resources_are_written_as_text() {
    let mut stage = Stage::new(None);
    stage.user(
        r#"[{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"inside"}},
            {"type":"resource_link","uri":"file:///b.txt","name":"b"}]"#,
    );
    for format in PROVIDERS {
        let rendering = stage.render(format);
        valid::check(format, &request(&rendering));
        let text = rendering.text();
        assert!(text.contains("inside") && text.contains("file:///b.txt"), "{text}");
        assert_eq!(rendering.notes.len(), 2);
    }
}

#[test]
fn unknown_blocks_and_fields_are_reported() {
    let mut stage = Stage::new(None);
    stage.user(
        r#"[{"type":"text","text":"see","citations":[1]},{"type":"hologram","of":1},
            {"type":"citation","url":"https://a"}]"#,
    );
    for format in PROVIDERS {
        let expected = [
            "left_out 0.0 the fields citations of a text block",
            "left_out 0.1 a block of type `hologram`",
            "left_out 0.2 a block of type `citation`",
        ];
        assert_eq!(notes(&stage.render(format)), expected);
    }
    assert!(stage.render(Format::Markdown).text().contains(r#"{"of":1,"type":"hologram"}"#));
}

#[test]
fn partial_and_purged_turns_are_noted() {
    let mut stage = Stage::new(None);
    stage.user("Hello").assistant("Hi th").user("Yes?");
    stage.path.turns[1].status = Status::Partial;
    let digest = tine_core::Digest::of(b"x");
    stage.assistant("secret").user("so").path.turns[3].content = Content::Purged(digest);
    for format in PROVIDERS {
        let rendering = stage.render(format);
        let found = notes(&rendering);
        assert_eq!(found, ["kept 1 a partial turn", "left_out 3 the assistant turn"], "{format:?}");
        valid::check(format, &request(&rendering));
    }
    assert_eq!(notes(&stage.render(Format::Tine)), ["left_out 3 the assistant turn"]);
}

#[test]
fn a_request_without_messages_is_noted() {
    let mut stage = Stage::new(None);
    for format in PROVIDERS {
        assert_eq!(notes(&stage.render(format)), ["kept - a request without messages"]);
    }
    stage.user(" ");
    let found = notes(&stage.render(Format::Gemini));
    assert_eq!(found, ["kept - a request without messages", "left_out 0.0 a blank text"]);
}

#[test]
fn a_summary_is_written_as_labeled_text() {
    let mut stage = Stage::new(None);
    stage.user("Hello").user(r#"[{"type":"summary","text":"They met.","turns":[]}]"#);
    for format in PROVIDERS {
        let text = stage.render(format).text();
        assert!(text.contains(r"[Summary of earlier turns]\n\nThey met."), "{text}");
    }
}

#[test]
fn markdown_fences_are_longer_than_any_inside() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["a:f"]).tool("a", "```\ncode\n````");
    let markdown = stage.render(Format::Markdown).text();
    assert!(markdown.contains("`````\n```\ncode\n````\n`````"), "{markdown}");
}

#[test]
fn canonical_messages_can_be_appended() {
    let mut stage = Stage::new(Some("Be brief."));
    stage.user("Hello").calls(&["a:f"]).tool("a", "1");
    let request = stage.plain(Format::Tine);
    let messages = at(&request, "messages").as_array().unwrap();
    for (message, turn) in messages.iter().skip(1).zip(&stage.path.turns) {
        let limits = tine_core::Limits::default();
        let read = tine_core::Message::from_json(message.clone(), &limits).unwrap();
        assert_eq!((read.role, Content::Kept(read.body)), (turn.role, turn.content.clone()));
    }
    assert_eq!(messages[0].get("role").and_then(Json::as_str), Some(Role::System.as_str()));
}
