//! Every change but append, removal and undo: one short function each.

use tine_core::hash::message_digest;
use tine_core::metadata::MetadataKey;
use tine_core::text::split_at_scalar;
use tine_core::{
    Body, ConversationId, ErrorKind, Json, Message, Metadata, Name, Role, Status, Timestamp,
};
use tine_engine::{Edit, Fork, ForkPoint, MetadataPatch, MoveBranch, Outcome, SplitTurn, TurnRef};

use super::append::fault;
use super::{
    Expected, Half, Ix, Key, ModelTurnState, ModelValue, ReferenceModel, Rule, Stop, refuse,
};

const ROOT_REFUSED: [ErrorKind; 3] =
    [ErrorKind::Protected, ErrorKind::Invalid, ErrorKind::Unsupported];

impl ReferenceModel {
    pub(crate) fn fork(&mut self, request: &Fork) -> Rule<Expected> {
        let named = request.conversation.as_ref().map(|id| self.conversation(id)).transpose()?;
        let (reference, before) = match &request.point {
            ForkPoint::At(reference) => (reference, false),
            ForkPoint::Before(reference) => (reference, true),
        };
        let turn = self.refer(named, reference)?;
        let conversation = match turn {
            Some(turn) => self.nodes[turn].conversation,
            None => named.ok_or(Stop::Unspecified)?,
        };
        let place = match turn {
            None if before => return refuse(&ROOT_REFUSED),
            None => None,
            Some(turn) if before => {
                let first = self.left_most(turn);
                if !self.is_live(first) {
                    let whole = matches!(self.state(turn), ModelTurnState::Split { .. });
                    return if whole {
                        Err(Stop::Unspecified)
                    } else {
                        refuse(&[ErrorKind::NotFound])
                    };
                }
                // The branch stands on what comes before; whether it read the turn is left open.
                self.pass(&[first]);
                self.shown_parent(first)
            }
            Some(turn) => {
                let turn = self.right_most(turn);
                if !self.is_live(turn) {
                    return refuse(&[ErrorKind::NotFound]);
                }
                Some(turn)
            }
        };
        if let Some(place) = place {
            self.read(Key::Turn(place));
        }
        let name = match &request.name {
            Some(name) if self.branch(conversation, name.as_str()).is_some() => {
                return refuse(&[ErrorKind::Conflict]);
            }
            Some(name) => name.clone(),
            None => self.free_name(conversation, "fork"),
        };
        Ok(Expected::Branch(self.make_branch(conversation, &name, place)))
    }

    pub(crate) fn existing_branch(&mut self, conversation: Ix, text: &str) -> Rule<Ix> {
        let branch =
            self.branch(conversation, text).ok_or(Stop::Refuse(vec![ErrorKind::NotFound]))?;
        let name = self.name_of(branch);
        self.weak_read(Key::Name(conversation, name));
        Ok(branch)
    }

    pub(crate) fn rename(
        &mut self,
        id: &ConversationId,
        text: &str,
        name: &Name,
    ) -> Rule<Expected> {
        let conversation = self.conversation(id)?;
        let branch = self.existing_branch(conversation, text)?;
        let old = self.name_of(branch);
        if old == "main" {
            return Err(Stop::Unspecified);
        }
        if old != name.as_str() && self.branch(conversation, name.as_str()).is_some() {
            return refuse(&[ErrorKind::Conflict]);
        }
        if old == name.as_str() {
            self.tolerate(&[ErrorKind::Conflict]);
            return Ok(Expected::Branch(branch));
        }
        // Name and tip may count as one record.
        self.weak_read(Key::Tip(branch));
        self.set(Key::Name(conversation, old), ModelValue::Nothing);
        self.set(Key::Name(conversation, name.to_string()), ModelValue::Branch(branch));
        Ok(Expected::Branch(branch))
    }

    pub(crate) fn drop_branch(&mut self, id: &ConversationId, text: &str) -> Rule<Expected> {
        let conversation = self.conversation(id)?;
        let branch = self.existing_branch(conversation, text)?;
        let name = self.name_of(branch);
        if name == "main" {
            return Err(Stop::Unspecified);
        }
        self.set(Key::Name(conversation, name), ModelValue::Nothing);
        self.set(Key::Tip(branch), ModelValue::Nothing);
        Ok(Expected::Done)
    }

    fn expect_tip(&mut self, conversation: Ix, branch: Ix, request: &MoveBranch) -> Rule<()> {
        let Some(expected) = &request.expected_tip else { return Ok(()) };
        match self.refer_live(Some(conversation), expected) {
            Err(Stop::Refuse(kinds)) => refuse(&[kinds, vec![ErrorKind::Conflict]].concat()),
            Ok(expected) if expected != self.tip(branch) => refuse(&[ErrorKind::Conflict]),
            other => other.map(|_| ()),
        }
    }

