//! Several who have one store open, in one process and in others: nobody's coming or going takes
//! the locks of another away.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{OpenMode, Store, StoreError};

use crate::embedded::{add, log, operations, titles};
use crate::fixture::Folder;

/// Names the store that another process is to use.
const STORE: &str = "TINE_TEST_STORE";

/// What another process does: it opens the store, writes to it and closes it.
#[test]
#[ignore = "run by other tests, as another process"]
fn somebody_elsewhere() {
    let folder = std::env::var_os(STORE).unwrap();
    let store = SqliteStore::open(Path::new(&folder)).unwrap();
    add(&store, "elsewhere", "from elsewhere");
}

fn elsewhere(folder: &Path) {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "users::somebody_elsewhere", "--ignored"])
        .env(STORE, folder)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

/// The locks that this process has on a file, as the kernel tells; `None` where it does not.
fn locks_on(file: &Path) -> Option<Vec<String>> {
    let told = std::fs::read_to_string("/proc/locks").ok()?;
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
    // All but the line's own number, which changes with what others lock.
    let told = told.lines().filter(ours);
    let mut locks: Vec<String> =
        told.map(|line| line.split_once(' ').unwrap().1.trim().to_owned()).collect();
    locks.sort();
    locks.dedup();
    Some(locks)
}

/// How often the kernel is asked before its answer counts. It tells about locks piece by piece,
/// so that locks which others take and leave meanwhile can push ours out of the picture. Locks
/// that were dropped stay dropped.
const LOOKS: usize = 100;

fn looks(mut wanted: impl FnMut() -> bool) -> bool {
    (0..LOOKS).any(|look| {
        std::thread::sleep(std::time::Duration::from_millis(if look == 0 { 0 } else { 20 }));
        wanted()
    })
}

#[test]
fn whoever_else_comes_and_goes_sqlite_keeps_its_locks() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "kept");
    let files = ["tine.db", "tine.db-shm"].map(|name| folder.path().join(name));
    let locks = || files.each_ref().map(|file| locks_on(file));
    let mut before = locks();
    looks(|| {
        before = locks();
        before.iter().flatten().all(|locks| !locks.is_empty())
    });
    if before.iter().any(Option::is_none) {
        eprintln!("skipped: the kernel does not tell about locks here");
        return;
    }
    assert!(before.iter().flatten().all(|locks| !locks.is_empty()), "{before:?}");
    for mode in [OpenMode::Create, OpenMode::Existing] {
        let options = OpenOptions { mode, vfs: None };
        let other = SqliteStore::open_with(&folder.path(), options).unwrap();
        assert_eq!(titles(&other), ["kept"]);
        log(&other, key, 1);
    }
    assert!(looks(|| locks() == before), "another handle was opened and closed");
    let copies = Folder::new();
    store.backup(&copies.path()).unwrap();
    assert!(store.check().unwrap().problems.is_empty());
    store.read(&mut |records| records.totals().map(drop)).unwrap();
    let refused =
        tine_sqlite::salvage(&folder.path(), &copies.path().join("salvaged")).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    assert!(looks(|| locks() == before), "the store was copied and checked");
    elsewhere(&folder.path());
    assert!(looks(|| locks() == before), "another process opened and closed the store");
}

#[test]
fn what_is_written_while_others_come_and_go_is_there() {
    let folder = Folder::new();
    let path = &folder.path();
    let store = SqliteStore::open(path).unwrap();
    let key = add(&store, "c", "title");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let comers = [0, 1].map(|_| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(!titles(&SqliteStore::open(path).unwrap()).is_empty());
                }
            })
        });
        let writer = scope.spawn(|| {
            for _ in 0..200 {
                log(&store, key, 1);
            }
        });
        elsewhere(path);
        writer.join().unwrap();
        over.store(true, Ordering::Relaxed);
        for comer in comers {
            comer.join().unwrap();
        }
    });
    assert_eq!(operations(&store), (1..=200).collect::<Vec<_>>());
    drop(store);
    assert_eq!(operations(&SqliteStore::open(path).unwrap()), (1..=200).collect::<Vec<_>>());
}

#[test]
fn threads_that_make_one_store_at_once_share_it() {
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
