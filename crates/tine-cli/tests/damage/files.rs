//! Files that are cut, missing, foreign or torn.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tine_core::{ErrorKind, Message, Role};
use tine_engine::{Append, NewConversation, PathQuery};
use tine_store::OpenMode;

use super::flips::Dice;
use super::{PAGE, call, copy, engine, exports, in_memory, repair, sample};
use crate::harness::Home;

/// The lock files of a store.
pub const LOCKS: [&str; 3] = ["writer.lock", "writer.queue", "users.lock"];

/// Opening is refused with this kind and a sentence that holds these words.
fn refused(folder: &Path, kind: ErrorKind, words: &[&str]) {
    for mode in [OpenMode::Existing, OpenMode::Create] {
        let error = engine(folder, mode).expect_err("it is damaged");
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "`{word}` is not in: {text}");
        }
    }
}

struct Sample {
    home: TempDir,
    whole: PathBuf,
}

impl Sample {
    fn new() -> Self {
        let home = in_memory();
        let whole = home.path().join("whole");
        sample(&whole);
        Sample { home, whole }
    }

    fn damaged(&self, name: &str, damage: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
        let folder = self.home.path().join(name);
        copy(&self.whole, &folder);
        let mut bytes = fs::read(folder.join("tine.db")).unwrap();
        damage(&mut bytes);
        fs::write(folder.join("tine.db"), bytes).unwrap();
        folder
    }
}

#[test]
fn a_cut_database_is_named_wherever_it_is_cut() {
    let sample = Sample::new();
    let length = fs::metadata(sample.whole.join("tine.db")).unwrap().len() as usize;
    let empty = sample.damaged("empty", Vec::clear);
    refused(&empty, ErrorKind::Corrupt, &["tine.db", "it is empty", "repair it"]);
    for (at, cut) in [50, PAGE, 20_000, length / 2 / PAGE * PAGE, length - 1].iter().enumerate() {
        let folder = sample.damaged(&format!("cut-{at}"), |bytes| bytes.truncate(*cut));
        refused(&folder, ErrorKind::Corrupt, &["tine.db", "it is cut", "repair it"]);
        let (new, ..) = repair(&folder, &sample.home.path().join(format!("mended-{at}")));
        assert_eq!(new.verify().unwrap().problems, []);
    }
}

/// However little of a store is left, what lost its turns is not called whole, and the new store
/// does not pass for one in which there never were any.
#[test]
fn a_conversation_that_lost_its_log_is_not_called_whole() {
    let sample = Sample::new();
    let whole = exports(&engine(&sample.whole, OpenMode::Existing).unwrap()).unwrap();
    let pages = fs::metadata(sample.whole.join("tine.db")).unwrap().len() as usize / PAGE;
    let mut lost = 0;
    for page in 1..pages {
        let folder = sample.damaged(&format!("cut-{page}"), |bytes| bytes.truncate(page * PAGE));
        let (new, done, left_out) = repair(&folder, &folder.with_extension("mended"));
        assert_eq!(new.verify().unwrap().problems, [], "cut at page {page}");
        let kept = exports(&new).unwrap();
        let as_it_was = kept.iter().filter(|(id, bundle)| whole.get(*id) == Some(*bundle)).count();
        assert!(done.whole as usize <= as_it_was, "cut at page {page}: {done:?} {left_out:?}");
        lost += kept.len() - as_it_was;
    }
    assert!(lost > 0, "no cut left a conversation without its log");
}

#[test]
fn a_missing_database_is_named_and_no_new_one_takes_its_place() {
    let sample = Sample::new();
    let folder = sample.damaged("gone", |_| {});
    fs::remove_file(folder.join("tine.db")).unwrap();
    refused(&folder, ErrorKind::Corrupt, &["tine.db", "it is missing"]);
    // A log copied without its database is reported too, in a folder without marker files.
    for lock in LOCKS {
        fs::remove_file(folder.join(lock)).unwrap();
    }
    fs::write(folder.join("tine.db-wal"), vec![1; 10_000]).unwrap();
    refused(&folder, ErrorKind::Corrupt, &["tine.db", "it is missing", "tine.db-wal"]);
    assert!(!folder.join("tine.db").exists());
}

