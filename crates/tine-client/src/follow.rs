//! The change feed of a server, followed.
//!
//! A [`Follower`] keeps the place of the last entry that it gave. When the connection breaks, or
//! stays silent for longer than the server ever does, it connects again behind that place: every
//! operation comes exactly once, in order, however often the server goes and comes back.

use std::io::{BufRead, BufReader, Read};
use std::thread::sleep;
use std::time::Duration;

use tine_core::Kind;
use tine_engine::{FeedEntry, FeedFilter, Result};
use tine_formats::view::Event;
use tine_store::FeedPosition;

use crate::address::Address;
use crate::operations::read;
use crate::{Client, refusal};

/// How long nothing may come. The server shows every fifteen seconds that it is there.
const SILENCE: Duration = Duration::from_secs(40);

/// The pause before the first try to connect again; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest line of a stream.
const LINE_BYTES: u64 = 256 << 20;

/// Somebody who follows the change feed.
pub struct Follower<'c> {
    client: &'c Client,
    filter: FeedFilter,
    at: Option<FeedPosition>,
    stream: Option<BufReader<Box<dyn Read>>>,
    pause: Duration,
}

impl Client {
    /// Follows the change feed behind a place; behind its present end without one. The server is
    /// reached before this returns, so that nothing that happens afterwards is missed.
    pub fn follow(&self, filter: FeedFilter, after: Option<FeedPosition>) -> Result<Follower<'_>> {
        let mut follower =
            Follower { client: self, filter, at: after, stream: None, pause: FIRST_PAUSE };
        follower.connect()?;
        while follower.at.is_none() {
            // The first thing that a server sends is where the feed ends.
            if let Some(entry) = follower.step()? {
                follower.at = Some(FeedPosition(entry.position.0.saturating_sub(1)));
                follower.stream = None;
            } else if follower.stream.is_none() {
                return Err(refusal(Kind::Busy, "the server broke off before it said anything"));
            }
        }
        Ok(follower)
    }
}

impl Follower<'_> {
    /// The next operation, as soon as there is one. Refusals other than that the server cannot be
    /// reached are final.
    pub fn wait(&mut self) -> Result<FeedEntry> {
        loop {
            if self.stream.is_none() {
                match self.connect() {
                    Ok(()) => self.pause = FIRST_PAUSE,
                    Err(error) if error.kind() == Kind::Busy => {
                        sleep(self.pause);
                        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                        continue;
                    }
                    Err(error) => return Err(error),
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
        let address = Address::of(&["events"])
            .with_option("project_id", self.filter.project.as_ref())
            .with_option("conversation_id", self.filter.conversation.as_ref());
        let mut headers = vec![("accept", "text/event-stream".to_owned())];
        if let Some(FeedPosition(at)) = self.at {
            headers.push(("last-event-id", at.to_string()));
        }
        let stream = self.client.exchange.stream(&address, None, &headers, SILENCE)?;
        self.stream = Some(BufReader::new(Box::new(stream)));
        Ok(())
    }

    /// Reads one event, which may be one that only says where the feed is. Without a stream
    /// afterwards it has broken.
    fn step(&mut self) -> Result<Option<FeedEntry>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let (mut id, mut data) = (None, String::new());
        loop {
            let mut line = String::new();
            match stream.by_ref().take(LINE_BYTES).read_line(&mut line) {
                Ok(_) if line.ends_with('\n') => {}
                // Cut off, also in the middle of a line: what is not whole comes again.
                _ => {
                    self.stream = None;
                    return Ok(None);
                }
            }
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "id" => id = value.parse().ok(),
                "data" => {
                    if !data.is_empty() {
                        data.push('\n');
                    }
                    data.push_str(value);
                }
                // Comments show that somebody is there; the kind is in the data too.
                _ => {}
            }
        }
        if data.is_empty() {
            if let Some(id) = id {
                self.at = self.at.max(Some(FeedPosition(id)));
            }
            return Ok(None);
        }
        let entry = read(Event::from_text(&data).and_then(FeedEntry::try_from))?;
        Ok(Some(entry))
    }
}
