//! Standard input and output. Nothing but the protocol is ever written there.
//!
//! Lines are read and written here rather than by the SDK, so that every request is answered,
//! also one that cannot be read.

use std::io;

use rmcp::ServiceExt;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::{Transport, stdio_pipes};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::server::Tine;
use crate::unreadable::{self, Sender, Unreadable};

/// The longest line. Larger than anything that is stored, so that whoever sends too much is told
/// by the limit that it is over.
const LINE_BYTES: usize = 160 << 20;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// Messages that wait between a stream and the SDK.
const WAITING: usize = 1;

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

/// Serves one host over standard input and output, until it closes the input.
pub async fn serve_stdio(tine: Tine) -> Result<(), StdioError> {
    let (read, write) = stdio_pipes();
    serve_lines(tine, read, write).await
}

/// The same over anything that carries lines.
pub async fn serve_lines(
    tine: Tine,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    // What was queued and never done, by whoever it was, is done now.
    tine.interpret_in_background();
    let (hand_on, incoming) = mpsc::channel(WAITING);
    let (outgoing, lines) = mpsc::channel(WAITING);
    let followers = tine.followers.clone();
    let inlet = Inlet { hand_on, complain: outgoing.clone() };
    let reading = tokio::spawn(async move {
        inlet.read_lines(read).await;
        followers.end();
    });
    let writing = tokio::spawn(write_lines(lines, write));
    let served = match tine.serve(Lines { incoming, outgoing: Some(outgoing) }).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(StdioError::Broken(error.to_string())),
        },
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(StdioError::Beginning(error.to_string())),
    };
    reading.abort();
    // Whatever was answered is written before the end.
    writing.await.map_err(|error| StdioError::Broken(error.to_string()))?;
    served
}

/// What the SDK reads from and writes to: messages on one side, lines on the other.
struct Lines {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let line = serde_json::to_vec(&message)?;
            let closed = || io::Error::from(io::ErrorKind::NotConnected);
            outgoing.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        Ok(())
    }
}

/// Where lines that came go: to the SDK, or back with what is wrong with them.
struct Inlet {
    hand_on: mpsc::Sender<ClientJsonRpcMessage>,
    complain: mpsc::Sender<Vec<u8>>,
}

/// Nobody listens any more.
struct Gone;

impl Inlet {
    async fn read_lines(&self, read: impl AsyncRead + Unpin) {
        let mut read = BufReader::with_capacity(PIECE_BYTES, read);
        let mut line = Line::default();
        while let Ok(piece) = read.fill_buf().await {
            let end = piece.iter().position(|byte| *byte == b'\n');
            let at_end = piece.is_empty();
            let part = &piece[..end.map_or(piece.len(), |end| end + 1)];
            line.add(part);
            let used = part.len();
            read.consume(used);
            if (end.is_some() || at_end) && self.take(std::mem::take(&mut line)).await.is_err() {
                return;
            }
            if at_end {
                return;
            }
        }
    }

    async fn take(&self, line: Line) -> Result<(), Gone> {
        let unreadable = match line {
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => return Ok(()),
            Line::Whole(bytes) => match unreadable::read(&bytes) {
                Ok(message) => return self.hand_on.send(message).await.map_err(|_| Gone),
                Err(unreadable) => unreadable,
            },
            Line::TooLong(sender) => Unreadable::too_long(sender, LINE_BYTES),
        };
        if !unreadable.is_awaited() {
            tracing::warn!(why = unreadable.why, "a line was passed over");
            return Ok(());
        }
        let answer = unreadable.answer().to_string().into_bytes();
        self.complain.send(answer).await.map_err(|_| Gone)
    }
}

/// A line while it is read.
enum Line {
    Whole(Vec<u8>),
    /// Longer than it may be: who sent it is all that is kept.
    TooLong(Sender),
}

impl Default for Line {
    fn default() -> Self {
        Line::Whole(Vec::new())
    }
}

impl Line {
    fn add(&mut self, part: &[u8]) {
        match self {
            Line::Whole(bytes) if bytes.len() + part.len() <= LINE_BYTES => {
                bytes.extend_from_slice(part);
            }
            Line::Whole(bytes) => {
                let mut sender = Sender::default();
                sender.read(bytes);
                sender.read(part);
                *self = Line::TooLong(sender);
            }
            Line::TooLong(sender) => sender.read(part),
        }
    }
}

/// Writes whole lines, whoever they come from.
async fn write_lines(mut lines: mpsc::Receiver<Vec<u8>>, mut write: impl AsyncWrite + Unpin) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if write.write_all(&line).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}