#[test]
fn what_is_not_a_store_is_told_from_a_damaged_one() {
    let sample = Sample::new();
    let unmarked = |folder: &Path| fs::write(folder.join("writer.lock"), "").unwrap();
    let program = sample.damaged("program", |bytes| bytes[68..72].copy_from_slice(b"Abcd"));
    refused(&program, ErrorKind::Corrupt, &["tine.db", "store of Tine"]);
    unmarked(&program);
    refused(&program, ErrorKind::Invalid, &["another program"]);
    let text = sample.damaged("text", |bytes| *bytes = b"Dear diary\n".repeat(1_000));
    refused(&text, ErrorKind::Corrupt, &["tine.db", "first bytes"]);
    unmarked(&text);
    refused(&text, ErrorKind::Invalid, &["not a database"]);
    let newer = sample.damaged("newer", |bytes| bytes[60..64].copy_from_slice(&[0, 0, 3, 231]));
    refused(&newer, ErrorKind::Invalid, &["format 999", "newer release"]);
    let none = sample.damaged("none", |bytes| bytes[60..64].fill(0));
    refused(&none, ErrorKind::Corrupt, &["tine.db", "no format"]);
    let folder = sample.home.path().join("folder");
    fs::create_dir_all(folder.join("tine.db")).unwrap();
    refused(&folder, ErrorKind::Invalid, &["tine.db is a folder"]);
}

/// The files of a store that is being written to: `turns` acknowledged appends, all of
/// them in the log.
pub fn in_use(folder: &Path, turns: usize) {
    let writing = folder.with_extension("writing");
    let engine = engine(&writing, OpenMode::Create).unwrap();
    let call = call("default");
    let new = NewConversation::named("talk").unwrap();
    let talk = engine.create_conversation(&call, new).unwrap().id;
    for at in 0..turns {
        let message = Message::text(Role::User, format!("turn {at}: {}", "words ".repeat(40)));
        engine.append(&call, Append::to(talk.clone(), vec![message])).unwrap();
    }
    copy(&writing, folder);
}

/// How many turns of the conversation a store shows.
fn turns_in(folder: &Path) -> usize {
    let engine = engine(folder, OpenMode::Existing).unwrap();
    assert_eq!(engine.verify().unwrap().problems, []);
    let path = PathQuery::of(tine_core::ConversationId::from_stored("talk"));
    engine.path(&call("default"), path).unwrap().turns.len()
}

const FRAME: usize = 24 + PAGE;

/// The frames that end a commit, from 1, of a log with one commit after the other.
fn commits(log: &[u8]) -> Vec<usize> {
    let frames = (log.len() - 32) / FRAME;
    let ends = |frame: &usize| {
        let at = 32 + (frame - 1) * FRAME;
        log[at + 4..at + 8] != [0; 4] && log[at + 8..at + 16] == log[16..24]
    };
    (1..=frames).filter(ends).collect()
}

#[test]
fn a_log_that_rotted_before_its_last_commit_is_refused_and_left_as_it_is() {
    let home = in_memory();
    let used = home.path().join("used");
    in_use(&used, 40);
    let log = fs::read(used.join("tine.db-wal")).unwrap();
    let commits = commits(&log);
    // Everything up to the commit before the last but one is followed by two others.
    let sure = 32 + commits[commits.len() - 3] * FRAME;
    let mut dice = Dice::new(11);
    let rounds = std::env::var("TINE_BIT_FLIPS").map_or(25, |text| text.parse().unwrap());
    for round in 0..rounds {
        let at = if round < 8 { round * 4 } else { dice.below(sure as u64) as usize };
        let folder = home.path().join(format!("rotten-{round}"));
        copy(&used, &folder);
        fs::remove_file(folder.join("tine.db-shm")).unwrap();
        let mut rotten = log.clone();
        rotten[at] ^= 1 << dice.below(8);
        fs::write(folder.join("tine.db-wal"), &rotten).unwrap();
        let error =
            engine(&folder, OpenMode::Existing).expect_err("acknowledged turns would be lost");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
        assert!(error.to_string().contains("tine.db-wal"), "byte {at}: {error}");
        assert!(engine(&folder, OpenMode::Existing).is_err(), "byte {at}: it is refused once only");
        assert_eq!(fs::read(folder.join("tine.db-wal")).unwrap(), rotten);
        let mended = home.path().join(format!("mended-{round}"));
        let (new, done, left_out) = repair(&folder, &mended);
        assert_eq!(new.verify().unwrap().problems, [], "byte {at}");
        let lost = done.turns < 40;
        assert!(!lost || !left_out.is_empty(), "byte {at}: {done:?} and nothing is listed");
        fs::remove_dir_all(&folder).unwrap();
        drop(new);
        fs::remove_dir_all(&mended).unwrap();
    }
}

