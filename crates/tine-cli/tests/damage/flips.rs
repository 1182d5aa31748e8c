//! One bit flips somewhere in a closed store.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tine_core::ErrorKind;
use tine_engine::LeftOut;
use tine_store::OpenMode;

use super::{PAGE, copy, engine, exports, in_memory, repair, sample};

/// Numbers that look random and are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

#[derive(Debug)]
enum Seen {
    /// Everything is as it was.
    Harmless,
    /// `verify`, or the opening before it, names the damage.
    Reported { _how: String },
    /// Only something that no hash covers is not as it was; `verify` is content.
    Beside,
    /// `verify` is content, and something else is not as it was.
    Silent(String),
}

/// What no hash and no entry of the log covers: what was known about a turn or a conversation
/// when it was made, and the answers that are kept for repeated calls.
const BESIDE: [(&str, &[&str]); 4] = [
    ("conversation", &["title", "metadata", "derived_from", "project_id"]),
    ("turn", &["metadata", "status", "derived_from", "edited_from", "part_of"]),
    ("operation", &["idempotency"]),
    ("end", &["sha256"]),
];

fn look(folder: &Path, before: &BTreeMap<String, Vec<u8>>) -> Seen {
    let engine = match engine(folder, OpenMode::Existing) {
        Ok(engine) => engine,
        Err(error) => {
            let named = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid);
            assert!(named, "not named as damage: {error:?}");
            return Seen::Reported { _how: error.to_string() };
        }
    };
    match engine.verify() {
        Ok(found) if found.problems.is_empty() => {}
        Ok(found) => return Seen::Reported { _how: format!("{:?}", found.problems) },
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "not named as damage: {error:?}");
            return Seen::Reported { _how: error.to_string() };
        }
    }
    match exports(&engine) {
        Ok(after) if after == *before => Seen::Harmless,
        Ok(after) if after.keys().ne(before.keys()) => Seen::Silent("other conversations".into()),
        Ok(after) => {
            let pairs = before.values().zip(after.values());
            let other = pairs.flat_map(|(old, new)| other_changes(old, new)).next();
            other.map_or(Seen::Beside, Seen::Silent)
        }
        Err(error) => Seen::Silent(format!("it cannot be exported: {error}")),
    }
}

