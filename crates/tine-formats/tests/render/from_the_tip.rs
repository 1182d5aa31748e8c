//! Paths that are read from the tip until a budget is filled.

use std::sync::Arc;

use proptest::prelude::*;
use tine_core::{Body, ConversationId, Json, Limits, Message, Role};
use tine_engine::{
    Append, Call, Delete, DeleteMode, Engine, NewConversation, PathQuery, Selection, SplitTurn,
    SystemClock, SystemEntropy, TurnRef,
};
use tine_formats::render::{
    Budget, Format, OpenCalls, Options, RenderError, Rendering, render, render_path, whole_path,
};
use tine_store::MemoryStore;
use tine_testkit::stores::CountingStore;

use super::budget::words;
use super::stage::json;

struct Recorded {
    store: Arc<CountingStore>,
    engine: Engine,
    call: Call,
    talk: ConversationId,
}

impl Recorded {
    fn new() -> Self {
        let store = Arc::new(CountingStore::new(Arc::new(MemoryStore::new())));
        let engine = Engine::with(
            store.clone(),
            Arc::new(SystemClock),
            Arc::new(SystemEntropy),
            Limits::default(),
        );
        let call = Call::by("tester");
        let new = NewConversation::named("talk").unwrap();
        let talk = engine.create_conversation(&call, new).unwrap().id;
        Recorded { store, engine, call, talk }
    }

    fn say(&self, messages: Vec<Message>) -> Vec<tine_core::TurnId> {
        let done = self.engine.append(&self.call, Append::to(self.talk.clone(), messages)).unwrap();
        done.turns.iter().map(|turn| turn.id).collect()
    }

    fn exchange(&self, count: usize) {
        let texts = (0..count).map(|n| match n % 2 {
            0 => Message::text(Role::User, format!("question {n}")),
            _ => Message::text(Role::Assistant, format!("answer {n}")),
        });
        for some in texts.collect::<Vec<_>>().chunks(10_000) {
            self.say(some.to_vec());
        }
    }

    fn query(&self) -> PathQuery {
        PathQuery::of(self.talk.clone())
    }

    fn within(&self, max_tokens: u64) -> Rendering {
        let budget = Some(Budget { max_tokens, count: &words });
        let options = Options { budget, ..Options::of(Format::OpenAi) };
        render_path(&self.engine, &self.call, self.query(), &options).unwrap()
    }

    fn records_read(&self, max_tokens: u64) -> u64 {
        self.store.cost_of(|| drop(self.within(max_tokens))).read
    }
}

fn blocks(role: Role, blocks: &str) -> Message {
    let body = Body::from_content(json(blocks), role, &Limits::default()).unwrap();
    Message { body, ..Message::text(role, "x") }
}

