//! Measures Tine beside bare SQLite, in one run on one machine.
//!
//! `cargo run --release -p tine-bench [-- --quick] [--million] [--search] [--restored] [--commits] [--keep] [--folder DIR]`
//!
//! `--lone N` measures only N appends by one writer, with and without keys, alternating with bare
//! inserts; `--paths N` only a path of 10,000 turns, N times, parsed and as bytes; `--large N` only a
//! store of N turns, `--disk N` only the size of its file.
//!
//! `--postgres ADDRESS [--seconds S] [--turns N]` measures the store on PostgreSQL beside bare
//! statements on the same server, and appends up to N turns; with `--grow` only the latter.
//!
//! `--peer ROW` measures one row of `scripts/bench-peers` in the store that `--folder` names.
//!
//! `--bare N` prints the median of N bare inserts. `--writers N [--seconds S]` measures only N threads
//! that append with keys, and prints their rate, with which `scripts/bench-http` compares the server.
//!
//! Every durable figure has a baseline beside it: the same SQLite with the same settings writes the
//! same bytes into one table with one key. Read the ratios; absolute figures depend on the machine and
//! its load. `--million` adds a store of a million turns; `--search` measures only searches, in 100,000
//! turns; `--restored` turns that are stored by their slots; `--commits` commits and rings; `--keep`
//! keeps the stores. For a disk with slower syncs, preload the fault rig's shim with a delay (see
//! docs/performance.md).

mod baseline;
mod commits;
mod large;
mod peer;
mod postgres;
mod restored;
mod search;
mod timing;
mod workload;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tine_api::Answer;
use tine_core::{ConversationId, Reference};
use tine_engine::{
    Append, Call, Engine, Fork, ForkPoint, PathPage, PathQuery, Selection, WindowQuery,
};
use tine_sqlite::SqliteStore;

use crate::timing::{Samples, per_second, time_each, time_for};
use crate::workload::{conversation, fill, message};

type Error = Box<dyn std::error::Error>;

