//! A prompt, from the question to the end of the answer.
//!
//! The question is recorded, and shown with its id, before the model is asked. The answer's id is
//! reserved before its first chunk, and the answer is recorded when it ends, for whatever reason,
//! with all that was said by then.
//!
//! A model may call the tools of `model_tools` several times before it answers. Its text with the
//! calls is a turn, and so is each result; both are recorded and shown as they arrive.

use std::ops::ControlFlow;

use tine_core::json::{Json, Object, object};
use tine_core::{Body, ErrorKind, Limits, Message, Metadata, Reference, Role, TurnId};
use tine_engine::{Append, BranchView, Call};
use tine_formats::redact;
use tine_llm::reply::{Reply, ReplyContent, ReplyEnd, ReplyPrompt, source_info};
use tine_llm::{ChatMessage, Delta, Finish, ToolCall};

use crate::agent::{Agent, MethodResult};
use crate::json_macro::json;
use crate::json_rpc::{RpcError, RpcResult};
use crate::line_io::LineWriter;
use crate::open_sessions::PromptClaim;
use crate::session_updates::{
    AGENT_CHUNK, THOUGHT_CHUNK, USER_CHUNK, message_chunk, text_content, thought_id, turn_updates,
};
use crate::{model_tools, session_branches, session_list, unanswered_calls};

/// Content types that a question may have.
const QUESTION_TYPES: [&str; 3] = ["text", "resource_link", "resource"];

/// Rounds of tool calls before the model must answer.
const MAX_TOOL_ROUNDS: usize = 8;

/// Attempts to record a question while others write to the same session.
const MAX_ATTEMPTS: usize = 32;

/// One prompt in one session.
pub(crate) struct PromptRun<'a> {
    agent: &'a Agent,
    out: &'a LineWriter,
    claim: PromptClaim,
    session: String,
    /// The branch being appended to: the session's, or a new one if others wrote to the session
    /// too.
    branch: BranchView,
    /// Turns recorded after the question.
    turns_after: usize,
}