    pub(crate) fn revert(&mut self, request: &MoveBranch) -> Rule<Expected> {
        let conversation = self.conversation(&request.conversation)?;
        let branch = self.existing_branch(conversation, &request.branch)?;
        self.expect_tip(conversation, branch, request)?;
        let Some(to) = &request.to else { return Err(Stop::Unspecified) };
        let to = self.refer_live(Some(conversation), to)?;
        let tip = self.tip(branch);
        if to == tip {
            self.tolerate(&[ErrorKind::Invalid]);
        } else if to.is_some_and(|to| !self.path(tip).contains(&to)) {
            return refuse(&[ErrorKind::Invalid]);
        }
        let line = [self.path(to), self.path(tip)].concat();
        self.pass(&line);
        if let Some(to) = to {
            self.read(Key::Turn(to));
        }
        self.open.revert = (to != tip).then_some((branch, tip, to));
        self.set(Key::Tip(branch), ModelValue::Place(to));
        Ok(Expected::Branch(branch))
    }

    pub(crate) fn restore(&mut self, request: &MoveBranch) -> Rule<Expected> {
        let conversation = self.conversation(&request.conversation)?;
        let branch = self.existing_branch(conversation, &request.branch)?;
        self.expect_tip(conversation, branch, request)?;
        let tip = self.tip(branch);
        let to = match &request.to {
            Some(to) => {
                let to = self.refer_live(Some(conversation), to)?;
                if to == tip {
                    self.tolerate(&[ErrorKind::Invalid]);
                } else if tip.is_some_and(|tip| !self.path(to).contains(&tip)) || to.is_none() {
                    return refuse(&[ErrorKind::Invalid]);
                }
                to
            }
            None => {
                let last = self.ops.iter().rev().find_map(|op| match op.revert {
                    Some((of, from, to))
                        if of == branch
                            && op.undone.is_none()
                            && to.map(|to| self.right_most(to)) == tip =>
                    {
                        Some(from)
                    }
                    _ => None,
                });
                let nothing = [
                    ErrorKind::NotFound,
                    ErrorKind::Invalid,
                    ErrorKind::Conflict,
                    ErrorKind::Unsupported,
                ];
                let Some(from) = last else { return refuse(&nothing) };
                let from = from.map(|from| self.right_most(from));
                if from.is_some_and(|from| !self.is_live(from)) {
                    return refuse(&nothing);
                }
                // Where the line was bent since, going there may no longer be a move forward.
                if !(tip.is_none() || self.path(from).contains(&tip.unwrap_or_default())) {
                    self.tolerate(&nothing);
                }
                from
            }
        };
        let line = [self.path(to), self.path(tip)].concat();
        self.pass(&line);
        if let Some(to) = to {
            self.read(Key::Turn(to));
        }
        self.set(Key::Tip(branch), ModelValue::Place(to));
        Ok(Expected::Branch(branch))
    }

    /// Returns a turn by reference, shown, and not the root.
    pub(crate) fn turn(&mut self, reference: &TurnRef) -> Rule<Ix> {
        let named = reference.conversation.as_ref().map(|id| self.conversation(id)).transpose()?;
        let turn = self.refer_live(named, &reference.turn)?;
        let turn = turn.ok_or(Stop::Refuse(ROOT_REFUSED.to_vec()))?;
        if self.get(&Key::Conversation(self.nodes[turn].conversation)) != ModelValue::There {
            return refuse(&[ErrorKind::NotFound]);
        }
        Ok(turn)
    }

    pub(crate) fn edit(&mut self, request: &Edit, now: Timestamp) -> Rule<Expected> {
        let turn = self.turn(&request.turn)?;
        let conversation = self.nodes[turn].conversation;
        let message = Message {
            body: request.body.clone(),
            created_at: None,
            status: Status::Complete,
            metadata: Metadata::default(),
            ..self.read_result(turn)
        };
        let branch = match &request.branch {
            Some(text) => Some(self.existing_branch(conversation, text)?),
            None => None,
        };
        if let Some(kind) = fault(&message) {
            return refuse(&[kind]);
        }
        let parent = self.shown_parent(turn);
        let siblings = self.children(conversation, parent);
        self.pass(&siblings);
        self.read(Key::Turn(turn));
        if let Some(parent) = parent {
            self.read(Key::Turn(parent));
        }
        let call = message.tool_call_id.as_deref();
        let digest = message_digest(message.role, &message.body, call);
        let offers = if request.reuse { self.offers(conversation, parent) } else { vec![] };
        let found = offers.into_iter().find(|(says, _)| self.nodes[*says].digest == digest);
        let (made, outcome) = match found {
            Some((says, lands)) if says == lands => (lands, Outcome::Reused),
            // Whether a split turn is an equal sibling is left open.
            Some(_) => return Err(Stop::Unspecified),
            None => {
                let made = self.make(conversation, parent, &message, now);
                self.nodes[made].edited_from = Some(turn);
                (made, Outcome::Created)
            }
        };
        self.read(Key::Turn(made));
        if let Some(branch) = branch {
            self.set(Key::Tip(branch), ModelValue::Place(Some(made)));
        }
        Ok(Expected::Edited { turn: made, outcome, branch })
    }

