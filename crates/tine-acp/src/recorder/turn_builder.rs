//! Builds turns from updates: a state machine over the messages of one agent session.
//!
//! A message is one turn, including the thoughts before it. It ends when another begins: when the
//! message id changes, or, without ids, when something else follows. Calls form a turn of the
//! assistant, and each result is a turn of the tool. Plans are blocks at the position where they
//! arrive. Chunks of a message are joined to one block, in linear time.
//!
//! Before showing an update, the caller stores the turns that are [`due`](TurnBuilder::due). It
//! then passes the update to [`take`](TurnBuilder::take), which returns the id to show it with,
//! shows it, and stores the [`started_calls`](TurnBuilder::started_calls) and the
//! [`result`](TurnBuilder::result).

use std::collections::HashMap;

use tine_core::json::Object;
use tine_core::{Json, Role, Status, TurnId};

use super::gap;
use crate::json_macro::json;
use crate::session_updates::{AGENT_CHUNK, THOUGHT_CHUNK, USER_CHUNK, text_content, thought_id};

/// The size at which a turn ends, because a larger one could not be stored.
const MOST_BYTES: usize = 8 << 20;

/// The most calls that are remembered; the oldest are forgotten first.
const MOST_CALLS: usize = 10_000;

/// A turn that is ready to be stored.
#[derive(Debug, PartialEq)]
pub(super) struct BuiltTurn {
    pub id: TurnId,
    pub role: Role,
    pub content: Vec<Json>,
    pub tool_call: Option<String>,
    pub status: Status,
    /// The agent's own id of the message.
    pub agent_message_id: Option<String>,
    /// The final status of a call.
    pub outcome: Option<String>,
}

/// The progress of a turn that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TurnStage {
    Thinking,
    Speaking,
    Calling,
}

#[derive(Debug)]
struct OpenTurn {
    id: TurnId,
    role: Role,
    stage: TurnStage,
    agent_message_id: Option<String>,
    blocks: Vec<OpenBlock>,
    bytes: usize,
}

#[derive(Debug)]
enum OpenBlock {
    Text(String),
    Thought(String),
    Plan(Json),
    /// Content other than plain text.
    Other(Json),
    /// The call with this id.
    Call(String),
}

/// The state of a tool call.
#[derive(Debug, Default)]
struct CallState {
    members: Object,
    number: u64,
    stored: bool,
    ended: bool,
    /// The label of an update that could not be read.
    gap: Option<Json>,
}

/// The turns of a session that are not complete yet.
#[derive(Debug, Default)]
pub(super) struct TurnBuilder {
    open: Option<OpenTurn>,
    calls: HashMap<String, CallState>,
    calls_seen: u64,
}

fn kind(update: &Json) -> &str {
    update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default()
}

fn member<'v>(update: &'v Json, name: &str) -> Option<&'v str> {
    update.get(name).and_then(Json::as_str)
}

impl TurnBuilder {
    /// Returns the turns of a complete sequence of updates.
    pub(super) fn of(updates: &[Json], promise: &dyn Fn() -> TurnId) -> Vec<BuiltTurn> {
        let mut derivation = TurnBuilder::default();
        let mut ready = Vec::new();
        for update in updates {
            ready.extend(derivation.due(update));
            derivation.take(update, promise);
            ready.extend(derivation.started_calls(update));
            ready.extend(derivation.result(update, promise));
        }
        ready.extend(derivation.close(Status::Complete));
        ready
    }