impl<'a> PromptRun<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        out: &'a LineWriter,
        claim: PromptClaim,
    ) -> RpcResult<Self> {
        let session = claim.id.to_string();
        let branch =
            agent.engine.branch_by_id(&agent.call, claim.id).map_err(|error| {
                match error.kind() {
                    ErrorKind::NotFound => {
                        RpcError::no_session(&session, "; the session was deleted")
                    }
                    _ => error.into(),
                }
            })?;
        Ok(PromptRun { agent, out, claim, session, branch, turns_after: 0 })
    }

    pub(crate) fn run(mut self, params: &Json) -> MethodResult {
        let question = self.question(params)?;
        let first = self.branch.tip.is_none();
        let asked = self.record_question(&question)?;
        for block in &question {
            self.show(message_chunk(USER_CHUNK, &asked.to_string(), block.clone()));
        }
        if first {
            let (engine, call) = (&self.agent.engine, &self.agent.call);
            self.show(session_list::title_update(engine, call, &self.branch)?);
        }
        let original_branch = self.branch.id;
        let (answer, ended) = self.answer(asked)?;
        let reason = match ended {
            _ if self.claim.cancel.is_set() => "cancelled",
            Err(error) => return Err(error),
            Ok(ReplyEnd { finish: Finish::Length, .. }) => "max_tokens",
            Ok(ReplyEnd { finish: Finish::Refused, .. }) => {
                self.revert_refused_question()?;
                "refusal"
            }
            Ok(_) => "end_turn",
        };
        let mut note = Object::new();
        note.insert("userMessageId", asked.to_string().into());
        if let Some(answer) = answer {
            note.insert("messageId", answer.to_string().into());
        }
        if self.branch.id != original_branch {
            note.insert("sessionId", self.branch.id.to_string().into());
        }
        Ok(json!({ "stopReason": reason, "_meta": { "tine": note } }))
    }

    /// Asks the model until it answers without calling tools. Returns the last turn with content,
    /// and how the reply ended.
    fn answer(&mut self, asked: TurnId) -> RpcResult<(Option<TurnId>, RpcResult<ReplyEnd>)> {
        let mut question = self.reply().prompt(asked)?;
        let mut last_answer = None;
        let mut rounds = 0;
        loop {
            question.chat.tools =
                if rounds < MAX_TOOL_ROUNDS { model_tools::tools() } else { Vec::new() };
            rounds += 1;
            let answer = self.agent.engine.promise_turn_id();
            let mut content = ReplyContent::default();
            let mut ended = self.ask(asked, &question, answer, &mut content);
            self.normalise_calls(answer, &mut ended);
            let text = content.text();
            if self.record_answer(answer, content, &ended)? {
                last_answer = Some(answer);
            }
            let calls = ended.as_ref().map(|ended| ended.calls.clone()).unwrap_or_default();
            if calls.is_empty() {
                return Ok((last_answer, ended));
            }
            question.chat.messages.push(ChatMessage::with_calls(text, calls.clone()));
            for call in calls {
                let done = self.call(answer, &call)?;
                question.chat.messages.push(ChatMessage::tool_result(call, done));
            }
            if self.claim.cancel.is_set() {
                return Ok((last_answer, ended));
            }
        }
    }

    /// Gives every call an id, and drops the calls of a reply that was truncated or cancelled.
    fn normalise_calls(&self, answer: TurnId, ended: &mut RpcResult<ReplyEnd>) {
        let Ok(ended) = ended else { return };
        if ended.finish != Finish::Stop || self.claim.cancel.is_set() {
            ended.calls.clear();
        }
        let calls = ended.calls.iter_mut().enumerate();
        for (nth, call) in calls.filter(|(_, call)| call.id.is_empty()) {
            call.id = format!("{answer}-{nth}");
        }
    }

    /// Calls a tool, then records and shows its result.
    fn call(&mut self, turn: TurnId, call: &ToolCall) -> RpcResult<String> {
        self.show(json!({
            "sessionUpdate": "tool_call",
            "toolCallId": call.id.as_str(),
            "title": call.name.as_str(),
            "kind": if call.name == "store_facts" { "other" } else { "search" },
            "status": "in_progress",
            "rawInput": model_tools::exact(&call.arguments, self.agent.engine.limits()).unwrap_or_default(),
        }));
        let done = model_tools::run(&self.agent.engine, &self.agent.call, turn, call);
        let status = if done.failed { "failed" } else { "completed" };
        let custom = object([("acp", object([("status", status.into())]))]);
        let metadata = Metadata { custom_data: Some(custom), ..Metadata::default() };
        let result = Message { metadata, ..Message::tool(&call.id, &done.text) };
        self.record(self.agent.engine.promise_turn_id(), result)?;
        self.show(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": call.id.as_str(),
            "status": status,
            "content": [{ "type": "content", "content": text_content(&done.text) }],
        }));
        Ok(done.text)
    }

    fn show(&self, update: Json) {
        self.out.send_update(&self.session, update);
    }

    /// Returns the content blocks of the question, checked.
    fn question(&self, params: &Json) -> RpcResult<Vec<Json>> {
        let blocks = question_blocks(params)?;
        for block in blocks {
            let kind = block.get("type").and_then(Json::as_str).unwrap_or_default();
            if !QUESTION_TYPES.contains(&kind) {
                let known = QUESTION_TYPES.join(", ");
                let why = format!("content of type `{kind}` is not supported; send {known}");
                return Err(RpcError::invalid(why));
            }
        }
        Ok(blocks.to_vec())
    }

    /// Records the question, preceded by placeholder results for unanswered calls.
    fn record_question(&mut self, question: &[Json]) -> RpcResult<TurnId> {
        let mut question = question_message(question, self.agent.engine.limits())?;
        question.metadata.source_info = Some(source_info(self.about()));
        for _ in 0..MAX_ATTEMPTS {
            let (engine, call) = (&self.agent.engine, &self.agent.call);
            let mut messages = unanswered_calls::placeholder_results(engine, call, &self.branch)?;
            messages.push(question.clone());
            let call = self.redact(&mut messages);
            match self.agent.engine.append(
                &call,
                Append { reuse: false, ..session_branches::append_at_tip(&self.branch, messages) },
            ) {
                Ok(done) => {
                    self.branch = done.branch;
                    for turn in done.turns.iter().filter(|turn| turn.role == Role::Tool) {
                        turn_updates(turn).into_iter().for_each(|update| self.show(update));
                    }
                    if let Some(turn) = done.turns.last() {
                        return Ok(turn.id);
                    }
                }
                // Someone else wrote to this session, so other calls may be unanswered now.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.branch =
                        self.agent.engine.branch_by_id(&self.agent.call, self.claim.id)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RpcError::of(ErrorKind::Busy, "other writers kept changing this session; try again"))
    }

    /// Redacts secrets if the agent is configured to, and returns a call that reports their number.
    fn redact(&self, messages: &mut [Message]) -> Call {
        let call = self.agent.call.clone();
        match self.agent.redact {
            true => call.with_redacted(redact::messages(messages)),
            false => call,
        }
    }

    /// Asks the model and shows the reply while it streams.
    fn ask(
        &self,
        asked: TurnId,
        question: &ReplyPrompt,
        answer: TurnId,
        content: &mut ReplyContent,
    ) -> RpcResult<ReplyEnd> {
        let message = answer.to_string();
        let mut each = |piece: Delta<'_>, block: usize| {
            if self.claim.cancel.is_set() || self.out.is_closed() {
                return ControlFlow::Break(());
            }
            match piece {
                Delta::Silence => {}
                Delta::Text(piece) => {
                    self.show(message_chunk(AGENT_CHUNK, &message, text_content(piece)));
                }
                Delta::Thought(piece) => {
                    let id = thought_id(answer, block);
                    self.show(message_chunk(THOUGHT_CHUNK, &id, text_content(piece)));
                }
            }
            ControlFlow::Continue(())
        };
        self.reply().ask_with(question, content, &mut each).map_err(|error| {
            tracing::warn!(%error, "the model did not answer");
            let data = json!({ "userMessageId": asked.to_string() });
            RpcError::of(ErrorKind::Internal, error.to_string()).with_data(data)
        })
    }

    fn reply(&self) -> Reply<'_> {
        let Agent { engine, call, model, .. } = self.agent;
        Reply { engine, call, model, about: self.about() }
    }

    /// Records the answer, if it has content.
    fn record_answer(
        &mut self,
        answer: TurnId,
        content: ReplyContent,
        ended: &RpcResult<ReplyEnd>,
    ) -> RpcResult<bool> {
        let message = self
            .reply()
            .message(content, ended.as_ref().ok())
            .map_err(|error| RpcError::of(ErrorKind::TooLarge, format!("the answer: {error}")))?;
        let Some(message) = message else { return Ok(false) };
        self.record(answer, message)?;
        Ok(true)
    }

    /// Records a message after the question.
    fn record(&mut self, id: TurnId, message: Message) -> RpcResult<()> {
        let Some(last) = self.branch.tip else { return Ok(()) };
        let mut messages = [message];
        let call = self.redact(&mut messages);
        let [message] = messages;
        let reply = Reply { call: &call, ..self.reply() };
        let done = reply.record(&self.branch, last, id, message)?;
        if done.forked {
            tracing::warn!(session = self.session, branch = %done.branch.name,
                "others wrote to the session; the answer is on a new branch");
        }
        self.branch = done.branch;
        self.turns_after += 1;
        Ok(())
    }

    fn revert_refused_question(&self) -> RpcResult<()> {
        let question = format!("{}~{}", self.branch.id, 1 + self.turns_after);
        let before = Reference::parse(&question).map_err(tine_engine::Error::from)?;
        let (engine, call) = (&self.agent.engine, &self.agent.call);
        session_branches::revert_refused_question(engine, call, &self.branch, Some(before))
            .map(drop)
    }

    /// Returns the source info of messages in this session.
    fn about(&self) -> Vec<(&'static str, Json)> {
        let mut about = vec![("workspace", object([("cwd", self.claim.cwd.as_str().into())]))];
        about.extend(self.agent.client().map(|client| ("client", client)));
        about
    }
}

/// Returns the content blocks of the parameter `prompt`.
pub(crate) fn question_blocks(params: &Json) -> RpcResult<&[Json]> {
    let blocks = params.get("prompt").and_then(Json::as_array).filter(|blocks| !blocks.is_empty());
    blocks
        .ok_or_else(|| RpcError::invalid("`prompt` must be an array of at least one content block"))
}

/// Returns the message of a question.
pub(crate) fn question_message(blocks: &[Json], limits: &Limits) -> RpcResult<Message> {
    let body = Body::from_content(Json::Array(blocks.to_vec()), Role::User, limits)
        .map_err(|error| RpcError::invalid(format!("`prompt`: {error}")))?;
    Ok(Message { body, ..Message::text(Role::User, "") })
}
