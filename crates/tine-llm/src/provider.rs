//! Configuration of a model's endpoint.
//!
//! [`ProviderSettings`] is the form in a configuration file, [`Provider`] the checked form. Neither
//! holds a key: the settings name the environment variable that holds it, which is read for each
//! call.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest name of a provider.
const NAME_BYTES: usize = 64;

/// The longest name of a model.
const MODEL_BYTES: usize = 256;

/// The longest time that can be set for anything.
const LONGEST_MS: u64 = 24 * 3_600_000;

/// The most retries that can be set.
const MOST_RETRIES: u32 = 10;

/// The most tokens that can be set for one answer.
const MOST_TOKENS: u64 = 10_000_000;

/// The bounds of `max_answer_bytes`.
const ANSWER_BYTES: std::ops::RangeInclusive<u64> = 1_024..=1 << 30;

/// How long an answer may take to begin, and how long it may be silent, unless set.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long a whole answer may take, unless set.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// How often a call is tried again, unless set.
const RETRIES: u32 = 3;

/// How large an answer may be, unless set.
const MAX_ANSWER_BYTES: u64 = 8 << 20;

/// The protocol that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Chat completions, of OpenAI or of anybody who offers the same.
    OpenAi,
    /// The Messages API of Anthropic.
    Anthropic,
    /// `/api/chat` of Ollama.
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

    /// Returns where it is found unless somebody says otherwise.
    pub fn base_url(self) -> &'static str {
        match self {
            Protocol::OpenAi => "https://api.openai.com/v1",
            Protocol::Anthropic => "https://api.anthropic.com",
            Protocol::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Returns the variable that holds the key for that address.
    pub fn key_env(self) -> Option<&'static str> {
        match self {
            Protocol::OpenAi => Some("OPENAI_API_KEY"),
            Protocol::Anthropic => Some("ANTHROPIC_API_KEY"),
            Protocol::Ollama => None,
        }
    }
}

/// A provider as a configuration file tells it: the table `[models.NAME]`.
///
/// Fields that nobody knows are refused, so that a misspelt bound is not a missing one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    /// The protocol.
    pub kind: Protocol,
    /// Where the endpoint is; the protocol's own path is added to it.
    pub base_url: Option<String>,
    /// The model that is asked for.
    pub model: String,
    /// The environment variable that holds the key; empty for none.
    pub key_env: Option<String>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// What makes an answer repeatable, where the endpoint can.
    pub seed: Option<u64>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u64>,
    /// The window of an Ollama model, in tokens; it silently drops what does not fit.
    pub context_tokens: Option<u64>,
    /// How long an answer may take to begin, and how long it may be silent then.
    pub timeout_ms: Option<u64>,
    /// How long one try may take to its last byte.
    pub answer_timeout_ms: Option<u64>,
    /// How often a call is tried again after the first time.
    pub retries: Option<u32>,
    /// The largest answer that is taken.
    pub max_answer_bytes: Option<u64>,
    /// What tokens cost.
    pub price: Option<Price>,
    /// What may be spent while the process lives.
    pub budget: Option<Budget>,
    /// Not a setting: here so that a key in the file is refused without being repeated.
    #[serde(default)]
    pub key: Option<IgnoredAny>,
    /// Not a setting either, for the same reason.
    #[serde(default)]
    pub api_key: Option<IgnoredAny>,
}

impl ProviderSettings {
    /// Returns the least that there must be.
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

/// What a million tokens cost, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of those read.
    pub input_per_million: f64,
    /// Of those written.
    pub output_per_million: f64,
    /// Of those read from a cache; the same as any other unless set.
    pub cached_input_per_million: Option<f64>,
}

/// What may be spent while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, read and written.
    pub max_tokens: Option<u64>,
    /// US dollars.
    pub max_usd: Option<f64>,
}