    /// Returns the turns that end when this update begins.
    pub(super) fn due(&mut self, update: &Json) -> Vec<BuiltTurn> {
        let Some(open) = &self.open else { return Vec::new() };
        let agent_message_id = member(update, "messageId");
        let other = matches!((agent_message_id, &open.agent_message_id), (Some(one), Some(two)) if one != two);
        let ends = match (kind(update), open.role, open.stage) {
            (USER_CHUNK, Role::User, _) => other,
            (USER_CHUNK, ..) => true,
            (
                AGENT_CHUNK | THOUGHT_CHUNK | "tool_call" | "tool_call_update" | "plan",
                Role::User,
                _,
            ) => true,
            (AGENT_CHUNK, _, TurnStage::Speaking) => other,
            (AGENT_CHUNK | THOUGHT_CHUNK, _, TurnStage::Calling) => true,
            (THOUGHT_CHUNK | "tool_call", _, TurnStage::Speaking) => true,
            ("tool_call_update", _, TurnStage::Speaking) => {
                member(update, "toolCallId").is_some_and(|id| !self.calls.contains_key(id))
            }
            _ => false,
        };
        let full = open.bytes >= MOST_BYTES;
        if ends || full { self.close(Status::Complete) } else { Vec::new() }
    }

    /// Takes an update. Returns the id to show it with, if it is part of a message or a thought.
    pub(super) fn take(&mut self, update: &Json, promise: &dyn Fn() -> TurnId) -> Option<String> {
        let agent_message_id = member(update, "messageId").map(str::to_owned);
        match kind(update) {
            USER_CHUNK => {
                let open = self.open_turn(Role::User, TurnStage::Speaking, promise);
                open.agent_message_id = open.agent_message_id.take().or(agent_message_id);
                open.say(update.get("content")?);
                Some(open.id.to_string())
            }
            AGENT_CHUNK => {
                let open = self.open_turn(Role::Assistant, TurnStage::Speaking, promise);
                open.agent_message_id = open.agent_message_id.take().or(agent_message_id);
                open.say(update.get("content")?);
                Some(open.id.to_string())
            }
            THOUGHT_CHUNK => {
                let open = self.open_turn(Role::Assistant, TurnStage::Thinking, promise);
                let thought = update.at(&["content", "text"]).and_then(Json::as_str)?;
                let block = open.think(thought);
                Some(thought_id(open.id, block))
            }
            "plan" => {
                let open = self.open_turn(Role::Assistant, TurnStage::Thinking, promise);
                open.plan(update);
                None
            }
            "tool_call" | "tool_call_update" => {
                self.call(update, promise);
                None
            }
            _ => None,
        }
    }

    /// Returns the turn of the calls that this update starts.
    pub(super) fn started_calls(&mut self, update: &Json) -> Vec<BuiltTurn> {
        match self.status(update) {
            Some(status) if status != "pending" => self.close_calls(),
            _ => Vec::new(),
        }
    }

    /// Returns the result that this update completes.
    pub(super) fn result(
        &mut self,
        update: &Json,
        promise: &dyn Fn() -> TurnId,
    ) -> Option<BuiltTurn> {
        let ends = |status: &String| matches!(status.as_str(), "completed" | "failed");
        let status = self.status(update).map(str::to_owned).filter(ends)?;
        let id = member(update, "toolCallId")?;
        let call = self.calls.get_mut(id).filter(|call| !call.ended)?;
        call.ended = true;
        Some(BuiltTurn {
            id: promise(),
            role: Role::Tool,
            content: call.result(),
            tool_call: Some(id.to_owned()),
            status: Status::Complete,
            agent_message_id: None,
            outcome: Some(status),
        })
    }

    /// Returns the status of the call that an update is about.
    fn status(&self, update: &Json) -> Option<&str> {
        let id = member(update, "toolCallId").filter(|_| is_call(update))?;
        let status = self.calls.get(id)?.members.get("status").and_then(Json::as_str);
        Some(status.unwrap_or("pending"))
    }

    /// Ends the turn of calls, because the agent sends the client a request.
    pub(super) fn close_calls(&mut self) -> Vec<BuiltTurn> {
        match &self.open {
            Some(open) if open.stage == TurnStage::Calling => self.close(Status::Complete),
            _ => Vec::new(),
        }
    }

