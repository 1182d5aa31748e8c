//! Detects bodies that were not read to their end, because the request was refused before.
//!
//! The rest of such a body is where the next request would be, so the connection must be closed,
//! and the answer must say so: otherwise the client's next request would be lost.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};

/// Whether the body of a request was read to its end.
pub(crate) struct BodyWatch(Arc<AtomicBool>);

impl BodyWatch {
    /// Starts to watch the body of a request.
    pub(crate) fn over(request: Request) -> (Request, Self) {
        let ended = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let watch = BodyWatch(Arc::clone(&ended));
        if watch.is_read() {
            return (request, watch);
        }
        (request.map(|inner| Body::new(Watched { inner, ended })), watch)
    }

    pub(crate) fn is_read(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Watched {
    inner: Body,
    ended: Arc<AtomicBool>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() || self.inner.is_end_stream() {
            self.ended.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
