//! A host with a tree of its own, which sends nothing but its turns.
//!
//! The host keeps what chat products keep: messages in a tree, and the one at which it stands. To
//! [`tine_engine::Engine::store_turn`] it sends conversation, turn id, role, content and tool call
//! id, each time with a new key, in the order in which hosts do. After each act the tree that was
//! rebuilt must be the host's, `main` must be the line on which the host stands, and each slot
//! must know every version ever sent.
//!
//! What §6 promises, and what is therefore sent here:
//!
//! - *Append*: a message that follows the one at which the host stands, under a turn id, role and
//!   call that its line does not hold yet. An answer follows a question or a result.
//! - *Edit*: another text for a question or a result anywhere on the line, under the same ids.
//! - *Regenerate*: another text for an answer that is the last of its turn id on the line, while
//!   the line does not end in a result.
//! - *Revert*: an edit to what another version says already; that version is meant.
//! - *Return*: to any message beside the line, by sending everything from the fork on. When the
//!   fork is between answers, the line does not end in a result.
//! - *Again*: any message of the line as it is. An answer is not sent again while the line ends in
//!   a result of the same turn id.
//! - *Undo* and *redo* of the stores made last.
//!
//! What is not promised, and left to `silent.rs`:
//!
//! - a return without sending anything from the fork on, also to an earlier message of the line:
//!   what comes next joins the line that was stored last;
//! - a further answer under one turn id without a result between (it is a version of the one
//!   before), or the same answer again after its results (it is a further one);
//! - two answers under one turn id and on one line that say the same, or an answer that says what
//!   an earlier answer of its turn once said: which of them is meant is unknown;
//! - edits under new ids, as hosts send them that number their versions: without a parent they
//!   are new messages.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tine_core::facts::Slot;
use tine_core::json::Json;
use tine_core::{ConversationId, EntityId, Message, Role};
use tine_engine::{Page, PathQuery, StoreTurn, TopologyRow};
use tine_store::Content;

use super::cases::{self, Checked, ensure};
use crate::world::World;

/// One action of the host's user; numbers are taken modulo what exists.
#[derive(Clone, Copy, Debug)]
enum Act {
    Ask { text: u8 },
    Answer { text: u8 },
    Results { count: u8, text: u8 },
    Change { nth: u8, text: u8 },
    Return { nth: u8 },
    Again { from: u8, count: u8 },
    Undo,
    Redo,
}

#[derive(Clone, Debug)]
struct Script {
    /// Whether turn ids and calls restart on each line, or are never used for another place.
    numbered: bool,
    acts: Vec<Act>,
}

fn script() -> impl Strategy<Value = Script> {
    let n = any::<u8>;
    let text = || 0..3u8;
    let act = prop_oneof![
        4 => text().prop_map(|text| Act::Ask { text }),
        6 => text().prop_map(|text| Act::Answer { text }),
        3 => (1..4u8, text()).prop_map(|(count, text)| Act::Results { count, text }),
        5 => (n(), text()).prop_map(|(nth, text)| Act::Change { nth, text }),
        4 => n().prop_map(|nth| Act::Return { nth }),
        3 => (n(), 1..6u8).prop_map(|(from, count)| Act::Again { from, count }),
        2 => Just(Act::Undo),
        2 => Just(Act::Redo),
    ];
    (any::<bool>(), vec(act, 1..40)).prop_map(|(numbered, acts)| Script { numbered, acts })
}

/// A message in the host's tree.
#[derive(Clone, Debug)]
struct Said {
    slot: Slot,
    text: String,
    parent: Option<usize>,
}

/// The host's tree, and where it stands in it.
#[derive(Clone, Debug, Default)]
struct Chat {
    said: Vec<Said>,
    at: Option<usize>,
}

