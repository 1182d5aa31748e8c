//! Seeded defects of a store: the rig must catch each of them.
//!
//! They are in a wrapper around the real store and in the shim, never in the product.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use tine_sqlite::SqliteStore;
use tine_store::{Job, PackOptions, Packed, Read, Result, Store, StoreCheck, StoreError, Verdict};

use crate::recorded::{ChangeTarget, RecordedChange, Recorder};
use crate::unsound::{SnapshotlessRead, StaleTips};

/// A seeded defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Defect {
    /// No sync has an effect.
    SyncsIgnored,
    /// Syncs of the write-ahead log have no effect.
    LogSyncIgnored,
    /// Syncs of the database file have no effect: a checkpoint is not durable.
    FileSyncIgnored,
    /// Syncs of the folder have no effect: new files are not durable.
    FolderSyncIgnored,
    /// The call returns before the commit.
    EarlyAnswer,
    /// Tips are moved in a transaction before that of their turns.
    TipFirst,
    /// The entry of the log is not stored.
    LogEntryLost,
    /// An operation is stored in two transactions.
    TwoTransactions,
    /// The entry of the log, with the key, is stored before the changes.
    KeyFirst,
    /// A failed write is reported as a success.
    ErrorSwallowed,
    /// Each record is read from the current state, without a snapshot.
    TornRead,
    /// Tips are read outside of the transaction that moves them.
    StaleTip,
}

impl Defect {
    /// All defects.
    pub const ALL: [Defect; 12] = [
        Defect::SyncsIgnored,
        Defect::LogSyncIgnored,
        Defect::FileSyncIgnored,
        Defect::FolderSyncIgnored,
        Defect::EarlyAnswer,
        Defect::TipFirst,
        Defect::LogEntryLost,
        Defect::TwoTransactions,
        Defect::KeyFirst,
        Defect::ErrorSwallowed,
        Defect::TornRead,
        Defect::StaleTip,
    ];

    /// Returns the syncs that the shim ignores.
    pub fn ignored_syncs(self) -> Option<&'static str> {
        match self {
            Defect::SyncsIgnored => Some("*"),
            Defect::LogSyncIgnored => Some("-wal"),
            Defect::FileSyncIgnored => Some("tine.db"),
            Defect::FolderSyncIgnored => Some("/"),
            _ => None,
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned())
    }

    /// Returns whether it needs the wrapper.
    pub fn is_in_store(self) -> bool {
        self.ignored_syncs().is_none()
    }
}

/// The real store with a defect.
#[derive(Debug)]
pub struct Defective {
    inner: Arc<SqliteStore>,
    defect: Defect,
    /// The commit that runs after the call has returned.
    late: Mutex<Option<JoinHandle<()>>>,
}

impl Defective {
    /// Wraps a store.
    pub fn new(inner: SqliteStore, defect: Defect) -> Self {
        Defective { inner: Arc::new(inner), defect, late: Mutex::new(None) }
    }

    /// Waits for a commit that was already acknowledged.
    fn settle(&self) {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = late {
            // A commit that failed is part of the defect.
            let _ = thread.join();
        }
    }

    /// Runs a job without storing anything, and returns the changes that it would make.
    fn rehearse(&self, mut job: Job) -> Result<Option<Vec<RecordedChange>>> {
        let (send, receive) = mpsc::channel();
        self.inner.write(Box::new(move |records| {
            let mut recorder = Recorder { inner: records, changes: Vec::new() };
            let verdict = job(&mut recorder)?;
            // Nobody listens only when this is over.
            let _ = send.send((verdict == Verdict::Commit).then_some(recorder.changes));
            Ok(Verdict::Rollback)
        }))?;
        Ok(receive.try_iter().last().flatten())
    }

    fn perform(&self, changes: Vec<RecordedChange>) -> Result<()> {
        perform(&self.inner, changes)
    }

    /// Splits off the changes of some records, with those that they depend on, to store them in an
    /// earlier transaction.
    fn first(&self, about: ChangeTarget, changes: Vec<RecordedChange>) -> Result<()> {
        let (first, rest): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.about == about || change.about == ChangeTarget::Ground);
        self.perform(first)?;
        self.perform(rest)
    }
}

fn perform(store: &SqliteStore, changes: Vec<RecordedChange>) -> Result<()> {
    store.write(Box::new(move |records| {
        for change in &changes {
            (change.again)(records)?;
        }
        Ok(Verdict::Commit)
    }))
}

impl Store for Defective {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        // Reading right after an early answer would show it. A defect that hides is the more
        // dangerous one.
        self.settle();
        match self.defect {
            Defect::TornRead => body(&SnapshotlessRead { store: &self.inner }),
            _ => self.inner.read(body),
        }
    }

    fn write(&self, mut job: Job) -> Result<()> {
        self.settle();
        match self.defect {
            Defect::ErrorSwallowed => {
                return match self.inner.write(job) {
                    Err(StoreError::DiskFull | StoreError::Backend(_) | StoreError::Io { .. }) => {
                        Ok(())
                    }
                    other => other,
                };
            }
            Defect::TornRead => return self.inner.write(job),
            Defect::StaleTip => {
                let store = Arc::clone(&self.inner);
                return self.inner.write(Box::new(move |records| {
                    job(&mut StaleTips { inner: records, store: &store })
                }));
            }
            _ => {}
        }
        let Some(mut changes) = self.rehearse(job)? else {
            return Ok(());
        };
        match self.defect {
            Defect::EarlyAnswer => {
                let inner = Arc::clone(&self.inner);
                let thread = std::thread::spawn(move || {
                    // No caller is waiting any more.
                    let _ = perform(&inner, changes);
                });
                *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
                Ok(())
            }
            Defect::TipFirst => self.first(ChangeTarget::Tip, changes),
            Defect::KeyFirst => self.first(ChangeTarget::Log, changes),
            Defect::LogEntryLost => {
                changes.retain(|change| change.about != ChangeTarget::Log);
                self.perform(changes)
            }
            Defect::TwoTransactions => {
                let rest = changes.split_off(changes.len() / 2);
                self.perform(changes)?;
                self.perform(rest)
            }
            _ => self.perform(changes),
        }
    }

    fn check(&self) -> Result<StoreCheck> {
        self.settle();
        self.inner.check()
    }

    fn pack(&self, options: PackOptions) -> Result<Packed> {
        self.settle();
        self.inner.pack(options)
    }

    fn scrub(&self) -> Result<()> {
        self.settle();
        self.inner.scrub()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.settle();
        self.inner.backup(to)
    }
}

impl Drop for Defective {
    fn drop(&mut self) {
        self.settle();
    }
}
