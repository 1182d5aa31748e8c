//! Sources: bytes as they came in, kept once, never changed.

use std::io::Read as _;
use std::sync::Arc;

use super::reader::KnowledgeReader;
use super::turns::{self, TurnReceipt, interpret_payload};
use super::{pages, runs};
use crate::log::change::text;
use crate::log::mutation::{Mutation, Receipt};
use crate::{Call, Engine, Error, Listing, Outcome, Page, Result};
use crate::{Interpret, NewSource, SourceBytes, SourceView, StoreTurn, StoredSource};
use serde::{Deserialize, Serialize};
use tine_analysis::{Material, Subject};
use tine_core::facts::{Envelope, envelope};
use tine_core::hash::Hasher;
use tine_core::ids::check_key;
use tine_core::json::{Json, Object, object};
use tine_core::{
    Digest, InterpretationId, Limits, Message, ProjectId, SourceId, Timestamp, TurnId,
};
use tine_store::{
    IndexKey, IndexQuery, PIECE_BYTES, RecordIndex, SourceRecord, WriteFamilies, required,
};

/// Text that is interpreted at most.
pub(crate) const TEXT_BYTES: u64 = 4 << 20;

/// Bytes with their digest, taken before the transaction.
#[derive(Clone)]
pub(crate) struct PreparedSource {
    content: Arc<dyn SourceBytes>,
    pub digest: Digest,
    pub size_bytes: u64,
}

impl PreparedSource {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        let (digest, size_bytes) = (Digest::of(&bytes), bytes.len() as u64);
        PreparedSource { content: Arc::new(bytes), digest, size_bytes }
    }

    fn read(content: Arc<dyn SourceBytes>, limit: usize) -> Result<Self> {
        let mut hash = Hasher::default();
        let mut size_bytes = 0_u64;
        let mut piece = vec![0; PIECE_BYTES];
        let mut bytes = content.open().map_err(unreadable)?;
        loop {
            let count = bytes.read(&mut piece).map_err(unreadable)?;
            if count == 0 {
                break;
            }
            hash.update(&piece[..count]);
            size_bytes += count as u64;
            if size_bytes > limit as u64 {
                let given = usize::try_from(size_bytes).unwrap_or(usize::MAX);
                return Err(Error::TooLarge { what: "bytes of a source", limit, given });
            }
        }
        drop(bytes);
        Ok(PreparedSource { content, digest: hash.finish(), size_bytes })
    }

    /// Reads all bytes of a small source.
    fn whole(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.content.open().and_then(|mut it| it.read_to_end(&mut bytes)).map_err(unreadable)?;
        Ok(bytes)
    }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::invalid(format!("the bytes to store cannot be read: {error}; nothing was stored"))
}

/// Returns the id of the source with these bytes.
pub(crate) fn source_id(project: &ProjectId, digest: &Digest) -> SourceId {
    let named =
        object([("content_hash", digest.to_hex().into()), ("project_id", project.as_str().into())]);
    SourceId::of(&Digest::of(named.to_canonical().as_bytes()))
}

/// Returns whether text can be read out of bytes of a type.
pub(crate) fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let named = ["application/json", "application/xml", "application/yaml", "application/toml"];
    essence.starts_with("text/")
        || envelope::is_envelope(&essence)
        || named.contains(&essence.as_str())
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
}

#[derive(Serialize, Deserialize)]
pub(super) struct SourceReceipt {
    #[serde(rename = "source_id")]
    pub source: SourceId,
    pub created: bool,
    pub turn: Option<TurnReceipt>,
    pub run: Option<InterpretationId>,
    pub warnings: Vec<String>,
}

impl Receipt for SourceReceipt {}

impl Engine {
    /// Keeps bytes. The envelope of a turn is also placed as a turn, where it names its
    /// conversation.
    pub fn store_source(&self, call: &Call, request: NewSource) -> Result<StoredSource> {
        let prepared = self.prepared(&request)?;
        let envelope = match envelope::is_envelope(&request.mime_type) {
            true => Some(
                Envelope::parse(&prepared.whole()?, self.limits())
                    .map_err(|error| Error::invalid(error.to_string()))?,
            ),
            false => None,
        };
        let turn = envelope.as_ref().and_then(placed_as);
        if let Some(turn) = &turn {
            self.check_turn(turn)?;
        }
        let wait = request.interpret == Interpret::Wait;
        let digest = prepared.digest;
        let payload = move |request: &NewSource| payload(request, &digest);
        let (receipt, replay) =
            self.mutate(call, "store_source", request, payload, move |mutation, request| {
                store(mutation, request, &prepared, envelope.as_ref(), turn.as_ref())
            })?;
        let turn = match receipt.turn {
            None => None,
            Some(turn) => Some(Box::new(self.finish_turn(call, turn, replay, false)?)),
        };
        let interpretation = self.after_store(call, receipt.run, wait)?;
        Ok(StoredSource {
            source: self.source(call, receipt.source)?,
            outcome: Outcome::from_created(receipt.created),
            turn,
            interpretation,
            warnings: receipt.warnings,
            replayed: replay.replayed,
        })
    }

