//! Exports and imports bundles as streams.

use std::io::{self, Read, Write};
use std::time::Duration;

use tine_api::{Call, Imported, Result};
use tine_core::{ConversationId, ErrorKind, ProjectId};

use crate::url_path::UrlPath;
use crate::{Client, refusal};

/// Idle timeout of a stream: the server may be scanning a large conversation.
pub(crate) const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// Copy buffer size, in bytes.
const PIECE: usize = 64 * 1024;

/// The media type of a bundle.
pub(crate) const MEDIA_TYPE: &str = "application/x-ndjson";

/// A bundle streamed from a server.
pub struct BundleStream {
    input: Box<dyn Read>,
}

impl BundleStream {
    /// Writes the bundle. Fails if the stream ends early.
    pub fn write(mut self, out: &mut dyn Write) -> Result<io::Result<()>> {
        let mut piece = vec![0; PIECE];
        loop {
            let size = match self.input.read(&mut piece) {
                Ok(0) => return Ok(Ok(())),
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let why = format!("the bundle was cut off ({error}); export it again");
                    return Err(refusal(ErrorKind::Busy, why));
                }
            };
            if let Err(error) = out.write_all(&piece[..size]) {
                return Ok(Err(error));
            }
        }
    }
}

impl Client {
    /// Exports conversations as a bundle.
    pub fn export(&self, call: &Call, conversations: &[ConversationId]) -> Result<BundleStream> {
        let mut address = UrlPath::of(&["export"]).with("project_id", &call.project);
        for id in conversations {
            address = address.with("conversation_id", id);
        }
        let input = self.exchange.stream(&address, Some(call), &[], STREAM_IDLE_TIMEOUT)?;
        Ok(BundleStream { input: Box::new(input) })
    }

    /// Imports a bundle into the server's store, which verifies every hash before it stores anything.
    /// `project` overrides the projects that the bundle names.
    pub fn import(&self, project: Option<&ProjectId>, input: &mut dyn Read) -> Result<Imported> {
        let address = UrlPath::of(&["import"]).with_option("project_id", project);
        self.exchange.send(&address, MEDIA_TYPE, input)
    }
}
