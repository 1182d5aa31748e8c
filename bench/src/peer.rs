//! A row of `scripts/bench-peers`, in process: the same work over the same messages as the other
//! systems, on stores that the server has filled. Prints seconds, as JSON.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use tine_core::{Body, ConversationId, Limits, Message, Name, Reference, Role, TurnId};
use tine_engine::{
    Append, Call, Edit, Engine, Fork, ForkPoint, PathQuery, SearchQuery, Selection, TurnRef,
    WindowQuery,
};
use tine_sqlite::SqliteStore;

use crate::Error;
use crate::workload::conversation;

/// Words with their frequency in texts; see `bench/peers/workload.py`.
const WORDS: &str = include_str!("../peers/words.txt");

/// Messages with different words.
const POOL: usize = 1_024;

/// The minimum number of samples, however long they take.
const FEWEST: usize = 3;

/// The command-line options.
pub(crate) struct PeerOptions<'a> {
    pub(crate) row: &'a str,
    pub(crate) conversation: &'a str,
    pub(crate) word: &'a str,
    pub(crate) clients: usize,
    /// Turns before the last one.
    pub(crate) back: usize,
    pub(crate) turns: usize,
    /// The number of the first message.
    pub(crate) first: usize,
    pub(crate) samples: usize,
    pub(crate) seconds: Duration,
}

struct Messages {
    pool: Vec<String>,
}

impl Messages {
    fn new() -> Result<Self, Error> {
        let mut words = Vec::new();
        let mut total = 0;
        for line in WORDS.lines() {
            let (word, count) = line.split_once(' ').ok_or("a word without its count")?;
            total += count.parse::<u64>()?;
            words.push((total, word));
        }
        let text = |number: usize| {
            let (mut state, mut text) = (number as u64, String::new());
            while text.len() < 1_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let place = (state >> 33) % total;
                let found = words.partition_point(|(bound, _)| *bound <= place);
                text.push(' ');
                text.push_str(words[found].1);
            }
            text
        };
        Ok(Messages { pool: (0..POOL).map(text).collect() })
    }

    fn text(&self, number: usize) -> String {
        format!("{number}:{}", self.pool[number % POOL])
    }

    fn of(&self, number: usize) -> Message {
        let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
        Message::text(role, self.text(number))
    }
}

pub(crate) fn measure(store: &Path, options: &PeerOptions<'_>) -> Result<(), Error> {
    let messages = Messages::new()?;
    let call = Call::by("bench");
    match options.row {
        "clients" => {
            println!("{:?}", clients(store, options, &messages)?);
            return Ok(());
        }
        "open" => {
            let seconds = sample(options, |_| {
                let engine = Engine::new(SqliteStore::open(store)?);
                let id = ConversationId::new(options.conversation, &Limits::default())?;
                engine.path(
                    &call,
                    PathQuery { selection: Selection::Last(1), ..PathQuery::of(id) },
                )?;
                Ok(())
            })?;
            println!("{seconds:?}");
            return Ok(());
        }
        _ => {}
    }
    let engine = Engine::new(SqliteStore::open(store)?);
    let id = ConversationId::new(options.conversation, &Limits::default())?;
    let turn_at = |back: usize| -> Result<TurnId, Error> {
        let turn = Reference::parse(&format!("main~{back}"))?;
        Ok(engine.turn(&call, TurnRef::within(id.clone(), turn))?.id)
    };
    let seconds = match options.row {
        "append" => sample(options, |number| {
            engine.append(&call, Append::to(id.clone(), vec![messages.of(number)]))?;
            Ok(())
        })?,
        "fork" => {
            let turn = turn_at(options.back)?;
            sample(options, |number| {
                let name = Some(Name::new(format!("f-{number}"), &Limits::default())?);
                let point = ForkPoint::At(Reference::from(turn));
                engine.fork(&call, Fork { conversation: None, point, name })?;
                Ok(())
            })?
        }
        "edit" => {
            let turns: Vec<TurnId> = (0..options.samples)
                .map(|n| turn_at(options.back + n))
                .collect::<Result<_, _>>()?;
            sample(options, |number| {
                let turn = turns[number - options.first];
                let turn = TurnRef { conversation: None, turn: Reference::from(turn) };
                let body = Body::Text(messages.text(number));
                engine.edit(&call, Edit { turn, body, branch: None, reuse: true })?;
                Ok(())
            })?
        }
        "path" | "last" => {
            let turns = if options.row == "path" { usize::MAX } else { options.turns };
            sample(options, |_| {
                crate::pages(&engine, &call, PathQuery::of(id.clone()), turns, |_| {})
            })?
        }
        "around" => {
            let turn = turn_at(options.back)?;
            sample(options, |_| {
                let turn = TurnRef { conversation: None, turn: Reference::from(turn) };
                let (before, after) = (options.turns / 2, options.turns - options.turns / 2 - 1);
                engine.window(&call, WindowQuery { turn, branch: None, before, after })?;
                Ok(())
            })?
        }
        "search" => sample(options, |_| {
            engine.search(&call, SearchQuery::of(options.word))?;
            Ok(())
        })?,
        row => return Err(format!("there is no row {row}").into()),
    };
    println!("{seconds:?}");
    Ok(())
}

/// Returns the seconds of each sample: the given number, or as many as there is time for.
fn sample(
    options: &PeerOptions<'_>,
    mut work: impl FnMut(usize) -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let (mut seconds, began) = (Vec::new(), Instant::now());
    for number in options.first..options.first + options.samples {
        if seconds.len() >= FEWEST && began.elapsed() > options.seconds {
            break;
        }
        let started = Instant::now();
        work(number)?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Returns the appends per second of concurrent clients, each with its own conversation.
fn clients(store: &Path, options: &PeerOptions<'_>, messages: &Messages) -> Result<f64, Error> {
    let engine = Arc::new(Engine::new(SqliteStore::open(store)?));
    let ready = Barrier::new(options.clients);
    let done = std::thread::scope(|scope| {
        let start = |client: usize| {
            let (engine, ready) = (Arc::clone(&engine), &ready);
            scope.spawn(move || -> Result<usize, String> {
                let call = Call::by("bench");
                let id = conversation(&engine, &call, &format!("c{client}"))
                    .map_err(|error| error.to_string())?;
                ready.wait();
                crate::timing::time_for(options.seconds, |number| {
                    engine.append(&call, Append::to(id.clone(), vec![messages.of(number)]))?;
                    Ok(())
                })
                .map_err(|error| error.to_string())
            })
        };
        let threads: Vec<_> = (0..options.clients).map(start).collect();
        let mut done = 0;
        for thread in threads {
            done += thread.join().map_err(|_| "a client panicked")??;
        }
        Ok::<usize, Error>(done)
    })?;
    Ok(crate::timing::per_second(done, options.seconds))
}
