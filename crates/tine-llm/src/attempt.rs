//! One attempt: a request and its answer or error.
//!
//! The API key is removed from everything that leaves this module: stored bytes, the answer and
//! errors. Only the pieces of a stream are passed on unchanged.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tine_core::Usage;

use crate::chat::{CallTrace, Delta, Finish};
use crate::error::{ModelError, Truncation, excerpt};
use crate::key::Key;
use crate::provider::{Protocol, Provider};
use crate::transport::{PostRequest, ResponseHead, StreamEvent, Transport, TransportError};
use crate::wire::{self, AnswerFault, Frames, Listener, ParsedAnswer, StreamAssembly};

/// How often a listener is called while nothing arrives, so that it can stop.
pub(crate) const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Attempt<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) transport: &'a Transport,
    pub(crate) key: &'a Key,
    /// Whether tools were offered.
    pub(crate) tools: bool,
}

pub(crate) struct FailedAttempt {
    pub(crate) error: ModelError,
    pub(crate) retry_after: Option<Duration>,
    /// The status of a rejected request, which may be retried in another dialect.
    pub(crate) refused: Option<u16>,
    /// The reported usage.
    pub(crate) usage: Option<Box<Usage>>,
    /// Whether the model may have processed the request.
    pub(crate) processed: bool,
    /// Whether part of the answer was passed to the listener.
    pub(crate) emitted: bool,
}

impl FailedAttempt {
    fn new(error: ModelError, processed: bool) -> Self {
        let (retry_after, refused, usage, emitted) = (None, None, None, false);
        FailedAttempt { error, retry_after, refused, usage, processed, emitted }
    }
}

/// How reading a stream ended.
enum StreamEnd {
    Complete,
    /// The listener stopped.
    Cancelled,
    Transport(TransportError),
    Fault(AnswerFault),
}

/// Reads a stream and passes its pieces to a listener.
struct StreamReader<'a, 'b> {
    kind: Protocol,
    frames: Frames,
    assembly: StreamAssembly,
    head: Option<ResponseHead>,
    emitted: bool,
    each: Listener<'a>,
    bytes: &'b mut Vec<u8>,
}

impl Attempt<'_> {
    /// Sends the request once. The response bytes are in the trace whether it succeeds or not.
    pub(crate) fn run(
        &self,
        trace: &mut CallTrace,
        each: Option<Listener<'_>>,
    ) -> Result<ParsedAnswer, FailedAttempt> {
        let kind = self.provider.kind;
        let accept = match (each.is_some(), kind) {
            (false, _) => "application/json",
            (true, Protocol::Ollama) => "application/x-ndjson",
            (true, _) => "text/event-stream",
        };
        let post = PostRequest {
            address: wire::address(self.provider),
            headers: self.key.headers(kind),
            body: trace.request.clone(),
            accept,
        };
        let bytes = &mut trace.response;
        let answer = match each {
            None => self.whole(&post, bytes),
            Some(each) => self.streamed(post, bytes, each),
        };
        self.key.scrub(bytes);
        answer.map(|mut answer| {
            let refusal = answer.refusal.iter_mut();
            for text in refusal.chain([&mut answer.text]).chain(answer.model.iter_mut()) {
                self.key.scrub_text(text);
            }
            answer
        })
    }

    fn whole(
        &self,
        post: &PostRequest,
        bytes: &mut Vec<u8>,
    ) -> Result<ParsedAnswer, FailedAttempt> {
        let sent = self.transport.whole(post, bytes);
        let (head, read) = sent.map_err(|broken| self.broken(&broken))?;
        if !head.is_success() {
            return Err(self.refused(&head, bytes));
        }
        read.map_err(|broken| self.broken(&broken))?;
        self.read(&head, bytes)
    }

    /// Parses an answer from the scrubbed bytes that are stored, so that parsing them again gives
    /// the same answer.
    fn read(
        &self,
        head: &ResponseHead,
        bytes: &mut Vec<u8>,
    ) -> Result<ParsedAnswer, FailedAttempt> {
        self.key.scrub(bytes);
        let answer = wire::answer(self.provider.kind, bytes, self.tools);
        answer.map_err(|fault| self.fault(fault, head))
    }

    fn streamed(
        &self,
        post: PostRequest,
        bytes: &mut Vec<u8>,
        each: Listener<'_>,
    ) -> Result<ParsedAnswer, FailedAttempt> {
        let pieces = self.transport.stream(post);
        let pieces =
            pieces.map_err(|error| self.broken(&TransportError::Unreached(error.to_string())))?;
        let kind = self.provider.kind;
        let limit_bytes = usize::try_from(self.provider.max_answer_bytes).unwrap_or(usize::MAX);
        let frames = Frames::new(kind, limit_bytes);
        let assembly = StreamAssembly::new(kind, self.tools);
        let mut reader =
            StreamReader { kind, frames, assembly, head: None, emitted: false, each, bytes };
        let ended = reader.listen(&pieces);
        let Some(head) = reader.head.take() else {
            return match ended {
                StreamEnd::Cancelled => Ok(ParsedAnswer::cancelled()),
                StreamEnd::Transport(broken) => Err(self.broken(&broken)),
                StreamEnd::Complete | StreamEnd::Fault(_) => Err(self.broken(&TransportError::Cut)),
            };
        };
        if !head.is_success() {
            return Err(self.refused(&head, reader.bytes));
        }
        if matches!(ended, StreamEnd::Complete) && !is_stream(&head, kind) {
            let answer = self.read(&head, reader.bytes)?;
            return Ok(match reader.pass_text(&answer.text) {
                ControlFlow::Continue(()) => answer,
                ControlFlow::Break(()) => ParsedAnswer { finish: Finish::Cancelled, ..answer },
            });
        }
        let emitted = reader.emitted;
        let (failed, so_far) = match ended {
            StreamEnd::Cancelled => {
                let so_far = reader.assembly.so_far();
                return Ok(ParsedAnswer { finish: Finish::Cancelled, ..so_far });
            }
            StreamEnd::Complete if reader.assembly.is_whole() => {
                return Ok(reader.assembly.so_far());
            }
            StreamEnd::Complete => {
                let foreign = !head.is_event_stream() && !reader.assembly.has_begun();
                let fault = match foreign && !reader.bytes.is_empty() {
                    true => AnswerFault::Malformed("it is not an event stream".to_owned()),
                    false => AnswerFault::Cut,
                };
                (self.fault(fault, &head), reader.assembly.so_far())
            }
            StreamEnd::Transport(broken) => (self.broken(&broken), reader.assembly.so_far()),
            StreamEnd::Fault(fault) => (self.fault(fault, &head), reader.assembly.so_far()),
        };
        Err(FailedAttempt { usage: so_far.usage.map(Box::new), emitted, ..failed })
    }

    fn refused(&self, head: &ResponseHead, bytes: &mut Vec<u8>) -> FailedAttempt {
        self.key.scrub(bytes);
        let error = ModelError::of_status(self.provider, head.status, head.retry_after, bytes);
        FailedAttempt {
            retry_after: head.retry_after,
            refused: Some(head.status),
            ..FailedAttempt::new(error, false)
        }
    }

    fn fault(&self, fault: AnswerFault, head: &ResponseHead) -> FailedAttempt {
        let provider = self.provider.name.clone();
        let error = match fault {
            AnswerFault::Cut => ModelError::Truncated { provider, cut: Truncation::Connection },
            AnswerFault::Reported { status, mut body } => {
                self.key.scrub(&mut body);
                ModelError::of_status(self.provider, status, head.retry_after, &body)
            }
            AnswerFault::Malformed(what) => {
                let its_type = excerpt(head.content_type.as_bytes());
                let mut what = format!("{what} (content type {its_type})");
                self.key.scrub_text(&mut what);
                ModelError::Malformed { provider, what }
            }
        };
        FailedAttempt { retry_after: head.retry_after, ..FailedAttempt::new(error, true) }
    }

    fn broken(&self, broken: &TransportError) -> FailedAttempt {
        let provider = self.provider.name.clone();
        let processed =
            !matches!(broken, TransportError::Unreached(_) | TransportError::Impossible(_));
        let error = match broken {
            TransportError::Silent => {
                ModelError::Timeout { provider, after: self.provider.timeout, field: "timeout_ms" }
            }
            TransportError::Slow => ModelError::Timeout {
                provider,
                after: self.provider.answer_timeout,
                field: "answer_timeout_ms",
            },
            TransportError::Cut => ModelError::Truncated { provider, cut: Truncation::Connection },
            TransportError::TooLarge => {
                ModelError::TooLarge { provider, limit_bytes: self.provider.max_answer_bytes }
            }
            TransportError::Unreached(why) | TransportError::Impossible(why) => {
                ModelError::Unreachable {
                    provider,
                    address: self.provider.base_url.clone(),
                    why: why.clone(),
                    again: matches!(broken, TransportError::Unreached(_)),
                }
            }
        };
        FailedAttempt::new(error, processed)
    }
}