/// The amount of work.
struct Scale {
    appends: usize,
    depth: usize,
    seconds: Duration,
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, store] = arguments.as_slice()
        && word == large::OPEN_AND_WRITE
    {
        return large::open_and_write(Path::new(store));
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let folder = match arguments.iter().position(|argument| argument == "--folder") {
        Some(at) => PathBuf::from(arguments.get(at + 1).ok_or("--folder needs a folder")?),
        None => std::env::temp_dir(),
    };
    let number = |name: &str| -> Result<Option<usize>, Error> {
        let at = arguments.iter().position(|argument| argument == name);
        let given = at.and_then(|at| arguments.get(at + 1));
        Ok(given.map(|text| text.parse()).transpose()?)
    };
    if let Some(at) = arguments.iter().position(|argument| argument == "--postgres") {
        let address = arguments.get(at + 1).ok_or("--postgres needs an address")?;
        let seconds = Duration::from_secs(u64::try_from(number("--seconds")?.unwrap_or(5))?);
        let turns = number("--turns")?.unwrap_or(100_000);
        let all = !arguments.iter().any(|argument| argument == "--grow");
        return postgres::measure(address, all.then_some(seconds), turns);
    }
    let word = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    if let Some(row) = word("--peer") {
        let options = peer::PeerOptions {
            row,
            conversation: word("--conversation").unwrap_or_default(),
            word: word("--word").unwrap_or_default(),
            clients: number("--clients")?.unwrap_or(1),
            back: number("--back")?.unwrap_or(0),
            turns: number("--turns")?.unwrap_or(40),
            first: number("--first")?.unwrap_or(0),
            samples: number("--samples")?.unwrap_or(100),
            seconds: Duration::try_from_secs_f64(word("--seconds").unwrap_or("2").parse()?)?,
        };
        return peer::measure(&folder, &options);
    }
    if let Some(writers) = number("--writers")? {
        let seconds = Duration::from_secs(u64::try_from(number("--seconds")?.unwrap_or(10))?);
        let rate =
            append_at_once(&folder.join(format!("keyed-{writers}")), writers, seconds, true)?;
        println!("{rate:.0} appends/s");
        return Ok(());
    }
    if let Some(inserts) = number("--bare")? {
        let file = folder.join(format!("bare-{}.db", std::process::id()));
        let bare = baseline::Bare::open(&file)?;
        let samples = time_each(inserts, |number| bare.insert(number))?;
        println!("{} us", samples.median().as_micros());
        return Ok(std::fs::remove_file(file)?);
    }
    let million = arguments.iter().any(|argument| argument == "--million");
    let scale = match quick {
        true => Scale { appends: 500, depth: 2_000, seconds: Duration::from_millis(300) },
        false => Scale { appends: 5_000, depth: 100_000, seconds: Duration::from_secs(3) },
    };
    let folder = folder.join(format!("tine-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = if let Some(appends) = number("--lone")? {
        lone(&folder, appends)
    } else if let Some(times) = number("--paths")? {
        paths(&folder, times)
    } else if let Some(turns) = number("--large")? {
        large::measure(&folder, turns)
    } else if let Some(turns) = number("--disk")? {
        large::measure_disk(&folder, turns)
    } else if arguments.iter().any(|argument| argument == "--restored") {
        restored::measure(&folder, if quick { 1_000 } else { 10_000 })
    } else if arguments.iter().any(|argument| argument == "--commits") {
        commits::measure(&folder, if quick { 1_000 } else { 10_000 })
    } else if arguments.iter().any(|argument| argument == "--search") {
        search::measure(&folder, if quick { 5_000 } else { 100_000 })
    } else {
        run(&folder, &scale).and_then(|()| match million {
            true => large::measure(&folder, 1_000_000),
            false => Ok(()),
        })
    };
    match arguments.iter().any(|argument| argument == "--keep") {
        true => println!("\nThe stores are in {}.", folder.display()),
        false => std::fs::remove_dir_all(&folder)?,
    }
    outcome
}

fn run(folder: &Path, scale: &Scale) -> Result<(), Error> {
    println!("| what | figure | beside the baseline |");
    println!("| --- | --- | --- |");
    durable_appends(folder, scale)?;
    depth(folder, scale)?;
    Ok(())
}

pub(crate) fn row(what: &str, figure: String, beside: String) {
    println!("| {what} | {figure} | {beside} |");
}

/// Measures one writer and eight; each append is acknowledged after it is on disk.
fn durable_appends(folder: &Path, scale: &Scale) -> Result<(), Error> {
    let bare = baseline::Bare::open(&folder.join("bare.db"))?;
    let bare_one = time_each(scale.appends, |number| bare.insert(number))?;
    row("bare durable insert, 1 writer", bare_one.describe(), "1".to_owned());

    let store = folder.join("one");
    let engine = Engine::new(SqliteStore::open(&store)?);
    let call = Call::by("bench");
    let id = conversation(&engine, &call, "one")?;
    let one = time_each(scale.appends, |number| {
        engine.append(&call, Append::to(id.clone(), vec![message(number)]))?;
        Ok(())
    })?;
    row("durable append, 1 writer", one.describe(), one.ratio(&bare_one));
    let keyed = time_each(scale.appends, |number| {
        let call = call.clone().with_key(format!("conversation-one-{number}"));
        engine.append(&call, Append::to(id.clone(), vec![message(number + 1_000_000)]))?;
        Ok(())
    })?;
    row("durable append with a key, 1 writer", keyed.describe(), keyed.ratio(&bare_one));

    for writers in [8, 64] {
        let rate =
            append_at_once(&folder.join(format!("w{writers}")), writers, scale.seconds, false)?;
        let ratio = rate / one.rate();
        row(
            &format!("durable append, {writers} writers"),
            format!("{rate:.0}/s"),
            format!("{ratio:.1}× one writer's rate"),
        );
    }
    Ok(())
}

/// Measures one writer alternating with the bare insert, so that both see the same load.
fn lone(folder: &Path, appends: usize) -> Result<(), Error> {
    const ROUND: usize = 500;
    let bare = baseline::Bare::open(&folder.join("bare.db"))?;
    let engine = Engine::new(SqliteStore::open(&folder.join("lone"))?);
    let call = Call::by("bench");
    let id = conversation(&engine, &call, "lone")?;
    let (mut floor, mut plain, mut keyed) = (Vec::new(), Vec::new(), Vec::new());
    for from in (0..appends + ROUND).step_by(ROUND) {
        let inserted = time_each(ROUND, |number| bare.insert(from + number))?;
        let appended = time_each(ROUND, |number| {
            engine.append(&call, Append::to(id.clone(), vec![message(from + number)]))?;
            Ok(())
        })?;
        let with_key = time_each(ROUND, |number| {
            let call = call.clone().with_key(format!("conversation-lone-{}", from + number));
            let message = message(from + number + 1_000_000);
            engine.append(&call, Append::to(id.clone(), vec![message]))?;
            Ok(())
        })?;
        // The first round grows the files and fills the caches.
        if from > 0 {
            floor.push(inserted);
            plain.push(appended);
            keyed.push(with_key);
        }
    }
    let floor = Samples::all(floor);
    row("bare durable insert", floor.describe(), "1".to_owned());
    for (what, samples) in [("durable append", plain), ("durable append with a key", keyed)] {
        let samples = Samples::all(samples);
        row(what, samples.describe(), samples.ratio(&floor));
    }
    Ok(())
}

/// Reads the last turns of a path, page by page.
fn pages(
    engine: &Engine,
    call: &Call,
    mut query: PathQuery,
    turns: usize,
    mut visit: impl FnMut(&PathPage),
) -> Result<(), Error> {
    query.selection = Selection::Last(turns);
    loop {
        let page = engine.path(call, query.clone())?;
        visit(&page);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(()),
        }
    }
}

