//! A prompt, from the question to the end of the answer.
//!
//! The question is recorded and shown with its id before the model is asked. The answer's id is
//! promised before its first piece, and the answer recorded when it ends, however it ends: what was
//! said until then is kept.
//!
//! A model may call the tools of `memory` before it answers, a few times in a row: what it says
//! with the calls is a turn, and so is each result, recorded and shown as they come.

use std::ops::ControlFlow;

use tine_core::json::{Json, Object, object};
use tine_core::{Body, ErrorKind, Message, Metadata, Reference, Role, Status, TurnId};
use tine_engine::{Append, BranchView, Call, MoveBranch};
use tine_formats::redact;
use tine_llm::reply::{Reply, ReplyContent, ReplyEnd, ReplyPrompt, source_info};
use tine_llm::{ChatMessage, Delta, Finish, ToolCall};

use crate::agent::{Agent, Answer};
use crate::json::json;
use crate::lines::Out;
use crate::sessions::Claim;
use crate::wire::{self, Refusal};
use crate::{listing, memory, open_calls, show};

/// What a question may consist of.
const ASKED: [&str; 3] = ["text", "resource_link", "resource"];

/// How often in a row a model may call tools; then it is asked to answer.
const ROUNDS: usize = 8;

/// How often a question is recorded anew because others wrote to the same session.
const TRIES: usize = 32;

/// One prompt in one session.
pub(crate) struct Prompt<'a> {
    agent: &'a Agent,
    out: &'a Out,
    claim: Claim,
    session: String,
    /// Where what is said goes: the session's branch, or one of its own if others wrote there too.
    branch: BranchView,
    /// Turns that were recorded behind the question.
    behind: usize,
}

impl<'a> Prompt<'a> {
    pub(crate) fn new(agent: &'a Agent, out: &'a Out, claim: Claim) -> Result<Self, Refusal> {
        let session = claim.id.to_string();
        let branch =
            agent.engine.branch_by_id(&agent.call, claim.id).map_err(|error| {
                match error.kind() {
                    ErrorKind::NotFound => Refusal::no_session(&session, "; it was deleted"),
                    _ => error.into(),
                }
            })?;
        Ok(Prompt { agent, out, claim, session, branch, behind: 0 })
    }

    pub(crate) fn run(mut self, params: &Json) -> Answer {
        let question = self.question(params)?;
        let first = self.branch.tip.is_none();
        let asked = self.record_question(&question)?;
        for block in &question {
            self.show(show::chunk(show::USER, &asked.to_string(), block.clone()));
        }
        if first {
            self.show_title()?;
        }
        let began = self.branch.id;
        let (answer, ended) = self.answer(asked)?;
        let reason = match ended {
            _ if self.claim.stop.wanted() => "cancelled",
            Err(refusal) => return Err(refusal),
            Ok(ReplyEnd { finish: Finish::Length, .. }) => "max_tokens",
            Ok(ReplyEnd { finish: Finish::Refused, .. }) => {
                self.take_back()?;
                "refusal"
            }
            Ok(_) => "end_turn",
        };
        let mut said = Object::new();
        said.insert("userMessageId", asked.to_string().into());
        if let Some(answer) = answer {
            said.insert("messageId", answer.to_string().into());
        }
        if self.branch.id != began {
            said.insert("sessionId", self.branch.id.to_string().into());
        }
        Ok(json!({ "stopReason": reason, "_meta": { "tine": said } }))
    }

    /// Asks the model until it answers without calling tools; the last turn that says something,
    /// and how it ended.
    fn answer(
        &mut self,
        asked: TurnId,
    ) -> Result<(Option<TurnId>, Result<ReplyEnd, Refusal>), Refusal> {
        let mut question = self.reply().prompt(asked)?;
        let mut said = None;
        let mut rounds = 0;
        loop {
            question.chat.tools = if rounds < ROUNDS { memory::tools() } else { Vec::new() };
            rounds += 1;
            let answer = self.agent.engine.promise_turn_id();
            let mut spoken = ReplyContent::default();
            let mut ended = self.ask(asked, &question, answer, &mut spoken);
            self.settle_calls(answer, &mut ended);
            let text = spoken.text();
            if self.record_answer(answer, spoken, &ended)? {
                said = Some(answer);
            }
            let calls = ended.as_ref().map(|ended| ended.calls.clone()).unwrap_or_default();
            if calls.is_empty() {
                return Ok((said, ended));
            }
            question.chat.messages.push(ChatMessage::with_calls(text, calls.clone()));
            for call in calls {
                let done = self.call(answer, &call)?;
                question.chat.messages.push(ChatMessage::tool_result(call, done));
            }
            if self.claim.stop.wanted() {
                return Ok((said, ended));
            }
        }
    }

