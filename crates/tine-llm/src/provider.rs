//! Configuration of a model's endpoint.
//!
//! [`ProviderSettings`] are as in a configuration file, a [`Provider`] has been checked. Neither
//! contains a key: the settings name an environment variable, which is read for each call.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest name of a provider or an environment variable.
const NAME_BYTES: usize = 64;

/// The longest name of a model.
const MODEL_BYTES: usize = 256;

/// The longest timeout.
const LONGEST_MS: u64 = 24 * 3_600_000;

/// The maximum of `retries`.
const MOST_RETRIES: u32 = 10;

/// The maximum of `max_tokens` and `context_tokens`.
const MOST_TOKENS: u64 = 10_000_000;

/// The bounds of `max_answer_bytes`.
const ANSWER_BYTES: std::ops::RangeInclusive<u64> = 1_024..=1 << 30;

/// The default of `timeout_ms`.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The default of `answer_timeout_ms`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The default of `retries`.
const RETRIES: u32 = 3;

/// The default of `max_answer_bytes`.
const MAX_ANSWER_BYTES: u64 = 8 << 20;

/// The protocol that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenAI's chat completions, which many others offer too.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Ollama's `/api/chat`.
    Ollama,
}

impl Protocol {
    /// Returns the name in a configuration file.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::OpenAi => "openai",
            Protocol::Anthropic => "anthropic",
            Protocol::Ollama => "ollama",
        }
    }

    /// Returns the default address.
    pub fn base_url(self) -> &'static str {
        match self {
            Protocol::OpenAi => "https://api.openai.com/v1",
            Protocol::Anthropic => "https://api.anthropic.com",
            Protocol::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Returns the variable with the key for the default address.
    pub fn key_env(self) -> Option<&'static str> {
        match self {
            Protocol::OpenAi => Some("OPENAI_API_KEY"),
            Protocol::Anthropic => Some("ANTHROPIC_API_KEY"),
            Protocol::Ollama => None,
        }
    }
}

/// The settings of a provider: the table `[models.NAME]` of a configuration file.
///
/// Unknown fields are rejected, so that a misspelt limit is not ignored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    /// The protocol.
    pub kind: Protocol,
    /// The endpoint's address; the path of the protocol is added to it.
    pub base_url: Option<String>,
    /// The model.
    pub model: String,
    /// The environment variable with the key; empty for none.
    pub key_env: Option<String>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The sampling seed.
    pub seed: Option<u64>,
    /// The maximum length of an answer, in tokens.
    pub max_tokens: Option<u64>,
    /// The context window of an Ollama model, in tokens; it silently drops what does not fit.
    pub context_tokens: Option<u64>,
    /// Idle timeout: until the answer begins, and between its pieces.
    pub timeout_ms: Option<u64>,
    /// Total timeout of an attempt.
    pub answer_timeout_ms: Option<u64>,
    /// How often a call is retried.
    pub retries: Option<u32>,
    /// The maximum size of an answer.
    pub max_answer_bytes: Option<u64>,
    /// The price of tokens.
    pub price: Option<Price>,
    /// The spending limit of the process.
    pub budget: Option<Budget>,
    /// Not a setting: a key in the file is rejected without being repeated.
    #[serde(default)]
    pub key: Option<IgnoredAny>,
    /// The same as `key`.
    #[serde(default)]
    pub api_key: Option<IgnoredAny>,
}

impl ProviderSettings {
    /// Returns the required settings.
    pub fn new(kind: Protocol, model: impl Into<String>) -> ProviderSettings {
        ProviderSettings {
            kind,
            base_url: None,
            model: model.into(),
            key_env: None,
            temperature: None,
            seed: None,
            max_tokens: None,
            context_tokens: None,
            timeout_ms: None,
            answer_timeout_ms: None,
            retries: None,
            max_answer_bytes: None,
            price: None,
            budget: None,
            key: None,
            api_key: None,
        }
    }
}

/// The price of a million tokens, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input_per_million: f64,
    /// Output tokens.
    pub output_per_million: f64,
    /// Cached input tokens; by default the same as other input tokens.
    pub cached_input_per_million: Option<f64>,
}

/// The spending limit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Input and output tokens.
    pub max_tokens: Option<u64>,
    /// US dollars.
    pub max_usd: Option<f64>,
}

/// An invalid field of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`models.{provider}.{field}` {why}")]
pub struct ConfigError {
    /// The provider's name.
    pub provider: String,
    /// The field, with a dot before a field of a table in it.
    pub field: &'static str,
    /// What is wrong, and what is valid.
    pub why: String,
}

