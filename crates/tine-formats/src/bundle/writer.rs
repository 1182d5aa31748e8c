//! Writes a bundle, record by record.

use std::io::Write;

use sha2::{Digest as _, Sha256};
use tine_core::{ConversationId, Digest, Json, Limits, TurnHash, TurnId};
use tine_engine::{BundleRecord, Call, Engine};

use super::checker::BundleChecker;
use super::error::{BundleError, Fault};
use super::{Written, encode, longest_line};

/// Writes whole conversations, one after the other, in the order given.
///
/// Each is written as it is at one moment. A failure leaves an output without an end line, which
/// every reader recognises as cut.
///
/// ```
/// use tine_engine::{Call, Engine};
/// use tine_formats::bundle::write_bundle;
/// use tine_store::MemoryStore;
///
/// let engine = Engine::new(MemoryStore::new());
/// let mut out = Vec::new();
/// write_bundle(&engine, &Call::by("somebody"), &[], &mut out)?;
/// assert!(out.starts_with(b"{\"format\":\"tine-bundle\",\"version\":1}\n"));
/// # Ok::<(), tine_formats::bundle::BundleError>(())
/// ```
pub fn write_bundle(
    engine: &Engine,
    call: &Call,
    conversations: &[ConversationId],
    out: &mut dyn Write,
) -> Result<Written, BundleError> {
    write_bundles(engine, &[(call.clone(), conversations.to_vec())], out)
}

/// Writes conversations of several projects, each with a call in its project.
pub fn write_bundles(
    engine: &Engine,
    chosen: &[(Call, Vec<ConversationId>)],
    out: &mut dyn Write,
) -> Result<Written, BundleError> {
    let mut writer = BundleWriter::new(out, engine.limits())?;
    let each = chosen.iter().flat_map(|(call, ids)| ids.iter().map(move |id| (call, id)));
    for (call, conversation) in each {
        let mut failed = None;
        let exported = engine.export(call, conversation, &mut |record| {
            writer.record(&record).map_err(|error| {
                failed = Some(error);
                // Only stops the engine: the error above is the one that is reported.
                tine_engine::Error::Invalid("the bundle could not be written".to_owned())
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        exported?;
    }
    writer.finish()
}

/// Writes records as the lines of a bundle, and checks that they can be read again.
pub struct BundleWriter<'a> {
    out: &'a mut dyn Write,
    limit: usize,
    checker: BundleChecker,
    before: Sha256,
}

impl<'a> BundleWriter<'a> {
    /// Writes the header.
    pub fn new(out: &'a mut dyn Write, limits: &Limits) -> Result<Self, BundleError> {
        BundleWriter::with(out, limits, &encode::header(), BundleChecker::default())
    }

    /// Writes the given header; `checker` checks the lines after it.
    pub(super) fn with(
        out: &'a mut dyn Write,
        limits: &Limits,
        header: &Json,
        checker: BundleChecker,
    ) -> Result<Self, BundleError> {
        let mut writer =
            BundleWriter { out, limit: longest_line(limits), checker, before: Sha256::new() };
        writer.line(&header.to_canonical())?;
        Ok(writer)
    }

    /// Writes a turn that a delta refers to but does not contain.
    pub(super) fn known(&mut self, turn: TurnId, hash: TurnHash) -> Result<(), BundleError> {
        self.checker.accept_known_turn(turn, hash).map_err(|fault| {
            let record = format!("turn {turn}");
            BundleError::Damaged { record, fault }
        })?;
        self.line(&encode::known(turn, hash).to_canonical())
    }

    /// Writes one record.
    pub fn record(&mut self, record: &BundleRecord) -> Result<(), BundleError> {
        let line = self.prepare(record).map_err(|fault| {
            let record = encode::describe(record);
            BundleError::Damaged { record, fault }
        })?;
        self.line(&line)
    }

    /// Writes the end line.
    pub fn finish(mut self) -> Result<Written, BundleError> {
        self.checker.end_conversation().map_err(|fault| {
            let record = "last conversation".to_owned();
            BundleError::Damaged { record, fault }
        })?;
        let written = Written {
            conversations: self.checker.conversations,
            turns: self.checker.turns,
            operations: self.checker.operations,
            digest: Digest(self.before.clone().finalize().into()),
        };
        self.line(&encode::end(&written).to_canonical())?;
        self.out.flush().map_err(|source| BundleError::Write { source })?;
        Ok(written)
    }

    fn prepare(&mut self, record: &BundleRecord) -> Result<String, Fault> {
        let link = self.checker.link(record)?;
        self.checker.accept(record)?;
        let line = encode::record(record, link)?.to_canonical();
        if line.len() > self.limit {
            return Err(Fault::TooLong { limit: self.limit });
        }
        Ok(line)
    }

    fn line(&mut self, line: &str) -> Result<(), BundleError> {
        self.before.update(line);
        self.before.update("\n");
        let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.write_all(b"\n"));
        written.map_err(|source| BundleError::Write { source })
    }
}
