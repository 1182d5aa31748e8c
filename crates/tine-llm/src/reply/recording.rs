//! A reply, from the question to the record.

use std::ops::ControlFlow;

use crate::{Delta, Finish, ModelError};
use tine_core::json::{Json, Number};
use tine_core::{Body, Message, Metadata, Reference, Role, Status, TurnId, Usage};
use tine_engine::{Append, Appended, BranchView, Call, Engine, Error, OnConflict, Result};

use super::model::{Ended, Model};
use super::spoken::Spoken;
use super::transcript::{self, Asked};

/// What is given each piece of an answer as it comes, with the number of the block that it belongs
/// to, and can end the answer. A piece at which it ends counts as not said.
pub type Listener<'a> = &'a mut dyn FnMut(Delta<'_>, usize) -> ControlFlow<()>;

/// A reply that is asked for.
pub struct Reply<'a> {
    /// Where the conversation is.
    pub engine: &'a Engine,
    /// Who asks.
    pub call: &'a Call,
    /// Who answers.
    pub model: &'a Model,
    /// What else is to be told of how the answer came about.
    pub about: Vec<(&'static str, Json)>,
}

impl Reply<'_> {
    /// Asks with the path to a turn, the question. What is said is kept in `spoken`, also when the
    /// model fails in the middle.
    pub fn ask(
        &self,
        question: TurnId,
        spoken: &mut Spoken,
        each: Listener<'_>,
    ) -> Result<std::result::Result<Ended, ModelError>> {
        Ok(self.ask_with(&self.asked(question)?, spoken, each))
    }

    /// What is asked: the path to a turn. Tools may be added, and what comes of calling them.
    pub fn asked(&self, question: TurnId) -> Result<Asked> {
        transcript::of(self.engine, self.call, question)
    }

    /// The same as [`ask`](Reply::ask), with what is asked.
    pub fn ask_with(
        &self,
        asked: &Asked,
        spoken: &mut Spoken,
        each: Listener<'_>,
    ) -> std::result::Result<Ended, ModelError> {
        self.model.answer(asked, &mut |piece| {
            each(piece, spoken.block_of(piece))?;
            spoken.add(piece);
            ControlFlow::Continue(())
        })
    }

    /// What was said and called, as a message; nothing if nothing was. `ended` is missing where the model
    /// failed.
    pub fn message(&self, spoken: Spoken, ended: Option<&Ended>) -> Result<Option<Message>> {
        let calls = ended.map(|ended| ended.calls.as_slice()).unwrap_or_default();
        let Some(content) = spoken.into_content(calls) else { return Ok(None) };
        let body = Body::from_content(content, Role::Assistant, self.engine.limits())
            .map_err(|source| Error::Message { index: 0, source })?;
        let status = match ended.map(|ended| &ended.finish) {
            None | Some(Finish::Cancelled | Finish::Length) => Status::Partial,
            Some(_) => Status::Complete,
        };
        let model = ended.and_then(|ended| ended.model_answered.as_deref());
        let mut known = self.about.clone();
        known.push(("provider", self.model.provider().into()));
        known.push(("model", model.unwrap_or(self.model.name()).into()));
        known.push(("usage", ended.map_or(Json::Null, |ended| usage(&ended.usage))));
        let metadata = Metadata { source_info: Some(told(known)), ..Metadata::default() };
        let role = Role::Assistant;
        Ok(Some(Message { role, body, tool_call_id: None, created_at: None, status, metadata }))
    }

    /// Records an answer behind its question, under an id that was promised.
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

/// What is known of how a turn came about, as its `source_info`.
pub fn told(known: Vec<(&'static str, Json)>) -> Json {
    let known = known.into_iter().filter(|(_, value)| !value.is_null());
    Json::Object(known.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// What an answer cost, as turns tell it.
fn usage(usage: &Usage) -> Json {
    if *usage == Usage::default() {
        return Json::Null;
    }
    let cost = usage.cost_usd().and_then(|cost| Number::try_from(cost).ok());
    told(vec![
        ("input_tokens", usage.input.into()),
        ("output_tokens", usage.output.into()),
        ("total_tokens", usage.total.into()),
        ("cache_read_tokens", usage.cache_read.into()),
        ("cache_write_tokens", usage.cache_write.into()),
        ("reasoning_tokens", usage.reasoning.into()),
        ("cost_usd", cost.into()),
    ])
}
