//! Commits: creating one with cached rings, diffs, merges; and computing rings.

use std::path::Path;
use std::time::Instant;

use tine_core::{ConversationId, Message, Reference, Role};
use tine_engine::{
    Append, Call, DiffQuery, Engine, Fork, ForkPoint, MergeBranches, NewCommit, Page, Summary,
};
use tine_sqlite::SqliteStore;

use crate::timing::time_each;
use crate::workload::conversation;
use crate::{Error, row};

/// Turns per append.
const BATCH: usize = 1_000;

/// Commits per median.
const AGAIN: usize = 9;

pub(crate) fn measure(folder: &Path, turns: usize) -> Result<(), Error> {
    println!("| what | figure | beside the baseline |");
    println!("| --- | --- | --- |");
    let engine = Engine::new(SqliteStore::open(&folder.join("commits"))?);
    let call = Call::by("bench");
    let talk = conversation(&engine, &call, "commits")?;
    rings(turns);

    // A window of a thousand turns, again and again: from the second time on its rings are kept.
    let commit = |message: &str, branch: &str| -> Result<_, Error> {
        let begun = Instant::now();
        let request = NewCommit::of(talk.clone(), message).on(branch);
        let made = engine.commit(&call, request)?;
        Ok((made.hash, begun.elapsed()))
    };
    say(&engine, &call, &talk, "main", BATCH, 0)?;
    let (_, fresh) = commit("fresh", "main")?;
    let mut again = Vec::new();
    for _ in 0..AGAIN {
        engine.undo(&call, &talk, None)?;
        again.push(commit("kept", "main")?.1);
    }
    again.sort_unstable();
    let kept = again[AGAIN / 2];
    let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let beside = |time: std::time::Duration| {
        format!("{:.2} of the first", time.as_secs_f64() / fresh.as_secs_f64())
    };
    row("commit of 1,000 turns, rings computed", ms(fresh), "1".to_owned());
    row("commit of 1,000 turns, rings kept", ms(kept), beside(kept));

    let fork = Fork {
        conversation: Some(talk.clone()),
        point: ForkPoint::At(Reference::parse("main")?),
        name: Some(tine_core::Name::from_stored("side")),
    };
    engine.fork(&call, fork)?;
    say(&engine, &call, &talk, "main", turns, 1_000_000)?;
    say(&engine, &call, &talk, "side", turns, 2_000_000)?;
    let (ours, _) = commit("ours", "main")?;
    let (theirs, _) = commit("theirs", "side")?;
    let diff = |from: String, to: String| -> Result<(), Error> {
        let query = DiffQuery { conversation: Some(talk.clone()), from, to, limit: None };
        engine.diff(&call, query)?;
        Ok(())
    };
    let compared = time_each(20, |_| diff(ours.to_string(), theirs.to_string()))?;
    let what = format!("diff of two commits of {turns} turns each");
    row(&what, compared.describe(), "no turn is read".to_owned());
    let begun = Instant::now();
    diff("main".to_owned(), "side".to_owned())?;
    let what = format!("diff of two branches of {turns} turns each, word by word");
    row(&what, ms(begun.elapsed()), String::new());
    let listed = time_each(20, |_| {
        let query = tine_engine::CommitQuery { conversation: Some(talk.clone()), branch: None };
        engine.commits(&call, query, Page::default())?;
        Ok(())
    })?;
    row("list of commits", listed.describe(), String::new());
    let begun = Instant::now();
    let request = MergeBranches {
        conversation: talk.clone(),
        from: "side".to_owned(),
        into: None,
        message: None,
        author: None,
        summary: Summary::None,
        dry_run: false,
    };
    engine.merge(&call, request)?;
    row(&format!("merge of {turns} turns into {turns}"), ms(begun.elapsed()), String::new());
    Ok(())
}

const SMALL: [&str; 16] = [
    "the", "of", "and", "that", "is", "for", "with", "we", "on", "to", "in", "a", "it", "this",
    "not", "should",
];

const SYLLABLES: [&str; 20] = [
    "ba", "ker", "lin", "mo", "tra", "vel", "sti", "po", "gra", "nu", "fel", "dor", "ci", "ra",
    "ton", "mi", "sho", "lar", "be", "ven",
];

/// Returns sentences of words out of thousands, half of them stop words, as in chats.
fn message(number: usize) -> Message {
    let mut state = number as u64 + 1;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut text = String::new();
    while text.len() < 600 {
        for word in 0..12 {
            text.push_str(if word == 0 { "" } else { " " });
            match next(2) {
                0 => text.push_str(SMALL[next(SMALL.len())]),
                _ => (0..2 + next(2)).for_each(|_| text.push_str(SYLLABLES[next(SYLLABLES.len())])),
            }
        }
        text.push_str(". ");
    }
    let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
    Message::text(role, text)
}

/// Computes the rings of a megabyte of chat text, on one core.
fn rings(turns: usize) {
    let mut bytes = 0;
    let begun = Instant::now();
    for number in 0..turns {
        let text = message(number).body.text_only().unwrap_or_default();
        bytes += text.len();
        std::hint::black_box(tine_analysis::rings::rings(&text));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    let rate = format!("{:.2} s for 1 MB", seconds / megabytes);
    row(&format!("rings of {turns} turns, {megabytes:.1} MB"), rate, String::new());
}

fn say(
    engine: &Engine,
    call: &Call,
    talk: &ConversationId,
    branch: &str,
    turns: usize,
    first: usize,
) -> Result<(), Error> {
    for batch in (0..turns).step_by(BATCH) {
        let some = (batch..turns.min(batch + BATCH)).map(|number| message(first + number));
        let request = Append::to(talk.clone(), some.collect());
        engine.append(call, Append { branch: Some(branch.to_owned()), ..request })?;
    }
    Ok(())
}
