//! `kill -9` on the `tine` command: what it printed before it was killed must be stored.
//!
//! This process keeps a ledger of the command's output. A command that was killed is repeated with
//! its key, and must be stored exactly once.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tine_core::{ConversationId, Limits, TurnId};
use tine_engine::{Call, Engine, PathQuery};
use tine_store::Content;

use crate::RigError;
use crate::check;
use crate::programs::{Programs, scratch};
use crate::report::{BrokenGuarantee, Violation};
use crate::seeded_rng::SeededRng;

/// Turns before a new store is created.
const TURNS: usize = 80;
/// Commands that run before those that are killed.
const COMMANDS_BEFORE_KILLS: usize = 1;
/// Commands at once.
const CONCURRENT_COMMANDS: usize = 4;
/// The longest lifetime of a command.
const MAX_LIFETIME_US: usize = 15_000;

/// A store that only the command writes to.
#[derive(Debug)]
pub struct CommandStore {
    scratch: tempfile::TempDir,
    /// What was acknowledged, in the order of the path.
    ledger: Vec<(TurnId, String)>,
    sent: usize,
}

impl CommandStore {
    /// Starts without a store; the command creates it.
    pub fn new() -> Result<Self, RigError> {
        Ok(CommandStore { scratch: scratch()?, ledger: Vec::new(), sent: 0 })
    }

    /// Returns whether a new store is due.
    pub fn is_full(&self) -> bool {
        self.ledger.len() >= TURNS
    }

    /// Runs some commands, kills some, and checks.
    pub fn cycle(
        &mut self,
        programs: &Programs,
        rng: &mut SeededRng,
    ) -> Result<Result<usize, Violation>, RigError> {
        for _ in 0..COMMANDS_BEFORE_KILLS {
            let text = self.next_text();
            if let Err(violation) = self.finish(programs, text)? {
                return Ok(Err(violation));
            }
        }
        let count = if rng.one_in(2) { 1 } else { CONCURRENT_COMMANDS };
        let mut running = Vec::new();
        for _ in 0..count {
            let text = self.next_text();
            running.push((self.append(programs, &text).spawn()?, text));
        }
        let pause = u64::try_from(rng.below(MAX_LIFETIME_US))?;
        std::thread::sleep(Duration::from_micros(pause));
        let (mut acknowledged, mut unacknowledged) = (Vec::new(), Vec::new());
        for (mut child, text) in running {
            child.kill()?;
            match outcome(child)? {
                Ok(Some(turn)) => acknowledged.push((turn, text)),
                Ok(None) => unacknowledged.push(text),
                Err(violation) => return Ok(Err(violation)),
            }
        }
        if let Err(violation) = self.look(&acknowledged, &unacknowledged)? {
            return Ok(Err(violation));
        }
        for text in unacknowledged {
            if let Err(violation) = self.finish(programs, text)? {
                return Ok(Err(violation));
            }
        }
        let looked = self.look(&[], &[])?;
        Ok(looked.map(|()| self.ledger.len()))
    }

    fn next_text(&mut self) -> String {
        self.sent += 1;
        format!("message {}", self.sent)
    }

    fn append(&self, programs: &Programs, text: &str) -> Command {
        let mut command = Command::new(&programs.command);
        command
            .env_clear()
            .env("HOME", self.scratch.path())
            .env("USER", "rig")
            .env("TINE_STORE", self.scratch.path().join("store"))
            .current_dir(self.scratch.path())
            .args(["--json", "append", "-c", "talk", "--create", "--key", text, text])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end and adds it to the ledger.
    fn finish(
        &mut self,
        programs: &Programs,
        text: String,
    ) -> Result<Result<(), Violation>, RigError> {
        match outcome(self.append(programs, &text).spawn()?)? {
            Ok(Some(turn)) => {
                if !self.ledger.iter().any(|(known, _)| *known == turn) {
                    self.ledger.push((turn, text));
                }
                Ok(Ok(()))
            }
            Ok(None) => {
                Ok(Err(Violation::new(BrokenGuarantee::Crashed, "nobody killed it, and it died")))
            }
            Err(violation) => Ok(Err(violation)),
        }
    }

    /// Checks that the path is the ledger, followed by the calls acknowledged now, mixed with calls
    /// that may have been executed without an acknowledgement.
    fn look(
        &mut self,
        acknowledged: &[(TurnId, String)],
        unacknowledged: &[String],
    ) -> Result<Result<(), Violation>, RigError> {
        let anything = !self.ledger.is_empty() || !acknowledged.is_empty();
        let store = match check::open(&self.scratch.path().join("store"), anything) {
            Ok(store) => store,
            Err(violation) => return Ok(Err(violation)),
        };
        let engine = Engine::new(store);
        if let Err(violation) = check::verify(&engine) {
            return Ok(Err(violation));
        }
        let path = match path(&engine) {
            Ok(path) => path,
            Err(_) if !anything => return Ok(Ok(())),
            Err(error) => return Ok(Err(Violation::new(BrokenGuarantee::Lost, error.to_string()))),
        };
        let (known, new) = path.split_at(self.ledger.len().min(path.len()));
        let missing = acknowledged.iter().find(|turn| !new.contains(turn));
        let strange = new
            .iter()
            .find(|turn| !acknowledged.contains(turn) && !unacknowledged.contains(&turn.1));
        let twice =
            new.iter().find(|turn| new.iter().filter(|other| other.1 == turn.1).count() > 1);
        if known != self.ledger {
            return Ok(Err(Violation::new(BrokenGuarantee::Lost, "the path is not the ledger")));
        }
        if let Some((turn, text)) = missing {
            let what = format!("`{text}` was acknowledged as {turn}, and it is not there");
            return Ok(Err(Violation::new(BrokenGuarantee::Lost, what)));
        }
        if let Some((turn, text)) = strange.or(twice) {
            let what = format!("`{text}` ({turn}) was not asked for, or twice");
            return Ok(Err(Violation::new(BrokenGuarantee::Repeated, what)));
        }
        self.ledger = path;
        Ok(Ok(()))
    }
}

fn path(engine: &Engine) -> Result<Vec<(TurnId, String)>, RigError> {
    let conversation = ConversationId::new("talk", &Limits::default())?;
    let page = engine.path(&Call::by("rig"), PathQuery::of(conversation))?;
    let turns = page.turns.into_iter().map(|turn| {
        let text = match &turn.content {
            Content::Kept(body) => body.text_only().unwrap_or_default(),
            Content::Purged(_) => String::new(),
        };
        (turn.id, text)
    });
    Ok(turns.collect())
}

/// Returns what a command printed; `None` if it was killed before.
fn outcome(child: Child) -> Result<Result<Option<TurnId>, Violation>, RigError> {
    let output = child.wait_with_output()?;
    let printed = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
    let turn = printed
        .as_ref()
        .and_then(|answer| answer.pointer("/turns/0/turn_id"))
        .and_then(serde_json::Value::as_str)
        .and_then(|id| id.parse().ok());
    match (turn, output.status.code()) {
        // What was printed whole was promised, also when the kill came right after it.
        (Some(turn), Some(0) | None) => Ok(Ok(Some(turn))),
        (None, None) => Ok(Ok(None)),
        (_, code) => {
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = format!("the command ended with {code:?}: {complaint}");
            Ok(Err(Violation::new(BrokenGuarantee::Crashed, what)))
        }
    }
}
