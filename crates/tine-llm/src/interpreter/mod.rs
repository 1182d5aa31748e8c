//! Extracts facts from texts with a model.
//!
//! The account of a run is filled even if the run fails. It holds the bytes of the answer, from
//! which the findings can be parsed again without calling the model. It never holds a key.

mod findings;
mod prompt;

use tine_analysis::{
    Account, Finding, Interpreter, InterpreterFailure, InterpreterInfo, InterpreterKind, Material,
};
use tine_core::Json;
use tine_core::json::{Number, Object};

pub use prompt::EntityType;

use crate::chat::{self, CallTrace, Chat};
use crate::error::ModelError;
use crate::model::Model;
use crate::wire::{self, AnswerFault};

/// The default name of the interpreter.
const NAME: &str = "model";

/// Increment when the prompts, the schema or the parsing change, since findings may then differ.
const VERSION: &str = "1";

/// The longest text that is sent in one request.
const TEXT_BYTES: usize = 256 << 10;

const SCHEMA_NAME: &str = "findings";

/// An interpreter that asks a model.
#[derive(Clone, Debug)]
pub struct ModelInterpreter {
    model: Model,
    name: String,
    types: Vec<EntityType>,
}

impl ModelInterpreter {
    /// Returns an interpreter named `model`.
    pub fn new(model: Model) -> ModelInterpreter {
        ModelInterpreter { model, name: NAME.to_owned(), types: prompt::built_in() }
    }

    /// Sets the name; with several interpreters, the name of the provider.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> ModelInterpreter {
        ModelInterpreter { name: name.into(), ..self }
    }

    /// Adds entity types to find. A type with the name of a built-in one replaces it.
    #[must_use]
    pub fn with_types(mut self, types: impl IntoIterator<Item = EntityType>) -> ModelInterpreter {
        for more in types {
            match self.types.iter_mut().find(|it| it.name == more.name) {
                Some(existing) => *existing = more,
                None => self.types.push(more),
            }
        }
        self
    }

    fn findings(
        &self,
        answer: &str,
        text: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Finding>, ModelError> {
        findings::read(answer, text, &self.types, notes).map_err(|what| ModelError::Malformed {
            provider: self.model.provider().name().to_owned(),
            what,
        })
    }

    fn ask(
        &self,
        chat: &Chat,
        text: &str,
        account: &mut Account,
    ) -> Result<Vec<Finding>, ModelError> {
        let mut trace = CallTrace::default();
        let completion = self.model.complete_traced(chat, &mut trace);
        account.request = Some(trace.request);
        account.response = Some(trace.response).filter(|bytes| !bytes.is_empty());
        account.model_answered = trace.model_answered;
        account.usage.add(&trace.usage);
        account.tries = trace.tries;
        let completion = completion?;
        let answer = completion.whole()?;
        self.findings(answer, text, &mut account.notes)
    }
}

impl Interpreter for ModelInterpreter {
    fn about(&self) -> InterpreterInfo {
        let provider = self.model.provider();
        let mut parameters = Object::new();
        let mut set = |name: &str, value: Option<Json>| {
            value.and_then(|value| parameters.insert(name, value))
        };
        let types = self.types.iter().map(|it| Json::from(it.name.as_str())).collect::<Vec<_>>();
        set("kind", Some(Json::from(provider.kind.name())));
        set("base_url", Some(Json::from(provider.base_url.as_str())));
        set("max_tokens", provider.max_tokens.map(Json::from));
        set("context_tokens", provider.context_tokens.map(Json::from));
        let temperature = provider.temperature.and_then(|it| Number::try_from(it).ok());
        set("temperature", temperature.map(Json::Number));
        set("entity_types", Some(Json::from(types)));
        InterpreterInfo {
            name: self.name.clone(),
            version: VERSION.to_owned(),
            kind: InterpreterKind::Model,
            provider: Some(provider.name.clone()),
            model: Some(provider.model.clone()),
            parameters: Json::Object(parameters),
            seed: provider.seed,
        }
    }

    fn interpret(
        &self,
        material: &Material<'_>,
        account: &mut Account,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        let prompt = prompt::prompt(material.subject, &self.types);
        account.prompt = Some(prompt.clone());
        if material.text.trim().is_empty() {
            return Ok(Vec::new());
        }
        if material.text.len() > TEXT_BYTES {
            return Err(permanent_failure(format!(
                "the text has {} bytes, and a model is given {TEXT_BYTES} at once; interpret it in \
                 parts",
                material.text.len()
            )));
        }
        let chat = Chat::ask(prompt::message(material))
            .with_system(prompt)
            .with_schema(SCHEMA_NAME, prompt::schema(&self.types));
        self.ask(&chat, material.text, account).map_err(failure)
    }

    fn replay(
        &self,
        material: &Material<'_>,
        response: Option<&[u8]>,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        // A blank text is not sent to the model.
        if response.is_none() && material.text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let bytes = response.ok_or_else(|| {
            permanent_failure(
                "the run kept no response that could be read again; run it again".to_owned(),
            )
        })?;
        let provider = self.model.provider();
        let kind = wire::kind_of(bytes).unwrap_or(provider.kind);
        let answer = wire::answer(kind, bytes, false).map_err(|fault| {
            let why = match fault {
                AnswerFault::Cut => "it breaks off".to_owned(),
                AnswerFault::Malformed(what) => what,
                AnswerFault::Reported { status, .. } => format!("it tells the error {status}"),
            };
            permanent_failure(format!("the stored response holds no answer: {why}; run it again"))
        })?;
        let refusal = answer.refusal.as_deref();
        let text = chat::whole(&provider.name, &answer.text, &answer.finish, refusal);
        let found = text.and_then(|text| self.findings(text, material.text, &mut Vec::new()));
        found.map_err(failure)
    }
}

fn failure(error: ModelError) -> InterpreterFailure {
    InterpreterFailure { message: error.to_string(), transient: error.transient() }
}

fn permanent_failure(message: String) -> InterpreterFailure {
    InterpreterFailure { message, transient: false }
}
