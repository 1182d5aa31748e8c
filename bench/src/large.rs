//! A store with very many turns: opening, memory, disk and the most frequent calls.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tine_core::Reference;
use tine_engine::{Append, Call, Engine, Fork, ForkPoint, PathQuery, Selection};
use tine_sqlite::SqliteStore;
use tine_store::PackOptions;

use crate::timing::{per_second, time_each};
use crate::workload::{conversation, message};
use crate::{Error, row};

/// Conversations over which the turns are spread, written in parallel.
const CONVERSATIONS: usize = 100;

/// Turns of one conversation per append.
const BATCH: usize = 10;

pub(crate) fn measure(folder: &Path, turns: usize) -> Result<(), Error> {
    let store = folder.join("large");
    let raw = fill(&store, turns)?;
    let opens = time_each(20, |_| {
        SqliteStore::open(&store)?;
        Ok(())
    })?;
    row(&format!("opening a store of {turns} turns"), opens.describe(), String::new());
    // Before anything comes in that is not counted among the messages.
    disk(&store, raw, "hot")?;
    killed(&store)?;
    let engine = Engine::new(SqliteStore::open(&store)?);
    let call = Call::by("bench");
    let id = tine_core::ConversationId::from_stored("c7");
    let appends = time_each(500, |number| {
        engine.append(&call, Append::to(id.clone(), vec![message(number + 90_000_000)]))?;
        Ok(())
    })?;
    row("durable append there", appends.describe(), String::new());
    let forks = time_each(500, |_| {
        let point = ForkPoint::At(Reference::parse("main~3")?);
        engine.fork(&call, Fork { conversation: Some(id.clone()), point, name: None })?;
        Ok(())
    })?;
    row("durable fork there", forks.describe(), String::new());
    paths(&engine, &call, &store, "hot")?;
    let started = Instant::now();
    let found = engine.verify()?;
    let rate = per_second(usize::try_from(found.turns)?, started.elapsed());
    let cores = std::thread::available_parallelism()?;
    row(
        &format!("verify there, on {cores} cores"),
        format!("{rate:.0} turns/s"),
        format!("{} problems", found.problems.len()),
    );
    engine.store().pack(PackOptions::EVERYTHING)?;
    engine.store().scrub()?;
    paths(&engine, &call, &store, "packed")?;
    disk(&store, raw, "packed")?;
    Ok(())
}

/// Measures only the size of the file.
pub(crate) fn measure_disk(folder: &Path, turns: usize) -> Result<(), Error> {
    let store = folder.join("large");
    let raw = fill(&store, turns)?;
    disk(&store, raw, "hot")
}

/// The argument by which this program opens a store and writes to it until it is killed.
pub(crate) const OPEN_AND_WRITE: &str = "open-and-write";

/// Opens a store in a process of its own, prints the time and the memory that this took, and appends
/// until the process is killed.
pub(crate) fn open_and_write(store: &Path) -> Result<(), Error> {
    let started = Instant::now();
    let engine = Engine::new(SqliteStore::open(store)?);
    let call = Call::by("bench");
    let id = tine_core::ConversationId::from_stored("c3");
    engine.path(&call, PathQuery { limit: Some(1), ..PathQuery::of(id.clone()) })?;
    let took = started.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    println!("{} {}", took.as_micros(), memory.unwrap_or("unknown").trim());
    for number in 0.. {
        engine.append(&call, Append::to(id.clone(), vec![message(number + 95_000_000)]))?;
    }
    Ok(())
}

/// Kills a writing process repeatedly, and opens the store after it.
fn killed(store: &Path) -> Result<(), Error> {
    let mut took = Vec::new();
    let mut memory = String::new();
    for _ in 0..10 {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(OPEN_AND_WRITE)
            .arg(store)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        std::thread::sleep(Duration::from_millis(400));
        child.kill()?;
        child.wait()?;
        let (micros, now) = line.trim().split_once(' ').ok_or("the child said nothing")?;
        took.push(micros.parse::<u64>()?);
        memory = now.to_owned();
    }
    took.remove(0);
    took.sort_unstable();
    let (middle, last) = (took[took.len() / 2], took[took.len() - 1]);
    row(
        "opening it after kill -9, and reading the first turn",
        format!("p50 {middle} µs, worst {last} µs"),
        format!("{memory} of memory then"),
    );
    Ok(())
}

/// Creates the store; returns the size of its messages.
fn fill(store: &Path, turns: usize) -> Result<u64, Error> {
    let engine = Engine::new(SqliteStore::open(store)?);
    let call = Call::by("bench");
    let ids: Vec<_> = (0..CONVERSATIONS)
        .map(|number| conversation(&engine, &call, &format!("c{number}")))
        .collect::<Result<_, _>>()?;
    let mut raw = 0;
    let mut made = 0;
    while made < turns {
        for id in &ids {
            let messages: Vec<_> = (made..made + BATCH).map(message).collect();
            // As a client would send it: role and content.
            raw += messages.iter().map(|one| one.body.stored_len() as u64 + 30).sum::<u64>();
            let mut append = Append::to(id.clone(), messages);
            append.reuse = false;
            engine.append(&call, append)?;
            made += BATCH;
        }
    }
    Ok(raw)
}

fn paths(engine: &Engine, call: &Call, store: &Path, state: &str) -> Result<(), Error> {
    for (cold, times) in [(false, 20), (true, 5)] {
        let reads = time_each(times, |number| {
            if cold {
                forget(store)?;
            }
            let id = tine_core::ConversationId::from_stored(format!("c{}", number + 20));
            let mut query = PathQuery::of(id);
            query.selection = Selection::Last(10_000);
            while let Some(next) = engine.path(call, query.clone())?.next {
                query.cursor = Some(next);
            }
            Ok(())
        })?;
        let how = if cold { "cold, with dropping the cache" } else { "warm" };
        row(
            &format!("path of 10,000 turns there, {state}, {how}"),
            reads.describe(),
            String::new(),
        );
    }
    Ok(())
}

/// Drops the store's file from the page cache.
fn forget(store: &Path) -> Result<(), Error> {
    let file = format!("if={}", store.join("tine.db").display());
    Command::new("dd").args([&file, "iflag=nocache", "count=0", "status=none"]).status()?;
    Ok(())
}

fn disk(store: &Path, raw: u64, state: &str) -> Result<(), Error> {
    let bytes = std::fs::metadata(store.join("tine.db"))?.len();
    let ratio = bytes as f64 / raw as f64;
    row(&format!("disk, {state}"), format!("{bytes} bytes"), format!("{ratio:.2} of the messages"));
    Ok(())
}
