//! The stdio transport. Nothing but the protocol is written to standard output.
//!
//! Lines are read and written here rather than by the SDK, so that messages are parsed strictly,
//! numbers keep every digit, and every request gets a response, even one that cannot be parsed.

use std::io;

use rmcp::ServiceExt;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::{Transport, stdio_pipes};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::exact_integers;
use crate::incoming_message::{EnvelopeScan, IncomingMessage, UnreadableMessage, message_depth};
use crate::server::McpServer;

/// The longest line. Larger than anything that can be stored, so that an oversized call is refused
/// by the limit that it exceeds.
const LINE_BYTES: usize = 160 << 20;

/// The size of the read buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// The capacity of the queues between the streams and the SDK.
const QUEUED_MESSAGES: usize = 1;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first message did not start a connection.
    #[error("the connection did not begin with a handshake: {0}")]
    Handshake(String),
    /// A task failed.
    #[error("a task of the server failed: {0}")]
    TaskFailed(String),
}

/// Serves one host over standard input and output, until it closes the input.
pub async fn serve_stdio(tine: McpServer) -> Result<(), StdioError> {
    let (read, write) = stdio_pipes();
    serve_lines(tine, read, write).await
}

/// Serves one host over any pair of streams that carry lines, until the input ends.
pub async fn serve_lines(
    tine: McpServer,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    // Interpretations that an earlier process queued and did not finish run now.
    tine.interpret_in_background();
    let (messages, incoming) = mpsc::channel(QUEUED_MESSAGES);
    let (outgoing, lines) = mpsc::channel(QUEUED_MESSAGES);
    let subscriptions = tine.subscriptions.clone();
    let max_depth = message_depth(tine.engine.limits());
    let reader = LineReader { messages, answers: outgoing.clone(), max_depth };
    let reading = tokio::spawn(async move {
        reader.read_lines(read).await;
        subscriptions.end();
    });
    let writing = tokio::spawn(write_lines(lines, write));
    let served = match tine.serve(LineTransport { incoming, outgoing: Some(outgoing) }).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(StdioError::TaskFailed(error.to_string())),
        },
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(StdioError::Handshake(error.to_string())),
    };
    reading.abort();
    // All responses are written before this returns.
    writing.await.map_err(|error| StdioError::TaskFailed(error.to_string()))?;
    served
}

/// The SDK's transport: receives messages, sends lines.
struct LineTransport {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
}

impl Transport<RoleServer> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let line = exact_integers::write_numbers(serde_json::to_string(&message)?).into_bytes();
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

/// Reads lines and passes them to the SDK. Responds itself to those that it cannot parse.
struct LineReader {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    answers: mpsc::Sender<Vec<u8>>,
    max_depth: usize,
}

/// The receiving side of a queue was dropped.
struct Closed;

impl LineReader {
    async fn read_lines(&self, read: impl AsyncRead + Unpin) {
        let mut read = BufReader::with_capacity(BUFFER_BYTES, read);
        let mut line = InputLine::default();
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

    async fn take(&self, line: InputLine) -> Result<(), Closed> {
        let unreadable = match line {
            InputLine::Whole(bytes) if bytes.trim_ascii().is_empty() => return Ok(()),
            InputLine::Whole(bytes) => match self.parse(&bytes) {
                Ok(message) => return self.messages.send(message).await.map_err(|_| Closed),
                Err(unreadable) => unreadable,
            },
            InputLine::TooLong(envelope) => UnreadableMessage::too_long(envelope, LINE_BYTES),
        };
        if !unreadable.is_awaited() {
            tracing::warn!(why = unreadable.why, "ignored an unreadable line");
            return Ok(());
        }
        let answer = unreadable.answer().into_bytes();
        self.answers.send(answer).await.map_err(|_| Closed)
    }

    fn parse(&self, bytes: &[u8]) -> Result<ClientJsonRpcMessage, UnreadableMessage> {
        IncomingMessage::parse(bytes, self.max_depth)?.into_sdk(bytes)
    }
}

/// A line while it is read.
enum InputLine {
    Whole(Vec<u8>),
    /// Longer than the limit: only what is needed to respond is kept.
    TooLong(EnvelopeScan),
}

impl Default for InputLine {
    fn default() -> Self {
        InputLine::Whole(Vec::new())
    }
}

impl InputLine {
    fn add(&mut self, part: &[u8]) {
        match self {
            InputLine::Whole(bytes) if bytes.len() + part.len() <= LINE_BYTES => {
                bytes.extend_from_slice(part);
            }
            InputLine::Whole(bytes) => {
                let mut envelope = EnvelopeScan::default();
                envelope.read(bytes);
                envelope.read(part);
                *self = InputLine::TooLong(envelope);
            }
            InputLine::TooLong(envelope) => envelope.read(part),
        }
    }
}

/// Writes the lines of the SDK and of the reader, one at a time.
async fn write_lines(mut lines: mpsc::Receiver<Vec<u8>>, mut write: impl AsyncWrite + Unpin) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if write.write_all(&line).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}
