//! Bodies that were not read to their end, because the request was refused before.
//!
//! What is left of one lies in the connection where the next request would be, so that the
//! connection has to end. A client that is not told so sends its next request into nowhere.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};

/// Tells whether a request's body was read to its end.
pub(crate) struct Watch(Arc<AtomicBool>);

impl Watch {
    /// The request, and what watches over its body.
    pub(crate) fn over(request: Request) -> (Request, Self) {
        let ended = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let watch = Watch(Arc::clone(&ended));
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
