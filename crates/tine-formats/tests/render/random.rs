//! Any path renders to something that the provider takes, and nothing of it is lost.

use proptest::prelude::*;
use tine_core::{Json, Message, Role, Status, TurnId};
use tine_engine::{Append, Call, Engine, NewConversation, PathQuery, SplitTurn, TurnRef};
use tine_formats::render::{
    Budget, Format, NoteKind, OpenCalls, Options, RenderError, Rendering, render, whole_path,
};
use tine_store::{Content, MemoryStore};

use super::budget::words;
use super::stage::{Stage, json, request};
use super::valid;

/// One block to be; texts get a mark of their own, so that they can be found again.
#[derive(Clone, Debug)]
enum Block {
    Text,
    Blank,
    Thinking { signed: bool },
    Call { id: &'static str, name: &'static str },
    Image { url: bool },
    Audio(&'static str),
    Resource,
    Link,
    Summary { names: Vec<usize> },
    Unknown,
}

#[derive(Clone, Debug)]
struct Turn {
    role: Role,
    blocks: Vec<Block>,
    call: &'static str,
    joins: bool,
    partial: bool,
    purged: bool,
    provider: Option<&'static str>,
}

const IDS: [&str; 5] =
    ["a", "b", "c", "not|plain", "far-too-long-far-too-long-far-too-long-far-too-long"];
const NAMES: [&str; 4] = ["f", "find_it", "1st", "naïve name"];

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        6 => Just(Block::Text),
        1 => Just(Block::Blank),
        2 => any::<bool>().prop_map(|signed| Block::Thinking { signed }),
        4 => (prop::sample::select(&IDS[..]), prop::sample::select(&NAMES[..]))
            .prop_map(|(id, name)| Block::Call { id, name }),
        1 => any::<bool>().prop_map(|url| Block::Image { url }),
        1 => prop::sample::select(vec!["audio/wav", "audio/ogg"]).prop_map(Block::Audio),
        1 => Just(Block::Resource),
        1 => Just(Block::Link),
        1 => prop::collection::vec(0..12_usize, 0..4).prop_map(|names| Block::Summary { names }),
        1 => Just(Block::Unknown),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let role = prop_oneof![
        4 => Just(Role::User),
        5 => Just(Role::Assistant),
        4 => Just(Role::Tool),
        1 => Just(Role::System),
    ];
    let provider =
        prop::sample::select(vec![None, Some("anthropic"), Some("openai"), Some("google")]);
    (
        role,
        prop::collection::vec(block(), 1..4),
        prop::sample::select(&IDS[..]),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
        provider,
    )
        .prop_map(|(role, blocks, call, joins, partial, purged, provider)| Turn {
            role,
            blocks,
            call,
            joins,
            partial,
            purged,
            provider,
        })
}

/// What can be found again: the mark of a text, and where it was.
type Mark = (String, usize, usize);

fn stage(prompt: bool, turns: &[Turn]) -> (Stage, Vec<Mark>) {
    let mut stage = Stage::new(prompt.then_some("the prompt"));
    let mut marks = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        let mut written = Vec::new();
        for (number, block) in turn.blocks.iter().enumerate() {
            let mark = format!("t{index}b{number}x");
            let (json, told) = written_block(block, turn.role, &mark);
            if told && !turn.purged {
                marks.push((mark, index, number));
            }
            written.push(json);
        }
        stage.say(turn.role, &format!("[{}]", written.join(",")));
        if turn.role == Role::Tool {
            stage.last().tool_call_id = Some(turn.call.to_owned());
        }
        let texts =
            |turn: &Turn| turn.blocks.iter().all(|it| matches!(it, Block::Text | Block::Blank));
        let before = index.checked_sub(1).map(|before| &turns[before]);
        if let Some(before) = before
            && turn.joins
            && turn.role == before.role
            && turn.role != Role::Tool
            && texts(turn)
            && texts(before)
        {
            stage.joined();
        }
        if let Some(provider) = turn.provider {
            stage.by(provider);
        }
        if turn.partial {
            stage.last().status = Status::Partial;
        }
        if turn.purged {
            stage.last().content = Content::Purged(tine_core::Digest::of(b"gone"));
        }
    }
    (stage, marks)
}