impl Chat {
    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        (0..self.said.len()).filter(|&one| self.said[one].parent == parent).collect()
    }

    /// The messages down to one, the first one first.
    fn line(&self, to: Option<usize>) -> Vec<usize> {
        let mut line = Vec::new();
        let mut next = to;
        while let Some(one) = next {
            line.push(one);
            next = self.said[one].parent;
        }
        line.reverse();
        line
    }

    fn role_at_end(&self) -> Option<Role> {
        self.at.map(|at| self.said[at].slot.role)
    }

    fn child_that_says(&self, parent: Option<usize>, text: &str) -> Option<usize> {
        self.children(parent).into_iter().find(|&one| self.said[one].text == text)
    }

    /// Answers of one turn id on the line: with every version that stands beside each.
    fn answers(&self, turn_id: &str) -> Vec<usize> {
        let of_turn = |one: &usize| {
            let slot = &self.said[*one].slot;
            slot.role == Role::Assistant && slot.turn_id == turn_id
        };
        self.line(self.at).into_iter().filter(of_turn).collect()
    }

    /// Whether an answer with this text could be taken for another of its turn.
    fn is_mistakable(&self, answers: &[usize], text: &str) -> bool {
        answers.iter().any(|&one| self.child_that_says(self.said[one].parent, text).is_some())
    }

    fn drawn(&self, parent: Option<usize>) -> String {
        let draw = |one: usize| {
            let said = &self.said[one];
            let below = self.drawn(Some(one));
            let below = if below.is_empty() { below } else { format!("({below})") };
            format!("{}:{}{below}", said.slot.role.as_str(), said.text)
        };
        self.children(parent).into_iter().map(draw).collect::<Vec<_>>().join(" ")
    }
}

/// One store, as the host remembers it.
#[derive(Clone, Debug)]
struct Sent {
    slot: Slot,
    text: String,
    entity: EntityId,
    stands: bool,
}

struct Host<'w> {
    world: &'w World,
    numbered: bool,
    chat: Chat,
    sent: Vec<Sent>,
    /// The tree before each store that holds, and which store it was.
    past: Vec<(Chat, usize)>,
    /// Stores that were undone, with the tree that they led to.
    undone: Vec<(Chat, usize)>,
    made: usize,
}

const TALK: &str = "a chat";

fn pick<T: Copy>(items: &[T], nth: u8) -> Option<T> {
    items.get(usize::from(nth) % items.len().max(1)).copied()
}

