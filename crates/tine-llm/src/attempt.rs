//! One try: a request, its answer, and why there is none.
//!
//! The key is taken out of everything that came before it leaves this module: out of the bytes
//! that are stored, the answer and the errors. Only the pieces of a stream go out as they come.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tine_core::Usage;

use crate::chat::{Delta, Finish, Trail};
use crate::error::{Cut, ModelError, excerpt};
use crate::key::Key;
use crate::provider::{Kind, Provider};
use crate::transport::{Broken, Head, Piece, Post, Transport};
use crate::wire::{self, Answer, Assembly, Fault, Frames, Listener};

/// How long a listener waits for an occasion to stop.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// One try.
pub(crate) struct Attempt<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) transport: &'a Transport,
    pub(crate) key: &'a Key,
    /// Whether tools were offered.
    pub(crate) tools: bool,
}

/// A try that failed.
pub(crate) struct Failed {
    pub(crate) error: ModelError,
    pub(crate) retry_after: Option<Duration>,
    /// The status of a refusal: the same may be said in another way.
    pub(crate) refused: Option<u16>,
    /// What it cost, as far as that was told.
    pub(crate) usage: Option<Box<Usage>>,
    /// Whether the model may have worked on it.
    pub(crate) worked: bool,
    /// Whether something of the answer was given out.
    pub(crate) given: bool,
}

/// How listening to a stream ended.
enum Heard {
    /// With its end.
    All,
    /// Because nobody wants more.
    Enough,
    Broken(Broken),
    Fault(Fault),
}

/// A stream that is listened to.
struct Listening<'a, 'b> {
    kind: Kind,
    frames: Frames,
    assembly: Assembly,
    head: Option<Head>,
    given: bool,
    each: Listener<'a>,
    bytes: &'b mut Vec<u8>,
}

impl Attempt<'_> {
    /// Asks once. The bytes that came are in the trail whether it succeeds or not.
    pub(crate) fn run(
        &self,
        trail: &mut Trail,
        each: Option<Listener<'_>>,
    ) -> Result<Answer, Failed> {
        let kind = self.provider.kind;
        let accept = match (each.is_some(), kind) {
            (false, _) => "application/json",
            (true, Kind::Ollama) => "application/x-ndjson",
            (true, _) => "text/event-stream",
        };
        let post = Post {
            address: wire::address(self.provider),
            headers: self.key.headers(kind),
            body: trail.request.clone(),
            accept,
        };
        let bytes = &mut trail.response;
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

    fn whole(&self, post: &Post, bytes: &mut Vec<u8>) -> Result<Answer, Failed> {
        let sent = self.transport.whole(post, bytes);
        let (head, read) = sent.map_err(|broken| self.broken(&broken))?;
        if !head.is_fine() {
            return Err(self.refused(&head, bytes));
        }
        read.map_err(|broken| self.broken(&broken))?;
        self.read(&head, bytes)
    }

    /// Reads an answer out of all its bytes, as they are stored: so reading them again gives the
    /// same.
    fn read(&self, head: &Head, bytes: &mut Vec<u8>) -> Result<Answer, Failed> {
        self.key.scrub(bytes);
        let answer = wire::answer(self.provider.kind, bytes, self.tools);
        answer.map_err(|fault| self.fault(fault, head))
    }

    fn streamed(
        &self,
        post: Post,
        bytes: &mut Vec<u8>,
        each: Listener<'_>,
    ) -> Result<Answer, Failed> {
        let pieces = self.transport.stream(post);
        let pieces = pieces.map_err(|error| self.broken(&Broken::Unreached(error.to_string())))?;
        let kind = self.provider.kind;
        let limit_bytes = usize::try_from(self.provider.max_answer_bytes).unwrap_or(usize::MAX);
        let frames = Frames::new(kind, limit_bytes);
        let assembly = Assembly::new(kind, self.tools);
        let mut listening =
            Listening { kind, frames, assembly, head: None, given: false, each, bytes };
        let heard = listening.listen(&pieces);
        let Some(head) = listening.head.take() else {
            return match heard {
                Heard::Enough => Ok(Answer::cancelled()),
                Heard::Broken(broken) => Err(self.broken(&broken)),
                Heard::All | Heard::Fault(_) => Err(self.broken(&Broken::Cut)),
            };
        };
        if !head.is_fine() {
            return Err(self.refused(&head, listening.bytes));
        }
        if matches!(heard, Heard::All) && !is_stream(&head, kind) {
            let answer = self.read(&head, listening.bytes)?;
            return Ok(match listening.say(&answer.text) {
                ControlFlow::Continue(()) => answer,
                ControlFlow::Break(()) => Answer { finish: Finish::Cancelled, ..answer },
            });
        }
        let given = listening.given;
        let (failed, so_far) = match heard {
            Heard::Enough => {
                let so_far = listening.assembly.so_far();
                return Ok(Answer { finish: Finish::Cancelled, ..so_far });
            }
            Heard::All if listening.assembly.is_whole() => return Ok(listening.assembly.so_far()),
            Heard::All => {
                let foreign = !head.is_of_events() && !listening.assembly.has_begun();
                let fault = match foreign && !listening.bytes.is_empty() {
                    true => Fault::Malformed("it is not a stream of events".to_owned()),
                    false => Fault::Cut,
                };
                (self.fault(fault, &head), listening.assembly.so_far())
            }
            Heard::Broken(broken) => (self.broken(&broken), listening.assembly.so_far()),
            Heard::Fault(fault) => (self.fault(fault, &head), listening.assembly.so_far()),
        };
        Err(Failed { usage: so_far.usage.map(Box::new), given, ..failed })
    }

    fn refused(&self, head: &Head, bytes: &mut Vec<u8>) -> Failed {
        self.key.scrub(bytes);
        Failed {
            error: ModelError::of_status(self.provider, head.status, head.retry_after, bytes),
            retry_after: head.retry_after,
            refused: Some(head.status),
            usage: None,
            worked: false,
            given: false,
        }
    }

    fn fault(&self, fault: Fault, head: &Head) -> Failed {
        let provider = self.provider.name.clone();
        let error = match fault {
            Fault::Cut => ModelError::Truncated { provider, cut: Cut::Connection },
            Fault::Told { status, mut body } => {
                self.key.scrub(&mut body);
                ModelError::of_status(self.provider, status, head.retry_after, &body)
            }
            Fault::Malformed(what) => {
                let its_type = excerpt(head.content_type.as_bytes());
                let mut what = format!("{what} (its type is {its_type})");
                self.key.scrub_text(&mut what);
                ModelError::Malformed { provider, what }
            }
        };
        let retry_after = head.retry_after;
        Failed { error, retry_after, refused: None, usage: None, worked: true, given: false }
    }

    fn broken(&self, broken: &Broken) -> Failed {
        let provider = self.provider.name.clone();
        let worked = !matches!(broken, Broken::Unreached(_) | Broken::Impossible(_));
        let error = match broken {
            Broken::Silent => {
                ModelError::Timeout { provider, after: self.provider.timeout, field: "timeout_ms" }
            }
            Broken::Slow => ModelError::Timeout {
                provider,
                after: self.provider.answer_timeout,
                field: "answer_timeout_ms",
            },
            Broken::Cut => ModelError::Truncated { provider, cut: Cut::Connection },
            Broken::TooLarge => {
                ModelError::TooLarge { provider, limit_bytes: self.provider.max_answer_bytes }
            }
            Broken::Unreached(why) | Broken::Impossible(why) => ModelError::Unreachable {
                provider,
                address: self.provider.base_url.clone(),
                why: why.clone(),
                again: matches!(broken, Broken::Unreached(_)),
            },
        };
        Failed { error, retry_after: None, refused: None, usage: None, worked, given: false }
    }
}