    pub(crate) fn split(&mut self, request: &SplitTurn) -> Rule<Expected> {
        let whole = self.turn(&request.turn)?;
        let node = self.nodes[whole].clone();
        if !matches!(node.role, Role::User | Role::Assistant) || node.purged {
            return refuse(&[ErrorKind::Unsupported]);
        }
        let Some(text) = node.body.text_only() else { return refuse(&[ErrorKind::Unsupported]) };
        let (left, right) = match split_at_scalar(&text, request.offset) {
            Ok(halves) => halves,
            Err(_) => return refuse(&[ErrorKind::Invalid]),
        };
        self.read(Key::Turn(whole));
        let (mut for_left, mut for_right) = (self.metadata(whole), self.metadata(whole));
        for_left.auto_title = None;
        for_right.title = None;
        for key in MetadataKey::ALL {
            self.weak_read(Key::Meta(whole, key));
        }
        let half = |text: &str, metadata| Message {
            body: Body::Text(text.to_owned()),
            created_at: Some(node.created_at),
            status: node.status,
            metadata,
            ..Message::text(node.role, "")
        };
        let now = node.created_at;
        let left = self.make(node.conversation, node.parent, &half(left, for_left), now);
        let right = self.make(node.conversation, Some(left), &half(right, for_right), now);
        self.nodes[left].part = Some((Half::Left, whole));
        self.nodes[right].part = Some((Half::Right, whole));
        self.set(Key::Turn(whole), ModelValue::State(ModelTurnState::Split { left, right }));
        self.move_places(&[whole], Some(right), true);
        Ok(Expected::Split { whole, left, right })
    }

    pub(crate) fn set_bookmark(&mut self, name: &Name, turn: &TurnRef) -> Rule<Expected> {
        let turn = self.turn(turn)?;
        self.read(Key::Turn(turn));
        let key = Key::Mark(name.to_string());
        // A name by which a branch is meant would never be found.
        let shadowed = self.branch(self.nodes[turn].conversation, name.as_str()).is_some();
        if self.get(&key) != ModelValue::Place(Some(turn)) {
            match name.as_str() {
                "main" => return refuse(&[ErrorKind::Invalid]),
                _ if shadowed => return refuse(&[ErrorKind::Conflict]),
                _ => {}
            }
        }
        self.set(key, ModelValue::Place(Some(turn)));
        Ok(Expected::Bookmark { name: name.to_string(), turn })
    }

    pub(crate) fn drop_bookmark(&mut self, name: &Name) -> Rule<(Ix, Expected)> {
        let key = Key::Mark(name.to_string());
        let ModelValue::Place(Some(turn)) = self.get(&key) else {
            return refuse(&[ErrorKind::NotFound]);
        };
        self.set(key, ModelValue::Nothing);
        Ok((self.nodes[turn].conversation, Expected::Done))
    }

    pub(crate) fn patch(&mut self, turn: &TurnRef, patch: &MetadataPatch) -> Rule<Expected> {
        let turn = self.turn(turn)?;
        if self.nodes[turn].purged {
            return Err(Stop::Unspecified);
        }
        self.read(Key::Turn(turn));
        if let Some(title) = &patch.title {
            let key = Key::Meta(turn, MetadataKey::Title);
            self.put_title(key, title.as_deref(), patch.force)?;
        }
        if let Some(title) = &patch.auto_title {
            let value = json_value(title.clone().into());
            self.set(Key::Meta(turn, MetadataKey::AutoTitle), value);
        }
        let mut tags = self.metadata(turn).tags;
        if let Some(all) = &patch.tags {
            tags = all.iter().cloned().collect();
        }
        tags.extend(patch.add_tags.iter().cloned());
        tags.retain(|tag| !patch.remove_tags.contains(tag));
        let metadata = Metadata { tags, ..Metadata::default() };
        self.set(Key::Meta(turn, MetadataKey::Tags), json_value(metadata.get(MetadataKey::Tags)));
        if let Some(data) = &patch.custom_data {
            self.set(Key::Meta(turn, MetadataKey::CustomData), json_value(data.clone()));
        }
        Ok(Expected::Turn(turn))
    }
}

pub(crate) fn json_value(json: Json) -> ModelValue {
    if json.is_null() { ModelValue::Nothing } else { ModelValue::Json(json) }
}
