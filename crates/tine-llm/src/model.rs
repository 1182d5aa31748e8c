//! Calls to a model: retries, budget and limits around the three protocols.
//!
//! A call is retried when another attempt may help, but never after a piece of an answer was passed
//! to the listener. The [`CallTrace`] records the request, the response and the usage in any case.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tine_core::Usage;
use tine_net::retry::{Jitter, Policy};

use crate::attempt::{Attempt, TICK};
use crate::chat::{CallTrace, Chat, Completion, Delta};
use crate::error::ModelError;
use crate::key::Key;
use crate::provider::{ConfigError, Provider};
use crate::spending::{self, Spending, SpendingTracker};
use crate::transport::Transport;
use crate::wire::{self, Dialect, Listener, ParsedAnswer};

/// Looks up a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Sleeps for a duration.
pub type Sleep = Arc<dyn Fn(Duration) + Send + Sync>;

/// Returns the randomness of one call's pauses.
pub type Random = Arc<dyn Fn() -> Jitter + Send + Sync>;

/// Backoff between attempts. A provider's settings limit their number and duration.
const RETRY: Policy = Policy::unlimited(Duration::from_millis(500), Duration::from_secs(30));

/// Environment, pauses and jitter of a model, which tests replace.
#[derive(Clone)]
pub struct ModelRuntime {
    /// Supplies API keys.
    pub environment: Environment,
    /// Sleeps between attempts.
    pub sleep: Sleep,
    /// Randomises the pauses between attempts.
    pub jitter: Random,
}

impl Default for ModelRuntime {
    fn default() -> ModelRuntime {
        ModelRuntime {
            environment: Arc::new(|name| std::env::var(name).ok()),
            sleep: Arc::new(std::thread::sleep),
            jitter: Arc::new(Jitter::random),
        }
    }
}

/// A model of a provider. Clones share connections and budget.
#[derive(Clone)]
pub struct Model {
    shared: Arc<ModelInner>,
}

struct ModelInner {
    provider: Provider,
    transport: Transport,
    runtime: ModelRuntime,
    spending: SpendingTracker,
    /// What the endpoint is known to accept.
    dialect: Mutex<Dialect>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("provider", &self.shared.provider).finish_non_exhaustive()
    }
}

impl Model {
    /// Creates a model of a provider.
    pub fn new(provider: Provider) -> Result<Model, ConfigError> {
        Model::with(provider, ModelRuntime::default())
    }

    /// Creates a model with its own environment and pauses.
    pub fn with(provider: Provider, runtime: ModelRuntime) -> Result<Model, ConfigError> {
        let transport = Transport::new(&provider)?;
        let (spending, dialect) = (SpendingTracker::default(), Mutex::new(Dialect::default()));
        Ok(Model {
            shared: Arc::new(ModelInner { provider, transport, runtime, spending, dialect }),
        })
    }

    /// Returns the provider.
    pub fn provider(&self) -> &Provider {
        &self.shared.provider
    }

