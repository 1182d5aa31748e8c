//! A server as a sync peer.

use std::io::{BufReader, Read};

use tine_client::Client;
use tine_core::{ConversationId, ErrorKind, OperationHash};
use tine_engine::{
    Call, Delta, DeltaScope, Error, Listing, LogEnd, LogMark, LogMerges, Page, Peer, Pulled, Result,
};
use tine_formats::bundle::{BundleError, read_delta, write_delta};

/// Implements [`Peer`] over a client.
pub(crate) struct ServerPeer(pub(crate) Client);

impl Peer for ServerPeer {
    fn log_ends(&self, call: &Call, page: Page) -> Result<Listing<LogEnd>> {
        Ok(self.0.log_ends(call, page)?)
    }

    fn log_end(&self, call: &Call, id: &ConversationId) -> Result<Option<LogMark>> {
        Ok(self.0.log_end(call, id)?)
    }

    fn log_hashes(
        &self,
        call: &Call,
        id: &ConversationId,
        entries: &[u64],
    ) -> Result<Vec<Option<OperationHash>>> {
        Ok(self.0.log_hashes(call, id, entries)?)
    }

    fn log_merges(&self, call: &Call, id: &ConversationId, after: u64) -> Result<LogMerges> {
        Ok(self.0.log_merges(call, id, after)?)
    }

    fn delta(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: DeltaScope,
    ) -> Result<Delta> {
        let scope = match scope {
            DeltaScope::Log => "log",
            DeltaScope::Turns => "turns",
        };
        let limits = self.0.limits();
        let read = |input: &mut dyn Read| {
            read_delta(&mut BufReader::new(input), limits).map_err(|error| unreadable(error).into())
        };
        Ok(self.0.read_delta(call, id, since, scope, read)?)
    }

    fn receive(&self, call: &Call, delta: Delta) -> Result<Pulled> {
        let limits = self.0.limits();
        let mut lines = Vec::new();
        write_delta(&delta, limits, &mut lines).map_err(unreadable)?;
        if lines.len() > limits.delta_bytes {
            return Err(Error::LongDelta { limit: limits.delta_bytes });
        }
        Ok(self.0.send_delta(call, &lines)?)
    }
}

fn unreadable(error: BundleError) -> Error {
    match error {
        BundleError::Engine(error) => error,
        BundleError::Read { source, .. } => {
            let why = format!("the connection to the server broke ({source}); sync again");
            tine_api::Error::new(ErrorKind::Busy, why).into()
        }
        error => tine_api::Error::from(error).into(),
    }
}
