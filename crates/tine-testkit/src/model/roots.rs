//! Conversations: creation, derivation, titles.

use tine_core::hash::root_hash;
use tine_core::{ConversationId, ErrorKind, Json, Message, Name, Timestamp};
use tine_engine::{ConversationPatch, Derive, NewConversation, Outcome};

use super::change::json_value;
use super::{Expected, Ix, Key, ModelConversation, ModelValue, ReferenceModel, Rule, Stop, refuse};

impl ReferenceModel {
    pub(crate) fn create(&mut self, new: &NewConversation, now: Timestamp) -> Rule<Expected> {
        let Some(id) = &new.id else { return Err(Stop::Unspecified) };
        if self.conversations.iter().any(|other| other.id == *id) {
            return match self.conversation(id) {
                Ok(_) => refuse(&[ErrorKind::Conflict]),
                Err(_) => Err(Stop::Unspecified),
            };
        }
        let ix = self.root(id.clone(), new.system_prompt.clone(), new.config.clone(), now);
        if let Some(title) = &new.title {
            self.set(Key::Field(ix, "title"), ModelValue::Json(title.as_str().into()));
        }
        Ok(Expected::Conversation(ix))
    }

    fn root(
        &mut self,
        id: ConversationId,
        prompt: Option<String>,
        config: Json,
        now: Timestamp,
    ) -> Ix {
        let ix = self.conversations.len();
        self.conversations.push(ModelConversation {
            id,
            root_hash: root_hash(prompt.as_deref(), &config),
            prompt,
            config,
            derived_from: None,
            created_at: now,
            log: 0,
        });
        self.set(Key::Conversation(ix), ModelValue::There);
        self.make_branch(ix, &Name::main(), None);
        ix
    }

    pub(crate) fn derive(&mut self, request: &Derive, now: Timestamp) -> Rule<Expected> {
        let from = self.conversation(&request.conversation)?;
        let at = match &request.at {
            Some(at) => Some(self.refer_live(Some(from), at)?),
            None => None,
        };
        let config = request.config.clone().unwrap_or(self.conversations[from].config.clone());
        let hash = root_hash(request.system_prompt.as_deref(), &config);
        if hash == self.conversations[from].root_hash {
            return Err(Stop::Unspecified);
        }
        self.weak_read(Key::Conversation(from));
        let existing = (0..self.conversations.len()).find(|&ix| {
            let other = &self.conversations[ix];
            let derived = other.derived_from.is_some_and(|(origin, _)| origin == from);
            derived
                && other.root_hash == hash
                && self.get(&Key::Conversation(ix)) == ModelValue::There
        });
        let (ix, created) = match (existing, &request.id) {
            (Some(ix), _) => (ix, false),
            (None, None) => return Err(Stop::Unspecified),
            (None, Some(id)) if self.conversations.iter().any(|other| other.id == *id) => {
                return match self.conversation(id) {
                    Ok(_) => refuse(&[ErrorKind::Conflict]),
                    Err(_) => Err(Stop::Unspecified),
                };
            }
            (None, Some(id)) => {
                let ix = self.root(id.clone(), request.system_prompt.clone(), config, now);
                self.conversations[ix].derived_from = Some((from, at.flatten()));
                (ix, true)
            }
        };
        let path = self.path(at.flatten());
        if path.iter().any(|&turn| self.nodes[turn].purged) {
            return Err(Stop::Unspecified);
        }
        let messages: Vec<Message> = path.iter().map(|&turn| self.read_result(turn)).collect();
        for &turn in &path {
            self.weak_read(Key::Turn(turn));
        }
        let turns = self.walk(ix, None, &messages, true, now);
        for ((turn, outcome), original) in turns.iter().zip(&path) {
            if *outcome == Outcome::Created {
                self.nodes[*turn].derived_from = Some(*original);
            }
        }
        let made = turns.iter().filter(|(_, outcome)| *outcome == Outcome::Created).count();
        if let Some((last, _)) = turns.last() {
            let Some(main) = self.branch(ix, "main") else { return Err(Stop::Unspecified) };
            if made > 0 {
                self.set(Key::Tip(main), ModelValue::Place(Some(*last)));
            } else if !self.path(self.tip(main)).contains(last) {
                // Whether `main` follows a path that was all there is left open.
                return Err(Stop::Unspecified);
            }
        }
        Ok(Expected::Derived { conversation: ix, created, turns: made })
    }

    /// Returns a turn as the message that would say it again.
    pub(crate) fn read_result(&self, turn: Ix) -> Message {
        let node = &self.nodes[turn];
        Message {
            role: node.role,
            body: node.body.clone(),
            tool_call_id: node.call.clone(),
            created_at: Some(node.created_at),
            status: node.status,
            metadata: self.metadata(turn),
        }
    }

    pub(crate) fn patch_conversation(
        &mut self,
        id: &ConversationId,
        patch: &ConversationPatch,
    ) -> Rule<Expected> {
        let ix = self.conversation(id)?;
        if let Some(title) = &patch.title {
            self.put_title(Key::Field(ix, "title"), title.as_deref(), patch.force)?;
        }
        if let Some(metadata) = &patch.metadata {
            self.set(Key::Field(ix, "metadata"), json_value(metadata.clone()));
        }
        if let Some(archived) = patch.archived {
            let value = if archived { ModelValue::There } else { ModelValue::Nothing };
            self.set(Key::Field(ix, "archived"), value);
        }
        Ok(Expected::Conversation(ix))
    }

    /// Titles are stable once set. Whether the same title again, or none, counts as a second
    /// setting is left open.
    pub(crate) fn put_title(&mut self, key: Key, title: Option<&str>, force: bool) -> Rule<()> {
        let value = title.map_or(ModelValue::Nothing, |title| ModelValue::Json(title.into()));
        let present = self.get(&key);
        if present != ModelValue::Nothing && !force {
            if value != ModelValue::Nothing && value != present {
                return refuse(&[ErrorKind::Conflict]);
            }
            self.tolerate(&[ErrorKind::Conflict]);
        }
        self.set(key, value);
        Ok(())
    }
}
