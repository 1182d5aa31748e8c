//! Lines that the program under test writes outside of the store: what it began, and what it
//! was told.
//!
//! One line is one write to the file, made after the engine has answered, so it is there after a
//! kill; and the shim puts it into the journal between the writes that came before and after.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use tine_core::Digest;

use crate::RigError;
use crate::request::RequestEnd;

/// The file of the lines.
#[derive(Debug)]
pub struct Marks {
    file: Mutex<File>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A step is about to run.
    Begun(usize),
    /// It was acknowledged, with this digest of the answer.
    Done(usize, String),
    /// It was rejected by the rules.
    Refused(usize),
    /// The disk was full.
    Full(usize),
    /// It was stored, but its traces could not be removed.
    Unswept(usize),
    /// The store failed.
    Failed(usize),
}

impl Marks {
    /// Opens a file to append to.
    pub fn open(path: &Path) -> Result<Self, RigError> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Marks { file: Mutex::new(file) })
    }

    /// Records that a step is about to run.
    pub fn begun(&self, worker: u64, step: usize) -> Result<(), RigError> {
        self.line(format!("{worker} {step} begun\n"))
    }

    /// Records that a step has ended.
    pub fn ended(&self, worker: u64, step: usize, ended: &RequestEnd) -> Result<(), RigError> {
        self.line(match ended {
            RequestEnd::Done(answer) => {
                format!("{worker} {step} done {}\n", answer_digest(&answer.line))
            }
            RequestEnd::Refused(why) => format!("{worker} {step} refused {why}\n"),
            RequestEnd::Full => format!("{worker} {step} full\n"),
            RequestEnd::Unswept => format!("{worker} {step} unswept\n"),
            RequestEnd::Failed(why) => {
                format!("{worker} {step} failed {}\n", why.replace('\n', " "))
            }
        })
    }

    /// Writes a line, including its newline, at once.
    pub(crate) fn line(&self, line: String) -> Result<(), RigError> {
        let mut file = self.file.lock().map_err(|_| "another worker panicked")?;
        Ok(file.write_all(line.as_bytes())?)
    }
}

/// Returns the digest of an answer for a line.
pub fn answer_digest(answer: &str) -> String {
    Digest::of(answer.as_bytes()).to_hex()
}

/// Parses a line; an incomplete one gives `None`.
pub fn parse(line: &str) -> Option<(u64, Mark)> {
    let mut words = line.split(' ');
    let worker = words.next()?.parse().ok()?;
    let step = words.next()?.parse().ok()?;
    let mark = match words.next()? {
        "begun" => Mark::Begun(step),
        "done" => Mark::Done(step, words.next()?.to_owned()),
        "refused" => Mark::Refused(step),
        "full" => Mark::Full(step),
        "unswept" => Mark::Unswept(step),
        "failed" => Mark::Failed(step),
        _ => return None,
    };
    Some((worker, mark))
}

/// Reads a file of lines.
pub fn read(path: &Path) -> Result<Vec<(u64, Mark)>, RigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().filter_map(parse).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The progress of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps that were answered.
    pub answered: usize,
    /// Whether the next step was begun.
    pub begun: bool,
}

impl Progress {
    /// Updates the progress by a line.
    pub fn see(&mut self, mark: &Mark) {
        match mark {
            Mark::Begun(step) => *self = Progress { answered: *step, begun: true },
            Mark::Done(step, _)
            | Mark::Refused(step)
            | Mark::Full(step)
            | Mark::Unswept(step)
            | Mark::Failed(step) => {
                *self = Progress { answered: step + 1, begun: false };
            }
        }
    }
}
