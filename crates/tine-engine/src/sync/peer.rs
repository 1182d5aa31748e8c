//! Syncing two peers that hold the same conversations.
//!
//! Invariants:
//!
//! - Only what the receiving side has not is handed over. What both share is found by comparing
//!   hashes of log entries; each stands for everything before it.
//! - A sync that was interrupted at any point can be continued: a side changes only by receiving
//!   a whole delta.

use std::collections::BTreeSet;

use tine_core::{ConversationId, ErrorKind, OperationHash, TurnId};

use super::delta::{Delta, DeltaScope};
use crate::Pulled;
use crate::log::mutation::PROJECT_LOG;
use crate::{Call, Engine, Error, Listing, Page, Result};
use crate::{LogEnd, LogMark, LogMerges};

/// Entries whose hashes are compared at once.
const COMPARED: u64 = 32;

/// How often a sync is retried because a side has changed meanwhile.
const TRIES: u32 = 16;

/// Declares [`Peer`] and implements it by the engine's own methods of the same names.
macro_rules! peer {
    ($(
        $(#[$doc:meta])*
        fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;
    )*) => {
        /// One side: an engine in this process, or one behind a server.
        pub trait Peer {
            $($(#[$doc])* fn $name(&self $(, $argument: $type)*) -> $answer;)*
        }

        impl Peer for Engine {
            $(fn $name(&self $(, $argument: $type)*) -> $answer {
                Engine::$name(self $(, $argument)*)
            })*
        }
    };
}

peer! {
    /// Returns how far the logs of a project have come.
    fn log_ends(&self, call: &Call, page: Page) -> Result<Listing<LogEnd>>;
    /// Returns how far the log of a conversation has come, if the conversation is there in any
    /// form.
    fn log_end(&self, call: &Call, id: &ConversationId) -> Result<Option<LogMark>>;
    /// Returns the hashes of these entries of a log; `None` for those that it has not.
    fn log_hashes(
        &self,
        call: &Call,
        id: &ConversationId,
        entries: &[u64]
    ) -> Result<Vec<Option<OperationHash>>>;
    /// Returns what a log records about other logs after an entry.
    fn log_merges(&self, call: &Call, id: &ConversationId, after: u64) -> Result<LogMerges>;
    /// Returns what changed after an entry of a log.
    fn delta(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: DeltaScope
    ) -> Result<Delta>;
    /// Applies what changed after an entry of the other peer's log.
    fn receive(&self, call: &Call, delta: Delta) -> Result<Pulled>;
}

/// Hands over what one side has of a conversation and the other has not.
///
/// `ends` is how far the logs of the two are thought to have come; where that is no longer so, it
/// is looked up again.
///
/// ```
/// use tine_core::Message;
/// use tine_engine::{Append, Call, Engine, NewConversation, carry};
/// use tine_store::MemoryStore;
///
/// let (here, there) = (Engine::new(MemoryStore::new()), Engine::new(MemoryStore::new()));
/// let call = Call::by("alice");
/// let trip = here.create_conversation(&call, NewConversation::named("trip")?)?.id;
/// let ends = (here.log_end(&call, &trip)?, None);
/// assert_eq!(carry(&here, &there, &call, &trip, ends)?.operations, 1);
/// assert_eq!(here.log_end(&call, &trip)?, there.log_end(&call, &trip)?);
/// # Ok::<(), tine_engine::Error>(())
/// ```
pub fn carry(
    from: &dyn Peer,
    to: &dyn Peer,
    call: &Call,
    id: &ConversationId,
    ends: (Option<LogMark>, Option<LogMark>),
) -> Result<Pulled> {
    Transfer { from, to, receiver: None, call, id }.carry(ends)
}

/// Like [`carry`], to a local engine, with the choice whether to erase what the other side has
/// erased.
///
/// Without `erases`, a log that continues with an erasure of something that is still here is
/// refused ([`Error::WouldErase`]); for a diverged log, such turns are counted
/// ([`Pulled::unerased`]).
pub fn pull(
    from: &dyn Peer,
    into: &Engine,
    call: &Call,
    id: &ConversationId,
    ends: (Option<LogMark>, Option<LogMark>),
    erases: bool,
) -> Result<Pulled> {
    let receiver = Some(LocalReceiver { engine: into, erases });
    Transfer { from, to: into, receiver, call, id }.carry(ends)
}

/// The transfer of one conversation.
struct Transfer<'w> {
    from: &'w dyn Peer,
    to: &'w dyn Peer,
    /// The receiving engine and its choice about erasures, if there is one.
    receiver: Option<LocalReceiver<'w>>,
    call: &'w Call,
    id: &'w ConversationId,
}

struct LocalReceiver<'w> {
    engine: &'w Engine,
    erases: bool,
}

impl Transfer<'_> {
    fn carry(&self, ends: (Option<LogMark>, Option<LogMark>)) -> Result<Pulled> {
        let mut ends = ends;
        let mut tries = 0;
        loop {
            match self.transfer_once(ends) {
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => {
                    let end = |side: &dyn Peer| side.log_end(self.call, self.id);
                    let now = (end(self.from)?, end(self.to)?);
                    if now == ends {
                        return Err(error);
                    }
                    (ends, tries) = (now, tries + 1);
                }
                done => return done,
            }
        }
    }

    fn receive(&self, delta: Delta) -> Result<Pulled> {
        match &self.receiver {
            Some(LocalReceiver { engine, erases: false }) => {
                engine.receive_keeping(self.call, delta)
            }
            _ => self.to.receive(self.call, delta),
        }
    }

    /// Applies or counts erasures after the last common entry; returns how many turns are still not
    /// erased.
    fn erase(&self, turns: &[TurnId]) -> Result<u64> {
        match &self.receiver {
            Some(receiver) if !turns.is_empty() => match receiver.erases {
                true => receiver.engine.erase_turns(self.call, self.id, turns).map(|()| 0),
                false => receiver.engine.count_unerased(self.call, self.id, turns),
            },
            // Such an erasure stays on its side.
            _ => Ok(0),
        }
    }

    fn transfer_once(&self, (theirs, ours): (Option<LogMark>, Option<LogMark>)) -> Result<Pulled> {
        let nothing = Ok(Pulled::default());
        let Some(theirs) = theirs.filter(|theirs| Some(*theirs) != ours) else { return nothing };
        let common = self.common(theirs, ours)?;
        if common == Some(theirs) {
            return nothing;
        }
        let diverged = common != ours;
        if diverged && self.id.as_str() == PROJECT_LOG {
            let why = "what was done outside of conversations went different ways on both sides; \
                       export one of them into a project of its own";
            return Err(Error::Unsupported(why.to_owned()));
        }
        if !diverged {
            return self.hand_over(common, theirs, DeltaScope::Log);
        }
        let after = common.map_or(0, |mark| mark.seq);
        let there = self.from.log_merges(self.call, self.id, after)?;
        let unerased = self.erase(&there.erased)?;
        let since = self.taken(common, &there)?;
        Ok(Pulled { unerased, ..self.hand_over(since, theirs, DeltaScope::Turns)? })
    }

    fn hand_over(
        &self,
        since: Option<LogMark>,
        theirs: LogMark,
        scope: DeltaScope,
    ) -> Result<Pulled> {
        let nothing = Ok(Pulled::default());
        if since == Some(theirs) {
            return nothing;
        }
        let delta = match self.from.delta(self.call, self.id, since, scope) {
            // Its making was undone: there is nothing to hand over.
            Err(error) if error.kind() == ErrorKind::NotFound => return nothing,
            delta => delta?,
        };
        // Also one without a turn: the other side keeps in mind up to where it has seen the log. One
        // that may not be written to has to look through it again.
        let empty = scope == DeltaScope::Turns && delta.turns() == 0;
        match self.receive(delta) {
            Err(error) if empty && error.kind() == ErrorKind::Forbidden => nothing,
            done => done,
        }
    }

    /// Returns the last entry that both logs share.
    fn common(&self, theirs: LogMark, ours: Option<LogMark>) -> Result<Option<LogMark>> {
        let Some(ours) = ours else { return Ok(None) };
        let (mut low, mut high) = (None, theirs.seq.min(ours.seq));
        // Mostly one log is a beginning of the other.
        let mut entries = vec![high];
        loop {
            let hashes = self.from.log_hashes(self.call, self.id, &entries)?;
            let here = self.to.log_hashes(self.call, self.id, &entries)?;
            for ((seq, hash), here) in entries.iter().zip(hashes).zip(here) {
                match hash.filter(|_| hash == here) {
                    Some(hash) => low = Some(LogMark { seq: *seq, hash }),
                    None => {
                        high = seq.saturating_sub(1);
                        break;
                    }
                }
            }
            let base = low.map_or(0, |mark| mark.seq);
            if base >= high {
                return Ok(low);
            }
            let stride = (high - base).div_ceil(COMPARED);
            entries = (1..=COMPARED).map(|nth| (base + nth * stride).min(high)).collect();
            entries.dedup();
        }
    }

    /// Returns the entry of a diverged log up to which its turns have arrived.
    fn taken(&self, common: Option<LogMark>, there: &LogMerges) -> Result<Option<LogMark>> {
        let after = common.map_or(0, |mark| mark.seq);
        let here = self.to.log_merges(self.call, self.id, after)?;
        // Turns undone or redone since may have been left out then.
        let marks = here.merges.iter().chain(&here.compared);
        let marks = marks.filter(|merge| merge.seq >= here.turned);
        let marks: Vec<LogMark> =
            marks.map(|merge| merge.of).filter(|mark| mark.seq >= there.turned).collect();
        let taken = shared(self.from, self.call, self.id, &marks)?.last().copied().or(common);
        // What the other side has from this one need not come back.
        let start = taken.map_or(0, |mark| mark.seq);
        let later: Vec<_> = there.merges.iter().filter(|merge| merge.seq > start).collect();
        let marks: Vec<LogMark> = later.iter().map(|merge| merge.of).collect();
        let shared: Vec<LogMark> = shared(self.to, self.call, self.id, &marks)?;
        let own: BTreeSet<u64> =
            later.iter().filter(|it| shared.contains(&it.of)).map(|it| it.seq).collect();
        let last = (start + 1..).take_while(|seq| own.contains(seq)).last();
        let Some(last) = last else { return Ok(taken) };
        let hash = self.from.log_hashes(self.call, self.id, &[last])?;
        Ok(hash.first().copied().flatten().map(|hash| LogMark { seq: last, hash }).or(taken))
    }
}

/// Those of the marks that a side's log has, in order.
fn shared(
    side: &dyn Peer,
    call: &Call,
    id: &ConversationId,
    marks: &[LogMark],
) -> Result<Vec<LogMark>> {
    let mut marks = marks.to_vec();
    marks.sort_by_key(|mark| mark.seq);
    marks.dedup();
    let mut found = Vec::new();
    for some in marks.chunks(COMPARED as usize) {
        let entries: Vec<u64> = some.iter().map(|mark| mark.seq).collect();
        let hashes = side.log_hashes(call, id, &entries)?;
        let same = some.iter().zip(hashes).filter(|(mark, hash)| *hash == Some(mark.hash));
        found.extend(same.map(|(mark, _)| *mark));
    }
    Ok(found)
}
