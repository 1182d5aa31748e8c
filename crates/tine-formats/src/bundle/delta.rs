//! Deltas: the part of one conversation after an entry of its log, in the format of a bundle.
//!
//! The header names the range. Earlier turns that the records refer to follow the conversation
//! line, each with its hash. Everything else is as in a bundle, and checked in the same way.

use std::io::{BufRead, Read, Write};

use tine_core::json::{self, Json, MAX_DEPTH};
use tine_core::{Limits, OperationHash};
use tine_engine::{BundleRecord, Delta, DeltaScope, Error, LogMark};

use super::checker::{BundleChecker, DeltaRange};
use super::error::{BundleError, Fault};
use super::fields::Fields;
use super::lines::Lines;
use super::reader::BundleReader;
use super::writer::BundleWriter;

/// The format name in the header.
const FORMAT: &str = "tine-delta";

/// The version of the format that is written and read here.
const VERSION: u64 = 1;

/// The longest header.
const HEADER_BYTES: usize = 1 << 10;

/// Writes a delta.
pub fn write_delta(delta: &Delta, limits: &Limits, out: &mut dyn Write) -> Result<(), BundleError> {
    let checker = BundleChecker::for_delta(DeltaRange { scope: delta.scope, since: delta.since });
    let mut writer = BundleWriter::with(out, limits, &header(delta), checker)?;
    for (place, record) in delta.records.iter().enumerate() {
        writer.record(record)?;
        if place == 0 {
            for (turn, hash) in &delta.known {
                writer.known(*turn, *hash)?;
            }
        }
    }
    writer.finish()?;
    Ok(())
}

/// Reads a delta down to its end line and records its size. It is held in memory, so one that
/// exceeds the limit is rejected.
pub fn read_delta(input: &mut dyn BufRead, limits: &Limits) -> Result<Delta, BundleError> {
    let limit = limits.delta_bytes;
    let mut input = CountingReader { input, bytes: 0, limit: limit as u64 };
    let read = read_counted(&mut input, limits);
    match input.bytes > input.limit {
        true => Err(BundleError::Engine(Error::LongDelta { limit })),
        false => read.map(|delta| Delta { bytes: input.bytes, ..delta }),
    }
}

fn read_counted(input: &mut CountingReader<'_>, limits: &Limits) -> Result<Delta, BundleError> {
    let mut lines = Lines::new(input, None);
    let read = match lines.advance(HEADER_BYTES) {
        Ok(true) => read_header(lines.current()),
        Ok(false) | Err(BundleError::Line { .. }) => Err(Fault::NotADelta),
        Err(other) => return Err(other),
    };
    let (scope, since, until) = read.map_err(|fault| BundleError::Line { line: 1, fault })?;
    let checker = BundleChecker::for_delta(DeltaRange { scope, since });
    let mut reader = BundleReader::after_header(lines, checker, limits);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        check_scope(scope, &record, records.is_empty())
            .map_err(|fault| BundleError::Line { line: reader.line(), fault })?;
        records.push(record);
    }
    let what = match records.is_empty() {
        true => Some("it holds no conversation"),
        false if scope == DeltaScope::Log && reader.log_end != Some(until) => {
            Some("it ends elsewhere")
        }
        false => None,
    };
    if let Some(what) = what {
        return Err(BundleError::Line { line: reader.line(), fault: Fault::OtherDelta { what } });
    }
    let known = std::mem::take(&mut reader.known);
    drop(reader);
    Ok(Delta { scope, since, until, known, records, bytes: 0 })
}

fn check_scope(scope: DeltaScope, record: &BundleRecord, first: bool) -> Result<(), Fault> {
    let what = match (scope, record) {
        (_, BundleRecord::Conversation(_)) if !first => "it holds another conversation",
        (_, BundleRecord::Conversation(_))
        | (DeltaScope::Log, _)
        | (DeltaScope::Turns, BundleRecord::Turn { .. } | BundleRecord::Branch { .. }) => {
            return Ok(());
        }
        (DeltaScope::Turns, _) => "it holds more than turns and branches",
    };
    Err(Fault::OtherDelta { what })
}

fn header(delta: &Delta) -> Json {
    json::object([
        ("format", FORMAT.into()),
        ("scope", scope_name(delta.scope).into()),
        ("since", delta.since.map_or(Json::Null, mark)),
        ("until", mark(delta.until)),
        ("version", VERSION.into()),
    ])
}

fn mark(mark: LogMark) -> Json {
    json::object([("hash", mark.hash.to_string().into()), ("seq", mark.seq.into())])
}

fn scope_name(scope: DeltaScope) -> &'static str {
    match scope {
        DeltaScope::Log => "log",
        DeltaScope::Turns => "turns",
    }
}

type Header = (DeltaScope, Option<LogMark>, LogMark);

fn read_header(line: &[u8]) -> Result<Header, Fault> {
    let json = json::parse(line, MAX_DEPTH).map_err(|_| Fault::NotADelta)?;
    if json.get("format").and_then(Json::as_str) != Some(FORMAT)
        || json.get("version").and_then(Json::as_u64) != Some(VERSION)
        || json.to_canonical().as_bytes() != line
    {
        return Err(Fault::NotADelta);
    }
    let Json::Object(object) = json else { return Err(Fault::NotADelta) };
    let mut fields = Fields::new("header", object);
    fields.any("format")?;
    fields.any("version")?;
    let name = fields.text("scope")?;
    let scope =
        [DeltaScope::Log, DeltaScope::Turns].into_iter().find(|scope| scope_name(*scope) == name);
    let scope = scope.ok_or(Fault::OtherDelta { what: "its scope is unknown" })?;
    let since = match fields.any("since")? {
        Json::Null => None,
        given => Some(read_mark(given)?),
    };
    let until = read_mark(fields.any("until")?)?;
    fields.finish()?;
    Ok((scope, since, until))
}

fn read_mark(given: Json) -> Result<LogMark, Fault> {
    let Json::Object(object) = given else { return Err(Fault::NotADelta) };
    let mut fields = Fields::new("place in a log", object);
    let hash: OperationHash = fields.parsed("hash")?;
    let seq = fields.number("seq")?;
    fields.finish()?;
    Ok(LogMark { seq, hash })
}

/// A reader that counts bytes and fails after a limit.
struct CountingReader<'a> {
    input: &'a mut dyn BufRead,
    bytes: u64,
    limit: u64,
}

impl CountingReader<'_> {
    fn check(&self) -> std::io::Result<()> {
        match self.bytes > self.limit {
            true => Err(std::io::ErrorKind::FileTooLarge.into()),
            false => Ok(()),
        }
    }
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.check()?;
        let size = self.input.read(buffer)?;
        self.bytes += size as u64;
        Ok(size)
    }
}

impl BufRead for CountingReader<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.check()?;
        self.input.fill_buf()
    }

    fn consume(&mut self, size: usize) {
        self.bytes += size as u64;
        self.input.consume(size);
    }
}