/// A provider with checked settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub(crate) name: String,
    pub(crate) kind: Protocol,
    /// Without a trailing slash.
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) key_env: Option<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) seed: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) timeout: Duration,
    pub(crate) answer_timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) max_answer_bytes: u64,
    pub(crate) price: Option<Price>,
    pub(crate) budget: Option<Budget>,
}

impl Provider {
    /// Checks the settings.
    ///
    /// ```
    /// use tine_llm::{Protocol, Provider, ProviderSettings};
    ///
    /// let local = Provider::new("local", ProviderSettings::new(Protocol::Ollama, "llama3.2"))?;
    /// assert_eq!(local.base_url(), "http://127.0.0.1:11434");
    /// # Ok::<(), tine_llm::ConfigError>(())
    /// ```
    pub fn new(name: &str, settings: ProviderSettings) -> Result<Provider, ConfigError> {
        let check = Check { provider: name };
        check.name()?;
        if settings.key.is_some() || settings.api_key.is_some() {
            let field = if settings.key.is_some() { "key" } else { "api_key" };
            return check.wrong(
                field,
                "is not read: keys come from the environment; remove it from the file and set \
                 `key_env` to the variable with the key",
            );
        }
        let kind = settings.kind;
        let base_url = check.base_url(settings.base_url.as_deref().unwrap_or(kind.base_url()))?;
        let key_env = match settings.key_env {
            Some(name) if name.is_empty() => None,
            Some(name) => Some(check.key_env(name)?),
            // The default key is sent only to the default address.
            None => kind.key_env().filter(|_| base_url == kind.base_url()).map(str::to_owned),
        };
        let (timeout, answer_timeout) =
            check.times(settings.timeout_ms, settings.answer_timeout_ms)?;
        let provider = Provider {
            name: name.to_owned(),
            kind,
            base_url,
            model: settings.model,
            key_env,
            temperature: settings.temperature,
            seed: settings.seed,
            max_tokens: settings.max_tokens,
            context_tokens: settings.context_tokens,
            timeout,
            answer_timeout,
            retries: settings.retries.unwrap_or(RETRIES),
            max_answer_bytes: settings.max_answer_bytes.unwrap_or(MAX_ANSWER_BYTES),
            price: settings.price,
            budget: settings.budget,
        };
        check.parameters(&provider)?;
        check.limits(&provider)?;
        check.prices(&provider)?;
        Ok(provider)
    }

    /// Returns the name under which it is configured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the protocol.
    pub fn kind(&self) -> Protocol {
        self.kind
    }

    /// Returns the address.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the environment variable with the key.
    pub fn key_env(&self) -> Option<&str> {
        self.key_env.as_deref()
    }

    /// Returns the sampling seed.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }
}

/// The checks of one provider's fields.
struct Check<'a> {
    provider: &'a str,
}

