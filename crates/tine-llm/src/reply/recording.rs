//! Replies: prompts a model with a path and records its answer.

use std::ops::ControlFlow;

use crate::{Delta, Finish, ModelError};
use tine_core::json::{Json, Number};
use tine_core::{Body, Message, Metadata, Reference, Role, Status, TurnId, Usage};
use tine_engine::{Append, Appended, BranchView, Call, Engine, Error, OnConflict, Result};

use super::content::ReplyContent;
use super::responder::{ReplyEnd, Responder};
use super::transcript::{self, ReplyPrompt};

/// Receives each piece of an answer with the index of its block, and can stop the answer. The piece
/// at which it stops is not recorded.
pub type Listener<'a> = &'a mut dyn FnMut(Delta<'_>, usize) -> ControlFlow<()>;

/// A request for a reply.
pub struct Reply<'a> {
    /// The engine that holds the conversation.
    pub engine: &'a Engine,
    /// Project and actor.
    pub call: &'a Call,
    /// The model, or an echo.
    pub model: &'a Responder,
    /// Additional members of the answer's `source_info`.
    pub about: Vec<(&'static str, Json)>,
}

impl Reply<'_> {
    /// Prompts the model with the path to a turn, the question. The answer is collected in
    /// `content`, also when the model fails midway.
    pub fn ask(
        &self,
        question: TurnId,
        content: &mut ReplyContent,
        each: Listener<'_>,
    ) -> Result<std::result::Result<ReplyEnd, ModelError>> {
        Ok(self.ask_with(&self.prompt(question)?, content, each))
    }

    /// Builds the prompt from the path to a turn. Callers may add tools and tool results.
    pub fn prompt(&self, question: TurnId) -> Result<ReplyPrompt> {
        transcript::build(self.engine, self.call, question)
    }

    /// Does the same as [`ask`](Reply::ask) with a given prompt.
    pub fn ask_with(
        &self,
        prompt: &ReplyPrompt,
        content: &mut ReplyContent,
        each: Listener<'_>,
    ) -> std::result::Result<ReplyEnd, ModelError> {
        self.model.answer(prompt, &mut |piece| {
            each(piece, content.block_of(piece))?;
            content.add(piece);
            ControlFlow::Continue(())
        })
    }

    /// Builds the message of the answer; `None` if it is empty. `ended` is `None` when the model
    /// failed.
    pub fn message(
        &self,
        content: ReplyContent,
        ended: Option<&ReplyEnd>,
    ) -> Result<Option<Message>> {
        let calls = ended.map(|ended| ended.calls.as_slice()).unwrap_or_default();
        let Some(content) = content.into_content(calls) else { return Ok(None) };
        let body = Body::from_content(content, Role::Assistant, self.engine.limits())
            .map_err(|source| Error::Message { index: 0, source })?;
        let status = match ended.map(|ended| &ended.finish) {
            None | Some(Finish::Cancelled | Finish::Length) => Status::Partial,
            Some(_) => Status::Complete,
        };
        let model = ended.and_then(|ended| ended.model_answered.as_deref());
        let mut info = self.about.clone();
        info.push(("provider", self.model.provider().into()));
        info.push(("model", model.unwrap_or(self.model.name()).into()));
        info.push(("usage", ended.map_or(Json::Null, |ended| usage(&ended.usage))));
        let metadata = Metadata { source_info: Some(source_info(info)), ..Metadata::default() };
        let role = Role::Assistant;
        Ok(Some(Message { role, body, tool_call_id: None, created_at: None, status, metadata }))
    }

    /// Appends an answer to its question, under an id that was announced before.
    pub fn record(
        &self,
        branch: &BranchView,
        question: TurnId,
        answer: TurnId,
        message: Message,
    ) -> Result<Appended> {
        let request = Append {
            branch: Some(branch.id.to_string()),
            expected_tip: Some(Reference::from(question)),
            on_conflict: OnConflict::Fork,
            ..Append::to(branch.conversation.clone(), vec![message])
        };
        self.engine.append_as(self.call, answer, request)
    }
}

/// Builds a turn's `source_info` from its members, leaving out nulls.
pub fn source_info(members: Vec<(&'static str, Json)>) -> Json {
    let present = members.into_iter().filter(|(_, value)| !value.is_null());
    Json::Object(present.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns the `usage` member of `source_info`.
fn usage(usage: &Usage) -> Json {
    if *usage == Usage::default() {
        return Json::Null;
    }
    let cost = usage.cost_usd().and_then(|cost| Number::try_from(cost).ok());
    source_info(vec![
        ("input_tokens", usage.input.into()),
        ("output_tokens", usage.output.into()),
        ("total_tokens", usage.total.into()),
        ("cache_read_tokens", usage.cache_read.into()),
        ("cache_write_tokens", usage.cache_write.into()),
        ("reasoning_tokens", usage.reasoning.into()),
        ("cost_usd", cost.into()),
    ])
}
