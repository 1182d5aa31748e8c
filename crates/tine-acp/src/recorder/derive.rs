//! Turns out of updates: a state machine over what an agent says in one session.
//!
//! A message is a turn, with the thoughts before it. It ends where another begins: by its id where
//! the agent gives ids, else where something else is said. Calls are a turn of the assistant, each
//! result a turn of the tool. Plans are blocks where they come. Chunks of a message are pieces of
//! one block, joined in time linear in their number.
//!
//! The caller stores what is [`due`](Derivation::due) before it shows an update, then lets the
//! update be [`taken`](Derivation::take), which says under which id it is shown, shows it, and
//! stores the calls that are [`under way`](Derivation::under_way) and the [`result`] by it.
//!
//! [`result`]: Derivation::result

use std::collections::HashMap;

use tine_core::json::Object;
use tine_core::{Json, Role, Status, TurnId};

use super::gap;
use crate::json::json;
use crate::show;

/// Bytes of a turn at which it ends, wherever that is: what is larger cannot be stored.
const MOST_BYTES: usize = 8 << 20;

/// Calls that are remembered at most; the oldest are forgotten first.
const MOST_CALLS: usize = 10_000;

/// A turn that is whole, or as whole as it gets.
#[derive(Debug, PartialEq)]
pub(super) struct Ready {
    pub id: TurnId,
    pub role: Role,
    pub content: Vec<Json>,
    pub tool_call: Option<String>,
    pub status: Status,
    /// The agent's own id of the message.
    pub theirs: Option<String>,
    /// How a call ended.
    pub outcome: Option<String>,
}

/// How far a turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Thinking,
    Speaking,
    Calling,
}

#[derive(Debug)]
struct Open {
    id: TurnId,
    role: Role,
    stage: Stage,
    theirs: Option<String>,
    blocks: Vec<Block>,
    bytes: usize,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thought(String),
    Plan(Json),
    /// Content that is no plain text.
    Other(Json),
    /// The call with this id.
    Call(String),
}

/// What is known of a call by now.
#[derive(Debug, Default)]
struct Call {
    members: Object,
    number: u64,
    /// Whether its turn is stored.
    stored: bool,
    /// Whether its result is.
    ended: bool,
    /// The label of an update of it that could not be read.
    gap: Option<Json>,
}

/// What an agent has said in a session and is not stored yet.
#[derive(Debug, Default)]
pub(super) struct Derivation {
    open: Option<Open>,
    calls: HashMap<String, Call>,
    calls_seen: u64,
}

fn kind(update: &Json) -> &str {
    update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default()
}

fn member<'v>(update: &'v Json, name: &str) -> Option<&'v str> {
    update.get(name).and_then(Json::as_str)
}

impl Derivation {
    /// The turns of a session that is told as a whole.
    pub(super) fn of(updates: &[Json], promise: &dyn Fn() -> TurnId) -> Vec<Ready> {
        let mut derivation = Derivation::default();
        let mut ready = Vec::new();
        for update in updates {
            ready.extend(derivation.due(update));
            derivation.take(update, promise);
            ready.extend(derivation.under_way(update));
            ready.extend(derivation.result(update, promise));
        }
        ready.extend(derivation.close(Status::Complete));
        ready
    }

    /// What has ended when this update begins.
    pub(super) fn due(&mut self, update: &Json) -> Vec<Ready> {
        let Some(open) = &self.open else { return Vec::new() };
        let theirs = member(update, "messageId");
        let other = matches!((theirs, &open.theirs), (Some(one), Some(two)) if one != two);
        let ends = match (kind(update), open.role, open.stage) {
            (show::USER, Role::User, _) => other,
            (show::USER, ..) => true,
            (
                show::AGENT | show::THINKING | "tool_call" | "tool_call_update" | "plan",
                Role::User,
                _,
            ) => true,
            (show::AGENT, _, Stage::Speaking) => other,
            (show::AGENT | show::THINKING, _, Stage::Calling) => true,
            (show::THINKING | "tool_call", _, Stage::Speaking) => true,
            ("tool_call_update", _, Stage::Speaking) => {
                member(update, "toolCallId").is_some_and(|id| !self.calls.contains_key(id))
            }
            _ => false,
        };
        let full = open.bytes >= MOST_BYTES;
        if ends || full { self.close(Status::Complete) } else { Vec::new() }
    }