impl StreamReader<'_, '_> {
    fn listen(&mut self, pieces: &Receiver<StreamEvent>) -> StreamEnd {
        loop {
            match pieces.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => {
                    if (self.each)(Delta::Silence).is_break() {
                        return StreamEnd::Cancelled;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return StreamEnd::Transport(TransportError::Cut);
                }
                Ok(StreamEvent::Head(head)) => self.head = Some(head),
                Ok(StreamEvent::End(Err(broken))) => return StreamEnd::Transport(broken),
                Ok(StreamEvent::End(Ok(()))) => {
                    let last = self.frames.end().into_iter().collect();
                    return self.take(last).unwrap_or(StreamEnd::Complete);
                }
                Ok(StreamEvent::Bytes(piece)) => {
                    self.bytes.extend_from_slice(&piece);
                    // A response that is not a stream is parsed when it is complete.
                    if !self.head.as_ref().is_some_and(|head| is_stream(head, self.kind)) {
                        continue;
                    }
                    let Ok(events) = self.frames.push(&piece) else {
                        return StreamEnd::Transport(TransportError::TooLarge);
                    };
                    if let Some(ended) = self.take(events) {
                        return ended;
                    }
                    if self.assembly.is_done() {
                        return StreamEnd::Complete;
                    }
                }
            }
        }
    }

    /// Processes events; returns how reading ends if one of them ends it.
    fn take(&mut self, events: Vec<Vec<u8>>) -> Option<StreamEnd> {
        let (each, emitted) = (&mut self.each, &mut self.emitted);
        let mut listener = |delta: Delta<'_>| {
            *emitted = true;
            each(delta)
        };
        events.iter().find_map(|event| match self.assembly.event(event, &mut listener) {
            Ok(ControlFlow::Continue(())) => None,
            Ok(ControlFlow::Break(())) => Some(StreamEnd::Cancelled),
            Err(fault) => Some(StreamEnd::Fault(fault)),
        })
    }

    fn pass_text(&mut self, text: &str) -> ControlFlow<()> {
        if text.is_empty() { ControlFlow::Continue(()) } else { (self.each)(Delta::Text(text)) }
    }
}

/// Returns whether the response is a stream. An endpoint that does not stream answers with a JSON
/// object.
fn is_stream(head: &ResponseHead, kind: Protocol) -> bool {
    let whole = head.content_type.starts_with("application/json") && kind != Protocol::Ollama;
    head.is_success() && !whole
}
