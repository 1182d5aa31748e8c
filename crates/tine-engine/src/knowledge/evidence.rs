//! Turns stored with the bytes that they were parsed from, such as a recorded stream, in one
//! transaction.
//!
//! The source belongs to the last turn, so that erasing that turn erases the bytes as well, and an
//! export of the conversation includes them.

use tine_core::json::{Json, object};
use tine_core::{Digest, SourceId, TurnId};

use super::sources::{self, PreparedSource, SourceReceipt};
use crate::ops::append;
use crate::tree::resolve;
use crate::{Append, Appended, Call, Engine, Error, Result, TurnRef};
use crate::{Interpret, NewSource};

impl Engine {
    /// Returns the id that bytes have, or will have, as a source of the call's project.
    pub fn source_id_of(&self, call: &Call, bytes: &[u8]) -> SourceId {
        sources::source_id(&call.project, &Digest::of(bytes))
    }

    /// Appends messages and keeps the bytes that they were read from; the bytes are a source of
    /// the last turn. The turns are always made, also beside equal ones. A single message may be
    /// the turn of an id that was promised.
    pub fn append_with_source(
        &self,
        call: &Call,
        promised: Option<TurnId>,
        request: Append,
        source: NewSource,
    ) -> Result<Appended> {
        match promised {
            Some(_) => append::check_promised(self, &request.messages)?,
            None => append::check_messages(self, &request.messages)?,
        }
        if source.interpret != Interpret::None {
            return Err(Error::invalid(
                "the source of turns cannot be interpreted; set `interpret` to none",
            ));
        }
        let prepared = self.prepared(&source)?;
        let request = AppendWithSource {
            promised,
            append: Append { reuse: false, ..request },
            source,
            prepared,
        };
        let (receipt, replay) =
            self.mutate(call, "append", request, payload, |mutation, read| {
                if let Some(id) = read.promised {
                    append::promise(mutation, id)?;
                }
                let receipt = append::append(mutation, &read.append)?;
                let turn = receipt.turns.last().map(|one| *one.turn.id());
                let name = read.source.original_filename.as_deref();
                sources::keep(mutation, &read.prepared, &read.source.mime_type, name, turn)?;
                Ok(receipt)
            })?;
        self.appended(call, receipt, &replay)
    }

    /// Keeps bytes that belong to a turn which is there already.
    pub fn attach_source(&self, call: &Call, turn: TurnRef, source: NewSource) -> Result<SourceId> {
        let prepared = self.prepared(&source)?;
        let payload = |(turn, source, prepared): &(TurnRef, NewSource, PreparedSource)| {
            object([
                ("source", sources::payload(source, &prepared.digest)),
                ("turn", turn.turn.as_str().into()),
            ])
        };
        let request = (turn, source, prepared);
        let (receipt, _) =
            self.mutate(call, "store_source", request, payload, |mutation, request| {
                let (turn, source, prepared) = request;
                let place = resolve::find(mutation.reader(), mutation.call, turn)?;
                let loc = place.turn.ok_or(Error::Root("given bytes"))?;
                mutation.open(place.conversation)?;
                let turn = mutation.tree().turn(loc)?.id;
                let name = source.original_filename.as_deref();
                let (kept, created) =
                    sources::keep(mutation, prepared, &source.mime_type, name, Some(turn))?;
                let (turn, run, warnings) = Default::default();
                Ok(SourceReceipt { source: kept.id, created, turn, run, warnings })
            })?;
        Ok(receipt.source)
    }
}

struct AppendWithSource {
    promised: Option<TurnId>,
    append: Append,
    source: NewSource,
    prepared: PreparedSource,
}

fn payload(read: &AppendWithSource) -> Json {
    let append = &read.append;
    object([
        ("conversation_id", append.conversation.as_str().into()),
        ("branch", append.branch.clone().into()),
        (
            "messages",
            append.messages.iter().map(append::message_payload).collect::<Vec<_>>().into(),
        ),
        ("source", sources::payload(&read.source, &read.prepared.digest)),
        ("turn_id", read.promised.map(|id| id.to_string()).into()),
    ])
}
