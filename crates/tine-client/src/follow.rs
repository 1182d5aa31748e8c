//! Follows the change feed of a server.
//!
//! A [`Follower`] keeps the position of the last entry that it returned. When the connection breaks
//! or is silent for longer than the server ever is, it reconnects after that position: every
//! operation is returned exactly once, in order, however often the connection breaks.

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

/// How long nothing may come. The server shows every fifteen seconds that it is there.
const SILENCE: Duration = Duration::from_secs(40);

/// When to connect again.
const RECONNECT: Policy = Policy::unlimited(Duration::from_millis(50), Duration::from_secs(5));

/// The largest event of the stream.
const EVENT_BYTES: usize = 256 << 20;

/// Somebody who follows the change feed.
pub struct Follower<'c> {
    client: &'c Client,
    filter: FeedFilter,
    at: Option<FeedPosition>,
    stream: Option<Events<Box<dyn Read>>>,
    retries: Retries,
}

impl Client {
    /// Follows the change feed behind a place; behind its present end without one. The server is
    /// reached before this returns, so that nothing that happens afterwards is missed.
    pub fn follow(&self, filter: FeedFilter, after: Option<FeedPosition>) -> Result<Follower<'_>> {
        let retries = RECONNECT.start();
        let mut follower = Follower { client: self, filter, at: after, stream: None, retries };
        follower.connect()?;
        while follower.at.is_none() {
            // The first thing that a server sends is where the feed ends.
            if let Some(entry) = follower.step()? {
                follower.at = Some(FeedPosition(entry.position.0.saturating_sub(1)));
                follower.stream = None;
            } else if follower.stream.is_none() {
                return Err(refusal(
                    ErrorKind::Busy,
                    "the server broke off before it said anything",
                ));
            }
        }
        Ok(follower)
    }
}

impl Follower<'_> {
    /// Returns the next operation, as soon as there is one. Refusals other than that the server
    /// cannot be reached are final.
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
                // What was given before is not given again.
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
        let stream = self.client.exchange.stream(&address, None, &headers, SILENCE)?;
        self.stream = Some(Events::new(Box::new(stream), EVENT_BYTES));
        Ok(())
    }

    /// Reads one event, which may be one that only says where the feed is. Without a stream
    /// afterwards it has broken.
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
            // Cut off, also in the middle of an event: what is not complete comes again.
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
