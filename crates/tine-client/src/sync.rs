//! Requests of a sync: the ends of logs, and deltas as bytes.
//!
//! Deltas are parsed and written by `tine-formats`, on which this crate does not depend.

use std::io::Read;

use tine_api::{Call, Listing, LogEnd, LogHashes, LogMark, LogMerges, Page, Pulled, Result};
use tine_core::{ConversationId, ErrorKind, OperationHash};

use crate::operations::WITHIN;
use crate::transfer::{MEDIA_TYPE, STREAM_IDLE_TIMEOUT};
use crate::url_path::UrlPath;
use crate::{Client, refusal};

impl Client {
    /// Lists the last entry of each log of a project.
    pub fn log_ends(&self, call: &Call, page: Page) -> Result<Listing<LogEnd>> {
        self.listing(call, &UrlPath::of(&["sync", "logs"]), page)
    }

    /// Returns the last entry of the log of a conversation, if there is a log.
    pub fn log_end(&self, call: &Call, id: &ConversationId) -> Result<Option<LogMark>> {
        let address = UrlPath::of(&["sync", "logs"]).with(WITHIN, id);
        let found: Listing<LogEnd> = self.get(call, address)?;
        Ok(found.items.into_iter().next().map(|found| found.end))
    }

    /// Returns the hashes of entries of a log; `None` for those that it does not have.
    pub fn log_hashes(
        &self,
        call: &Call,
        id: &ConversationId,
        entries: &[u64],
    ) -> Result<Vec<Option<OperationHash>>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<String> = entries.iter().map(u64::to_string).collect();
        let address = UrlPath::of(&["sync", "hashes"]).with(WITHIN, id);
        let found: LogHashes = self.get(call, address.with("seq", entries.join(",")))?;
        if found.hashes.len() != entries.len() {
            let why = "the server returned another number of hashes than requested";
            return Err(refusal(ErrorKind::Internal, why));
        }
        Ok(found.hashes)
    }

    /// Returns what a log records about other logs after an entry.
    pub fn log_merges(&self, call: &Call, id: &ConversationId, after: u64) -> Result<LogMerges> {
        let address = UrlPath::of(&["sync", "merges"]).with(WITHIN, id).with("behind", after);
        self.get(call, address)
    }

    /// Reads the delta of a conversation after an entry of its log. Starts again if the server is busy
    /// or the stream ends early. `scope` is `log` or `turns`.
    pub fn read_delta<T>(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: &str,
        read: impl Fn(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let address = UrlPath::of(&["sync", "delta"])
            .with("project_id", &call.project)
            .with(WITHIN, id)
            .with("scope", scope)
            .with_option("seq", since.map(|mark| mark.seq))
            .with_option("hash", since.map(|mark| mark.hash));
        self.exchange.stream_whole(&address, call, STREAM_IDLE_TIMEOUT, read)
    }

    /// Sends a delta; received twice, it adds nothing.
    pub fn send_delta(&self, call: &Call, lines: &[u8]) -> Result<Pulled> {
        let address = UrlPath::of(&["sync", "delta"]).with("project_id", &call.project);
        let done: Pulled = self.exchange.send_again(&address, call, MEDIA_TYPE, lines)?;
        Ok(Pulled { bytes: lines.len() as u64, ..done })
    }

    /// Returns the limits of the client.
    pub fn limits(&self) -> &tine_core::Limits {
        &self.limits
    }
}
