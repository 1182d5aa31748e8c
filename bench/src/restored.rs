//! Turns of a host that tracks no branches, one after the other, beside the baseline.

use std::path::Path;

use tine_engine::{Call, Engine, StoreTurn};
use tine_sqlite::SqliteStore;

use crate::timing::{Samples, time_each};
use crate::workload::message;
use crate::{Error, baseline, row};

pub(crate) fn measure(folder: &Path, turns: usize) -> Result<(), Error> {
    println!("| what | figure | beside the baseline |");
    println!("| --- | --- | --- |");
    let bare = baseline::Bare::open(&folder.join("bare.db"))?;
    let bare = time_each(turns, |number| bare.insert(number))?;
    row("bare durable insert of the same bytes", bare.describe(), "1".to_owned());

    let engine = Engine::new(SqliteStore::open(&folder.join("restored"))?);
    let store = |turn: String, number: usize| -> Result<(), Error> {
        let key = format!("conversation-chat-{turn}-{number}");
        let call = Call::by("bench").with_key(key);
        engine.store_turn(&call, StoreTurn::new("chat", turn, message(number)))?;
        Ok(())
    };
    let mut at = 0;
    let mut next = |turns: usize| -> Result<Samples, Error> {
        let samples =
            time_each(turns, |number| store(format!("t{}", (at + number) / 2), at + number));
        at += turns;
        samples
    };
    next(turns / 10)?;
    let first = next(turns / 10)?;
    let middle = next(turns - 3 * (turns / 10))?;
    let last = next(turns / 10)?;
    row("restored turn", middle.describe(), middle.ratio(&bare));
    row(
        &format!("the last {} of {turns} beside the first", turns / 10),
        last.describe(),
        format!("{} the first", last.ratio(&first)),
    );
    let edits = time_each(turns / 10, |number| store("edited".to_owned(), number + 7_000_000))?;
    row("another version of one turn", edits.describe(), edits.ratio(&bare));
    Ok(())
}
