//! Standard input and output. Nothing but the protocol is ever written there.
//!
//! The SDK passes over lines that it cannot read, so that whoever sent one would wait for ever.
//! Lines are therefore looked at here first: one that is too long, nested too deeply or no JSON,
//! and still says which request it is, is answered here. All others are handed on as they are.

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;

use crate::server::Tine;

/// The longest line. Larger than anything that is stored, so that whoever sends too much is told
/// by the limit that it is over.
const LINE_BYTES: usize = 160 << 20;

/// The deepest nesting that the SDK reads.
const DEEPEST: usize = 120;

/// Bytes that wait between here and the SDK.
const PIPE_BYTES: usize = 256 << 10;

/// Bytes of a request's id.
const ID_BYTES: usize = 256;

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
    let (into, sdk_reads) = tokio::io::duplex(PIPE_BYTES);
    let (sdk_writes, out_of) = tokio::io::duplex(PIPE_BYTES);
    let (complain, complaints) = mpsc::channel(16);
    let followers = tine.followers.clone();
    let reading = tokio::spawn(async move {
        hand_on(read, into, complain).await;
        followers.end();
    });
    let writing = tokio::spawn(write_out(out_of, complaints, write));
    let transport =
        AsyncRwTransport::new_server(sdk_reads, sdk_writes).with_max_line_length(LINE_BYTES);
    let served = match tine.serve(transport).await {
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

/// Hands lines on to the SDK, and answers those that it would pass over.
async fn hand_on(
    read: impl AsyncRead + Unpin,
    mut into: DuplexStream,
    complain: mpsc::Sender<Value>,
) {
    let mut read = BufReader::with_capacity(PIPE_BYTES, read);
    let mut line = Vec::new();
    let mut seen = Seen::default();
    let mut bytes = 0_usize;
    loop {
        let Ok(piece) = read.fill_buf().await else { return };
        if piece.is_empty() {
            return;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let part = &piece[..end.map_or(piece.len(), |end| end + 1)];
        bytes += part.len();
        seen.read(part);
        if bytes <= LINE_BYTES {
            line.extend_from_slice(part);
        } else {
            line = Vec::new();
        }
        let used = part.len();
        read.consume(used);
        if end.is_none() {
            continue;
        }
        let refused = if bytes > LINE_BYTES {
            Some((-32600, format!("the message is longer than {LINE_BYTES} bytes")))
        } else if seen.deepest > DEEPEST {
            Some((-32600, format!("the message is nested more than {DEEPEST} deep")))
        } else if serde_json::from_slice::<IgnoredAny>(&line).is_err() {
            Some((-32700, "the message is no JSON".to_owned()))
        } else {
            None
        };
        match (refused, seen.id()) {
            (None, _) => {
                if into.write_all(&line).await.is_err() {
                    return;
                }
            }
            (Some((code, message)), Some(id)) => {
                let error = json!({ "code": code, "message": message });
                let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                if complain.send(answer).await.is_err() {
                    return;
                }
            }
            // Nobody waits for an answer to it.
            (Some((_, message)), None) => tracing::warn!(message, "a line was passed over"),
        }
        line.clear();
        seen = Seen::default();
        bytes = 0;
    }
}

/// Writes whole lines: the SDK's, and the complaints between them.
async fn write_out(
    out_of: DuplexStream,
    mut complaints: mpsc::Receiver<Value>,
    mut write: impl AsyncWrite + Unpin,
) {
    let mut answers = BufReader::with_capacity(PIPE_BYTES, out_of);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            read = answers.read_until(b'\n', &mut line) => {
                if !matches!(read, Ok(count) if count > 0) {
                    return;
                }
                // Cut off when a complaint came first: the rest follows.
                if !line.ends_with(b"\n") {
                    continue;
                }
                if write.write_all(&line).await.is_err() || write.flush().await.is_err() {
                    return;
                }
                line.clear();
            }
            Some(complaint) = complaints.recv() => {
                let text = format!("{complaint}\n");
                let written = write.write_all(text.as_bytes()).await;
                if written.is_err() || write.flush().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// What is known of a line without reading all of it at once: how deep it is, and its `id`.
#[derive(Default)]
struct Seen {
    depth: usize,
    deepest: usize,
    in_text: bool,
    escaped: bool,
    /// The text that is read or was read last, as far as it may be a name.
    text: Vec<u8>,
    /// Whether the last text was the name `id` of a member at the top, and what follows is its
    /// value.
    id_follows: bool,
    id: Vec<u8>,
    id_is_read: bool,
}

impl Seen {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.id_follows && !self.id_is_read {
            let ends = !self.in_text && matches!(byte, b',' | b'}' | b'\n');
            if ends || self.id.len() > ID_BYTES {
                self.id_is_read = true;
            } else {
                self.id.push(byte);
            }
        }
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ if self.depth == 1 && self.text.len() < 8 => self.text.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.text.clear();
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 && self.text == b"id" => self.id_follows = true,
            b',' => self.text.clear(),
            _ => {}
        }
    }

    /// The id, if there is one that a request can have.
    fn id(&self) -> Option<Value> {
        let id: Value = serde_json::from_slice(&self.id).ok()?;
        (id.is_string() || id.is_number()).then_some(id)
    }
}
