//! A model that can be asked: tries, pauses, budget and bounds around the three protocols.
//!
//! A call is tried again when another try may help, and never once a piece of an answer was given
//! out: nobody could take it back. Whatever happens, the [`Trail`] tells what was sent, what came
//! and what it cost.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tine_core::Usage;
use tine_net::retry::{Jitter, Policy};

use crate::attempt::{Attempt, TICK};
use crate::chat::{Chat, Completion, Delta, Trail};
use crate::error::ModelError;
use crate::key::Key;
use crate::ledger::{self, Ledger, Spent};
use crate::provider::{ConfigError, Provider};
use crate::transport::Transport;
use crate::wire::{self, Answer, Dialect, Listener};

/// Looks up a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Waits.
pub type Sleep = Arc<dyn Fn(Duration) + Send + Sync>;

/// Returns the randomness of one call's pauses.
pub type Random = Arc<dyn Fn() -> Jitter + Send + Sync>;

/// The pauses between tries. A provider's settings bound the number of tries and the time of each.
const RETRY: Policy = Policy::unlimited(Duration::from_millis(500), Duration::from_secs(30));

/// What a model needs of the world besides the network.
#[derive(Clone)]
pub struct Outside {
    /// Where keys come from.
    pub environment: Environment,
    /// How pauses pass.
    pub sleep: Sleep,
    /// How far pauses differ from call to call.
    pub jitter: Random,
}

impl Default for Outside {
    /// The environment of the process, and pauses that take their time.
    fn default() -> Outside {
        Outside {
            environment: Arc::new(|name| std::env::var(name).ok()),
            sleep: Arc::new(std::thread::sleep),
            jitter: Arc::new(Jitter::random),
        }
    }
}

/// A model that can be asked. Copies share connections and budget.
#[derive(Clone)]
pub struct Model {
    shared: Arc<Shared>,
}

struct Shared {
    provider: Provider,
    transport: Transport,
    outside: Outside,
    ledger: Ledger,
    /// What the endpoint was found to take.
    dialect: Mutex<Dialect>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("provider", &self.shared.provider).finish_non_exhaustive()
    }
}

impl Model {
    /// A model of that provider.
    pub fn new(provider: Provider) -> Result<Model, ConfigError> {
        Model::with(provider, Outside::default())
    }

    /// The same with another environment and other pauses.
    pub fn with(provider: Provider, outside: Outside) -> Result<Model, ConfigError> {
        let transport = Transport::new(&provider)?;
        let (ledger, dialect) = (Ledger::default(), Mutex::new(Dialect::default()));
        Ok(Model { shared: Arc::new(Shared { provider, transport, outside, ledger, dialect }) })
    }

    /// Who is asked.
    pub fn provider(&self) -> &Provider {
        &self.shared.provider
    }

    /// What was spent on it since it was made, as its budget counts it.
    pub fn spent(&self) -> Spent {
        self.shared.ledger.spent()
    }

    /// Asks, and waits for the whole answer.
    ///
    /// A refusal is an answer too: see [`Completion::whole`].
    pub fn complete(&self, chat: &Chat) -> Result<Completion, ModelError> {
        self.complete_traced(chat, &mut Trail::default())
    }

    /// The same; what happens on the way is written into the trail before it can fail.
    pub fn complete_traced(
        &self,
        chat: &Chat,
        trail: &mut Trail,
    ) -> Result<Completion, ModelError> {
        let answer = self.shared.call(chat, trail, None)?;
        Ok(self.completion(answer, trail))
    }

