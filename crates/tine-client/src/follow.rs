//! Follows the change feed of a server.
//!
//! A [`Follower`] keeps the position of the last entry that it returned. When the connection fails
//! or times out, it reconnects after that position: every operation is returned exactly once, in
//! order, however often the connection fails.

use std::io::{self, Read};
use std::thread::sleep;
use std::time::Duration;

use tine_api::{FeedEntry, FeedFilter, Result};
use tine_core::{ErrorKind, FeedPosition};
use tine_net::retry::{Policy, Retries};
use tine_net::sse::Events;

use crate::operations::unreadable;
use crate::url_path::UrlPath;
use crate::{Client, refusal};

/// Idle timeout. The server sends a comment every fifteen seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(40);

/// The policy of reconnecting.
const RECONNECT: Policy = Policy::unlimited(Duration::from_millis(50), Duration::from_secs(5));

/// The maximum size of an event.
const EVENT_BYTES: usize = 256 << 20;

/// A subscription to the change feed.
pub struct Follower<'c> {
    client: &'c Client,
    filter: FeedFilter,
    at: Option<FeedPosition>,
    stream: Option<Events<Box<dyn Read>>>,
    retries: Retries,
}

impl Client {
    /// Follows the change feed after a position, by default after its current end. Connects before it
    /// returns, so that no later change is missed.
    pub fn follow(&self, filter: FeedFilter, after: Option<FeedPosition>) -> Result<Follower<'_>> {
        let retries = RECONNECT.start();
        let mut follower = Follower { client: self, filter, at: after, stream: None, retries };
        follower.connect()?;
        while follower.at.is_none() {
            // The server first sends the end of the feed.
            if let Some(entry) = follower.step()? {
                follower.at = Some(FeedPosition(entry.position.0.saturating_sub(1)));
                follower.stream = None;
            } else if follower.stream.is_none() {
                return Err(refusal(
                    ErrorKind::Busy,
                    "the server closed the connection before it sent anything",
                ));
            }
        }
        Ok(follower)
    }
}

impl Follower<'_> {
    /// Waits for the next operation and returns it. Errors are final, unless the server cannot be
    /// reached.
    pub fn wait(&mut self) -> Result<FeedEntry> {
        loop {
            if self.stream.is_none() {
                match self.connect() {
                    Ok(()) => self.retries.reset(),
                    Err(error) => {
                        let again = error.kind() == ErrorKind::Busy;
                        match self.retries.next_pause(None).filter(|_| again) {
                            Some(pause) => sleep(pause),
                            None => return Err(error),
                        }
                        continue;
                    }
                }
            }
            if let Some(entry) = self.step()? {
                // Entries that were returned before are skipped.
                if self.at.is_none_or(|at| entry.position > at) {
                    self.at = Some(entry.position);
                    return Ok(entry);
                }
            }
        }
    }

    fn connect(&mut self) -> Result<()> {
        let address = UrlPath::of(&["events"])
            .with_option("project_id", self.filter.project.as_ref())
            .with_option("conversation_id", self.filter.conversation.as_ref());
        let mut headers = vec![("accept", "text/event-stream".to_owned())];
        if let Some(FeedPosition(at)) = self.at {
            headers.push(("last-event-id", at.to_string()));
        }
        let stream = self.client.exchange.stream(&address, None, &headers, IDLE_TIMEOUT)?;
        self.stream = Some(Events::new(Box::new(stream), EVENT_BYTES));
        Ok(())
    }

    /// Reads one event, which may only have a position. Removes the stream if it has ended.
    fn step(&mut self) -> Result<Option<FeedEntry>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let event = match stream.next_event() {
            Ok(Some(event)) => event,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(refusal(
                    ErrorKind::Internal,
                    format!("the change feed is broken: {error}"),
                ));
            }
            // The stream was cut off: an incomplete event is sent again.
            Ok(None) | Err(_) => {
                self.stream = None;
                return Ok(None);
            }
        };
        if event.data.is_empty() {
            let id = event.id.and_then(|id| String::from_utf8(id).ok()?.parse().ok());
            self.at = self.at.max(id.map(FeedPosition));
            return Ok(None);
        }
        let data = String::from_utf8(event.data).map_err(|_| {
            refusal(ErrorKind::Internal, "the change feed is broken: it is not UTF-8")
        })?;
        let entry = FeedEntry::from_json(&data).map_err(|error| unreadable(&error.to_string()))?;
        Ok(Some(entry))
    }
}
