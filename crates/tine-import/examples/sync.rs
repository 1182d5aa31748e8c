//! What travels between two stores of 100,000 turns when 100 are new.
//!
//! ```sh
//! cargo run --release -p tine-import --example sync
//! ```

use std::time::Instant;

use tine_core::{Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation, carry};
use tine_sqlite::SqliteStore;

const CONVERSATIONS: usize = 100;
const TURNS: usize = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let here = Engine::new(SqliteStore::open(&folder.path().join("here"))?);
    let there = Engine::new(SqliteStore::open(&folder.path().join("there"))?);
    let call = Call::by("bench");
    let said = |nth: usize| {
        let role = if nth.is_multiple_of(2) { Role::User } else { Role::Assistant };
        Message::text(role, format!("turn {nth} {}", "of some length ".repeat(60)))
    };
    let mut ids = Vec::new();
    for nth in 0..CONVERSATIONS {
        let new = NewConversation::named(&format!("talk-{nth}"))?;
        let id = here.create_conversation(&call, new)?.id;
        here.append(&call, Append::to(id.clone(), (0..TURNS).map(said).collect()))?;
        ids.push(id);
    }
    let sync = || -> Result<(u64, u64, f64), tine_engine::Error> {
        let start = Instant::now();
        let (mut turns, mut bytes) = (0, 0);
        for id in &ids {
            let ends = (here.log_end(&call, id)?, there.log_end(&call, id)?);
            let done = carry(&here, &there, &call, id, ends)?;
            (turns, bytes) = (turns + done.turns, bytes + done.bytes);
        }
        Ok((turns, bytes, start.elapsed().as_secs_f64()))
    };
    let (turns, whole, seconds) = sync()?;
    println!("first: {turns} turns, about {whole} bytes, {seconds:.2} s");
    for id in &ids {
        here.append(&call, Append::to(id.clone(), vec![said(TURNS)]))?;
    }
    let (turns, part, seconds) = sync()?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let share = part as f64 / whole as f64;
    println!("then: {turns} turns, about {part} bytes ({share:.4} of all), {seconds:.2} s");
    let (turns, bytes, seconds) = sync()?;
    println!("again: {turns} turns, {bytes} bytes, {seconds:.3} s");
    Ok(())
}