    /// Takes an update in. Answers the id under which it is shown, where it is part of a message
    /// or a thought.
    pub(super) fn take(&mut self, update: &Json, promise: &dyn Fn() -> TurnId) -> Option<String> {
        let theirs = member(update, "messageId").map(str::to_owned);
        match kind(update) {
            show::USER => {
                let open = self.opened(Role::User, Stage::Speaking, promise);
                open.theirs = open.theirs.take().or(theirs);
                open.say(update.get("content")?);
                Some(open.id.to_string())
            }
            show::AGENT => {
                let open = self.opened(Role::Assistant, Stage::Speaking, promise);
                open.theirs = open.theirs.take().or(theirs);
                open.say(update.get("content")?);
                Some(open.id.to_string())
            }
            show::THINKING => {
                let open = self.opened(Role::Assistant, Stage::Thinking, promise);
                let thought = update.at(&["content", "text"]).and_then(Json::as_str)?;
                let block = open.think(thought);
                Some(show::thought_id(open.id, block))
            }
            "plan" => {
                let open = self.opened(Role::Assistant, Stage::Thinking, promise);
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

    /// Calls that are under way by an update that was just taken: their turn is whole.
    pub(super) fn under_way(&mut self, update: &Json) -> Vec<Ready> {
        match self.status(update) {
            Some(status) if status != "pending" => self.close_calls(),
            _ => Vec::new(),
        }
    }

    /// The result that an update which was just taken brings.
    pub(super) fn result(&mut self, update: &Json, promise: &dyn Fn() -> TurnId) -> Option<Ready> {
        let ends = |status: &String| matches!(status.as_str(), "completed" | "failed");
        let status = self.status(update).map(str::to_owned).filter(ends)?;
        let id = member(update, "toolCallId")?;
        let call = self.calls.get_mut(id).filter(|call| !call.ended)?;
        call.ended = true;
        Some(Ready {
            id: promise(),
            role: Role::Tool,
            content: call.result(),
            tool_call: Some(id.to_owned()),
            status: Status::Complete,
            theirs: None,
            outcome: Some(status),
        })
    }

    /// How far the call is that an update is about.
    fn status(&self, update: &Json) -> Option<&str> {
        let id = member(update, "toolCallId").filter(|_| is_call(update))?;
        let status = self.calls.get(id)?.members.get("status").and_then(Json::as_str);
        Some(status.unwrap_or("pending"))
    }

    /// Calls end where the agent asks the client for something.
    pub(super) fn close_calls(&mut self) -> Vec<Ready> {
        match &self.open {
            Some(open) if open.stage == Stage::Calling => self.close(Status::Complete),
            _ => Vec::new(),
        }
    }

    /// Ends what is being said.
    pub(super) fn close(&mut self, status: Status) -> Vec<Ready> {
        let Some(open) = self.open.take() else { return Vec::new() };
        let mut content = Vec::with_capacity(open.blocks.len());
        for block in open.blocks {
            content.push(match block {
                Block::Text(text) => show::text(&text),
                Block::Thought(text) => json!({ "type": "thinking", "text": text }),
                Block::Plan(entries) => json!({ "type": "plan", "entries": entries }),
                Block::Other(block) => block,
                Block::Call(id) => match self.calls.get_mut(&id) {
                    Some(call) => {
                        call.stored = true;
                        call.block(&id)
                    }
                    None => continue,
                },
            });
        }
        let (id, role, theirs) = (open.id, open.role, open.theirs);
        vec![Ready { id, role, content, tool_call: None, status, theirs, outcome: None }]
    }

    fn opened(&mut self, role: Role, stage: Stage, promise: &dyn Fn() -> TurnId) -> &mut Open {
        let open = self.open.get_or_insert_with(|| Open {
            id: promise(),
            role,
            stage,
            theirs: None,
            blocks: Vec::new(),
            bytes: 0,
        });
        open.stage = open.stage.max(stage);
        open
    }

    fn call(&mut self, update: &Json, promise: &dyn Fn() -> TurnId) {
        let (Some(id), Some(told)) = (member(update, "toolCallId"), update.as_object()) else {
            return;
        };
        // An id that is used again after its end is another call.
        let again = kind(update) == "tool_call" && self.calls.get(id).is_some_and(|it| it.ended);
        if again || !self.calls.contains_key(id) {
            self.calls_seen += 1;
            self.forget_oldest();
            let call = Call { number: self.calls_seen, ..Call::default() };
            self.calls.insert(id.to_owned(), call);
            let open = self.opened(Role::Assistant, Stage::Calling, promise);
            open.blocks.push(Block::Call(id.to_owned()));
        }
        let bytes = update.to_string().len();
        if let Some(call) = self.calls.get_mut(id) {
            let gap = gap::label(update);
            call.gap = gap.cloned().or(call.gap.take());
            for (name, value) in told.iter() {
                let passed_over = matches!(name, "sessionUpdate" | "toolCallId")
                    || (name == "_meta" && gap.is_some());
                if !value.is_null() && !passed_over {
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

impl Open {
    fn say(&mut self, content: &Json) {
        let text = content.get("text").and_then(Json::as_str).filter(|_| is_plain(content));
        match (self.blocks.last_mut(), text) {
            (Some(Block::Text(said)), Some(text)) => said.push_str(text),
            (_, Some(text)) => self.blocks.push(Block::Text(text.to_owned())),
            (_, None) => self.blocks.push(Block::Other(content.clone())),
        }
        self.bytes += text.map_or_else(|| content.to_string().len(), str::len);
    }

    /// Adds to a thought; answers which block it is.
    fn think(&mut self, thought: &str) -> usize {
        match self.blocks.last_mut() {
            Some(Block::Thought(said)) => said.push_str(thought),
            _ => self.blocks.push(Block::Thought(thought.to_owned())),
        }
        self.bytes += thought.len();
        self.blocks.len() - 1
    }

    /// A plan replaces the one right before it.
    fn plan(&mut self, update: &Json) {
        let entries = update.get("entries").cloned().unwrap_or_else(|| json!([]));
        self.bytes += entries.to_string().len();
        match self.blocks.last_mut() {
            Some(Block::Plan(last)) => *last = entries,
            _ => self.blocks.push(Block::Plan(entries)),
        }
    }
}

/// Whether a content block says nothing but its text.
fn is_plain(content: &Json) -> bool {
    let Some(members) = content.as_object() else { return false };
    content.get("type").and_then(Json::as_str) == Some("text")
        && members.iter().all(|(name, value)| matches!(name, "type" | "text") || value.is_null())
}

impl Call {
    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
    }

    /// The call as a block of a turn. What a client showed of it is kept beside, and whether part of
    /// it could not be read.
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

    /// What came of it: what the client was shown, or else what the tool gave back.
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
            Some(Json::String(text)) => vec![show::text(text)],
            Some(output) => vec![show::text(&output.to_string())],
            None => vec![show::text("")],
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

    /// What becomes of updates: each turn as its role and its blocks, in short.
    fn derived(updates: &[Json]) -> Vec<String> {
        let minted = Cell::new(0);
        let promise = || {
            minted.set(minted.get() + 1);
            TurnId::from_bytes([minted.get(); 16])
        };
        Derivation::of(updates, &promise).iter().map(told).collect()
    }

    fn told(turn: &Ready) -> String {
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
        json!({ "sessionUpdate": kind, "messageId": id, "content": show::text(text) })
    }

    fn says(text: &str) -> Json {
        chunk(show::AGENT, text, None)
    }

    fn thinks(text: &str) -> Json {
        chunk(show::THINKING, text, None)
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
    fn chunks_are_joined_and_end_where_something_else_is_said() {
        let said = [says("He"), says("llo"), thinks("hm"), says("you"), says("!")];
        assert_eq!(derived(&said), ["assistant: Hello", "assistant: (hm) | you!"]);
    }

    #[test]
    fn ids_of_the_agent_tell_messages_apart() {
        let say = |text: &str, id: &str| chunk(show::AGENT, text, Some(id));
        let said = [say("a", "1"), say("b", "1"), say("c", "2")];
        assert_eq!(derived(&said), ["assistant: ab", "assistant: c"]);
    }

    #[test]
    fn a_call_takes_what_is_told_of_it_before_it_is_under_way() {
        let said = [
            says("Look:"),
            call("1", "pending", json!({})),
            update("1", json!({ "rawInput": { "path": "x" } })),
            update("1", json!({ "status": "in_progress" })),
            update("1", json!({ "status": "completed", "rawOutput": "found" })),
            says("There."),
        ];
        let wanted = [
            "assistant: Look:",
            "assistant: Read{\"path\":\"x\"}",
            "tool: found",
            "assistant: There.",
        ];
        assert_eq!(derived(&said), wanted);
    }

    #[test]
    fn calls_side_by_side_are_one_turn_and_results_come_as_they_end() {
        let said = [
            call("1", "pending", json!({ "n": 1 })),
            call("2", "pending", json!({ "n": 2 })),
            update(
                "2",
                json!({ "status": "failed", "content": [
                { "type": "content", "content": show::text("no") },
                { "type": "diff", "path": "x", "newText": "y" } ] }),
            ),
            update("1", json!({ "status": "completed" })),
            update("1", json!({ "status": "completed" })),
        ];
        let wanted = ["assistant: Read{\"n\":1} | Read{\"n\":2}", "tool: no | <diff>", "tool: "];
        assert_eq!(derived(&said), wanted);
    }

    #[test]
    fn a_call_that_is_told_whole_and_one_that_was_never_begun_have_both_turns() {
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
    fn plans_are_blocks_and_only_the_last_of_a_row_stays() {
        let plan = json!({ "sessionUpdate": "plan", "entries": [] });
        let said = [thinks("hm"), plan.clone(), plan.clone(), says("So"), plan, says("on")];
        assert_eq!(derived(&said), ["assistant: (hm) | <plan> | So | <plan> | on"]);
    }

    #[test]
    fn what_is_no_plain_text_is_kept_as_it_is() {
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let noted = json!({ "type": "text", "text": "x", "annotations": { "priority": 1 } });
        let of = |content: Json| json!({ "sessionUpdate": show::AGENT, "content": content });
        assert_eq!(derived(&[says("a"), of(image), of(noted)]), ["assistant: a | <image> | x"]);
    }

    #[test]
    fn what_others_say_for_the_user_is_the_users() {
        let said = [chunk(show::USER, "stop", None), says("ok"), chunk(show::USER, "go", None)];
        assert_eq!(derived(&said), ["user: stop", "assistant: ok", "user: go"]);
    }

    #[test]
    fn what_is_malformed_is_passed_over() {
        let odd = [
            json!({}),
            json!({ "sessionUpdate": 7 }),
            json!({ "sessionUpdate": "tool_call" }),
            json!({ "sessionUpdate": show::AGENT }),
            json!([]),
            Json::Null,
        ];
        assert_eq!(derived(&odd), ["assistant: "; 1]);
    }
}
