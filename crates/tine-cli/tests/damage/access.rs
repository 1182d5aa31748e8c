//! Stores that may be read and not written, and disks that are full.
//!
//! Some of these need rights that a test run may not have: they say so and pass.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{Home, Ran, finish};

/// Runs the command as an unprivileged user; `None` if that is not possible.
fn as_nobody(store: &Path, arguments: &[&str]) -> Option<Ran> {
    // The built command lies where not everybody may look.
    let program = store.parent()?.join("tine");
    if !program.exists() {
        // Copied by another process: a handle for writing that another test's child inherits from
        // this one would keep the copy from being run.
        Command::new("cp").arg(env!("CARGO_BIN_EXE_tine")).arg(&program).status().ok()?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).ok()?;
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(program)
        .args(arguments)
        .env_clear()
        .env("TINE_STORE", store)
        .env("HOME", "/nowhere");
    let probe = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--", "true"])
        .status();
    match probe {
        Ok(status) if status.success() => Some(finish(&mut command, b"")),
        _ => {
            eprintln!("skipped: this needs the right to change the user");
            None
        }
    }
}

/// A read-only copy of a store.
fn write_protected(home: &Home) -> (TempDir, PathBuf) {
    let outer = TempDir::new().unwrap();
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = outer.path().join("store");
    super::copy(&home.path("store"), &folder);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    (outer, folder)
}

/// Also where an index lies beside it, which may not be written either.
#[test]
fn a_store_that_may_only_be_read_is_searched() {
    let home = Home::with_trip();
    home.ok(&["search", "march"]);
    home.ok(&["append", "Or in May, by the sea"]);
    assert!(home.path("store").join("search.db").exists());
    let (_outer, folder) = write_protected(&home);
    let Some(found) = as_nobody(&folder, &["search", "may"]) else {
        return;
    };
    assert!(found.out.contains("by the sea"), "{found:?}");
}

#[test]
fn a_store_that_may_only_be_read_is_read_and_left_alone() {
    let home = Home::with_trip();
    let (_outer, folder) = write_protected(&home);
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let Some(shown) = as_nobody(&folder, &["path", "-c", "trip"]) else {
        return;
    };
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.out.contains("Late March"), "{shown:?}");
    let checked = as_nobody(&folder, &["verify", "--json"]).unwrap();
    assert_eq!(checked.code, 0, "{checked:?}");
    let exported = as_nobody(&folder, &["export", "--all"]).unwrap();
    assert_eq!(exported.out, home.everything(), "{}", exported.err);
    let found = as_nobody(&folder, &["search", "march"]).unwrap();
    assert!(found.out.contains("Late March"), "{found:?}");
    for change in [&["append", "more"][..], &["undo"], &["new", "other"]] {
        let refused = as_nobody(&folder, change).unwrap();
        assert_eq!(refused.code, 11, "{change:?}: {refused:?}");
        assert!(refused.err.contains("read-only"), "{change:?}: {refused:?}");
    }
    assert_eq!(names(), before);
}

#[test]
fn a_store_without_locks_that_may_only_be_read_is_read_and_repaired_from() {
    let home = Home::with_trip();
    let (outer, folder) = write_protected(&home);
    for lock in super::files::LOCKS {
        fs::remove_file(folder.join(lock)).unwrap();
    }
    let Some(exported) = as_nobody(&folder, &["export", "--all"]) else {
        return;
    };
    assert_eq!(exported.out, home.everything(), "{}", exported.err);
    let open = outer.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let new = open.join("new");
    let repaired = as_nobody(&folder, &["verify", "--repair", new.to_str().unwrap()]).unwrap();
    assert_eq!(repaired.code, 0, "{repaired:?}");
    let exported = as_nobody(&new, &["export", "--all"]).unwrap();
    assert_eq!(exported.out, home.everything(), "{}", exported.err);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "only tine.db is there");
}

#[test]
fn a_store_that_may_not_be_read_is_named() {
    let home = Home::with_trip();
    let (_outer, folder) = write_protected(&home);
    fs::set_permissions(folder.join("tine.db"), fs::Permissions::from_mode(0o000)).unwrap();
    let Some(refused) = as_nobody(&folder, &["ls"]) else {
        return;
    };
    assert_eq!(refused.code, 11, "{refused:?}");
    assert!(refused.err.contains("tine.db"), "{refused:?}");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let refused = as_nobody(&folder, &["ls"]).unwrap();
    assert_eq!(refused.code, 11, "{refused:?}");
}

#[test]
fn changes_that_only_the_log_holds_are_read_or_missed_by_name() {
    let home = TempDir::new().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for shared in [true, false] {
        let folder = home.path().join(format!("used-{shared}"));
        super::files::in_use(&folder, 3);
        if !shared {
            fs::remove_file(folder.join("tine.db-shm")).unwrap();
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
        let Some(shown) = as_nobody(&folder, &["path"]) else {
            return;
        };
        if shared {
            assert_eq!(shown.code, 0, "{shown:?}");
            assert!(shown.out.contains("turn 2"), "{shown:?}");
        } else {
            assert_eq!(shown.code, 11, "{shown:?}");
            assert!(shown.err.contains("tine.db-wal"), "{shown:?}");
        }
    }
}

/// A file system of a given size, for the time of a test.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new(size: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let option = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &option, "tmpfs"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        match mounted {
            Ok(status) if status.success() => Some(SmallDisk(folder)),
            _ => {
                eprintln!("skipped: this needs the right to mount a small file system");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().ok();
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_that_was_acknowledged_is_lost() {
    let Some(disk) = SmallDisk::new("1m") else {
        return;
    };
    let home = Home::new();
    let store = disk.0.path().join("store");
    let store = store.to_str().unwrap();
    home.ok(&["new", "talk", "--store", store]);
    let words = "many words ".repeat(2_000);
    let mut acknowledged = 0;
    let full = loop {
        // The same text would be stored once.
        let text = format!("{acknowledged} {words}");
        let ran = home.run_with(&["append", "-", "--store", store], text.as_bytes());
        match ran.code {
            0 => acknowledged += 1,
            _ => break ran,
        }
        assert!(acknowledged < 1_000, "the disk is never full");
    };
    assert_eq!(full.code, 1, "{full:?}");
    assert!(full.err.contains("the disk is full"), "{full:?}");
    let count = |store: &str| {
        let shown = home.ok(&["path", "--json", "--store", store]);
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        shown["turns"].as_array().unwrap().len()
    };
    // A copy has room to be looked at, whatever the full disk has left.
    let copied = home.path("copied");
    super::copy(Path::new(store), &copied);
    let copied = copied.to_str().unwrap();
    assert_eq!(count(copied), acknowledged);
    assert_eq!(home.json(&["verify", "--store", copied])["ok"], true);
}