#[test]
fn a_path_with_a_summary_is_read_no_further_than_the_summary_and_the_budget() {
    let short = Recorded::new();
    let long = Recorded::new();
    for (recorded, turns) in [(&short, 300), (&long, 20_000)] {
        recorded.exchange(turns);
        recorded.say(vec![blocks(Role::User, r#"[{"type":"summary","text":"so far"}]"#)]);
        recorded.exchange(40);
    }
    assert_eq!(short.within(100).turns, 341);
    assert_eq!(long.within(100).turns, 20_041);
    let (few, many) = (short.records_read(100), long.records_read(100));
    assert!(many <= few, "{few} records of 341 turns, {many} of 20,041");
    let text = long.within(100).text();
    assert!(text.contains("so far"), "{text}");
    // A larger budget reads further, but not to the root.
    let more = long.within(4_000);
    assert!(more.turns - more.turns_cut > 300, "{}", more.turns_cut);
    assert!(long.records_read(4_000) < 5_000);
}

#[test]
fn a_path_without_a_summary_is_read_once() {
    let recorded = Recorded::new();
    recorded.exchange(20_000);
    let page = PathQuery { limit: Some(1_000), ..recorded.query() };
    let whole = recorded.store.cost_of(|| {
        whole_path(&recorded.engine, &recorded.call, page).unwrap();
    });
    let ended = recorded.records_read(100);
    assert!(ended <= whole.read + whole.read / 50, "{ended} records instead of {}", whole.read);
}

/// A turn of a random path.
#[derive(Clone, Debug)]
enum Said {
    User(usize),
    Assistant(usize),
    Calls(Vec<u8>),
    Result(u8),
    Summary,
    /// A summary of the turns so many before it.
    SummaryOf(Vec<usize>),
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        5 => (1..6_usize).prop_map(Said::User),
        5 => (1..6_usize).prop_map(Said::Assistant),
        3 => prop::collection::vec(0..6_u8, 1..3).prop_map(Said::Calls),
        3 => (0..6_u8).prop_map(Said::Result),
        1 => Just(Said::Summary),
        1 => prop::collection::vec(1..200_usize, 1..3).prop_map(Said::SummaryOf),
    ]
}

fn message(said: &Said, n: usize, before: &[tine_core::TurnId]) -> Message {
    let text = |words: &usize| format!("{n} {}", "w ".repeat(*words));
    match said {
        Said::User(words) => Message::text(Role::User, text(words)),
        Said::Assistant(words) => Message::text(Role::Assistant, text(words)),
        Said::Calls(calls) => {
            let call = |call: &u8| {
                format!(r#"{{"type":"tool-use","id":"c{call}","name":"f","parameters":{{}}}}"#)
            };
            let calls: Vec<String> = calls.iter().map(call).collect();
            blocks(Role::Assistant, &format!("[{}]", calls.join(",")))
        }
        Said::Result(call) => Message {
            tool_call_id: Some(format!("c{call}")),
            ..Message::text(Role::Tool, format!("result {n}"))
        },
        Said::Summary => {
            blocks(Role::User, &format!(r#"[{{"type":"summary","text":"summary {n}"}}]"#))
        }
        Said::SummaryOf(back) => {
            let named = back.iter().filter_map(|back| n.checked_sub(*back));
            let named: Vec<String> =
                named.map(|at| Json::from(before[at].to_string()).to_canonical()).collect();
            let named = named.join(",");
            blocks(
                Role::User,
                &format!(r#"[{{"type":"summary","text":"summary {n}","turns":[{named}]}}]"#),
            )
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_path_read_from_its_tip_renders_like_the_whole_path(
        turns in prop::collection::vec(said(), 1..400),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        split in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        last in prop::option::of(1..300_usize),
        max_tokens in 5..3_000_u64,
    ) {
        let recorded = Recorded::new();
        let mut ids = Vec::new();
        for (n, said) in turns.iter().enumerate() {
            ids.extend(recorded.say(vec![message(said, n, &ids)]));
        }
        for at in removed {
            let delete = Delete {
                turn: TurnRef::of(*at.get(&ids)),
                mode: DeleteMode::Reparent,
                force: true,
                dry_run: false,
            };
            recorded.engine.delete(&recorded.call, delete).ok();
        }
        for at in split {
            let split = SplitTurn { turn: TurnRef::of(*at.get(&ids)), offset: 1 };
            recorded.engine.split(&recorded.call, split).ok();
        }
        let selection = last.map_or(Selection::Whole, Selection::Last);
        let query = PathQuery { selection, ..recorded.query() };
        let whole = whole_path(&recorded.engine, &recorded.call, query.clone()).unwrap();
        for format in Format::ALL {
            for open_calls in [OpenCalls::Close, OpenCalls::Report] {
                let budget = Some(Budget { max_tokens, count: &words });
                let options = Options { budget, open_calls, ..Options::of(format) };
                let expected = render(&whole, &options);
                let found = render_path(&recorded.engine, &recorded.call, query.clone(), &options);
                match (expected, found) {
                    (Ok(expected), Ok(found)) => prop_assert_eq!(expected, found),
                    (Err(RenderError::TooLong { needed, .. }), Err(error)) => {
                        let RenderError::TooLong { needed: found, .. } = error else {
                            panic!("{error}")
                        };
                        prop_assert_eq!(needed, found);
                    }
                    (Err(RenderError::OpenCalls(expected)), Err(error)) => {
                        let RenderError::OpenCalls(found) = error else { panic!("{error}") };
                        prop_assert_eq!(expected, found);
                    }
                    (expected, found) => panic!("{expected:?} {found:?}"),
                }
            }
        }
    }
}