impl Check<'_> {
    fn wrong<T>(&self, field: &'static str, why: impl Into<String>) -> Result<T, ConfigError> {
        Err(ConfigError { provider: self.provider.to_owned(), field, why: why.into() })
    }

    fn require(&self, holds: bool, field: &'static str, why: &str) -> Result<(), ConfigError> {
        if holds { Ok(()) } else { self.wrong(field, why) }
    }

    fn name(&self) -> Result<(), ConfigError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits = (1..=NAME_BYTES).contains(&self.provider.len());
        if fits && self.provider.bytes().all(plain) {
            return Ok(());
        }
        let provider = self.provider.chars().take(NAME_BYTES).collect();
        let why = "is not a valid name: use up to 64 letters, digits, `-` and `_`".to_owned();
        Err(ConfigError { provider, field: "name", why })
    }

    /// Rejects a user, query or fragment: they may contain keys, and errors show the address.
    fn base_url(&self, url: &str) -> Result<String, ConfigError> {
        let url = url.trim().trim_end_matches('/');
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
        let named = host.is_some_and(|host| !host.is_empty());
        let plain =
            !url.contains(['@', '?', '#', '\\']) && url.bytes().all(|it| it.is_ascii_graphic());
        if named && plain && url.parse::<http::Uri>().is_ok() {
            return Ok(url.to_owned());
        }
        self.wrong(
            "base_url",
            "must be an address such as https://api.openai.com/v1, without user, query or fragment",
        )
    }

    /// The error does not repeat the value: a wrong one is usually a key.
    fn key_env(&self, name: String) -> Result<String, ConfigError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = !name.starts_with(|first: char| first.is_ascii_digit());
        if begins && name.len() <= NAME_BYTES && name.bytes().all(plain) {
            return Ok(name);
        }
        self.wrong(
            "key_env",
            "must be the name of an environment variable, such as OPENAI_API_KEY, and never the \
             key itself",
        )
    }

    /// Returns the idle timeout and the total timeout. A default is adapted to the one that is set.
    fn times(
        &self,
        idle_ms: Option<u64>,
        total_ms: Option<u64>,
    ) -> Result<(Duration, Duration), ConfigError> {
        let bounded = |set: Option<u64>| set.is_none_or(|set| (1..=LONGEST_MS).contains(&set));
        let why = "must be between 1 and 86400000 (a day), in milliseconds";
        self.require(bounded(idle_ms), "timeout_ms", why)?;
        self.require(bounded(total_ms), "answer_timeout_ms", why)?;
        match (idle_ms.map(Duration::from_millis), total_ms.map(Duration::from_millis)) {
            (Some(idle), Some(total)) if idle > total => {
                self.wrong("answer_timeout_ms", "must not be less than `timeout_ms`")
            }
            (Some(idle), Some(total)) => Ok((idle, total)),
            (Some(idle), None) => Ok((idle, ANSWER_TIMEOUT.max(idle))),
            (None, Some(total)) => Ok((TIMEOUT.min(total), total)),
            (None, None) => Ok((TIMEOUT, ANSWER_TIMEOUT)),
        }
    }

    fn parameters(&self, it: &Provider) -> Result<(), ConfigError> {
        let named = (1..=MODEL_BYTES).contains(&it.model.trim().len());
        let named = named && !it.model.chars().any(char::is_control);
        self.require(named, "model", "must name a model")?;
        let (maximum, why) = match it.kind {
            Protocol::Anthropic => (1.0, "must be between 0 and 1"),
            _ => (2.0, "must be between 0 and 2"),
        };
        let in_range = it.temperature.is_none_or(|set| (0.0..=maximum).contains(&set));
        self.require(in_range, "temperature", why)?;
        let allows_seed = it.seed.is_none() || it.kind != Protocol::Anthropic;
        self.require(allows_seed, "seed", "cannot be set: the Messages API has no seed")?;
        let safe = it.seed.is_none_or(|seed| i64::try_from(seed).is_ok());
        self.require(safe, "seed", "must be below 2^63")?;
        let allows_window = it.context_tokens.is_none() || it.kind == Protocol::Ollama;
        self.require(allows_window, "context_tokens", "can only be set for `ollama`")
    }

    fn limits(&self, it: &Provider) -> Result<(), ConfigError> {
        let counts = |tokens: Option<u64>| tokens.is_none_or(|it| (1..=MOST_TOKENS).contains(&it));
        let tokens = "must be between 1 and 10000000";
        self.require(counts(it.max_tokens), "max_tokens", tokens)?;
        self.require(counts(it.context_tokens), "context_tokens", tokens)?;
        self.require(it.retries <= MOST_RETRIES, "retries", "must be at most 10")?;
        let bytes = ANSWER_BYTES.contains(&it.max_answer_bytes);
        self.require(bytes, "max_answer_bytes", "must be between 1024 and 1073741824")
    }

    fn prices(&self, it: &Provider) -> Result<(), ConfigError> {
        let cost = |dollars: f64| dollars.is_finite() && (0.0..=1e6).contains(&dollars);
        let why = "must be a number of US dollars, 0 or more";
        if let Some(price) = &it.price {
            let cached = price.cached_input_per_million.is_none_or(cost);
            self.require(cost(price.input_per_million), "price.input_per_million", why)?;
            self.require(cost(price.output_per_million), "price.output_per_million", why)?;
            self.require(cached, "price.cached_input_per_million", why)?;
        }
        let Some(budget) = &it.budget else { return Ok(()) };
        let some = budget.max_tokens.is_some() || budget.max_usd.is_some();
        self.require(some, "budget", "is empty: set `max_tokens`, `max_usd` or both")?;
        let Some(dollars) = budget.max_usd else { return Ok(()) };
        self.require(cost(dollars), "budget.max_usd", why)?;
        let priced = it.price.is_some();
        self.require(priced, "budget.max_usd", "requires `price`, to compute what is spent")
    }
}
