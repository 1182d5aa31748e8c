//! Bundles out of a server and into it, as streams.

use std::io::{self, Read, Write};
use std::time::Duration;

use tine_api::{Call, Imported, Result};
use tine_core::{ConversationId, Kind, ProjectId};

use crate::address::Address;
use crate::{Client, refusal};

/// How long a stream may stand still: the other end may look through a large conversation.
pub(crate) const SILENCE: Duration = Duration::from_secs(600);

/// Bytes that are passed on at once.
const PIECE: usize = 64 * 1024;

/// The media type of a bundle.
pub(crate) const MEDIA_TYPE: &str = "application/x-ndjson";

/// A bundle as it comes from a server.
pub struct Bundle {
    input: Box<dyn Read>,
}

impl Bundle {
    /// Writes all of it. A stream that broke off is an error: its last line is missing.
    pub fn write(mut self, out: &mut dyn Write) -> Result<io::Result<()>> {
        let mut piece = vec![0; PIECE];
        loop {
            let size = match self.input.read(&mut piece) {
                Ok(0) => return Ok(Ok(())),
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let why = format!("the bundle broke off ({error}); export it again");
                    return Err(refusal(Kind::Busy, why));
                }
            };
            if let Err(error) = out.write_all(&piece[..size]) {
                return Ok(Err(error));
            }
        }
    }
}

impl Client {
    /// Whole conversations as a bundle.
    pub fn export(&self, call: &Call, conversations: &[ConversationId]) -> Result<Bundle> {
        let mut address = Address::of(&["export"]).with("project_id", &call.project);
        for id in conversations {
            address = address.with("conversation_id", id);
        }
        let input = self.exchange.stream(&address, Some(call), &[], SILENCE)?;
        Ok(Bundle { input: Box::new(input) })
    }

    /// Reads a bundle into the server's store; it checks every hash before it keeps anything.
    /// `project` is where the conversations go instead of the projects that the bundle names.
    pub fn import(&self, project: Option<&ProjectId>, input: &mut dyn Read) -> Result<Imported> {
        let address = Address::of(&["import"]).with_option("project_id", project);
        self.exchange.send(&address, MEDIA_TYPE, input)
    }
}
