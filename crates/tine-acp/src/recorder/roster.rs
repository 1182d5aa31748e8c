//! The roster: which sessions of the agent are known here, and for which branch each was opened.
//!
//! Each has a card: a source whose bytes name the agent, the agent's id of the session, and how
//! often that id was given out before; its file name is the branch's id. So a card is found
//! without looking through anything, and of two who write the same card one is told that it was
//! there. An agent may give an id to another session, once it has begun to count anew: of the
//! sessions with one id only the last can still be there.

use std::sync::Arc;

use serde_json::json;
use tine_core::{BranchId, ErrorKind};
use tine_engine::{BranchView, Interpret, NewSource, Outcome, SourceView};

use super::relay::Relay;
use crate::branches;
use crate::wire::Refusal;

/// What the bytes of a card are, as sources tell it.
const MIME: &str = "application/vnd.tine.acp-session+json";

/// A session of the agent: its id, and how often that was given out before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Theirs {
    pub id: String,
    pub uses_before: u64,
}

impl Relay {
    /// Writes a card for a session that the agent has just begun.
    pub(super) fn enrol(&self, id: &str, branch: BranchId) -> Result<Theirs, Refusal> {
        let mut uses_before = self.last_of(id)?.map_or(0, |(last, _)| last.uses_before + 1);
        loop {
            let theirs = Theirs { id: id.to_owned(), uses_before };
            if self.claim(&theirs, branch)? {
                return Ok(theirs);
            }
            uses_before += 1;
        }
    }

    /// Writes that very card; `false` if it is there already.
    pub(super) fn claim(&self, theirs: &Theirs, branch: BranchId) -> Result<bool, Refusal> {
        let card = NewSource {
            content: Arc::new(self.card(theirs)),
            mime_type: MIME.to_owned(),
            original_filename: Some(branch.to_string()),
            interpret: Interpret::None,
            interpreter: None,
        };
        let stored = self.recorder.engine.store_source(&self.recorder.call, card)?;
        Ok(stored.outcome == Outcome::Created)
    }

    /// The last session that had this id, and the branch that it was opened for; that may be gone.
    pub(super) fn last_of(&self, id: &str) -> Result<Option<(Theirs, BranchId)>, Refusal> {
        let at = |uses_before: u64| {
            let theirs = Theirs { id: id.to_owned(), uses_before };
            Ok::<_, Refusal>(self.branch_on(&theirs)?.map(|branch| (theirs, branch)))
        };
        let Some(mut last) = at(0)? else { return Ok(None) };
        // In growing steps up to a number that was not used, and then closer and closer to it.
        let mut unused = None;
        loop {
            let known = last.0.uses_before;
            let next = match unused {
                None => known * 2 + 1,
                Some(unused) if known + 1 < unused => known.midpoint(unused),
                Some(_) => return Ok(Some(last)),
            };
            match at(next)? {
                Some(card) => last = card,
                None => unused = Some(next),
            }
        }
    }

    /// The branch of a session, by the client's id of it: the branch's own, or the agent's.
    pub(super) fn branch_of(&self, id: &str) -> Result<BranchView, Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        branches::named(engine, call, id).or_else(|unknown| match self.last_of(id)? {
            Some((_, branch)) => {
                branches::named(engine, call, &branch.to_string()).or(Err(unknown))
            }
            None => Err(unknown),
        })
    }

    fn branch_on(&self, theirs: &Theirs) -> Result<Option<BranchId>, Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        match engine.source(call, engine.source_id_of(call, &self.card(theirs))) {
            Ok(SourceView { original_filename, .. }) => {
                Ok(original_filename.and_then(|branch| branch.parse().ok()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn card(&self, theirs: &Theirs) -> Vec<u8> {
        let Theirs { id, uses_before } = theirs;
        json!({ "agent": self.agent(), "session": id, "uses_before": uses_before })
            .to_string()
            .into_bytes()
    }
}
