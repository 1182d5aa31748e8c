//! The store on PostgreSQL beside bare statements on the same server, alternately.
//!
//! A bare insert is one row with one key, of the same size as a turn, committed by itself, by as many
//! clients over as many connections. A bare scan reads the same rows of the same table.

use std::sync::Arc;
use std::time::Duration;

use tine_core::ConversationId;
use tine_engine::{Append, Call, Engine, PathPage, PathQuery};
use tine_postgres::{PostgresAddress, PostgresStore};
use tine_store::OpenMode;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use crate::timing::{Samples, per_second, time_each, time_for};
use crate::workload::{conversation, fill, message};
use crate::{Error, row};

/// Turns of the path that is read.
const PATH: usize = 10_000;

/// Rounds of each comparison; the compared operations alternate.
const ROUNDS: usize = 3;

/// A connection without a store.
struct Bare {
    runtime: Runtime,
    client: Client,
}

impl Bare {
    fn connect(address: &str) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let url = address.split('?').next().unwrap_or(address);
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        runtime.spawn(async move { connection.await.ok() });
        Ok(Bare { runtime, client })
    }

    fn run(&self, sql: &str) -> Result<(), Error> {
        Ok(self.runtime.block_on(self.client.batch_execute(sql))?)
    }

    fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        Ok(self.runtime.block_on(self.client.prepare(sql))?)
    }

    /// Returns the settings that affect the server's figures most.
    fn settings(&self) -> Result<String, Error> {
        let sql = "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_settings \
                   WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')";
        Ok(self.runtime.block_on(self.client.query_one(sql, &[]))?.get(0))
    }

    fn insert(&self, insert: &Statement, writer: i64, number: usize) -> Result<(), Error> {
        let body = text_of(number);
        let number = i64::try_from(number)?;
        self.runtime.block_on(self.client.execute(insert, &[&writer, &number, &body]))?;
        Ok(())
    }
}

fn text_of(number: usize) -> Vec<u8> {
    match message(number).body {
        tine_core::Body::Text(text) | tine_core::Body::Blocks(text) => text.into_bytes(),
    }
}

/// Measures everything, or without `seconds` only appends up to a number of turns.
pub(crate) fn measure(address: &str, seconds: Option<Duration>, turns: usize) -> Result<(), Error> {
    let schema = format!("tine_bench_{}", std::process::id());
    let bare = Bare::connect(address)?;
    bare.run(&format!(
        "CREATE SCHEMA {schema}; CREATE TABLE {schema}.bare (writer int8 NOT NULL, \
         number int8 NOT NULL, body bytea NOT NULL, PRIMARY KEY (writer, number))"
    ))?;
    // A schema with tables in it is somebody else's.
    let store = format!("{schema}_store");
    let sign = if address.contains('?') { '&' } else { '?' };
    let named = format!("{address}{sign}tine_schema={store}&tine_connections=80");
    let outcome = PostgresAddress::parse(&named).map_err(Error::from).and_then(|named| {
        let engine = Arc::new(Engine::new(PostgresStore::open(&named, OpenMode::Create)?));
        println!("{}\n", bare.settings()?);
        println!("| what | figure | beside the bare statement |");
        println!("| --- | --- | --- |");
        if let Some(seconds) = seconds {
            throughput(address, &schema, &engine, seconds)?;
            path(&bare, &store, &engine)?;
        }
        flat(&engine, turns)
    });
    bare.run(&format!("DROP SCHEMA IF EXISTS {store} CASCADE; DROP SCHEMA {schema} CASCADE"))?;
    outcome
}

fn throughput(
    address: &str,
    schema: &str,
    engine: &Arc<Engine>,
    seconds: Duration,
) -> Result<(), Error> {
    let mut offset = 0;
    for writers in [1, 8, 64] {
        let (mut inserted, mut appended) = (0.0, 0.0);
        for round in 0..ROUNDS {
            offset += 1_000_000_000;
            inserted += bare_inserts(address, schema, writers, seconds, offset)?;
            appended += appends(engine, writers, seconds, round)?;
        }
        let (inserted, appended) = (inserted / ROUNDS as f64, appended / ROUNDS as f64);
        row(&format!("bare insert, {writers} clients"), format!("{inserted:.0}/s"), "1".into());
        let share = format!("{:.0} %", 100.0 * appended / inserted);
        row(&format!("append, {writers} clients"), format!("{appended:.0}/s"), share);
    }
    Ok(())
}

fn at_once(
    writers: usize,
    work: impl Fn(usize) -> Result<usize, Error> + Sync,
) -> Result<usize, Error> {
    std::thread::scope(|scope| {
        let work = &work;
        let start =
            move |writer| scope.spawn(move || work(writer).map_err(|error| error.to_string()));
        let threads: Vec<_> = (0..writers).map(start).collect();
        let mut done = 0;
        for thread in threads {
            done += thread.join().map_err(|_| "a writer panicked")??;
        }
        Ok(done)
    })
}

