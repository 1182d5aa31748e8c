//! A store that counts the records that pass through it.
//!
//! Every record handed to the engine counts as one read, each row of a scan and of a listing by
//! itself, and a question with an empty answer as one; every change counts as one write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tine_store::{Job, Read, Result, Segment, Store, Totals, Write};

/// Records read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCost {
    pub read: u64,
    pub written: u64,
}

#[derive(Debug, Default)]
struct CostCounters {
    read: AtomicU64,
    written: AtomicU64,
}

impl CostCounters {
    fn read(&self, records: usize) {
        let records = u64::try_from(records).expect("fewer than 2^64 records");
        self.read.fetch_add(records.max(1), Ordering::SeqCst);
    }

    fn written(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }
}

/// A store that counts.
pub struct CountingStore {
    inner: Arc<dyn Store>,
    tally: Arc<CostCounters>,
}

impl CountingStore {
    /// Counts what passes to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        CountingStore { inner, tally: Arc::default() }
    }

    /// What some work costs.
    pub fn cost_of(&self, work: impl FnOnce()) -> RecordCost {
        let now = || RecordCost {
            read: self.tally.read.load(Ordering::SeqCst),
            written: self.tally.written.load(Ordering::SeqCst),
        };
        let before = now();
        work();
        let after = now();
        RecordCost { read: after.read - before.read, written: after.written - before.written }
    }
}

impl Store for CountingStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.inner.read(&mut |inner| body(&CountingRead { inner, tally: &self.tally }))
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let tally = Arc::clone(&self.tally);
        self.inner.write(Box::new(move |inner| job(&mut CountingWrite { inner, tally: &tally })))
    }

    tine_store::forward_store!(inner);
}

struct CountingRead<'a> {
    inner: &'a dyn Read,
    tally: &'a CostCounters,
}

struct CountingWrite<'a> {
    inner: &'a mut dyn Write,
    tally: &'a CostCounters,
}

/// How many records an answer is.
trait Rows {
    fn rows(&self) -> usize;
}

impl<T> Rows for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }
}

macro_rules! one_row {
    ($($answer:ty),*) => {
        $(impl Rows for $answer {
            fn rows(&self) -> usize {
                1
            }
        })*
    };
}

one_row!(Segment, u32, Totals);

impl<T> Rows for Option<T> {
    fn rows(&self) -> usize {
        1
    }
}

/// A scan counts each row as it is visited.
macro_rules! counted_read {
    (turns, $this:ident, $segment:ident, $from:ident, $to:ident, $visit:ident) => {
        $this.inner.turns($segment, $from, $to, &mut |turn| {
            $this.tally.read(1);
            $visit(turn)
        })
    };
    (operations, $this:ident, $conversation:ident, $from:ident, $to:ident, $visit:ident) => {
        $this.inner.operations($conversation, $from, $to, &mut |operation| {
            $this.tally.read(1);
            $visit(operation)
        })
    };
    ($method:ident, $this:ident $(, $arg:ident)*) => {{
        let found = $this.inner.$method($($arg),*)?;
        $this.tally.read(found.rows());
        Ok(found)
    }};
}

/// Reading is the same in both sorts of transaction: each method asks and counts.
macro_rules! counted_reads {
    ($($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        counted_reads! { @of CountingRead $($method($($arg: $of),*) -> $answer;)* }
        counted_reads! { @of CountingWrite $($method($($arg: $of),*) -> $answer;)* }
    };
    (@of $kind:ident $($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Read for $kind<'_> {
            $(fn $method(&self, $($arg: $of),*) -> Result<$answer> {
                counted_read!($method, self $(, $arg)*)
            })*
        }
    };
}

tine_store::for_each_read!(counted_reads);

macro_rules! counted_writes {
    ($($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Write for CountingWrite<'_> {
            $(fn $method(&mut self, $($arg: $of),*) -> Result<$answer> {
                self.tally.written();
                self.inner.$method($($arg),*)
            })*
        }
    };
}

tine_store::for_each_write!(counted_writes);