impl Host<'_> {
    /// The place of a message that follows where the host stands.
    fn next_slot(&mut self, role: Role) -> Option<Slot> {
        // Beside others it is their place.
        if let Some(first) = self.chat.children(self.chat.at).first() {
            let slot = &self.chat.said[*first].slot;
            return (slot.role == role).then(|| slot.clone());
        }
        self.made += 1;
        let line = self.chat.line(self.chat.at);
        let count = |of: &dyn Fn(&Slot) -> bool| {
            line.iter().filter(|&&one| of(&self.chat.said[one].slot)).count()
        };
        let turn_id = match (role, line.last()) {
            (Role::User, _) if self.numbered => {
                format!("{}", count(&|slot| slot.role == Role::User) + 1)
            }
            (Role::User, _) => format!("turn-{}", self.made),
            (_, last) => self.chat.said[*last?].slot.turn_id.clone(),
        };
        let own = |slot: &Slot, role: Role| slot.role == role && slot.turn_id == turn_id;
        let part = match role {
            Role::Assistant => count(&|slot| own(slot, role)),
            _ => 0,
        };
        let tool_call_id = match role {
            Role::Tool if self.numbered => {
                Some(format!("call-{}", count(&|slot| own(slot, role)) + 1))
            }
            Role::Tool => Some(format!("toolu-{}", self.made)),
            _ => None,
        };
        Some(Slot { turn_id, role, tool_call_id, part: u32::try_from(part).unwrap_or(u32::MAX) })
    }

    /// Sends a message and stands at it, unless it only repeats what the line holds.
    fn send(&mut self, one: usize, before: Chat) -> Checked {
        let said = self.chat.said[one].clone();
        let key = format!("conversation-{TALK}-{}-{}", said.slot.turn_id, self.sent.len());
        let message = Message {
            tool_call_id: said.slot.tool_call_id.clone(),
            ..Message::text(said.slot.role, said.text.as_str())
        };
        let call = self.world.call.clone().with_key(key);
        let request = StoreTurn::new(TALK, said.slot.turn_id.as_str(), message);
        let stored = self.world.engine.store_turn(&call, request);
        let stored = stored.map_err(|error| format!("{said:?} was refused: {error}"))?;
        ensure!(stored.slot == said.slot, "{said:?} was stored as {:?}", stored.slot);
        ensure!(!stored.replayed, "{said:?} was taken for a repeated call");
        let (slot, text, entity) = (said.slot, said.text, stored.entity);
        self.past.push((before, self.sent.len()));
        self.undone.clear();
        self.sent.push(Sent { slot, text, entity, stands: true });
        Ok(())
    }

    /// Says something new, or what a message beside it says already, under a parent.
    fn say(&mut self, slot: Slot, parent: Option<usize>, text: &str) -> Checked {
        let before = self.chat.clone();
        let one = self.chat.child_that_says(parent, text).unwrap_or_else(|| {
            self.chat.said.push(Said { slot, text: text.to_owned(), parent });
            self.chat.said.len() - 1
        });
        self.chat.at = Some(one);
        self.send(one, before)
    }

    fn append(&mut self, role: Role, text: u8) -> Checked {
        let Some(slot) = self.next_slot(role) else {
            return Ok(());
        };
        let text = format!("{}{text}", role.as_str());
        if role == Role::Assistant
            && self.chat.is_mistakable(&self.chat.answers(&slot.turn_id), &text)
        {
            return Ok(());
        }
        self.say(slot, self.chat.at, &text)
    }

    fn act(&mut self, act: Act) -> Checked {
        let end = self.chat.role_at_end();
        match act {
            Act::Ask { text } => self.append(Role::User, text),
            Act::Answer { text } if matches!(end, Some(Role::User | Role::Tool)) => {
                self.append(Role::Assistant, text)
            }
            Act::Results { count, text } if matches!(end, Some(Role::Assistant | Role::Tool)) => {
                (0..count).try_for_each(|_| self.append(Role::Tool, text))
            }
            Act::Change { nth, text } => self.change(nth, text),
            Act::Return { nth } => self.go_to(nth),
            Act::Again { from, count } => self.again(from, count),
            // The first store made the conversation, and stays.
            Act::Undo if self.past.len() > 1 => self.undo(),
            Act::Redo if !self.undone.is_empty() => self.redo(),
            _ => Ok(()),
        }
    }

    fn change(&mut self, nth: u8, text: u8) -> Checked {
        let Some(one) = pick(&self.chat.line(self.chat.at), nth) else {
            return Ok(());
        };
        let Said { slot, parent, .. } = self.chat.said[one].clone();
        let text = format!("{}{text}", slot.role.as_str());
        if self.chat.said[one].text == text {
            return Ok(());
        }
        if slot.role == Role::Assistant {
            let answers = self.chat.answers(&slot.turn_id);
            let Some((last, earlier)) = answers.split_last() else {
                return Ok(());
            };
            let ends_in_result = self.chat.role_at_end() == Some(Role::Tool);
            if *last != one || ends_in_result || self.chat.is_mistakable(earlier, &text) {
                return Ok(());
            }
        }
        self.say(slot, parent, &text)
    }

    /// Goes to a message beside the line, sending everything from the fork on.
    fn go_to(&mut self, nth: u8) -> Checked {
        let line = self.chat.line(self.chat.at);
        let beside: Vec<usize> =
            (0..self.chat.said.len()).filter(|one| !line.contains(one)).collect();
        let Some(to) = pick(&beside, nth) else {
            return Ok(());
        };
        let way = self.chat.line(Some(to));
        let from_fork: Vec<usize> = way.into_iter().filter(|one| !line.contains(one)).collect();
        let first = &self.chat.said[from_fork[0]];
        let between_answers = first.slot.role == Role::Assistant && self.chat.at != first.parent;
        if between_answers {
            let answers = self.chat.answers(&first.slot.turn_id);
            let own = |one: &&usize| self.chat.said[**one].slot == first.slot;
            let others: Vec<usize> = answers.iter().filter(|one| !own(one)).copied().collect();
            let ends_in_result = self.chat.role_at_end() == Some(Role::Tool);
            if ends_in_result || self.chat.is_mistakable(&others, &first.text) {
                return Ok(());
            }
        }
        for one in from_fork {
            let before = self.chat.clone();
            self.chat.at = Some(one);
            self.send(one, before)?;
        }
        Ok(())
    }

    fn again(&mut self, from: u8, count: u8) -> Checked {
        let line = self.chat.line(self.chat.at);
        let from = usize::from(from) % line.len().max(1);
        let end = self.chat.at.map(|at| self.chat.said[at].slot.clone());
        for one in line.into_iter().skip(from).take(usize::from(count)) {
            let slot = &self.chat.said[one].slot;
            let behind_result = end
                .as_ref()
                .is_some_and(|end| end.role == Role::Tool && end.turn_id == slot.turn_id);
            if slot.role == Role::Assistant && behind_result {
                continue;
            }
            self.send(one, self.chat.clone())?;
        }
        Ok(())
    }

    fn undo(&mut self) -> Checked {
        let Some((before, sent)) = self.past.pop() else {
            return Ok(());
        };
        let talk = ConversationId::from_stored(TALK);
        let undone = self.world.engine.undo(&self.world.call, &talk, None);
        undone.map_err(|error| format!("the last store cannot be undone: {error}"))?;
        let after = std::mem::replace(&mut self.chat, before);
        self.undone.push((after, sent));
        self.sent[sent].stands = false;
        Ok(())
    }

    fn redo(&mut self) -> Checked {
        let Some((after, sent)) = self.undone.pop() else {
            return Ok(());
        };
        let talk = ConversationId::from_stored(TALK);
        let redone = self.world.engine.redo(&self.world.call, &talk, None);
        redone.map_err(|error| format!("the last undo cannot be taken back: {error}"))?;
        let before = std::mem::replace(&mut self.chat, after);
        self.past.push((before, sent));
        self.sent[sent].stands = true;
        Ok(())
    }

    /// Everything that the contract promises, compared with the host's own tree.
    fn check(&self) -> Checked {
        if self.sent.is_empty() {
            return Ok(());
        }
        let talk = ConversationId::from_stored(TALK);
        let rows = self.world.rows(&talk);
        let (tree, own) = (drawn(&rows, None), self.chat.drawn(None));
        ensure!(tree == own, "the tree is\n  {tree}\nand the host's is\n  {own}");

        let path = self.world.engine.path(&self.world.call, PathQuery::of(talk));
        let path = path.map_err(|error| error.to_string())?;
        let path: Vec<String> = path.turns.iter().map(|turn| content_text(&turn.content)).collect();
        let line = self.chat.line(self.chat.at);
        let line: Vec<String> = line.iter().map(|&one| self.chat.said[one].text.clone()).collect();
        ensure!(path == line, "main is {path:?} and the host's line is {line:?}");

        let mut by_slot: BTreeMap<&Slot, Vec<&Sent>> = BTreeMap::new();
        for sent in &self.sent {
            by_slot.entry(&sent.slot).or_default().push(sent);
        }
        by_slot.values().try_for_each(|sent| self.check_slot(sent))
    }

    fn check_slot(&self, sent: &[&Sent]) -> Checked {
        let (slot, entity) = (&sent[0].slot, sent[0].entity);
        ensure!(sent.iter().all(|one| one.entity == entity), "{slot:?} has several entities");
        let page = Page { limit: Some(1_000), ..Page::default() };
        let listed = self.world.engine.observations(&self.world.call, entity, page);
        let listed = listed.map_err(|error| error.to_string())?.items;
        let versions = listed.iter().filter(|one| one.observation.retracts.is_none());
        let versions: Vec<(String, bool)> = versions
            .map(|one| (text_of(one.observation.fields.get("content")), !one.retracted))
            .collect();
        let expected: Vec<(String, bool)> =
            sent.iter().map(|one| (one.text.clone(), one.stands)).collect();
        ensure!(versions == expected, "{slot:?} lists {versions:?}; sent was {expected:?}");
        let snapshot = text_of(self.world.entity(entity).snapshot.fields.get("content"));
        let last = sent.iter().rev().find(|one| one.stands).map(|one| one.text.clone());
        let last = last.unwrap_or_default();
        ensure!(snapshot == last, "{slot:?} says {snapshot}; the last that stands is {last}");
        Ok(())
    }
}