/// A field of a configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`models.{provider}.{field}` {why}")]
pub struct ConfigError {
    /// The provider's name.
    pub provider: String,
    /// The field, with a dot before a field of a table in it.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

/// A provider whose every field was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// The name that it is chosen by.
    pub(crate) name: String,
    pub(crate) kind: Protocol,
    /// Without a slash at its end.
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
    /// Checks every field.
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
                "is not read: a key comes from the environment; take it out of the file and \
                 name the variable that holds it in `key_env`",
            );
        }
        let kind = settings.kind;
        let base_url = check.base_url(settings.base_url.as_deref().unwrap_or(kind.base_url()))?;
        let key_env = match settings.key_env {
            Some(name) if name.is_empty() => None,
            Some(name) => Some(check.key_env(name)?),
            // A key that nobody named goes only to the address that it belongs to.
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
        check.bounds(&provider)?;
        check.money(&provider)?;
        Ok(provider)
    }

    /// Returns the name that it is chosen by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the protocol that it speaks.
    pub fn kind(&self) -> Protocol {
        self.kind
    }

    /// Returns where it is.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the model that is asked for.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the environment variable that holds its key.
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

    fn that(&self, holds: bool, field: &'static str, why: &str) -> Result<(), ConfigError> {
        if holds { Ok(()) } else { self.wrong(field, why) }
    }

    fn name(&self) -> Result<(), ConfigError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits = (1..=NAME_BYTES).contains(&self.provider.len());
        if fits && self.provider.bytes().all(plain) {
            return Ok(());
        }
        let provider = self.provider.chars().take(NAME_BYTES).collect();
        let why = "is no name of a provider: use up to 64 letters, digits, `-` and `_`".to_owned();
        Err(ConfigError { provider, field: "name", why })
    }

    /// No user, query or fragment: they are where keys hide, and an address is shown in errors.
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
            "must be an address such as https://api.openai.com/v1, without a user, a query or a \
             fragment",
        )
    }

    /// Returns the message leaves the value out: whoever fills this field wrongly fills in a key.
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

    /// Returns how long an answer may be silent, and how long it may take. What is not set gives
    /// way to what is.
    fn times(
        &self,
        silent: Option<u64>,
        whole: Option<u64>,
    ) -> Result<(Duration, Duration), ConfigError> {
        let bounded = |set: Option<u64>| set.is_none_or(|set| (1..=LONGEST_MS).contains(&set));
        let why = "must be between 1 and 86400000 (a day), in milliseconds";
        self.that(bounded(silent), "timeout_ms", why)?;
        self.that(bounded(whole), "answer_timeout_ms", why)?;
        let (silent, whole) = (silent.map(Duration::from_millis), whole.map(Duration::from_millis));
        match (silent, whole) {
            (Some(silent), Some(whole)) if silent > whole => {
                self.wrong("answer_timeout_ms", "must not be less than `timeout_ms`")
            }
            (Some(silent), Some(whole)) => Ok((silent, whole)),
            (Some(silent), None) => Ok((silent, ANSWER_TIMEOUT.max(silent))),
            (None, Some(whole)) => Ok((TIMEOUT.min(whole), whole)),
            (None, None) => Ok((TIMEOUT, ANSWER_TIMEOUT)),
        }
    }

    fn parameters(&self, it: &Provider) -> Result<(), ConfigError> {
        let named = (1..=MODEL_BYTES).contains(&it.model.trim().len());
        let named = named && !it.model.chars().any(char::is_control);
        self.that(named, "model", "must name the model that is asked for")?;
        let (hottest, why) = match it.kind {
            Protocol::Anthropic => (1.0, "must be between 0 and 1"),
            _ => (2.0, "must be between 0 and 2"),
        };
        let temperate = it.temperature.is_none_or(|set| (0.0..=hottest).contains(&set));
        self.that(temperate, "temperature", why)?;
        let seedable = it.seed.is_none() || it.kind != Protocol::Anthropic;
        self.that(seedable, "seed", "cannot be set: the Messages API takes none")?;
        let safe = it.seed.is_none_or(|seed| i64::try_from(seed).is_ok());
        self.that(safe, "seed", "must be below 2^63")?;
        let windowed = it.context_tokens.is_none() || it.kind == Protocol::Ollama;
        self.that(windowed, "context_tokens", "can be set for `ollama` only")
    }

    fn bounds(&self, it: &Provider) -> Result<(), ConfigError> {
        let counts = |tokens: Option<u64>| tokens.is_none_or(|it| (1..=MOST_TOKENS).contains(&it));
        let tokens = "must be between 1 and 10000000";
        self.that(counts(it.max_tokens), "max_tokens", tokens)?;
        self.that(counts(it.context_tokens), "context_tokens", tokens)?;
        self.that(it.retries <= MOST_RETRIES, "retries", "must be at most 10")?;
        let bytes = ANSWER_BYTES.contains(&it.max_answer_bytes);
        self.that(bytes, "max_answer_bytes", "must be between 1024 and 1073741824")
    }

    fn money(&self, it: &Provider) -> Result<(), ConfigError> {
        let cost = |dollars: f64| dollars.is_finite() && (0.0..=1e6).contains(&dollars);
        let why = "must be a number of US dollars, 0 or more";
        if let Some(price) = &it.price {
            let cached = price.cached_input_per_million.is_none_or(cost);
            self.that(cost(price.input_per_million), "price.input_per_million", why)?;
            self.that(cost(price.output_per_million), "price.output_per_million", why)?;
            self.that(cached, "price.cached_input_per_million", why)?;
        }
        let Some(budget) = &it.budget else { return Ok(()) };
        let some = budget.max_tokens.is_some() || budget.max_usd.is_some();
        self.that(some, "budget", "bounds nothing: set `max_tokens`, `max_usd` or both")?;
        let Some(dollars) = budget.max_usd else { return Ok(()) };
        self.that(cost(dollars), "budget.max_usd", why)?;
        let priced = it.price.is_some();
        self.that(priced, "budget.max_usd", "needs `price`: without it nobody knows what is spent")
    }
}