/// A block, and whether its mark has to be found again.
fn written_block(block: &Block, role: Role, mark: &str) -> (String, bool) {
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    match block {
        Block::Text => (text(&format!("{mark} said ")), true),
        Block::Blank => (text(" "), false),
        Block::Thinking { signed: true } => {
            (format!(r#"{{"type":"thinking","text":"{mark}","signature":"c2ln"}}"#), true)
        }
        Block::Thinking { signed: false } => {
            (format!(r#"{{"type":"thinking","text":"{mark}"}}"#), true)
        }
        Block::Call { id, name } if role == Role::Assistant => (
            format!(
                r#"{{"type":"tool-use","id":"{id}","name":"{name}","parameters":{{"m":"{mark}"}}}}"#
            ),
            true,
        ),
        Block::Call { .. } => (text(&format!("{mark} said")), true),
        Block::Image { url: true } => (
            format!(r#"{{"type":"image","url":"https://a/{mark}.png","mime_type":"image/png"}}"#),
            true,
        ),
        Block::Image { url: false } => {
            (format!(r#"{{"type":"image","data":"{mark}","mimeType":"image/png"}}"#), true)
        }
        Block::Audio(mime) => {
            (format!(r#"{{"type":"audio","data":"{mark}","mimeType":"{mime}"}}"#), true)
        }
        Block::Resource => (
            format!(r#"{{"type":"resource","resource":{{"uri":"file:///r","text":"{mark}"}}}}"#),
            true,
        ),
        Block::Link => (format!(r#"{{"type":"resource_link","uri":"file:///{mark}"}}"#), true),
        Block::Summary { names } => {
            let names: Vec<String> =
                names.iter().map(|n| format!("\"{}\"", super::stage::turn_id(*n))).collect();
            let names = names.join(",");
            (format!(r#"{{"type":"summary","text":"{mark}","turns":[{names}]}}"#), true)
        }
        Block::Unknown => (format!(r#"{{"type":"hologram","of":"{mark}"}}"#), true),
    }
}

/// Every mark is in the rendering, or a note says that its block is not.
fn nothing_lost(stage: &Stage, rendering: &Rendering, marks: &[Mark]) -> Result<(), TestCaseError> {
    let text = rendering.text();
    for (mark, turn, block) in marks {
        let id = stage.path.turns[*turn].id;
        let noted = rendering.notes.iter().any(|note| {
            note.kind == NoteKind::LeftOut
                && note.turn == Some(id)
                && note.block.is_none_or(|it| it == *block)
        });
        let cut = *turn < rendering.turns_cut;
        prop_assert!(text.contains(mark) || noted || cut, "{mark} is lost: {text}");
    }
    Ok(())
}

/// Results that were written as the user's.
fn orphans(rendering: &Rendering) -> impl Iterator<Item = Option<TurnId>> {
    let notes = rendering.notes.iter();
    notes.filter(|note| note.what.starts_with("the result of the call")).map(|note| note.turn)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_path_renders_validly_for_every_provider_and_loses_nothing(
        prompt in any::<bool>(),
        turns in prop::collection::vec(turn(), 0..14),
    ) {
        let (stage, marks) = stage(prompt, &turns);
        for format in Format::ALL {
            let options = Options::of(format);
            let rendering = render(&stage.path, &options).unwrap();
            prop_assert_eq!(&rendering, &render(&stage.path, &options).unwrap(), "not the same twice");
            nothing_lost(&stage, &rendering, &marks)?;
            if format != Format::Markdown {
                valid::check(format, &request(&rendering));
            }
        }
    }

    #[test]
    fn any_path_is_cut_to_fit_or_reports_the_required_tokens(
        turns in prop::collection::vec(turn(), 1..14),
        max_tokens in 5..400_u64,
    ) {
        let (stage, marks) = stage(true, &turns);
        for format in Format::ALL {
            let within = |max_tokens: u64| {
                let budget = Some(Budget { max_tokens, count: &words });
                render(&stage.path, &Options { budget, ..Options::of(format) })
            };
            let (limit, rendering) = match within(max_tokens) {
                Err(RenderError::TooLong { needed, limit }) => {
                    prop_assert!(needed > limit);
                    (needed, within(needed).unwrap())
                }
                rendering => (max_tokens, rendering.unwrap()),
            };
            prop_assert!(rendering.tokens.unwrap().count <= limit);
            // No result has lost its call to the cut.
            let whole = render(&stage.path, &Options::of(format)).unwrap();
            for turn in orphans(&rendering) {
                prop_assert!(orphans(&whole).any(|it| it == turn), "{turn:?}");
            }
            nothing_lost(&stage, &rendering, &marks)?;
            if format != Format::Markdown {
                valid::check(format, &request(&rendering));
            }
        }
    }

    #[test]
    fn open_calls_are_reported_exactly_when_some_would_be_closed(
        turns in prop::collection::vec(turn(), 0..10),
    ) {
        let (stage, _) = stage(false, &turns);
        let closed = stage.with_calls(Format::OpenAi, OpenCalls::Close).unwrap();
        let added = closed.notes.iter().filter(|note| note.kind == NoteKind::Added).count();
        for format in [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Markdown] {
            let open = match stage.with_calls(format, OpenCalls::Report) {
                Ok(_) => 0,
                Err(RenderError::OpenCalls(open)) => open.iter().map(|it| it.calls.len()).sum(),
                Err(error) => panic!("{error}"),
            };
            prop_assert_eq!(open, added, "{:?}", format);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn splitting_turns_changes_no_rendering(
        texts in prop::collection::vec((any::<bool>(), "[a-c \n]{0,6}[a-z]"), 1..6),
        splits in prop::collection::vec((any::<prop::sample::Index>(), 1..6_usize), 1..6),
    ) {
        let engine = Engine::new(MemoryStore::new());
        let call = Call::by("tester");
        let talk = engine.create_conversation(&call, NewConversation::named("t").unwrap()).unwrap().id;
        let role = |user: &bool| if *user { Role::User } else { Role::Assistant };
        let messages = texts.iter().map(|(user, text)| Message::text(role(user), text.as_str()));
        engine.append(&call, Append::to(talk.clone(), messages.collect())).unwrap();
        let path = || whole_path(&engine, &call, PathQuery::of(talk.clone())).unwrap();
        let rendered = |format| render(&path(), &Options::of(format)).unwrap().rendered;
        let formats = [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Markdown];
        let before = formats.map(rendered);
        for (which, offset) in splits {
            let turn = TurnRef::of(which.get(&path().turns).id);
            // Some offsets leave nothing on one side.
            let _ = engine.split(&call, SplitTurn { turn, offset });
        }
        prop_assert_eq!(before, formats.map(rendered));
    }
}

#[test]
fn the_validator_detects_invalid_requests() {
    let bad = [
        (Format::OpenAi, r#"{"messages":[{"role":"user","content":""}]}"#),
        (Format::OpenAi, r#"{"messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}"#),
        (Format::Anthropic, r#"{"messages":[{"role":"assistant","content":"x"}]}"#),
        (
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}]}"#,
        ),
        (
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]}"#,
        ),
        (Format::Gemini, r#"{"contents":[{"role":"model","parts":[{"text":"x"}]}]}"#),
        (Format::Gemini, r#"{"contents":[{"role":"user","parts":[{"text":""}]}]}"#),
    ];
    for (format, request) in bad {
        let request: Json = json(request);
        let refused = std::panic::catch_unwind(|| valid::check(format, &request));
        assert!(refused.is_err(), "{request}");
    }
}
