//! The history of a crowd, in the order in which it happened.
//!
//! All processes append to one file, a line before each call and a line after it. The operating
//! system orders the lines. If the second line of a call comes before the first line of another,
//! the call was answered before the other began, whichever processes they belong to.

use std::collections::HashMap;
use std::path::Path;

use super::calls::{CallId, Picks};
use crate::report::{BrokenGuarantee, Violation};

/// A call that was answered.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    pub who: CallId,
    pub picks: Picks,
    /// The line before it.
    pub begun: usize,
    /// The line after it.
    pub ended: usize,
    pub answer: String,
}

/// Reads the file. Every call must have been answered, and none with an error or with the message
/// that the store is busy.
pub fn read(path: &Path) -> Result<Vec<RecordedCall>, Violation> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Violation::new(BrokenGuarantee::Crashed, format!("the history: {error}"))
    })?;
    let mut open: HashMap<CallId, (usize, Picks)> = HashMap::new();
    let mut calls = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let strange =
            || Violation::new(BrokenGuarantee::Crashed, format!("line {number}: `{line}`"));
        let mut words = line.splitn(3, ' ');
        let who = words.next().and_then(CallId::from_actor).ok_or_else(strange)?;
        let (what, rest) = (words.next(), words.next().unwrap_or_default());
        match what {
            Some("begun") => {
                open.insert(who, (number, Picks::parse(rest).ok_or_else(strange)?));
            }
            Some("ended") => {
                let (begun, picks) = open.remove(&who).ok_or_else(strange)?;
                refuse_failure(who, rest)?;
                let answer = rest.to_owned();
                calls.push(RecordedCall { who, picks, begun, ended: number, answer });
            }
            _ => return Err(strange()),
        }
    }
    match open.keys().min() {
        Some(who) => {
            Err(Violation::new(BrokenGuarantee::Crashed, format!("{who} was never answered")))
        }
        None => Ok(calls),
    }
}

fn refuse_failure(who: CallId, answer: &str) -> Result<(), Violation> {
    if !answer.starts_with("failed") {
        return Ok(());
    }
    let broken = match answer.contains("busy") || answer.contains("locked") {
        true => BrokenGuarantee::Busy,
        false => BrokenGuarantee::Crashed,
    };
    Err(Violation::new(broken, format!("{who} was answered: {answer}")))
}

/// The position of each call in relation to the log: which prefixes of the log a call without an
/// entry may have seen.
#[derive(Debug)]
pub struct Windows {
    /// For each last line of a logged call, the highest position of all that ended until then.
    ended: Vec<(usize, usize)>,
    /// For each first line of a logged call, the lowest position of all that began from then on.
    begun: Vec<(usize, usize)>,
    length: usize,
}

impl Windows {
    /// Builds the windows from the logged calls, in the order of the log.
    pub fn new(log: &[&RecordedCall]) -> Self {
        let places = || log.iter().enumerate();
        let mut ended: Vec<(usize, usize)> =
            places().map(|(place, call)| (call.ended, place + 1)).collect();
        ended.sort_unstable();
        let mut furthest = 0;
        for (_, place) in &mut ended {
            furthest = furthest.max(*place);
            *place = furthest;
        }
        let mut begun: Vec<(usize, usize)> =
            places().map(|(place, call)| (call.begun, place)).collect();
        begun.sort_unstable();
        let mut earliest = log.len();
        for (_, place) in begun.iter_mut().rev() {
            earliest = earliest.min(*place);
            *place = earliest;
        }
        Windows { ended, begun, length: log.len() }
    }

    /// Returns the shortest and the longest prefix of the log that a call may have seen: everything
    /// answered before it began, and nothing begun after it was answered.
    pub fn of(&self, call: &RecordedCall) -> (usize, usize) {
        let before = self.ended.partition_point(|(line, _)| *line < call.begun);
        let shortest = before.checked_sub(1).map_or(0, |last| self.ended[last].1);
        let after = self.begun.partition_point(|(line, _)| *line < call.ended);
        let longest = self.begun.get(after).map_or(self.length, |first| first.1);
        (shortest, longest)
    }
}
