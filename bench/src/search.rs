//! Search: indexing speed, size of the index, and latency.
//!
//! The words follow Zipf's law over twenty thousand made-up words, so that some are in most turns and
//! most in few; every tenth turn is in Chinese characters.

use std::path::Path;
use std::time::Instant;

use tine_core::{ConversationId, Message, Role};
use tine_engine::{Append, Call, Engine, SearchQuery};
use tine_sqlite::INDEX_FILE;
use tine_sqlite::SqliteStore;

use crate::timing::time_each;
use crate::workload::conversation;
use crate::{Error, row};

/// Conversations over which the turns are spread.
const CONVERSATIONS: usize = 50;

/// Turns per append: most of the log is small operations.
const BATCH: usize = 4;

const WORDS: usize = 20_000;

/// Random numbers from a seed.
struct SeededRng(u64);

impl SeededRng {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the rank of a word by Zipf's law.
    fn rank(&mut self) -> usize {
        ((WORDS as f64).powf(self.next()) - 1.0) as usize
    }
}

/// Returns the word of a rank; frequent ones are short.
fn word(rank: usize) -> String {
    let syllables = ["ka", "to", "ri", "men", "sol", "ve", "du", "pan", "ist", "or", "le", "gar"];
    let mut text = String::new();
    let mut rest = rank + 1;
    while rest > 0 {
        text.push_str(syllables[rest % syllables.len()]);
        rest /= syllables.len();
    }
    text
}

fn text(number: usize, words: &[String]) -> String {
    let mut rng = SeededRng(number as u64 * 7_919 + 1);
    let mut text = String::new();
    if number % 10 == 9 {
        while text.len() < 600 {
            let code = 0x4e00 + (3_000.0_f64).powf(rng.next()) as u32;
            text.push(char::from_u32(code).unwrap_or('的'));
            if rng.next() < 0.05 {
                text.push('，');
            }
        }
        return text;
    }
    let length = 200 + (rng.next() * 1_400.0) as usize;
    while text.len() < length {
        text.push_str(&words[rng.rank()]);
        text.push(if rng.next() < 0.1 { '\n' } else { ' ' });
    }
    text
}

/// Waits for the disk, so that earlier writes do not slow down what follows.
fn settle() -> Result<(), Error> {
    std::process::Command::new("sync").status()?;
    Ok(())
}

pub(crate) fn measure(folder: &Path, turns: usize) -> Result<(), Error> {
    let store = folder.join("search");
    let engine = Engine::new(SqliteStore::open(&store)?);
    let call = Call::by("bench");
    let words: Vec<String> = (0..WORDS).map(word).collect();
    let ids: Vec<ConversationId> = (0..CONVERSATIONS)
        .map(|number| conversation(&engine, &call, &format!("c{number}")))
        .collect::<Result<_, _>>()?;
    let (mut made, mut bytes) = (0, 0);
    while made < turns {
        let id = &ids[made / BATCH % CONVERSATIONS];
        let texts: Vec<String> = (made..made + BATCH).map(|number| text(number, &words)).collect();
        bytes += texts.iter().map(String::len).sum::<usize>();
        let messages = texts.into_iter().map(|text| Message::text(Role::User, text)).collect();
        engine.append(&call, Append { reuse: false, ..Append::to(id.clone(), messages) })?;
        made += BATCH;
    }
    let append = |number: usize| -> Result<(), Error> {
        let message = Message::text(Role::User, text(number, &words));
        engine.append(&call, Append::to(ids[0].clone(), vec![message]))?;
        Ok(())
    };
    let before = time_each(2_000, |number| append(number + 10_000_000))?;
    settle()?;
    let started = Instant::now();
    let done = engine.refresh_search()?;
    let rate = done.turns as f64 / started.elapsed().as_secs_f64();
    let what = format!("indexing {} turns of {} bytes", done.turns, bytes / made);
    row(&what, format!("{rate:.0} turns/s"), String::new());
    let size = std::fs::metadata(store.join(INDEX_FILE))?.len();
    let share = size as f64 / bytes as f64;
    row("size of the index", format!("{} MB", size >> 20), format!("{share:.2} of the text"));
    settle()?;
    let after = time_each(2_000, |number| append(number + 20_000_000))?;
    row("append with an index there", after.describe(), after.ratio(&before));
    let fresh = time_each(200, |number| {
        append(number + 30_000_000)?;
        engine.search(&call, SearchQuery::of(word(19_000)))?;
        Ok(())
    })?;
    row("append and then search", fresh.describe(), String::new());
    let queries = [
        ("a rare word", word(19_000)),
        ("a word in one of 50 turns", word(700)),
        ("a word in one of 5 turns", word(60)),
        ("a word in most turns", word(3)),
        ("two words", format!("{} {}", word(300), word(500))),
        ("a phrase", format!("\"{} {}\"", word(20), word(30))),
        ("a beginning", format!("{}*", &word(700)[..5])),
        ("two Chinese characters", "丅七".to_owned()),
        ("one OR another, without a third", format!("{} OR {} -{}", word(900), word(950), word(9))),
    ];
    for (what, words) in queries {
        let found = engine.search(&call, SearchQuery::of(words.clone()))?.hits.len();
        let times = time_each(20, |_| {
            engine.search(&call, SearchQuery::of(words.clone()))?;
            Ok(())
        })?;
        row(&format!("first 20 hits for {what}"), times.describe(), format!("{found} hits"));
    }
    let within = SearchQuery { conversation: Some(ids[1].clone()), ..SearchQuery::of(word(60)) };
    let times = time_each(20, |_| {
        engine.search(&call, within.clone())?;
        Ok(())
    })?;
    row("the same word in one conversation", times.describe(), String::new());
    Ok(())
}
