//! The end of a path that fits.

use tine_core::{ErrorKind, Json, Role};
use tine_formats::render::{Budget, Format, OpenCalls, Options, RenderError, Rendering, render};

use super::stage::{PROVIDERS, Stage, at, notes, request, text, turn_id};
use super::valid;

/// One token for each word.
pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn within(stage: &Stage, format: Format, max_tokens: u64) -> Result<Rendering, RenderError> {
    let budget = Some(Budget { max_tokens, count: &words });
    render(&stage.path, &Options { budget, ..Options::of(format) })
}

fn fits(stage: &Stage, format: Format, max_tokens: u64) -> Rendering {
    let rendering = within(stage, format, max_tokens).unwrap();
    assert!(rendering.tokens.unwrap().count <= max_tokens, "{format:?} {max_tokens}");
    valid::check(format, &request(&rendering));
    rendering
}

/// Ten questions and answers.
fn long() -> Stage {
    let mut stage = Stage::new(Some("Be brief."));
    for number in 0..10 {
        stage.user(&format!("question {number}")).assistant(&format!("answer {number}"));
    }
    stage
}

#[test]
fn messages_are_counted_as_documented_for_chat_completions() {
    let mut stage = Stage::new(Some("Be brief."));
    stage.user("Hello there");
    let rendering = fits(&stage, Format::OpenAi, 1_000);
    // Three for each message, its role and its text, and three for the reply.
    let tokens = rendering.tokens.unwrap();
    assert_eq!((tokens.count, tokens.exact), ((3 + 1 + 2) * 2 + 3, true));
    assert_eq!((rendering.turns_cut, rendering.begins_at), (0, None));
    assert!(!fits(&stage, Format::Anthropic, 1_000).tokens.unwrap().exact);
    stage.user(r#"[{"type":"image","data":"QUJD","mimeType":"image/png"}]"#);
    let tokens = fits(&stage, Format::OpenAi, 1_000).tokens.unwrap();
    assert!(!tokens.exact && tokens.count > 765);
}

#[test]
fn the_longest_suffix_that_fits_begins_with_a_user_turn() {
    let stage = long();
    for format in PROVIDERS {
        let whole = fits(&stage, format, 10_000).tokens.unwrap().count;
        let mut before = usize::MAX;
        for limit in 30..=whole {
            let rendering = fits(&stage, format, limit);
            assert!(rendering.turns_cut <= before, "a larger limit cuts no more");
            before = rendering.turns_cut;
            assert!(rendering.turns_cut.is_multiple_of(2), "it begins with a question");
            assert!(rendering.text().contains("Be brief."), "the system prompt is always there");
            if rendering.turns_cut > 0 {
                // Two turns more would not have fitted.
                let mut shorter = long();
                shorter.path.turns.drain(..rendering.turns_cut - 2);
                assert!(fits(&shorter, format, 10_000).tokens.unwrap().count > limit);
                assert_eq!(rendering.begins_at, Some(turn_id(rendering.turns_cut)));
                assert!(notes(&rendering)[0].starts_with("left_out - the first"));
            }
        }
        assert_eq!(before, 0);
    }
}

#[test]
fn a_limit_too_small_for_the_last_turn_is_rejected_with_the_required_one() {
    let stage = long();
    for format in PROVIDERS {
        let error = within(&stage, format, 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let RenderError::TooLong { needed, .. } = error else { panic!("{error}") };
        fits(&stage, format, needed);
        assert!(within(&stage, format, needed - 1).is_err());
    }
}

#[test]
fn a_suffix_never_begins_with_a_result_whose_call_was_cut() {
    let mut stage = Stage::new(None);
    stage.user("go");
    for number in 0..20 {
        let call = format!("c{number}");
        stage.calls(&[&format!("{call}:f")]).tool(&call, &format!("result {number}"));
    }
    stage.assistant("Done");
    for format in PROVIDERS {
        for limit in (20..400).step_by(7) {
            let Ok(rendering) = within(&stage, format, limit) else { continue };
            valid::check(format, &request(&rendering));
            assert!(!rendering.text().contains("Result of the tool call"), "{format:?} {limit}");
            let begins = &stage.path.turns[rendering.turns_cut];
            assert_ne!(begins.role, Role::Tool);
        }
    }
    // The one question is too far back; where a question must come first, one is made up.
    let rendering = fits(&stage, Format::Anthropic, 100);
    assert!(rendering.turns_cut > 0);
    assert!(notes(&rendering).contains(&"added - a user message".to_owned()));
}

#[test]
fn a_suffix_does_not_begin_between_a_call_and_its_late_result() {
    let mut stage = Stage::new(None);
    stage
        .user("a a a a a a")
        .calls(&["c:f"])
        .user("hurry")
        .tool("c", "1")
        .user("so")
        .assistant("b");
    for format in PROVIDERS {
        for limit in 8..80 {
            if let Ok(rendering) = within(&stage, format, limit) {
                assert!(![2, 3].contains(&rendering.turns_cut), "{format:?} {limit}");
            }
        }
    }
}

#[test]
fn open_calls_that_are_cut_are_not_reported() {
    let mut stage = Stage::new(None);
    stage.user("go").calls(&["c:f"]);
    for _ in 0..9 {
        stage.user("a b c d").assistant("e f g h");
    }
    let within = |max_tokens| {
        let budget = Some(Budget { max_tokens, count: &words });
        let options = Options { budget, ..Options::of(Format::OpenAi) };
        render(&stage.path, &Options { open_calls: OpenCalls::Report, ..options })
    };
    assert!(within(60).unwrap().turns_cut > 2);
    assert!(matches!(within(10_000), Err(RenderError::OpenCalls(_))));
}

#[test]
fn a_suffix_does_not_begin_inside_a_split_text() {
    let mut stage = Stage::new(None);
    stage.user("a a a a a a").assistant("b").user("c c c").user("d d d").joined().assistant("e");
    for format in PROVIDERS {
        for limit in 8..60 {
            if let Ok(rendering) = within(&stage, format, limit) {
                assert_ne!(rendering.turns_cut, 3, "{format:?} {limit}");
            }
        }
    }
}

#[test]
fn a_summary_replaces_the_turns_that_were_cut() {
    let mut stage = long();
    let named: Vec<String> = (0..12).map(|n| format!("\"{}\"", turn_id(n))).collect();
    let summary = format!(
        r#"[{{"type":"summary","text":"They talked a lot.","turns":[{}]}}]"#,
        named.join(",")
    );
    stage.user(&summary).assistant("I see").user("So what now?");
    for format in PROVIDERS {
        // The summary's own turn is in the tail, and it moves to the front.
        let rendering = fits(&stage, format, 60);
        assert!((1..20).contains(&rendering.turns_cut), "{}", rendering.turns_cut);
        let text = rendering.text();
        assert_eq!(text.matches("They talked a lot.").count(), 1);
        let first = format!("question {}", rendering.turns_cut / 2);
        assert!(text.find("They talked a lot.") < text.find(&first), "{text}");
        let found = notes(&rendering);
        assert!(found.contains(&"changed 20.0 the place of a summary".to_owned()), "{found:?}");
        // It is cut, and stands for what was cut with it.
        let error = within(&stage, format, 3).unwrap_err();
        let RenderError::TooLong { needed, .. } = error else { panic!("{error}") };
        let rendering = fits(&stage, format, needed);
        assert!(rendering.turns_cut > 20, "{}", rendering.turns_cut);
        assert_eq!(rendering.text().matches("They talked a lot.").count(), 1);
        let found = notes(&rendering);
        assert!(found.contains(&"added 20.0 a summary".to_owned()), "{found:?}");
        assert!(rendering.notes[0].why.contains("replaces 12 of them"));
    }
    // Where all of it fits, nothing is moved.
    let whole = request(&fits(&stage, Format::OpenAi, 10_000));
    assert_eq!(text(&whole, "messages/1/content"), "question 0");
}

#[test]
fn a_summary_replaced_by_a_later_one_is_not_written_again() {
    let mut stage = Stage::new(None);
    for number in 0..5 {
        stage.user(&format!("question {number}")).assistant(&format!("answer {number}"));
    }
    stage.user(r#"[{"type":"summary","text":"First summary."}]"#).assistant("ok");
    for number in 5..9 {
        stage.user(&format!("question {number}")).assistant(&format!("answer {number}"));
    }
    stage.user(r#"[{"type":"summary","text":"Second summary."}]"#).assistant("ok").user("Now?");
    let text = fits(&stage, Format::OpenAi, 36).text();
    assert!(text.contains("Second summary.") && !text.contains("First summary."), "{text}");
}

#[test]
fn a_summary_can_name_a_window_of_turns() {
    let mut stage = long();
    let hash = |n: usize| stage.path.turns[n].hash.to_string();
    let window = format!(
        r#"[{{"type":"summary","text":"The middle.","turn_window":
            {{"start_turn_hash":"{}","end_turn_hash":"{}"}}}}]"#,
        hash(10),
        hash(13)
    );
    stage.user(&window).assistant("I see").user("So?");
    let text = |limit| fits(&stage, Format::OpenAi, limit).text();
    assert!(text(45).find("The middle.") < text(45).find("question"), "{}", text(45));
    // What it stands for is still there, so it stays where it was said.
    let long = fits(&stage, Format::OpenAi, 130);
    assert!((1..10).contains(&long.turns_cut), "{}", long.turns_cut);
    assert!(long.text().find("The middle.") > long.text().find("question 9"));
}

#[test]
fn canonical_messages_and_markdown_are_cut_too() {
    let stage = long();
    for format in [Format::Tine, Format::Markdown] {
        let rendering = within(&stage, format, 40).unwrap();
        assert!(rendering.turns_cut > 0 && rendering.text().contains("answer 9"), "{format:?}");
        assert_eq!(rendering.notes.len(), 1);
    }
    let messages = request(&within(&stage, Format::Tine, 40).unwrap());
    let first = at(&messages, "messages/1");
    assert_eq!(first.get("role").and_then(Json::as_str), Some("user"));
}
