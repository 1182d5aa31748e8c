//! A server as one of two sides that hold the same conversations.

use std::io::BufReader;

use tine_core::{ConversationId, Kind, OperationHash};
use tine_engine::{
    Call, Delta, Error, Listing, LogEnd, LogMark, LogMerges, Page, Peer, Pulled, Result, Scope,
};
use tine_formats::bundle::{BundleError, read_delta, write_delta};
use tine_formats::view::{self, Items, Unreadable};

use crate::address::Address;
use crate::operations::{WITHIN, read};
use crate::transfer::{MEDIA_TYPE, SILENCE};
use crate::{Client, refusal};

impl Peer for Client {
    fn log_ends(&self, call: &Call, page: Page) -> Result<Listing<LogEnd>> {
        let address = Address::of(&["sync", "logs"]);
        self.listing(call, &address, page, |it: view::LogEnd| it.try_into())
    }

    fn log_end(&self, call: &Call, id: &ConversationId) -> Result<Option<LogMark>> {
        let address = Address::of(&["sync", "logs"]).with(WITHIN, id);
        let found: Items<view::LogEnd> = self.get(call, address)?;
        let end = found.items.into_iter().next().map(|found| found.end.try_into());
        read(end.transpose())
    }

    fn log_hashes(
        &self,
        call: &Call,
        id: &ConversationId,
        entries: &[u64],
    ) -> Result<Vec<Option<OperationHash>>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<String> = entries.iter().map(u64::to_string).collect();
        let address = Address::of(&["sync", "hashes"]).with(WITHIN, id);
        let found: view::LogHashes = self.get(call, address.with("seq", entries.join(",")))?;
        if found.hashes.len() != entries.len() {
            return Err(refusal(Kind::Internal, "the server told other hashes than asked for"));
        }
        let one = |hash: Option<String>| hash.map(|hash| hash.parse()).transpose();
        let hashes = found.hashes.into_iter().map(one).collect::<std::result::Result<_, _>>();
        hashes.map_err(|_| refusal(Kind::Internal, "the server told a hash that is none"))
    }

    fn log_merges(&self, call: &Call, id: &ConversationId, behind: u64) -> Result<LogMerges> {
        let address = Address::of(&["sync", "merges"]).with(WITHIN, id).with("behind", behind);
        let found: view::LogMerges = self.get(call, address)?;
        read(found.try_into() as std::result::Result<_, Unreadable>)
    }

    fn delta(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: Scope,
    ) -> Result<Delta> {
        let scope = match scope {
            Scope::Log => "log",
            Scope::Turns => "turns",
        };
        let address = Address::of(&["sync", "delta"])
            .with("project_id", &call.project)
            .with(WITHIN, id)
            .with("scope", scope)
            .with_option("seq", since.map(|mark| mark.seq))
            .with_option("hash", since.map(|mark| mark.hash));
        self.exchange.stream_whole(&address, call, SILENCE, |input| {
            read_delta(&mut BufReader::new(input), &self.limits).map_err(unsound)
        })
    }

    fn receive(&self, call: &Call, delta: Delta) -> Result<Pulled> {
        let mut lines = Vec::new();
        write_delta(&delta, &self.limits, &mut lines).map_err(unsound)?;
        if lines.len() > self.limits.delta_bytes {
            return Err(Error::LongDelta { limit: self.limits.delta_bytes });
        }
        let address = Address::of(&["sync", "delta"]).with("project_id", &call.project);
        let done: view::Pulled = self.exchange.send_again(&address, call, MEDIA_TYPE, &lines)?;
        Ok(Pulled { bytes: lines.len() as u64, ..done.into() })
    }
}

fn unsound(error: BundleError) -> Error {
    match error {
        BundleError::Engine(error) => error,
        BundleError::Read { source, .. } => {
            let why = format!("what the server sent broke off ({source}); sync again");
            refusal(Kind::Busy, why)
        }
        error => refusal(error.kind(), error.to_string()),
    }
}