#[test]
fn a_log_whose_last_commit_was_cut_off_opens_with_all_before_it() {
    let home = in_memory();
    let used = home.path().join("used");
    in_use(&used, 12);
    let log = fs::read(used.join("tine.db-wal")).unwrap();
    let commits = commits(&log);
    let last = 32 + commits[commits.len() - 2] * FRAME;
    let mut dice = Dice::new(12);
    for round in 0..20 {
        let folder = home.path().join(format!("torn-{round}"));
        copy(&used, &folder);
        fs::remove_file(folder.join("tine.db-shm")).unwrap();
        let mut torn = log.clone();
        let at = last + dice.below((log.len() - last) as u64) as usize;
        match round % 3 {
            0 => torn.truncate(at),
            // Some sectors were written and some were not.
            1 => torn[at..].fill(0),
            _ => torn[last..at].fill(0),
        }
        fs::write(folder.join("tine.db-wal"), &torn).unwrap();
        let there = turns_in(&folder);
        assert!((11..=12).contains(&there), "round {round}: {there} turns");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_copy_made_while_in_use_holds_all_that_was_acknowledged() {
    let home = in_memory();
    let used = home.path().join("used");
    in_use(&used, 5);
    assert_eq!(turns_in(&used), 5);
    // The shared-memory file is recreated when the copy is opened.
    let again = home.path().join("again");
    in_use(&again, 5);
    fs::remove_file(again.join("tine.db-shm")).unwrap();
    assert_eq!(turns_in(&again), 5);
}

#[test]
fn locks_that_are_missing_are_made_and_ones_that_cannot_be_are_named() {
    let sample = Sample::new();
    let folder = sample.damaged("unlocked", |_| {});
    for lock in LOCKS {
        fs::remove_file(folder.join(lock)).unwrap();
    }
    let before = exports(&engine(&sample.whole, OpenMode::Existing).unwrap()).unwrap();
    assert_eq!(exports(&engine(&folder, OpenMode::Existing).unwrap()).unwrap(), before);
    for lock in LOCKS {
        fs::remove_file(folder.join(lock)).unwrap();
        fs::create_dir(folder.join(lock)).unwrap();
        let error = engine(&folder, OpenMode::Existing).expect_err("there is no lock");
        assert!(error.to_string().contains(lock), "{error}");
        fs::remove_dir(folder.join(lock)).unwrap();
    }
}

#[test]
fn the_command_repairs_into_a_new_folder_and_lists_what_it_left_out() {
    let home = Home::with_trip();
    home.ok(&["new", "other"]);
    home.ok(&["append", "-c", "other", "Something else entirely"]);
    let to = home.path("new-store");
    let to = to.to_str().unwrap();
    let whole = home.json(&["verify", "--repair", to]);
    assert_eq!(
        (&whole["ok"], &whole["whole"], &whole["left_out"]),
        (&true.into(), &2.into(), &0.into())
    );
    assert_eq!(home.ok(&["export", "--all", "--store", to]), home.everything());
    // There is a store now.
    let again = home.run(&["verify", "--repair", to]);
    assert_eq!(again.code, 2, "{again:?}");
    let itself = home.path("store");
    let itself = home.run(&["verify", "--repair", itself.to_str().unwrap()]);
    assert_eq!(itself.code, 2, "{itself:?}");

    let kept = home.ok(&["export", "other"]);
    let database = home.path("store/tine.db");
    let mut bytes = fs::read(&database).unwrap();
    let at = bytes.windows(10).position(|text| text == b"Late March").unwrap();
    bytes[at] = b'l';
    fs::write(&database, bytes).unwrap();
    let checked = home.run(&["verify"]);
    assert_eq!(checked.code, 13);
    assert!(checked.out.contains("in conversation trip"), "{checked:?}");
    let second = home.path("second");
    let second = second.to_str().unwrap();
    let ran = home.run(&["verify", "--repair", second]);
    assert_eq!(ran.code, 13, "{ran:?}");
    assert!(ran.out.contains("1 conversation whole, 1 in part, 0 lost"), "{ran:?}");
    assert!(ran.err.contains("left-out.jsonl"), "{ran:?}");
    let listed = fs::read_to_string(home.path("second/left-out.jsonl")).unwrap();
    assert!(listed.contains("late March"), "{listed}");
    assert_eq!(home.ok(&["export", "other", "--store", second]), kept);
    assert_eq!(home.json(&["verify", "--store", second])["ok"], true);
    let log = home.ok(&["ops", "-c", "trip", "--store", second]);
    assert!(log.contains("repair"), "{log}");
    let names: Vec<_> = fs::read_dir(home.path("")).unwrap().collect();
    assert!(!format!("{names:?}").contains("salvage"), "{names:?}");
}

#[test]
fn one_damaged_turn_hides_no_sibling() {
    let home = Home::new();
    home.ok(&["new", "talk"]);
    home.ok(&["append", "What is it?"]);
    home.ok(&["append", "--role", "assistant", "second best"]);
    home.ok(&["append", "--role", "assistant", "--parent", "main~1", "--branch", "side", "best"]);
    home.ok(&["append", "below it"]);
    let names = |text: &str| text.matches(" in conversation talk").count();
    // One byte is another letter, or none at all, so that the row cannot be read.
    for (letter, readable) in [(b'S', true), (0xff, false)] {
        let folder = home.path(&format!("damaged-{letter}"));
        copy(&home.path("store"), &folder);
        let mut bytes = fs::read(folder.join("tine.db")).unwrap();
        let at = bytes.windows(11).position(|text| text == b"second best").unwrap();
        bytes[at] = letter;
        fs::write(folder.join("tine.db"), bytes).unwrap();
        let store = folder.to_str().unwrap();
        let tree = home.run(&["tree", "--store", store]);
        if readable {
            let shown = ["What is it?", "[side] best", "Second best", "[main] below"];
            assert!(shown.iter().all(|text| tree.out.contains(text)), "{tree:?}");
        } else {
            // A tree with a hole is not passed off as a whole one.
            assert_eq!((tree.code, tree.out.as_str()), (13, ""), "{tree:?}");
            assert!(tree.err.contains("the record turn at place"), "{tree:?}");
        }
        let path = home.ok(&["path", "side", "--store", store]);
        assert!(path.contains("What is it?") && path.contains("best"), "{path}");
        let checked = home.run(&["verify", "--store", store]);
        assert_eq!((checked.code, names(&checked.out)), (13, 1), "{checked:?}");
        let mended = home.path(&format!("mended-{letter}"));
        let mended = mended.to_str().unwrap();
        assert_eq!(home.run(&["verify", "--repair", mended, "--store", store]).code, 13);
        let tree = home.ok(&["tree", "--store", mended]);
        assert!(tree.contains("What is it?") && tree.contains("[side] best"), "{tree}");
        assert!(!tree.contains("below"), "{tree}");
    }
}

#[test]
fn a_store_in_use_is_not_repaired() {
    let home = Home::with_trip();
    let used = engine(&home.path("store"), OpenMode::Existing).unwrap();
    let to = home.path("new-store");
    let refused = home.run(&["verify", "--repair", to.to_str().unwrap()]);
    assert_eq!(refused.code, 12, "{refused:?}");
    assert!(refused.err.contains("is in use"), "{refused:?}");
    assert!(!to.exists());
    drop(used);
    home.ok(&["verify", "--repair", to.to_str().unwrap()]);
}

#[test]
fn there_is_nothing_to_repair_where_there_is_no_store() {
    let home = Home::new();
    let to = home.path("new");
    let ran = home.run(&["verify", "--repair", to.to_str().unwrap()]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!to.exists());
}