    /// Ends the turn that is being built.
    pub(super) fn close(&mut self, status: Status) -> Vec<BuiltTurn> {
        let Some(open) = self.open.take() else { return Vec::new() };
        let mut content = Vec::with_capacity(open.blocks.len());
        for block in open.blocks {
            content.push(match block {
                OpenBlock::Text(text) => text_content(&text),
                OpenBlock::Thought(text) => json!({ "type": "thinking", "text": text }),
                OpenBlock::Plan(entries) => json!({ "type": "plan", "entries": entries }),
                OpenBlock::Other(block) => block,
                OpenBlock::Call(id) => match self.calls.get_mut(&id) {
                    Some(call) => {
                        call.stored = true;
                        call.block(&id)
                    }
                    None => continue,
                },
            });
        }
        let (id, role, agent_message_id) = (open.id, open.role, open.agent_message_id);
        vec![BuiltTurn {
            id,
            role,
            content,
            tool_call: None,
            status,
            agent_message_id,
            outcome: None,
        }]
    }

    fn open_turn(
        &mut self,
        role: Role,
        stage: TurnStage,
        promise: &dyn Fn() -> TurnId,
    ) -> &mut OpenTurn {
        let open = self.open.get_or_insert_with(|| OpenTurn {
            id: promise(),
            role,
            stage,
            agent_message_id: None,
            blocks: Vec::new(),
            bytes: 0,
        });
        open.stage = open.stage.max(stage);
        open
    }

    fn call(&mut self, update: &Json, promise: &dyn Fn() -> TurnId) {
        let (Some(id), Some(members)) = (member(update, "toolCallId"), update.as_object()) else {
            return;
        };
        // An id that is reused after its call ended is another call.
        let again = kind(update) == "tool_call" && self.calls.get(id).is_some_and(|it| it.ended);
        if again || !self.calls.contains_key(id) {
            self.calls_seen += 1;
            self.forget_oldest();
            let call = CallState { number: self.calls_seen, ..CallState::default() };
            self.calls.insert(id.to_owned(), call);
            let open = self.open_turn(Role::Assistant, TurnStage::Calling, promise);
            open.blocks.push(OpenBlock::Call(id.to_owned()));
        }
        let bytes = update.to_string().len();
        if let Some(call) = self.calls.get_mut(id) {
            let gap = gap::label(update);
            call.gap = gap.cloned().or(call.gap.take());
            for (name, value) in members.iter() {
                let is_skipped = matches!(name, "sessionUpdate" | "toolCallId")
                    || (name == "_meta" && gap.is_some());
                if !value.is_null() && !is_skipped {
                    call.members.insert(name, value.clone());
                }
            }
        }
        if let Some(open) = &mut self.open {
            open.bytes += bytes;
        }
    }

    fn forget_oldest(&mut self) {
        if self.calls.len() >= MOST_CALLS {
            let oldest = self.calls_seen.saturating_sub(MOST_CALLS as u64 / 2);
            self.calls.retain(|_, call| call.number > oldest || !call.stored);
        }
    }
}

fn is_call(update: &Json) -> bool {
    matches!(kind(update), "tool_call" | "tool_call_update")
}

impl OpenTurn {
    fn say(&mut self, content: &Json) {
        let text = content.get("text").and_then(Json::as_str).filter(|_| is_plain(content));
        match (self.blocks.last_mut(), text) {
            (Some(OpenBlock::Text(said)), Some(text)) => said.push_str(text),
            (_, Some(text)) => self.blocks.push(OpenBlock::Text(text.to_owned())),
            (_, None) => self.blocks.push(OpenBlock::Other(content.clone())),
        }
        self.bytes += text.map_or_else(|| content.to_string().len(), str::len);
    }

    /// Adds to a thought. Returns the index of its block.
    fn think(&mut self, thought: &str) -> usize {
        match self.blocks.last_mut() {
            Some(OpenBlock::Thought(said)) => said.push_str(thought),
            _ => self.blocks.push(OpenBlock::Thought(thought.to_owned())),
        }
        self.bytes += thought.len();
        self.blocks.len() - 1
    }

    /// Adds a plan, which replaces one directly before it.
    fn plan(&mut self, update: &Json) {
        let entries = update.get("entries").cloned().unwrap_or_else(|| json!([]));
        self.bytes += entries.to_string().len();
        match self.blocks.last_mut() {
            Some(OpenBlock::Plan(last)) => *last = entries,
            _ => self.blocks.push(OpenBlock::Plan(entries)),
        }
    }
}

