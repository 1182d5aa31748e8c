//! Reading requests: limits go in, refusals come out.
//!
//! serde can neither hand limits to a `Deserialize` implementation nor return a typed error. Both
//! go through the [`RequestScope`] of the thread: while one is open, ids and names are checked
//! against its limits, and the first value that is refused is kept with its own error. Outside of
//! a scope, texts that were checked when they were stored are accepted as they are.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::Display;

use crate::limits::Limits;

thread_local! {
    static LIMITS: Cell<Option<Limits>> = const { Cell::new(None) };
    static REFUSAL: RefCell<Option<Box<dyn Any + Send>>> = const { RefCell::new(None) };
}

/// Marks the current thread as reading a request until it is dropped.
#[derive(Debug)]
pub struct RequestScope(());

impl RequestScope {
    /// Opens the scope of one request.
    pub fn open(limits: &Limits) -> Self {
        LIMITS.set(Some(*limits));
        REFUSAL.take();
        RequestScope(())
    }

    /// Takes the error of the first value that was refused.
    pub fn refusal(&self) -> Option<Box<dyn Any + Send>> {
        REFUSAL.take()
    }
}

impl Drop for RequestScope {
    fn drop(&mut self) {
        LIMITS.set(None);
        REFUSAL.take();
    }
}

/// Returns the limits of the request that is being read, if there is one.
pub fn limits() -> Option<Limits> {
    LIMITS.get()
}

/// Returns the limits that apply: those of the request that is being read, or none.
pub fn limits_or_stored() -> Limits {
    limits().unwrap_or(Limits::STORED)
}

/// Refuses a value: keeps the error for the request and returns serde's form of it.
pub fn refuse<E: serde::de::Error>(error: impl Display + Send + 'static) -> E {
    let form = E::custom(&error);
    if LIMITS.get().is_some() {
        REFUSAL.with_borrow_mut(|kept| {
            kept.get_or_insert_with(|| Box::new(error));
        });
    }
    form
}