pub(super) fn text_of(content: Option<&Json>) -> String {
    content.and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn content_text(content: &Content) -> String {
    match content {
        Content::Kept(body) => body.text_only().unwrap_or_default(),
        Content::Purged(_) => "?".to_owned(),
    }
}

fn drawn(rows: &[TopologyRow], parent: Option<tine_core::TurnId>) -> String {
    let children = rows.iter().filter(|row| row.parent == parent);
    let draw = |row: &TopologyRow| {
        let below = drawn(rows, Some(row.id));
        let below = if below.is_empty() { below } else { format!("({below})") };
        format!("{}:{}{below}", row.role.as_str(), row.preview)
    };
    children.map(draw).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_tree_of_a_host_is_rebuilt_from_nothing_but_its_turns() {
    let check = |world: &World, script: &Script| {
        let mut host = Host {
            world,
            numbered: script.numbered,
            chat: Chat::default(),
            sent: Vec::new(),
            past: Vec::new(),
            undone: Vec::new(),
            made: 0,
        };
        for act in &script.acts {
            let done = host.act(*act).and_then(|()| host.check());
            done.map_err(|why| format!("at {act:?}: {why}"))?;
        }
        let problems = world.engine.verify().map_err(|error| error.to_string())?.problems;
        ensure!(problems.is_empty(), "verify finds {problems:?}");
        Ok(())
    };
    cases::run("the_tree_of_a_host_is_rebuilt_from_nothing_but_its_turns", 256, script, check);
}