    /// Takes the digest of bytes that may be kept.
    pub(super) fn prepared(&self, source: &NewSource) -> Result<PreparedSource> {
        let limits = self.limits();
        check_key("mime type", &source.mime_type, limits)?;
        if let Some(name) = &source.original_filename {
            check_key("file name", name, limits)?;
        }
        if source.interpret != Interpret::None {
            self.interpreter(source.interpreter.as_deref())?;
        }
        let limit = match envelope::is_envelope(&source.mime_type) {
            true => limits.body_bytes,
            false => limits.source_bytes,
        };
        PreparedSource::read(Arc::clone(&source.content), limit)
    }

    /// Returns one source without its bytes.
    pub fn source(&self, call: &Call, id: SourceId) -> Result<SourceView> {
        self.read(|records| KnowledgeReader::new(records, &call.project).require_source(id))
    }

    /// Sources in the order in which they came.
    pub fn sources(&self, call: &Call, page: Page) -> Result<Listing<SourceView>> {
        let limit = self.page_limit(page.limit)?;
        let by_time = IndexQuery::all(RecordIndex::SourceByTime);
        let by_time = pages::resume(by_time, page.cursor.as_deref())?;
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            pages::page(&knowledge, by_time.clone(), limit, |key| match key {
                IndexKey::SourceByTime { source, .. } => {
                    Ok(Some(knowledge.require_source(*source)?))
                }
                _ => Ok(None),
            })
        })
    }

    /// Returns one piece of a source's bytes, from 0; `None` after the last.
    pub fn source_piece(&self, call: &Call, id: SourceId, nth: u32) -> Result<Option<Vec<u8>>> {
        self.read(|records| {
            let source = KnowledgeReader::new(records, &call.project).require_source(id)?;
            if source.purged {
                return Err(Error::Unsupported(format!("the bytes of {id} were purged")));
            }
            if u64::from(nth) * PIECE_BYTES as u64 >= source.size_bytes {
                return Ok(None);
            }
            let piece = records.piece(&call.project, &id, nth)?;
            Ok(Some(required(piece, || format!("piece {nth} of source {id}"))?))
        })
    }
}

/// Returns what an idempotency key covers.
pub(super) fn payload(source: &NewSource, digest: &Digest) -> Json {
    let mut fields = Object::new();
    fields.insert("content_hash", digest.to_hex().into());
    fields.insert("mime_type", source.mime_type.as_str().into());
    fields.insert("original_filename", source.original_filename.clone().into());
    interpret_payload(source.interpret, source.interpreter.as_deref(), &mut fields);
    Json::Object(fields)
}

/// Returns the turn that an envelope says it is, where it says so.
fn placed_as(envelope: &Envelope) -> Option<StoreTurn> {
    let conversation = envelope.conversation_id.clone()?;
    let message = Message {
        tool_call_id: envelope.tool_call_id.clone(),
        created_at: envelope.timestamp,
        ..Message::text(envelope.role, envelope.content.as_str())
    };
    Some(StoreTurn {
        turn_id: envelope.turn_id.clone(),
        attachments: envelope.attachments.clone(),
        ..StoreTurn::new(conversation, "", message)
    })
}

pub(super) fn store(
    mutation: &mut Mutation<'_>,
    request: &NewSource,
    prepared: &PreparedSource,
    envelope: Option<&Envelope>,
    turn: Option<&StoreTurn>,
) -> Result<SourceReceipt> {
    let mut warnings = Vec::new();
    let placed = match turn {
        Some(turn) => Some(turns::store(mutation, turn)?),
        None => {
            mutation.open_project_log()?;
            None
        }
    };
    let turn_id = placed.as_ref().map(|placed| *placed.turn.id());
    let name = request.original_filename.as_deref();
    let (source, created) = keep(mutation, prepared, &request.mime_type, name, turn_id)?;
    if envelope.is_some_and(|it| it.turn_id.is_none() && it.timestamp.is_none()) {
        warnings.push(
            "the envelope has neither turn_id nor timestamp: another turn with the same text \
             would be the same source"
                .to_owned(),
        );
    }
    if source.mime_type != request.mime_type {
        warnings.push(format!(
            "these bytes were stored before, as {}, and stay that",
            source.mime_type
        ));
    }
    let mut run = None;
    if request.interpret != Interpret::None {
        if is_text(&source.mime_type) {
            let interpreter = request.interpreter.as_deref();
            run = Some(runs::queue(mutation, source.id, interpreter, None)?);
        } else {
            warnings.push(format!("there is no text to interpret in {}", source.mime_type));
        }
    }
    Ok(SourceReceipt { source: source.id, created, turn: placed, run, warnings })
}