/// Returns whether a content block is only a text.
fn is_plain(content: &Json) -> bool {
    let Some(members) = content.as_object() else { return false };
    content.get("type").and_then(Json::as_str) == Some("text")
        && members.iter().all(|(name, value)| matches!(name, "type" | "text") || value.is_null())
}

impl CallState {
    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
    }

    /// Returns the call as a block of a turn, with what the client was shown of it and the label of
    /// what could not be read.
    fn block(&self, id: &str) -> Json {
        let own = self.members.get("_meta").and_then(|meta| meta.at(&["claudeCode", "toolName"]));
        let own = own.and_then(Json::as_str).filter(|name| !name.is_empty());
        let name = own.or(self.text("title")).or(self.text("kind")).unwrap_or("tool");
        let parameters = match self.members.get("rawInput") {
            Some(input @ Json::Object(_)) => input.clone(),
            Some(input) => json!({ "input": input.clone() }),
            None => json!({}),
        };
        let shown = ["title", "kind", "locations"].into_iter();
        let shown = shown.filter_map(|it| Some((it.to_owned(), self.members.get(it)?.clone())));
        let mut shown: Object = shown.collect();
        if let Some(gap) = &self.gap {
            shown.insert("gap", gap.clone());
        }
        json!({ "type": "tool-use", "id": id, "name": name, "parameters": parameters, "acp": shown })
    }

    /// Returns the content of the result: what the client was shown, otherwise the raw output.
    fn result(&self) -> Vec<Json> {
        let shown = self.members.get("content").and_then(Json::as_array);
        let shown: Vec<Json> = shown
            .into_iter()
            .flatten()
            .map(|item| match (kind_of(item), item.get("content")) {
                ("content", Some(content)) => content.clone(),
                _ => item.clone(),
            })
            .filter(|block| !kind_of(block).is_empty())
            .collect();
        if !shown.is_empty() {
            return shown;
        }
        match self.members.get("rawOutput") {
            Some(Json::String(text)) => vec![text_content(text)],
            Some(output) => vec![text_content(&output.to_string())],
            None => vec![text_content("")],
        }
    }
}

