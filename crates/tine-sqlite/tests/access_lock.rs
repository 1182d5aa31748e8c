//! One store opened several times, in one process and in others: opening and closing it must not
//! drop the locks of another handle.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{OpenMode, Store, StoreError};

use crate::embedded::{add, add_operations, feed_seqs, titles};
use crate::fixture::Folder;

/// The environment variable that names the store for the other process.
const STORE: &str = "TINE_TEST_STORE";

/// The other process: opens the store, writes to it and closes it.
#[test]
#[ignore = "run by other tests, as another process"]
fn other_process() {
    let folder = std::env::var_os(STORE).unwrap();
    let store = SqliteStore::open(Path::new(&folder)).unwrap();
    add(&store, "other", "from another process");
}

fn run_other_process(folder: &Path) {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "access_lock::other_process", "--ignored"])
        .env(STORE, folder)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

/// Returns the locks that this process holds on a file; `None` if the kernel does not list them.
fn locks_on(file: &Path) -> Option<Vec<String>> {
    let listed = std::fs::read_to_string("/proc/locks").ok()?;
    let (process, inode) = (std::process::id().to_string(), file.metadata().unwrap().ino());
    let ours = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let kind = fields.next();
        let holder = fields.nth(2);
        let place = fields.next().and_then(|place| place.rsplit(':').next());
        kind == Some("POSIX")
            && holder == Some(process.as_str())
            && place == Some(inode.to_string().as_str())
    };
    // Without the line number, which depends on other locks.
    let listed = listed.lines().filter(ours);
    let mut locks: Vec<String> =
        listed.map(|line| line.split_once(' ').unwrap().1.trim().to_owned()).collect();
    locks.sort();
    locks.dedup();
    Some(locks)
}

/// How often the list of locks is read. The kernel lists locks in pieces, so that ours can be missed
/// while others are taken and released. Locks that were dropped stay dropped.
const ATTEMPTS: usize = 100;

fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    (0..ATTEMPTS).any(|attempt| {
        std::thread::sleep(std::time::Duration::from_millis(if attempt == 0 { 0 } else { 20 }));
        holds()
    })
}

#[test]
fn sqlite_keeps_its_locks_while_other_handles_open_and_close() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "kept");
    let files = ["tine.db", "tine.db-shm"].map(|name| folder.path().join(name));
    let locks = || files.each_ref().map(|file| locks_on(file));
    let mut before = locks();
    eventually(|| {
        before = locks();
        before.iter().flatten().all(|locks| !locks.is_empty())
    });
    if before.iter().any(Option::is_none) {
        eprintln!("skipped: the kernel does not list locks here");
        return;
    }
    assert!(before.iter().flatten().all(|locks| !locks.is_empty()), "{before:?}");
    for mode in [OpenMode::Create, OpenMode::Existing] {
        let options = OpenOptions { mode, vfs: None };
        let other = SqliteStore::open_with(&folder.path(), options).unwrap();
        assert_eq!(titles(&other), ["kept"]);
        add_operations(&other, key, 1);
    }
    assert!(eventually(|| locks() == before), "another handle was opened and closed");
    let copies = Folder::new();
    store.backup(&copies.path()).unwrap();
    assert!(store.check().unwrap().problems.is_empty());
    store.read(&mut |records| records.totals().map(drop)).unwrap();
    let error = tine_sqlite::salvage(&folder.path(), &copies.path().join("salvaged")).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(eventually(|| locks() == before), "the store was copied and checked");
    run_other_process(&folder.path());
    assert!(eventually(|| locks() == before), "another process opened and closed the store");
}

#[test]
fn writes_are_kept_while_other_handles_open_and_close() {
    let folder = Folder::new();
    let path = &folder.path();
    let store = SqliteStore::open(path).unwrap();
    let key = add(&store, "c", "title");
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let openers = [0, 1].map(|_| {
            scope.spawn(|| {
                while !finished.load(Ordering::Relaxed) {
                    assert!(!titles(&SqliteStore::open(path).unwrap()).is_empty());
                }
            })
        });
        let writer = scope.spawn(|| {
            for _ in 0..200 {
                add_operations(&store, key, 1);
            }
        });
        run_other_process(path);
        writer.join().unwrap();
        finished.store(true, Ordering::Relaxed);
        for opener in openers {
            opener.join().unwrap();
        }
    });
    assert_eq!(feed_seqs(&store), (1..=200).collect::<Vec<_>>());
    drop(store);
    assert_eq!(feed_seqs(&SqliteStore::open(path).unwrap()), (1..=200).collect::<Vec<_>>());
}

#[test]
fn threads_that_create_one_store_concurrently_share_it() {
    for _ in 0..10 {
        let folder = Folder::new();
        let path = &folder.path();
        std::thread::scope(|scope| {
            for at in 0..4 {
                scope.spawn(move || {
                    add(&SqliteStore::open(path).unwrap(), &format!("c-{at}"), "title");
                });
            }
        });
        assert_eq!(titles(&SqliteStore::open(path).unwrap()).len(), 4);
    }
}
