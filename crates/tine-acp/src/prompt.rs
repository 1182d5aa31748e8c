//! A prompt, from the question to the end of the answer.
//!
//! The question is recorded and shown with its id before the model is asked. The answer's id is
//! promised before its first piece, and the answer recorded when it ends, however it ends: what was
//! said until then is kept.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use tine_core::json::{Json, object};
use tine_core::{Body, Kind, Message, Metadata, Reference, Role, Status, TurnId};
use tine_engine::{Append, BranchView, MoveBranch};
use tine_models::{Delta, Finish};
use tine_reply::{Ended, Reply, Spoken, told};

use crate::agent::{Agent, Answer};
use crate::lines::Out;
use crate::sessions::Claim;
use crate::wire::{self, Refusal};
use crate::{listing, open_calls, show};

/// What a question may consist of.
const ASKED: [&str; 3] = ["text", "resource_link", "resource"];

/// How often a question is recorded anew because others wrote to the same session.
const TRIES: usize = 32;

/// One prompt in one session.
pub(crate) struct Prompt<'a> {
    agent: &'a Agent,
    out: &'a Out,
    claim: Claim,
    session: String,
    branch: BranchView,
}

impl<'a> Prompt<'a> {
    pub(crate) fn new(agent: &'a Agent, out: &'a Out, claim: Claim) -> Result<Self, Refusal> {
        let session = claim.id.to_string();
        let branch =
            agent.engine.branch_by_id(&agent.call, claim.id).map_err(|error| {
                match error.kind() {
                    Kind::NotFound => Refusal::no_session(&session, "; it was deleted"),
                    _ => error.into(),
                }
            })?;
        Ok(Prompt { agent, out, claim, session, branch })
    }

    pub(crate) fn run(mut self, params: &Value) -> Answer {
        let question = self.question(params)?;
        let first = self.branch.tip.is_none();
        let asked = self.record_question(&question)?;
        for block in &question {
            self.show(show::chunk(show::USER, &asked.to_string(), block.clone()));
        }
        if first {
            self.show_title()?;
        }
        let answer = self.agent.engine.promise_turn_id();
        let mut spoken = Spoken::default();
        let ended = self.ask(asked, answer, &mut spoken)?;
        let recorded = self.record_answer(asked, answer, spoken, &ended)?;
        let reason = match ended {
            _ if self.claim.stop.wanted() => "cancelled",
            Err(refusal) => return Err(refusal),
            Ok(Ended { finish: Finish::Length, .. }) => "max_tokens",
            Ok(Ended { finish: Finish::Refused, .. }) => {
                self.take_back(recorded.as_ref())?;
                "refusal"
            }
            Ok(_) => "end_turn",
        };
        let mut said = json!({ "userMessageId": asked.to_string() });
        if let Some(branch) = recorded {
            said["messageId"] = answer.to_string().into();
            if branch.id != self.branch.id {
                said["sessionId"] = branch.id.to_string().into();
            }
        }
        Ok(json!({ "stopReason": reason, "_meta": { "tine": said } }))
    }

    fn show(&self, update: Value) {
        self.out.send(&wire::update(&self.session, update));
    }

    /// The blocks of the question, checked.
    fn question(&self, params: &Value) -> Result<Vec<Value>, Refusal> {
        let blocks = params.get("prompt").and_then(Value::as_array);
        let blocks = blocks.filter(|blocks| !blocks.is_empty()).ok_or_else(|| {
            Refusal::invalid("`prompt` must be an array of at least one content block")
        })?;
        for block in blocks {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
            if !ASKED.contains(&kind) {
                let known = ASKED.join(", ");
                let why = format!("content of type `{kind}` is not taken; send {known}");
                return Err(Refusal::invalid(why));
            }
        }
        Ok(blocks.clone())
    }

    /// Records the question, and before it results for calls that were left open.
    fn record_question(&mut self, question: &[Value]) -> Result<TurnId, Refusal> {
        let limits = self.agent.engine.limits();
        let blocks = question.iter().map(|block| wire::exact(block, limits));
        let blocks = Json::Array(blocks.collect::<Result<_, _>>()?);
        let body = Body::from_content(blocks, Role::User, limits)
            .map_err(|error| Refusal::invalid(format!("`prompt`: {error}")))?;
        let metadata = Metadata { source_info: Some(told(self.about())), ..Metadata::default() };
        let (status, role) = (Status::Complete, Role::User);
        let question =
            Message { role, body, tool_call_id: None, created_at: None, status, metadata };
        for _ in 0..TRIES {
            let (engine, call) = (&self.agent.engine, &self.agent.call);
            let mut messages = open_calls::answered(engine, call, &self.branch)?;
            messages.push(question.clone());
            match self.agent.engine.append(&self.agent.call, self.at_tip(messages)) {
                Ok(done) => {
                    self.branch = done.branch;
                    for (turn, _) in done.turns.iter().filter(|(turn, _)| turn.role == Role::Tool) {
                        show::turn(turn).into_iter().for_each(|update| self.show(update));
                    }
                    if let Some((turn, _)) = done.turns.last() {
                        return Ok(turn.id);
                    }
                }
                // Somebody else wrote to this session: what is open may be other calls now.
                Err(error) if error.kind() == Kind::Conflict => {
                    self.branch =
                        self.agent.engine.branch_by_id(&self.agent.call, self.claim.id)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::of(Kind::Busy, "others keep writing to this session; try again"))
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
        answer: TurnId,
        spoken: &mut Spoken,
    ) -> Result<Result<Ended, Refusal>, Refusal> {
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
        let ended = self.reply().ask(asked, spoken, &mut each)?;
        Ok(ended.map_err(|error| {
            tracing::warn!(%error, "the model gave no answer");
            let data = json!({ "userMessageId": asked.to_string() });
            Refusal::of(Kind::Internal, error.to_string()).with(data)
        }))
    }

    fn reply(&self) -> Reply<'_> {
        let Agent { engine, call, model, .. } = self.agent;
        Reply { engine, call, model, about: self.about() }
    }

    /// Records what was said, if anything was; answers the branch that holds it.
    fn record_answer(
        &self,
        asked: TurnId,
        answer: TurnId,
        spoken: Spoken,
        ended: &Result<Ended, Refusal>,
    ) -> Result<Option<BranchView>, Refusal> {
        let reply = self.reply();
        let message = reply
            .message(spoken, ended.as_ref().ok())
            .map_err(|error| Refusal::of(Kind::TooLarge, format!("the answer: {error}")))?;
        let Some(message) = message else { return Ok(None) };
        let done = reply.record(&self.branch, asked, answer, message)?;
        if done.forked {
            tracing::warn!(session = self.session, branch = %done.branch.name,
                "others wrote to the session; the answer is on a branch of its own");
        }
        Ok(Some(done.branch))
    }

    /// What was refused is not part of what is asked next: the branch goes back to before the
    /// question. The turns stay.
    fn take_back(&self, recorded: Option<&BranchView>) -> Result<(), Refusal> {
        let branch = recorded.unwrap_or(&self.branch);
        let question = format!("{}~{}", branch.id, 1 + usize::from(recorded.is_some()));
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