/// Reads the same turns as bytes to send.
fn send(engine: &Engine, call: &Call, id: &ConversationId, turns: usize) -> Result<(), Error> {
    pages(engine, call, PathQuery::of(id.clone()), turns, |page| {
        assert!(!serde_json::to_vec(&Answer::new(&call.project, page)).expect("JSON").is_empty());
    })
}

/// Reads a path of 10,000 turns, alternately parsed and as bytes.
fn paths(folder: &Path, times: usize) -> Result<(), Error> {
    const TURNS: usize = 10_000;
    let engine = Engine::new(SqliteStore::open(&folder.join("paths"))?);
    let call = Call::by("bench");
    let id = conversation(&engine, &call, "long")?;
    fill(&engine, &call, &id, TURNS)?;
    let (mut parsed, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..times {
        parsed.push(time_each(1, |_| {
            pages(&engine, &call, PathQuery::of(id.clone()), TURNS, |page| {
                assert!(!page.turns.is_empty());
            })
        })?);
        sent.push(time_each(1, |_| send(&engine, &call, &id, TURNS))?);
    }
    let (parsed, sent) = (Samples::all(parsed), Samples::all(sent));
    row("path of 10,000 turns, parsed", parsed.describe(), "1".to_owned());
    row("path of 10,000 turns, as bytes to send", sent.describe(), sent.ratio(&parsed));
    Ok(())
}

/// Returns the appends per second of threads that append, each to its own conversation.
fn append_at_once(
    store: &Path,
    writers: usize,
    duration: Duration,
    keyed: bool,
) -> Result<f64, Error> {
    let engine = Arc::new(Engine::new(SqliteStore::open(store)?));
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                scope.spawn(move || -> Result<usize, String> {
                    let call = Call::by("bench");
                    let id = conversation(&engine, &call, &format!("w{writer}"))
                        .map_err(|error| error.to_string())?;
                    time_for(duration, |number| {
                        let call = match keyed {
                            true => call.clone().with_key(format!("writer-{writer}-{number}")),
                            false => call.clone(),
                        };
                        engine.append(&call, Append::to(id.clone(), vec![message(number)]))?;
                        Ok(())
                    })
                    .map_err(|error| error.to_string())
                })
            })
            .collect();
        let mut done = 0;
        for thread in threads {
            done += thread.join().map_err(|_| "a writer panicked")??;
        }
        Ok::<usize, Error>(done)
    })?;
    Ok(per_second(done, duration))
}

/// Sends a whole list again with one new message, as chat-completion clients do.
fn resend(engine: &Engine, call: &Call, samples: usize) -> Result<(), Error> {
    for length in [300, 3_000] {
        let id = conversation(engine, call, &format!("resent-{length}"))?;
        fill(engine, call, &id, length)?;
        let mut list: Vec<_> = (0..length).map(message).collect();
        let times = time_each(samples.min(50), |number| {
            list.push(message(number + 7_000_000));
            engine.append(call, Append::to(id.clone(), list.clone()).from_root())?;
            Ok(())
        })?;
        row(&format!("list of {length} sent again with one more"), times.describe(), String::new());
    }
    Ok(())
}