impl Listening<'_, '_> {
    fn listen(&mut self, pieces: &Receiver<Piece>) -> Heard {
        loop {
            match pieces.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => {
                    if (self.each)(Delta::Silence).is_break() {
                        return Heard::Enough;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Heard::Broken(Broken::Cut),
                Ok(Piece::Head(head)) => self.head = Some(head),
                Ok(Piece::End(Err(broken))) => return Heard::Broken(broken),
                Ok(Piece::End(Ok(()))) => {
                    let last = self.frames.end().into_iter().collect();
                    return self.take(last).unwrap_or(Heard::All);
                }
                Ok(Piece::Bytes(piece)) => {
                    self.bytes.extend_from_slice(&piece);
                    // Whatever is not a stream is looked at when all of it is there.
                    if !self.head.as_ref().is_some_and(|head| is_stream(head, self.kind)) {
                        continue;
                    }
                    let Ok(events) = self.frames.push(&piece) else {
                        return Heard::Broken(Broken::TooLarge);
                    };
                    if let Some(heard) = self.take(events) {
                        return heard;
                    }
                    if self.assembly.is_done() {
                        return Heard::All;
                    }
                }
            }
        }
    }

    /// Takes events; says how listening ends if it does with one of them.
    fn take(&mut self, events: Vec<Vec<u8>>) -> Option<Heard> {
        let (each, given) = (&mut self.each, &mut self.given);
        let mut hear = |delta: Delta<'_>| {
            *given = true;
            each(delta)
        };
        events.iter().find_map(|event| match self.assembly.event(event, &mut hear) {
            Ok(ControlFlow::Continue(())) => None,
            Ok(ControlFlow::Break(())) => Some(Heard::Enough),
            Err(fault) => Some(Heard::Fault(fault)),
        })
    }

    fn say(&mut self, text: &str) -> ControlFlow<()> {
        if text.is_empty() { ControlFlow::Continue(()) } else { (self.each)(Delta::Text(text)) }
    }
}

/// An endpoint that does not stream answers with a whole JSON object.
fn is_stream(head: &Head, kind: Kind) -> bool {
    let whole = head.content_type.starts_with("application/json") && kind != Kind::Ollama;
    head.is_fine() && !whole
}
