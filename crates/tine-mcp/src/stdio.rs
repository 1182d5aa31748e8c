//! Standard input and output. Nothing but the protocol is ever written there.

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;

use crate::server::Tine;

/// The longest line that is read; a longer one is passed over. Larger than anything that is
/// stored, so that whoever sends too much is told so.
const LINE_BYTES: usize = 160 << 20;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The host said something else than a beginning.
    #[error("the host did not begin as the protocol says: {0}")]
    Beginning(String),
    /// A task was lost.
    #[error("serving broke off: {0}")]
    Broken(String),
}

/// Serves one host until it closes the input.
pub async fn serve_stdio(tine: Tine) -> Result<(), StdioError> {
    // What was queued and never done, by whoever it was, is done now.
    tine.interpret_in_background();
    let (read, write) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(LINE_BYTES);
    let running = match tine.serve(transport).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Beginning(error.to_string())),
    };
    running.waiting().await.map_err(|error| StdioError::Broken(error.to_string()))?;
    Ok(())
}