/// Keeps bytes unless they are here already; answers whether they are new.
pub(crate) fn keep(
    mutation: &mut Mutation<'_>,
    prepared: &PreparedSource,
    mime_type: &str,
    original_filename: Option<&str>,
    turn: Option<TurnId>,
) -> Result<(SourceRecord, bool)> {
    let project = mutation.call.project.clone();
    let id = source_id(&project, &prepared.digest);
    if let Some(existing) = mutation.knowledge().source(id)? {
        if existing.purged {
            return Err(Error::Unsupported(format!(
                "these bytes were purged as source {id} and cannot be stored again"
            )));
        }
        return Ok((existing, false));
    }
    let record = SourceRecord {
        id,
        content_hash: prepared.digest,
        size_bytes: prepared.size_bytes,
        mime_type: mime_type.to_owned(),
        original_filename: original_filename.map(str::to_owned),
        stored_at: mutation.now,
        stored_by: mutation.call.actor.clone(),
        turn,
        purged: false,
    };
    write_pieces(mutation, prepared, id)?;
    mutation.records.insert(&project, &record)?;
    mutation.fact_also("source_id", text(&id));
    mutation.fact_also("content_hash", prepared.digest.to_hex());
    Ok((record, true))
}

fn write_pieces(
    mutation: &mut Mutation<'_>,
    prepared: &PreparedSource,
    id: SourceId,
) -> Result<()> {
    let mut bytes = prepared.content.open().map_err(unreadable)?;
    let mut hash = Hasher::default();
    let mut nth = 0;
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES.min(64 << 10));
        let limit = PIECE_BYTES as u64;
        (&mut bytes).take(limit).read_to_end(&mut piece).map_err(unreadable)?;
        if piece.is_empty() {
            break;
        }
        hash.update(&piece);
        mutation.records.insert_piece(&mutation.call.project, &id, nth, &piece)?;
        nth += 1;
        if piece.len() < PIECE_BYTES {
            break;
        }
    }
    if hash.finish() != prepared.digest {
        return Err(Error::invalid(
            "the bytes changed while they were being read; nothing was stored",
        ));
    }
    Ok(())
}

/// The text of a source.
pub(super) struct SourceText {
    /// What is interpreted, and what spans count: of an envelope its content.
    pub text: String,
    subject: Subject,
    pub said_at: Timestamp,
}

impl SourceText {
    pub(super) fn material(&self) -> Material<'_> {
        Material { text: &self.text, subject: self.subject, authored_at: Some(self.said_at) }
    }
}

pub(super) fn read(
    knowledge: &KnowledgeReader<'_>,
    limits: &Limits,
    source: &SourceRecord,
) -> Result<SourceText> {
    let text = whole_text(knowledge, source)?;
    if !envelope::is_envelope(&source.mime_type) {
        return Ok(SourceText { text, subject: Subject::Document, said_at: source.stored_at });
    }
    let envelope = Envelope::parse(text.as_bytes(), limits)
        .map_err(|error| Error::Unsupported(error.to_string()))?;
    Ok(SourceText {
        text: envelope.content,
        subject: Subject::Turn(envelope.role),
        said_at: envelope.timestamp.unwrap_or(source.stored_at),
    })
}

/// Returns the text of a source that is to be interpreted.
fn whole_text(knowledge: &KnowledgeReader<'_>, source: &SourceRecord) -> Result<String> {
    if source.purged {
        return Err(Error::Unsupported(format!("the bytes of {} were purged", source.id)));
    }
    if !is_text(&source.mime_type) {
        return Err(Error::Unsupported(format!("there is no text in {}", source.mime_type)));
    }
    if source.size_bytes > TEXT_BYTES {
        let given = usize::try_from(source.size_bytes).unwrap_or(usize::MAX);
        let limit = usize::try_from(TEXT_BYTES).unwrap_or(usize::MAX);
        return Err(Error::TooLarge { what: "bytes of text to interpret", limit, given });
    }
    let bytes = whole_bytes(knowledge, source)?;
    String::from_utf8(bytes)
        .map_err(|_| Error::Unsupported(format!("source {} is not UTF-8", source.id)))
}

pub(crate) fn whole_bytes(
    knowledge: &KnowledgeReader<'_>,
    source: &SourceRecord,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut nth = 0;
    while (bytes.len() as u64) < source.size_bytes {
        let piece = knowledge.records.piece(knowledge.project, &source.id, nth)?;
        bytes.extend(required(piece, || format!("piece {nth} of source {}", source.id))?);
        nth += 1;
    }
    Ok(bytes)
}