    /// Returns the spending since the model was created, as counted against its budget.
    pub fn spent(&self) -> Spending {
        self.shared.spending.spent()
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// A refusal is an answer too: see [`Completion::whole`].
    pub fn complete(&self, chat: &Chat) -> Result<Completion, ModelError> {
        self.complete_traced(chat, &mut CallTrace::default())
    }

    /// Does the same as [`complete`](Model::complete) and fills the trace even if the call fails.
    pub fn complete_traced(
        &self,
        chat: &Chat,
        trace: &mut CallTrace,
    ) -> Result<Completion, ModelError> {
        let answer = self.shared.call(chat, trace, None)?;
        Ok(self.completion(answer, trace))
    }

    /// Sends a request and passes the answer to `each` as it arrives, until it ends or `each`
    /// breaks.
    ///
    /// Breaking is not an error: the completion holds the answer so far. `each` is also called while
    /// nothing arrives, so that it can break then.
    pub fn stream(
        &self,
        chat: &Chat,
        each: &mut dyn FnMut(Delta<'_>) -> ControlFlow<()>,
    ) -> Result<Completion, ModelError> {
        self.stream_traced(chat, &mut CallTrace::default(), each)
    }

    /// Does the same as [`stream`](Model::stream) and fills the trace even if the call fails.
    pub fn stream_traced(
        &self,
        chat: &Chat,
        trace: &mut CallTrace,
        each: &mut dyn FnMut(Delta<'_>) -> ControlFlow<()>,
    ) -> Result<Completion, ModelError> {
        let answer = self.shared.call(chat, trace, Some(each))?;
        Ok(self.completion(answer, trace))
    }

    fn completion(&self, answer: ParsedAnswer, trace: &CallTrace) -> Completion {
        Completion {
            provider: self.shared.provider.name.clone(),
            text: answer.text,
            calls: answer.calls,
            model_answered: answer.model,
            usage: trace.usage,
            finish: answer.finish,
            refusal: answer.refusal,
            request: trace.request.clone(),
            response: trace.response.clone(),
            tries: trace.tries,
        }
    }
}

impl ModelInner {
    fn call(
        &self,
        chat: &Chat,
        trace: &mut CallTrace,
        mut each: Option<Listener<'_>>,
    ) -> Result<ParsedAnswer, ModelError> {
        let mut dialect = self.dialect();
        let tools = !chat.offered().is_empty();
        let policy = Policy { max_retries: self.provider.retries, ..RETRY };
        let mut retries = policy.start_with(Instant::now(), (self.runtime.jitter)());
        loop {
            trace.request = wire::request(&self.provider, chat, dialect, each.is_some());
            trace.response.clear();
            self.spending.check(&self.provider)?;
            let key = self.key()?;
            trace.tries += 1;
            let attempt =
                Attempt { provider: &self.provider, transport: &self.transport, key: &key, tools };
            let tried = attempt.run(trace, lend(&mut each));
            let failed = match tried {
                Ok(answer) => {
                    self.count(trace, answer.usage, true);
                    trace.model_answered.clone_from(&answer.model);
                    self.remember_dialect(dialect);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            self.count(trace, failed.usage.map(|usage| *usage), failed.processed);
            let streamed = each.is_some();
            let other = failed.refused.and_then(|status| {
                dialect.after(&self.provider, chat, streamed, status, &trace.response)
            });
            if let Some(other) = other {
                dialect = other;
                continue;
            }
            if failed.emitted || !failed.error.transient() {
                return Err(failed.error);
            }
            let Some(pause) = retries.next_pause(failed.retry_after) else {
                return Err(failed.error);
            };
            if self.pause(pause, lend(&mut each)).is_break() {
                return Ok(ParsedAnswer::cancelled());
            }
        }
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what an endpoint accepts, in addition to what is known.
    fn remember_dialect(&self, found: Dialect) {
        let mut known = self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Dialect {
            other_schema: known.other_schema || found.other_schema,
            other_limit: known.other_limit || found.other_limit,
            bare_stream: known.bare_stream || found.bare_stream,
            no_tools: known.no_tools || found.no_tools,
        };
    }

    fn key(&self) -> Result<Key, ModelError> {
        let Some(env) = &self.provider.key_env else { return Ok(Key::none()) };
        let found = (self.runtime.environment)(env);
        found.as_deref().and_then(Key::new).ok_or_else(|| ModelError::MissingKey {
            provider: self.provider.name.clone(),
            env: env.clone(),
        })
    }

    /// Counts the usage of an attempt: as reported, or else estimated if the model processed it.
    fn count(&self, trace: &mut CallTrace, reported: Option<Usage>, processed: bool) {
        let price = self.provider.price.as_ref();
        match reported {
            Some(usage) => {
                let usage = spending::with_cost(price, usage);
                trace.usage.add(&usage);
                self.spending.count(&usage);
            }
            None if processed => {
                let (request, response) = (trace.request.len(), trace.response.len());
                self.spending.count(&spending::estimate(price, request, response));
            }
            None => {}
        }
    }

    /// Sleeps, and calls the listener now and then so that it can stop.
    fn pause(&self, pause: Duration, each: Option<Listener<'_>>) -> ControlFlow<()> {
        let Some(each) = each else {
            (self.runtime.sleep)(pause);
            return ControlFlow::Continue(());
        };
        let mut left = pause;
        while !left.is_zero() {
            each(Delta::Silence)?;
            let step = left.min(TICK);
            (self.runtime.sleep)(step);
            left -= step;
        }
        each(Delta::Silence)
    }
}

/// Reborrows a listener for one attempt.
fn lend<'a>(each: &'a mut Option<Listener<'_>>) -> Option<Listener<'a>> {
    match each {
        Some(each) => Some(&mut **each),
        None => None,
    }
}