    /// Calls have ids; and there are none once an answer was cut short or nobody waits for it.
    fn settle_calls(&self, answer: TurnId, ended: &mut Result<ReplyEnd, Refusal>) {
        let Ok(ended) = ended else { return };
        if ended.finish != Finish::Stop || self.claim.stop.wanted() {
            ended.calls.clear();
        }
        let calls = ended.calls.iter_mut().enumerate();
        for (nth, call) in calls.filter(|(_, call)| call.id.is_empty()) {
            call.id = format!("{answer}-{nth}");
        }
    }

    /// Calls a tool, and records and shows what came of it.
    fn call(&mut self, turn: TurnId, call: &ToolCall) -> Result<String, Refusal> {
        self.show(json!({
            "sessionUpdate": "tool_call",
            "toolCallId": call.id.as_str(),
            "title": call.name.as_str(),
            "kind": if call.name == "store_facts" { "other" } else { "search" },
            "status": "in_progress",
            "rawInput": memory::exact(&call.arguments, self.agent.engine.limits()).unwrap_or_default(),
        }));
        let done = memory::run(&self.agent.engine, &self.agent.call, turn, call);
        let status = if done.failed { "failed" } else { "completed" };
        let custom = object([("acp", object([("status", status.into())]))]);
        let metadata = Metadata { custom_data: Some(custom), ..Metadata::default() };
        let result = Message { metadata, ..Message::tool(&call.id, &done.text) };
        self.record(self.agent.engine.promise_turn_id(), result)?;
        self.show(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": call.id.as_str(),
            "status": status,
            "content": [{ "type": "content", "content": show::text(&done.text) }],
        }));
        Ok(done.text)
    }

    fn show(&self, update: Json) {
        self.out.send(&wire::update(&self.session, update));
    }

    /// The blocks of the question, checked.
    fn question(&self, params: &Json) -> Result<Vec<Json>, Refusal> {
        let blocks = params.get("prompt").and_then(Json::as_array);
        let blocks = blocks.filter(|blocks| !blocks.is_empty()).ok_or_else(|| {
            Refusal::invalid("`prompt` must be an array of at least one content block")
        })?;
        for block in blocks {
            let kind = block.get("type").and_then(Json::as_str).unwrap_or_default();
            if !ASKED.contains(&kind) {
                let known = ASKED.join(", ");
                let why = format!("content of type `{kind}` is not taken; send {known}");
                return Err(Refusal::invalid(why));
            }
        }
        Ok(blocks.to_vec())
    }

    /// Records the question, and before it results for calls that were left open.
    fn record_question(&mut self, question: &[Json]) -> Result<TurnId, Refusal> {
        let limits = self.agent.engine.limits();
        let body = Body::from_content(Json::Array(question.to_vec()), Role::User, limits)
            .map_err(|error| Refusal::invalid(format!("`prompt`: {error}")))?;
        let metadata =
            Metadata { source_info: Some(source_info(self.about())), ..Metadata::default() };
        let (status, role) = (Status::Complete, Role::User);
        let question =
            Message { role, body, tool_call_id: None, created_at: None, status, metadata };
        for _ in 0..TRIES {
            let (engine, call) = (&self.agent.engine, &self.agent.call);
            let mut messages = open_calls::answered(engine, call, &self.branch)?;
            messages.push(question.clone());
            let call = self.cleaned(&mut messages);
            match self.agent.engine.append(&call, self.at_tip(messages)) {
                Ok(done) => {
                    self.branch = done.branch;
                    for turn in done.turns.iter().filter(|turn| turn.role == Role::Tool) {
                        show::turn(turn).into_iter().for_each(|update| self.show(update));
                    }
                    if let Some(turn) = done.turns.last() {
                        return Ok(turn.id);
                    }
                }
                // Somebody else wrote to this session: what is open may be other calls now.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.branch =
                        self.agent.engine.branch_by_id(&self.agent.call, self.claim.id)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::of(ErrorKind::Busy, "others keep writing to this session; try again"))
    }

    /// Takes secrets out of what is about to be recorded, if that is wanted; the call that notes
    /// how many.
    fn cleaned(&self, messages: &mut [Message]) -> Call {
        let call = self.agent.call.clone();
        match self.agent.redact {
            true => call.with_redacted(redact::messages(messages)),
            false => call,
        }
    }

    /// An append to the branch as it was last seen.
    fn at_tip(&self, messages: Vec<Message>) -> Append {
        let tip = self.branch.tip.map(Reference::from);
        Append {
            branch: Some(self.session.clone()),
            expected_tip: tip.or_else(|| Reference::parse("root").ok()),
            reuse: false,
            ..Append::to(self.branch.conversation.clone(), messages)
        }
    }

    /// Asks the model and shows what it says. What it could not do is told in the answer.
    fn ask(
        &self,
        asked: TurnId,
        question: &ReplyPrompt,
        answer: TurnId,
        spoken: &mut ReplyContent,
    ) -> Result<ReplyEnd, Refusal> {
        let message = answer.to_string();
        let mut each = |piece: Delta<'_>, block: usize| {
            if self.claim.stop.wanted() || self.out.broken() {
                return ControlFlow::Break(());
            }
            match piece {
                Delta::Silence => {}
                Delta::Text(piece) => {
                    self.show(show::chunk(show::AGENT, &message, show::text(piece)));
                }
                Delta::Thought(piece) => {
                    let id = show::thought_id(answer, block);
                    self.show(show::chunk(show::THINKING, &id, show::text(piece)));
                }
            }
            ControlFlow::Continue(())
        };
        self.reply().ask_with(question, spoken, &mut each).map_err(|error| {
            tracing::warn!(%error, "the model gave no answer");
            let data = json!({ "userMessageId": asked.to_string() });
            Refusal::of(ErrorKind::Internal, error.to_string()).with(data)
        })
    }

    fn reply(&self) -> Reply<'_> {
        let Agent { engine, call, model, .. } = self.agent;
        Reply { engine, call, model, about: self.about() }
    }

    /// Records what was said, if anything was.
    fn record_answer(
        &mut self,
        answer: TurnId,
        spoken: ReplyContent,
        ended: &Result<ReplyEnd, Refusal>,
    ) -> Result<bool, Refusal> {
        let message = self
            .reply()
            .message(spoken, ended.as_ref().ok())
            .map_err(|error| Refusal::of(ErrorKind::TooLarge, format!("the answer: {error}")))?;
        let Some(message) = message else { return Ok(false) };
        self.record(answer, message)?;
        Ok(true)
    }

    /// Records what comes behind the question.
    fn record(&mut self, id: TurnId, message: Message) -> Result<(), Refusal> {
        let Some(last) = self.branch.tip else { return Ok(()) };
        let mut messages = [message];
        let call = self.cleaned(&mut messages);
        let [message] = messages;
        let reply = Reply { call: &call, ..self.reply() };
        let done = reply.record(&self.branch, last, id, message)?;
        if done.forked {
            tracing::warn!(session = self.session, branch = %done.branch.name,
                "others wrote to the session; the answer is on a branch of its own");
        }
        self.branch = done.branch;
        self.behind += 1;
        Ok(())
    }

    /// What was refused is not part of what is asked next: the branch goes back to before the
    /// question. The turns stay.
    fn take_back(&self) -> Result<(), Refusal> {
        let branch = &self.branch;
        let question = format!("{}~{}", branch.id, 1 + self.behind);
        let request = MoveBranch {
            conversation: branch.conversation.clone(),
            branch: branch.id.to_string(),
            to: Some(Reference::parse(&question).map_err(tine_engine::Error::from)?),
            expected_tip: branch.tip.map(Reference::from),
        };
        self.agent.engine.revert(&self.agent.call, request)?;
        Ok(())
    }

    fn show_title(&self) -> Result<(), Refusal> {
        let (engine, call) = (&self.agent.engine, &self.agent.call);
        let conversation = engine.conversation(call, &self.branch.conversation)?;
        let title = listing::title(engine, call, &conversation, &self.branch)?;
        self.show(json!({ "sessionUpdate": "session_info_update", "title": title }));
        Ok(())
    }

    /// What is known of how messages here come about.
    fn about(&self) -> Vec<(&'static str, Json)> {
        let mut about = vec![("workspace", object([("cwd", self.claim.cwd.as_str().into())]))];
        about.extend(self.agent.client().map(|client| ("client", client)));
        about
    }
}
