//! Append by longest common prefix, and where it lands.

use tine_core::hash::message_digest;
use tine_core::{Body, ErrorKind, Limits, Message, Name, Role, Timestamp};
use tine_engine::{Append, OnConflict, Outcome};

use super::{Expected, Ix, Key, ModelValue, ReferenceModel, Rule, Stop, refuse};

/// Where an append starts and which tip follows.
struct AppendPosition {
    start: Option<Ix>,
    branch: Option<Ix>,
    name: Option<Name>,
    forked: bool,
}

/// What is wrong with a message, if anything.
pub(crate) fn fault(message: &Message) -> Option<ErrorKind> {
    let empty = matches!(&message.body, Body::Text(text) if text.is_empty());
    let wrong = (empty && message.role != Role::Tool)
        || (message.role == Role::Tool) != message.tool_call_id.is_some();
    wrong.then_some(ErrorKind::Invalid)
}

impl ReferenceModel {
    pub(crate) fn append(&mut self, request: &Append, now: Timestamp) -> Rule<Expected> {
        let mut faults: Vec<ErrorKind> = request.messages.iter().filter_map(fault).collect();
        if request.messages.is_empty() {
            faults.push(ErrorKind::Invalid);
        }
        let Ok(conversation) = self.conversation(&request.conversation) else {
            return refuse(&[faults, vec![ErrorKind::NotFound]].concat());
        };
        let landing = match self.append_position(conversation, request) {
            Err(Stop::Refuse(kinds)) => return refuse(&[faults, kinds].concat()),
            Err(stop) => return Err(stop),
            Ok(_) if !faults.is_empty() => return refuse(&faults),
            Ok(landing) => landing,
        };
        if let Some(start) = landing.start {
            self.read(Key::Turn(start));
        }
        let turns = self.walk(conversation, landing.start, &request.messages, request.reuse, now);
        let created = turns.iter().any(|(_, outcome)| *outcome == Outcome::Created);
        let last = turns.last().map(|(turn, _)| *turn);
        let branch = match landing.branch {
            Some(branch) => {
                let line = self.path(self.tip(branch));
                self.pass(&line);
                let on_line = last.is_some_and(|last| line.contains(&last));
                if created || !on_line {
                    self.set(Key::Tip(branch), ModelValue::Place(last));
                }
                branch
            }
            None => {
                let name = landing.name.expect("a landing has a branch or a name");
                self.make_branch(conversation, &name, last)
            }
        };
        Ok(Expected::Appended { turns, branch, forked: landing.forked })
    }

    /// Walks down while a live child equals the next message; the rest is made.
    pub(crate) fn walk(
        &mut self,
        conversation: Ix,
        start: Option<Ix>,
        messages: &[Message],
        reuse: bool,
        now: Timestamp,
    ) -> Vec<(Ix, Outcome)> {
        let mut at = start;
        let mut matching = reuse;
        let mut turns = vec![];
        for message in messages {
            let call = message.tool_call_id.as_deref();
            let digest = message_digest(message.role, &message.body, call);
            let offers = if matching { self.offers(conversation, at) } else { vec![] };
            for &(says, lands) in &offers {
                self.weak_read(Key::Turn(says));
                self.pass(&[lands]);
            }
            let found = offers.into_iter().find(|(says, _)| self.nodes[*says].digest == digest);
            let (turn, outcome) = match found {
                Some((says, lands)) => {
                    self.read(Key::Turn(lands));
                    self.weak_read(Key::Turn(says));
                    (lands, Outcome::Reused)
                }
                None => {
                    matching = false;
                    (self.make(conversation, at, message, now), Outcome::Created)
                }
            };
            turns.push((turn, outcome));
            at = Some(turn);
        }
        turns
    }

    fn append_position(&mut self, conversation: Ix, request: &Append) -> Rule<AppendPosition> {
        let text = request.branch.as_deref().unwrap_or("main");
        let branch = self.branch(conversation, text);
        let name = branch.map_or(text.to_owned(), |branch| self.name_of(branch));
        self.weak_read(Key::Name(conversation, name));
        let tip = branch.and_then(|branch| self.tip(branch));
        if let Some(expected) = &request.expected_tip {
            let Some(branch) = branch else { return Err(Stop::Unspecified) };
            let expected = match self.refer_live(Some(conversation), expected) {
                Err(Stop::Refuse(kinds)) => {
                    return refuse(&[kinds, vec![ErrorKind::Conflict]].concat());
                }
                other => other?,
            };
            // A tip that was only compared: whether that is a read is left open.
            self.weak_read(Key::Tip(branch));
            if expected != tip {
                return match (request.on_conflict, &request.parent) {
                    (OnConflict::Refuse, _) => refuse(&[ErrorKind::Conflict]),
                    (OnConflict::Fork, Some(_)) => Err(Stop::Unspecified),
                    (OnConflict::Fork, None) => {
                        let stem = self.name_of(branch);
                        let name = Some(self.free_name(conversation, &stem));
                        Ok(AppendPosition { start: expected, branch: None, name, forked: true })
                    }
                };
            }
        }
        let name = match branch {
            Some(_) => None,
            None => match Name::new(text, &Limits::default()) {
                Ok(name) => Some(name),
                Err(_) => return refuse(&[ErrorKind::Invalid, ErrorKind::NotFound]),
            },
        };
        let start = match &request.parent {
            None if branch.is_none() => {
                return refuse(&[ErrorKind::Invalid, ErrorKind::NotFound]);
            }
            None => {
                if let Some(branch) = branch {
                    self.read(Key::Tip(branch));
                }
                tip
            }
            Some(parent) => {
                let start = self.refer_live(Some(conversation), parent)?;
                if request.branch.is_none() && start.is_some() && start != tip {
                    return refuse(&[ErrorKind::Invalid]);
                }
                start
            }
        };
        Ok(AppendPosition { start, branch, name, forked: false })
    }

    pub(crate) fn name_of(&self, branch: Ix) -> String {
        let conversation = self.branches[branch].conversation;
        let branches = self.branches_of(conversation);
        let found = branches.into_iter().find(|(_, ix)| *ix == branch);
        found.map(|(name, _)| name).unwrap_or_default()
    }

    pub(crate) fn make_branch(&mut self, conversation: Ix, name: &Name, tip: Option<Ix>) -> Ix {
        let branch = self.branches.len();
        self.branches.push(super::ModelBranch { conversation, id: None });
        self.set(Key::Name(conversation, name.to_string()), ModelValue::Branch(branch));
        self.set(Key::Tip(branch), ModelValue::Place(tip));
        branch
    }
}