/// Lines of two bundles that differ in more than what nothing covers.
fn other_changes(old: &[u8], new: &[u8]) -> Vec<String> {
    let lines = |bundle: &[u8]| -> Vec<serde_json::Value> {
        let text = std::str::from_utf8(bundle).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (old, new) = (lines(old), lines(new));
    if old.len() != new.len() {
        let lines = old.iter().filter(|line| !new.contains(line) && line["record"] != "end");
        return lines.map(|line| format!("\n  not there: {line}")).collect();
    }
    let covered = |line: &serde_json::Value| {
        let mut line = line.clone();
        let kind = line["record"].as_str().unwrap_or("header").to_owned();
        let beside = BESIDE.iter().find(|(record, _)| *record == kind);
        let fields = line.as_object_mut().unwrap();
        for field in beside.into_iter().flat_map(|(_, fields)| *fields) {
            fields.remove(*field);
        }
        line
    };
    let differ = old.iter().zip(&new).filter(|(old, new)| covered(old) != covered(new));
    differ.map(|(old, new)| format!("\n  {old}\n  {new}")).collect()
}

/// Repairs a damaged store; the new one verifies, and whatever is in it is as it was or listed.
fn check_repair(damaged: &Path, before: &BTreeMap<String, Vec<u8>>, place: &str) -> (u64, u64) {
    let bytes = fs::read(damaged.join("tine.db")).unwrap();
    let mended = damaged.with_extension("mended");
    let (new, done, left_out) = repair(damaged, &mended);
    assert!(fs::read(damaged.join("tine.db")).unwrap() == bytes, "{place}: it was touched");
    assert_eq!(new.verify().unwrap().problems, [], "{place}");
    let after = exports(&new).unwrap();
    let unnamed = left_out.iter().any(|it| it.conversation.is_none());
    let mut kept = 0;
    for (id, old) in before {
        let Some(new) = after.get(id) else {
            let listed = unnamed || is_listed(&left_out, id) || !after.keys().eq(before.keys());
            assert!(listed, "{place}: {id} is gone: {done:?} {left_out:?}");
            continue;
        };
        if new == old {
            kept += 1;
        } else {
            let changes = other_changes(old, new);
            let listed = is_listed(&left_out, id) || unnamed || changes.is_empty();
            assert!(listed, "{place}: {id} is not as it was: {done:?} {changes:?}");
        }
    }
    drop(new);
    fs::remove_dir_all(&mended).unwrap();
    (kept, before.len() as u64)
}

fn is_listed(left_out: &[LeftOut], id: &str) -> bool {
    let name = id.split_once('/').unwrap().1;
    left_out.iter().any(|it| it.conversation.as_ref().is_some_and(|it| it.as_str() == name))
}

fn rounds(short: u64) -> u64 {
    std::env::var("TINE_BIT_FLIPS").map_or(short, |text| text.parse().unwrap())
}

#[test]
fn a_flipped_bit_is_harmless_or_named_and_what_it_did_not_touch_is_had_back() {
    let home = in_memory();
    let whole = home.path().join("whole");
    sample(&whole);
    let before = exports(&engine(&whole, OpenMode::Existing).unwrap()).unwrap();
    let checked = engine(&whole, OpenMode::Existing).unwrap().verify().unwrap();
    assert_eq!(checked.problems, []);
    let bytes = fs::read(whole.join("tine.db")).unwrap();
    let mut dice = Dice::new(7);
    let (mut harmless, mut beside, mut kept, mut conversations) = (0, 0, 0, 0);
    let flips = rounds(60);
    for _ in 0..flips {
        let at = usize::try_from(dice.below(bytes.len() as u64)).unwrap();
        let bit = dice.below(8);
        let place = format!("bit {bit} of byte {at} (page {}, at {})", at / PAGE + 1, at % PAGE);
        let damaged = home.path().join("damaged");
        copy(&whole, &damaged);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        fs::write(damaged.join("tine.db"), &flipped).unwrap();
        match look(&damaged, &before) {
            Seen::Harmless => harmless += 1,
            Seen::Beside => beside += 1,
            Seen::Silent(what) => panic!("{place}: undetected: {what}"),
            Seen::Reported { .. } => {
                fs::write(damaged.join("tine.db"), &flipped).unwrap();
                let (had_back, all) = check_repair(&damaged, &before, &place);
                (kept, conversations) = (kept + had_back, conversations + all);
            }
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    println!(
        "{flips} flips: {harmless} harmless, {beside} only in what no hash covers, the others \
         named; {kept} of {conversations} conversations recovered unchanged"
    );
}

/// The name of a bookmark is the key of its record, and the log tells which it was.
#[test]
fn a_bookmark_whose_name_rotted_gets_its_name_back_and_is_listed() {
    let home = in_memory();
    let whole = home.path().join("whole");
    sample(&whole);
    let before = exports(&engine(&whole, OpenMode::Existing).unwrap()).unwrap();
    let bytes = fs::read(whole.join("tine.db")).unwrap();
    let name = b"mark-study";
    let places = bytes.windows(name.len()).enumerate().filter(|(_, it)| it == name);
    let places: Vec<usize> = places.map(|(at, _)| at + name.len() - 2).collect();
    assert!(!places.is_empty());
    for at in places {
        let damaged = home.path().join("damaged");
        copy(&whole, &damaged);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << 6;
        fs::write(damaged.join("tine.db"), &flipped).unwrap();
        check_repair(&damaged, &before, &format!("byte {at}"));
        fs::remove_dir_all(&damaged).unwrap();
    }
}

#[test]
fn whatever_is_done_to_the_database_nothing_panics_and_the_way_back_verifies() {
    let home = in_memory();
    let whole = home.path().join("whole");
    sample(&whole);
    let before = exports(&engine(&whole, OpenMode::Existing).unwrap()).unwrap();
    let bytes = fs::read(whole.join("tine.db")).unwrap();
    let mut dice = Dice::new(8);
    let (mut kept, mut conversations) = (0, 0);
    let rounds = rounds(20);
    for round in 0..rounds {
        let mut damage = bytes.clone();
        let length = damage.len() as u64;
        for _ in 0..=dice.below(3) {
            let (at, page) =
                (dice.below(length) as usize, dice.below(length / PAGE as u64) as usize * PAGE);
            let end = (at + 1 + dice.below(600) as usize).min(damage.len());
            match dice.below(6) {
                0 => damage[page..page + PAGE].fill(0),
                1 => damage[at..end].fill(0xff),
                2 => damage[at..end].iter_mut().for_each(|byte| *byte = dice.below(256) as u8),
                3 => damage.copy_within(page..page + PAGE, at / PAGE * PAGE),
                4 => damage[page..page + 8].reverse(),
                _ => damage[page + PAGE / 2..page + PAGE].fill(0),
            }
        }
        let damaged = home.path().join("damaged");
        copy(&whole, &damaged);
        fs::write(damaged.join("tine.db"), &damage).unwrap();
        let seen = look(&damaged, &before);
        assert!(!matches!(seen, Seen::Silent(_)), "round {round}: {seen:?}");
        fs::write(damaged.join("tine.db"), &damage).unwrap();
        let (had_back, all) = check_repair(&damaged, &before, &format!("round {round}"));
        (kept, conversations) = (kept + had_back, conversations + all);
        fs::remove_dir_all(&damaged).unwrap();
    }
    println!("{rounds} stores: {kept} of {conversations} conversations recovered unchanged");
}