fn bare_inserts(
    address: &str,
    schema: &str,
    writers: usize,
    seconds: Duration,
    offset: usize,
) -> Result<f64, Error> {
    let sql = format!("INSERT INTO {schema}.bare (writer, number, body) VALUES ($1, $2, $3)");
    let done = at_once(writers, |writer| {
        let bare = Bare::connect(address)?;
        let insert = bare.prepare(&sql)?;
        let writer = i64::try_from(writer)?;
        time_for(seconds, |number| bare.insert(&insert, writer, offset + number))
    })?;
    Ok(per_second(done, seconds))
}

fn appends(engine: &Engine, writers: usize, seconds: Duration, round: usize) -> Result<f64, Error> {
    let done = at_once(writers, |writer| {
        let call = Call::by("bench");
        let name = format!("w-{writers}-{round}-{writer}");
        let id = conversation(engine, &call, &name)?;
        time_for(seconds, |number| {
            let call = call.clone().with_key(format!("{name}-{number}"));
            engine.append(&call, Append::to(id.clone(), vec![message(number)]))?;
            Ok(())
        })
    })?;
    Ok(per_second(done, seconds))
}

fn path(bare: &Bare, schema: &str, engine: &Engine) -> Result<(), Error> {
    let call = Call::by("bench");
    let id = conversation(engine, &call, "long")?;
    fill(engine, &call, &id, PATH)?;
    let sql = format!(
        "SELECT turn.* FROM {schema}.turn WHERE project = 1 AND segment = \
         (SELECT no FROM {schema}.conversation WHERE project = 1 AND id = 'long') \
         AND index BETWEEN 0 AND {PATH} ORDER BY index"
    );
    let scan = bare.prepare(&sql)?;
    let (mut scans, mut paths) = (Vec::new(), Vec::new());
    for _ in 0..5 * ROUNDS {
        scans.push(time_each(1, |_| {
            let rows = bare.runtime.block_on(bare.client.query(&scan, &[]))?;
            assert_eq!(rows.len(), PATH);
            Ok(())
        })?);
        paths.push(time_each(1, |_| read_path(engine, &call, &id))?);
    }
    let (scans, paths) = (Samples::all(scans), Samples::all(paths));
    row("bare scan of 10,000 rows", scans.describe(), "1".to_owned());
    row("path of 10,000 turns", paths.describe(), paths.ratio(&scans));
    Ok(())
}

fn read_path(engine: &Engine, call: &Call, id: &ConversationId) -> Result<(), Error> {
    let mut seen = 0;
    crate::pages(engine, call, PathQuery::of(id.clone()), PATH, |page: &PathPage| {
        seen += page.turns.len();
    })?;
    assert_eq!(seen, PATH);
    Ok(())
}

/// Measures an append at the end of a conversation while it and the store grow.
fn flat(engine: &Engine, most: usize) -> Result<(), Error> {
    let call = Call::by("bench");
    let id = conversation(engine, &call, "growing")?;
    let (mut there, mut first) = (0, None);
    for turns in (3..).map(|power| 10_usize.pow(power)).take_while(|turns| *turns <= most) {
        fill_from(engine, &call, &id, there, turns)?;
        there = turns;
        let samples = time_each(1_000, |number| {
            let key = call.clone().with_key(format!("grow-{turns}-{number}"));
            let message = message(900_000_000 + turns + number);
            engine.append(&key, Append::to(id.clone(), vec![message]))?;
            Ok(())
        })?;
        there += 1_000;
        let beside = first.as_ref().map_or("1".to_owned(), |first| samples.ratio(first));
        row(&format!("append behind {turns} turns"), samples.describe(), beside);
        first.get_or_insert(samples);
    }
    let mut totals = tine_store::Totals::default();
    engine.store().read(&mut |records| {
        totals = records.totals()?;
        Ok(())
    })?;
    let each = totals.disk_bytes / totals.turns.max(1);
    row(
        &format!("disk, {} turns of 1 kB", totals.turns),
        format!("{each} bytes a turn"),
        "".into(),
    );
    Ok(())
}

fn fill_from(
    engine: &Engine,
    call: &Call,
    id: &ConversationId,
    from: usize,
    to: usize,
) -> Result<(), Error> {
    let mut from = from;
    while from < to {
        let next = to.min(from + 1_000);
        let mut append = Append::to(id.clone(), (from..next).map(message).collect());
        append.reuse = false;
        engine.append(call, append)?;
        from = next;
    }
    Ok(())
}