fn kind_of(block: &Json) -> &str {
    block.get("type").and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Describes the turns built from updates: the role and the blocks of each.
    fn derived(updates: &[Json]) -> Vec<String> {
        let minted = Cell::new(0);
        let promise = || {
            minted.set(minted.get() + 1);
            TurnId::from_bytes([minted.get(); 16])
        };
        TurnBuilder::of(updates, &promise).iter().map(described).collect()
    }

    fn described(turn: &BuiltTurn) -> String {
        let block = |block: &Json| match kind_of(block) {
            "text" => member(block, "text").unwrap_or_default().to_owned(),
            "thinking" => format!("({})", member(block, "text").unwrap_or_default()),
            "tool-use" => {
                let parameters = block.get("parameters").map(Json::to_canonical);
                format!(
                    "{}{}",
                    member(block, "name").unwrap_or("?"),
                    parameters.unwrap_or_default()
                )
            }
            other => format!("<{other}>"),
        };
        let blocks: Vec<String> = turn.content.iter().map(block).collect();
        format!("{}: {}", turn.role.as_str(), blocks.join(" | "))
    }

    fn chunk(kind: &str, text: &str, id: Option<&str>) -> Json {
        json!({ "sessionUpdate": kind, "messageId": id, "content": text_content(text) })
    }

    fn says(text: &str) -> Json {
        chunk(AGENT_CHUNK, text, None)
    }

    fn thinks(text: &str) -> Json {
        chunk(THOUGHT_CHUNK, text, None)
    }

    fn call(id: &str, status: &str, input: Json) -> Json {
        json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "Read",
            "status": status, "rawInput": input })
    }

    fn update(id: &str, more: Json) -> Json {
        let mut update = more.as_object().cloned().expect("an object");
        update.insert("sessionUpdate", "tool_call_update".into());
        update.insert("toolCallId", id.into());
        Json::Object(update)
    }

    #[test]
    fn chunks_are_joined_until_something_else_follows() {
        let said = [says("He"), says("llo"), thinks("hm"), says("you"), says("!")];
        assert_eq!(derived(&said), ["assistant: Hello", "assistant: (hm) | you!"]);
    }

    #[test]
    fn message_ids_of_the_agent_separate_messages() {
        let say = |text: &str, id: &str| chunk(AGENT_CHUNK, text, Some(id));
        let said = [say("a", "1"), say("b", "1"), say("c", "2")];
        assert_eq!(derived(&said), ["assistant: ab", "assistant: c"]);
    }

    #[test]
    fn updates_before_a_call_starts_are_part_of_it() {
        let said = [
            says("Look:"),
            call("1", "pending", json!({})),
            update("1", json!({ "rawInput": { "path": "x" } })),
            update("1", json!({ "status": "in_progress" })),
            update("1", json!({ "status": "completed", "rawOutput": "found" })),
            says("There."),
        ];
        let target = [
            "assistant: Look:",
            "assistant: Read{\"path\":\"x\"}",
            "tool: found",
            "assistant: There.",
        ];
        assert_eq!(derived(&said), target);
    }

    #[test]
    fn parallel_calls_are_one_turn_and_results_follow_in_order_of_completion() {
        let said = [
            call("1", "pending", json!({ "n": 1 })),
            call("2", "pending", json!({ "n": 2 })),
            update(
                "2",
                json!({ "status": "failed", "content": [
                { "type": "content", "content": text_content("no") },
                { "type": "diff", "path": "x", "newText": "y" } ] }),
            ),
            update("1", json!({ "status": "completed" })),
            update("1", json!({ "status": "completed" })),
        ];
        let target = ["assistant: Read{\"n\":1} | Read{\"n\":2}", "tool: no | <diff>", "tool: "];
        assert_eq!(derived(&said), target);
    }

    #[test]
    fn a_call_in_one_update_and_a_result_without_a_call_have_both_turns() {
        assert_eq!(derived(&[call("1", "completed", json!({}))]), ["assistant: Read{}", "tool: "]);
        let late = update("9", json!({ "status": "completed", "rawOutput": { "n": 1 } }));
        assert_eq!(
            derived(&[says("So"), late]),
            ["assistant: So", "assistant: tool{}", "tool: {\"n\":1}"]
        );
    }

    #[test]
    fn an_id_that_is_used_again_is_another_call() {
        let twice = [call("1", "completed", json!({})), call("1", "completed", json!({}))];
        assert_eq!(derived(&twice).len(), 4);
    }

    #[test]
    fn of_consecutive_plans_only_the_last_is_kept() {
        let plan = json!({ "sessionUpdate": "plan", "entries": [] });
        let said = [thinks("hm"), plan.clone(), plan.clone(), says("So"), plan, says("on")];
        assert_eq!(derived(&said), ["assistant: (hm) | <plan> | So | <plan> | on"]);
    }

    #[test]
    fn content_other_than_plain_text_is_kept_unchanged() {
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let noted = json!({ "type": "text", "text": "x", "annotations": { "priority": 1 } });
        let of = |content: Json| json!({ "sessionUpdate": AGENT_CHUNK, "content": content });
        assert_eq!(derived(&[says("a"), of(image), of(noted)]), ["assistant: a | <image> | x"]);
    }

    #[test]
    fn user_chunks_of_the_agent_are_user_turns() {
        let said = [chunk(USER_CHUNK, "stop", None), says("ok"), chunk(USER_CHUNK, "go", None)];
        assert_eq!(derived(&said), ["user: stop", "assistant: ok", "user: go"]);
    }

    #[test]
    fn malformed_updates_are_ignored() {
        let odd = [
            json!({}),
            json!({ "sessionUpdate": 7 }),
            json!({ "sessionUpdate": "tool_call" }),
            json!({ "sessionUpdate": AGENT_CHUNK }),
            json!([]),
            Json::Null,
        ];
        assert_eq!(derived(&odd), ["assistant: "; 1]);
    }
}