    /// Asks, and gives the answer to `each` as it comes, until it ends or `each` breaks.
    ///
    /// Breaking is no error: the completion holds what came until then. `each` is also called
    /// while nothing comes, so that it can break then.
    pub fn stream(
        &self,
        chat: &Chat,
        each: &mut dyn FnMut(Delta<'_>) -> ControlFlow<()>,
    ) -> Result<Completion, ModelError> {
        self.stream_traced(chat, &mut Trail::default(), each)
    }

    /// The same; what happens on the way is written into the trail before it can fail.
    pub fn stream_traced(
        &self,
        chat: &Chat,
        trail: &mut Trail,
        each: &mut dyn FnMut(Delta<'_>) -> ControlFlow<()>,
    ) -> Result<Completion, ModelError> {
        let answer = self.shared.call(chat, trail, Some(each))?;
        Ok(self.completion(answer, trail))
    }

    fn completion(&self, answer: Answer, trail: &Trail) -> Completion {
        Completion {
            provider: self.shared.provider.name.clone(),
            text: answer.text,
            calls: answer.calls,
            model_answered: answer.model,
            usage: trail.usage,
            finish: answer.finish,
            refusal: answer.refusal,
            request: trail.request.clone(),
            response: trail.response.clone(),
            tries: trail.tries,
        }
    }
}

impl Shared {
    fn call(
        &self,
        chat: &Chat,
        trail: &mut Trail,
        mut each: Option<Listener<'_>>,
    ) -> Result<Answer, ModelError> {
        let mut dialect = self.dialect();
        let tools = !chat.offered().is_empty();
        let policy = Policy { max_retries: self.provider.retries, ..RETRY };
        let mut retries = policy.start_with(Instant::now(), (self.outside.jitter)());
        loop {
            trail.request = wire::request(&self.provider, chat, dialect, each.is_some());
            trail.response.clear();
            self.ledger.check(&self.provider)?;
            let key = self.key()?;
            trail.tries += 1;
            let attempt =
                Attempt { provider: &self.provider, transport: &self.transport, key: &key, tools };
            let tried = attempt.run(trail, lend(&mut each));
            let failed = match tried {
                Ok(answer) => {
                    self.count(trail, answer.usage, true);
                    trail.model_answered.clone_from(&answer.model);
                    self.learn(dialect);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            self.count(trail, failed.usage.map(|usage| *usage), failed.worked);
            let streamed = each.is_some();
            let other = failed.refused.and_then(|status| {
                dialect.after(&self.provider, chat, streamed, status, &trail.response)
            });
            if let Some(other) = other {
                dialect = other;
                continue;
            }
            if failed.given || !failed.error.transient() {
                return Err(failed.error);
            }
            let Some(pause) = retries.next_pause(failed.retry_after) else {
                return Err(failed.error);
            };
            if self.rest(pause, lend(&mut each)).is_break() {
                return Ok(Answer::cancelled());
            }
        }
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what an endpoint was found to take, and forgets nothing that others found.
    fn learn(&self, found: Dialect) {
        let mut known = self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Dialect {
            other_schema: known.other_schema || found.other_schema,
            other_limit: known.other_limit || found.other_limit,
            bare_stream: known.bare_stream || found.bare_stream,
            no_tools: known.no_tools || found.no_tools,
        };
    }

    /// The key, from the environment as it is now.
    fn key(&self) -> Result<Key, ModelError> {
        let Some(env) = &self.provider.key_env else { return Ok(Key::none()) };
        let found = (self.outside.environment)(env);
        found.as_deref().and_then(Key::new).ok_or_else(|| ModelError::MissingKey {
            provider: self.provider.name.clone(),
            env: env.clone(),
        })
    }

    /// Counts what a try cost: as told, or else as guessed if there was work on it.
    fn count(&self, trail: &mut Trail, told: Option<Usage>, worked: bool) {
        let price = self.provider.price.as_ref();
        match told {
            Some(usage) => {
                let usage = ledger::priced(price, usage);
                trail.usage.add(&usage);
                self.ledger.count(&usage);
            }
            None if worked => {
                let (request, response) = (trail.request.len(), trail.response.len());
                self.ledger.count(&ledger::guess(price, request, response));
            }
            None => {}
        }
    }

    /// Waits, and asks a listener now and then whether it still listens.
    fn rest(&self, pause: Duration, each: Option<Listener<'_>>) -> ControlFlow<()> {
        let Some(each) = each else {
            (self.outside.sleep)(pause);
            return ControlFlow::Continue(());
        };
        let mut left = pause;
        while !left.is_zero() {
            each(Delta::Silence)?;
            let step = left.min(TICK);
            (self.outside.sleep)(step);
            left -= step;
        }
        each(Delta::Silence)
    }
}

/// The same listener once more: a method would ask for it for good.
fn lend<'a>(each: &'a mut Option<Listener<'_>>) -> Option<Listener<'a>> {
    match each {
        Some(each) => Some(&mut **each),
        None => None,
    }
}