/// Measures the same calls in a short and in a long conversation, and reading in the long one.
fn depth(folder: &Path, scale: &Scale) -> Result<(), Error> {
    let store = folder.join("deep");
    let engine = Engine::new(SqliteStore::open(&store)?);
    let call = Call::by("bench");
    let samples = scale.appends / 10;

    let short = conversation(&engine, &call, "short")?;
    fill(&engine, &call, &short, 10)?;
    let long = conversation(&engine, &call, "long")?;
    let started = std::time::Instant::now();
    fill(&engine, &call, &long, scale.depth)?;
    let rate = per_second(scale.depth, started.elapsed());
    let bare = baseline::Bare::open(&folder.join("batches.db"))?;
    let started = std::time::Instant::now();
    bare.insert_batches(scale.depth)?;
    let bare_rate = per_second(scale.depth, started.elapsed());
    row(
        &format!("append in batches of 1,000 ({} turns)", scale.depth),
        format!("{rate:.0}/s"),
        format!("{:.2} of bare with the same look-ups, {bare_rate:.0}/s", rate / bare_rate),
    );

    let mut first: Option<(Samples, Samples)> = None;
    for (id, at) in [(&short, 10), (&long, scale.depth)] {
        let appends = time_each(samples, |number| {
            let append = Append::to(id.clone(), vec![message(number + 5_000_000)]);
            engine.append(&call, append)?;
            Ok(())
        })?;
        let forks = time_each(samples, |_| {
            engine.fork(
                &call,
                Fork {
                    conversation: Some(id.clone()),
                    point: ForkPoint::At(Reference::parse("main~3")?),
                    name: None,
                },
            )?;
            Ok(())
        })?;
        let beside = |now: &Samples, then: Option<&Samples>| {
            then.map_or_else(|| "1".to_owned(), |then| now.ratio(then))
        };
        let (append_then, fork_then) = first.as_ref().map(|(a, f)| (a, f)).unzip();
        row(
            &format!("durable append at turn {at}"),
            appends.describe(),
            beside(&appends, append_then),
        );
        row(&format!("durable fork at turn {at}"), forks.describe(), beside(&forks, fork_then));
        first.get_or_insert((appends, forks));
    }

    let tip = engine.branch(&call, &long, "main")?.tip.ok_or("the long conversation has turns")?;
    for turns in [1_000, 10_000] {
        if turns > scale.depth {
            continue;
        }
        let reads = time_each(20, |_| {
            let query = PathQuery::of(long.clone()).to(tip);
            let mut seen = 0;
            pages(&engine, &call, query, turns, |page| seen += page.turns.len())?;
            assert_eq!(seen, turns);
            Ok(())
        })?;
        row(
            &format!("path of {turns} turns, parsed, in pages of 1,000"),
            reads.describe(),
            String::new(),
        );
    }
    let sent = time_each(20, |_| send(&engine, &call, &long, scale.depth.min(10_000)))?;
    let turns = scale.depth.min(10_000);
    row(
        &format!("path of {turns} turns, as bytes to send, in pages of 1,000"),
        sent.describe(),
        String::new(),
    );
    let windows = time_each(200, |number| {
        let turn = Reference::parse(&format!("main~{}", 50 + number))?;
        engine.window(
            &call,
            WindowQuery {
                turn: tine_engine::TurnRef::within(long.clone(), turn),
                branch: None,
                before: 20,
                after: 19,
            },
        )?;
        Ok(())
    })?;
    row("window of 40 turns", windows.describe(), String::new());

    resend(&engine, &call, samples)?;
    drop(engine);
    let opens = time_each(20, |_| {
        SqliteStore::open(&store)?;
        Ok(())
    })?;
    row(&format!("opening the store of {} turns", scale.depth), opens.describe(), String::new());
    let verified = Engine::new(SqliteStore::open(&store)?);
    let started = std::time::Instant::now();
    let found = verified.verify()?;
    let rate = per_second(usize::try_from(found.turns)?, started.elapsed());
    for problem in found.problems.iter().take(5) {
        eprintln!("{}: {}", problem.record, problem.why);
    }
    row("verify", format!("{rate:.0} turns/s"), format!("{} problems", found.problems.len()));
    Ok(())
}
