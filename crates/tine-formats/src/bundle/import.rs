//! Imports bundles: the whole bundle is checked first, then stored.
//!
//! A bundle is read twice. The first pass checks everything that the bundle states about itself, down
//! to its end line; nothing is stored before. The second pass gives the records to the engine, one
//! conversation and one transaction at a time. The store may still reject a conversation whose history
//! diverged or whose name is taken; the conversations before it stay.

use std::io::{BufRead, BufReader, Seek, SeekFrom, Write as _};

use tine_core::{ConversationId, Limits, ProjectId};
use tine_engine::{BundleRecord, Engine, Imported};

use super::error::BundleError;
use super::reader::BundleReader;
use super::{Written, spool};

/// Checks a whole bundle and returns its counts.
///
/// This recomputes every root hash, turn hash and operation hash, and checks every reference to an
/// earlier line, the counts and the digest of the end line.
pub fn verify_bundle(input: &mut dyn BufRead, limits: &Limits) -> Result<Written, BundleError> {
    finish(BundleReader::new(input, limits)?)
}

/// Imports a bundle from an input that can be read only once, such as a pipe.
///
/// The bundle is copied to a temporary file while it is checked, so that nothing of a cut or
/// altered one is stored. `project` replaces the projects that the bundle names.
///
/// ```
/// use tine_engine::{Call, Engine, NewConversation};
/// use tine_formats::bundle::{read_bundle, write_bundle};
/// use tine_store::MemoryStore;
///
/// let (here, there) = (Engine::new(MemoryStore::new()), Engine::new(MemoryStore::new()));
/// let call = Call::by("somebody");
/// let trip = here.create_conversation(&call, NewConversation::named("trip")?)?.id;
/// let mut bundle = Vec::new();
/// write_bundle(&here, &call, &[trip], &mut bundle)?;
///
/// let imported = read_bundle(&there, None, &mut bundle.as_slice())?;
/// assert_eq!(imported.conversations, 1);
/// let again = read_bundle(&there, None, &mut bundle.as_slice())?;
/// assert_eq!((again.conversations, again.unchanged), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_bundle(
    engine: &Engine,

    project: Option<&ProjectId>,
    input: &mut dyn BufRead,
) -> Result<Imported, BundleError> {
    let failed = |source| BundleError::Spool { source };
    let mut copy = spool::create().map_err(failed)?;
    {
        let mut out = std::io::BufWriter::new(&mut copy);
        finish(BundleReader::copying(input, Some(&mut out), engine.limits())?)?;
        out.flush().map_err(failed)?;
    }
    copy.seek(SeekFrom::Start(0)).map_err(failed)?;
    store(engine, project, &mut BufReader::new(copy))
}

/// Imports a bundle from an input that can be read again, such as a file, without copying it.
///
/// An input that cannot be rewound is read as by [`read_bundle`].
pub fn read_bundle_in_place<R: BufRead + Seek>(
    engine: &Engine,

    project: Option<&ProjectId>,
    input: &mut R,
) -> Result<Imported, BundleError> {
    let Ok(start) = input.stream_position() else {
        return read_bundle(engine, project, input);
    };
    verify_bundle(input, engine.limits())?;
    let read = |source| BundleError::Read { line: 0, source };
    input.seek(SeekFrom::Start(start)).map_err(read)?;
    store(engine, project, input)
}

/// Runs the first pass.
fn finish(mut reader: BundleReader<'_>) -> Result<Written, BundleError> {
    while reader.next_record()?.is_some() {}
    Ok(reader.end().expect("without a record, the end line was read and checked"))
}

/// Runs the second pass. It checks everything again, since a file may have been changed in between.
fn store(
    engine: &Engine,

    project: Option<&ProjectId>,
    input: &mut dyn BufRead,
) -> Result<Imported, BundleError> {
    let mut records = ConversationRecords::new(BundleReader::new(input, engine.limits())?);
    let mut total = Imported::default();
    while let Some((conversation, line)) = records.begin()? {
        let outcome = engine.import(project, &mut records);
        // An error of the bundle passed through the engine only to stop it.
        if let Some(error) = records.failed.take() {
            return Err(error);
        }
        let done = outcome.map_err(|source| BundleError::Refused {
            conversation,
            line,
            imported: total,
            source: Box::new(source),
        })?;
        total.conversations += done.conversations;
        total.extended += done.extended;
        total.unchanged += done.unchanged;
        total.turns += done.turns;
        total.operations += done.operations;
    }
    Ok(total)
}

/// Iterates over the records of one conversation at a time.
struct ConversationRecords<'a> {
    reader: BundleReader<'a>,
    /// The record that was read ahead.
    ahead: Option<BundleRecord>,
    /// Whether the conversation's first record has been handed out.
    begun: bool,
    failed: Option<BundleError>,
}

impl<'a> ConversationRecords<'a> {
    fn new(reader: BundleReader<'a>) -> Self {
        ConversationRecords { reader, ahead: None, begun: false, failed: None }
    }

    /// Advances to the next conversation and returns its id and line; `None` after the last one.
    fn begin(&mut self) -> Result<Option<(ConversationId, u64)>, BundleError> {
        self.begun = false;
        loop {
            match &self.ahead {
                Some(BundleRecord::Conversation(conversation)) => {
                    return Ok(Some((conversation.id.clone(), self.reader.line())));
                }
                Some(_) | None => self.ahead = self.reader.next_record()?,
            }
            if self.ahead.is_none() {
                return Ok(None);
            }
        }
    }
}

impl Iterator for ConversationRecords<'_> {
    type Item = tine_engine::Result<BundleRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed.is_some() {
            return None;
        }
        if self.ahead.is_none() {
            match self.reader.next_record() {
                Ok(record) => self.ahead = record,
                Err(error) => {
                    let stop = tine_engine::Error::Invalid(error.to_string());
                    self.failed = Some(error);
                    return Some(Err(stop));
                }
            }
        }
        let starts = matches!(self.ahead, Some(BundleRecord::Conversation(_)));
        if starts && self.begun {
            return None;
        }
        self.begun = true;
        self.ahead.take().map(Ok)
    }
}
