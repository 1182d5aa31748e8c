//! Token usage and cost of turns, as their metadata reports them.
//!
//! Providers spell the same figures differently, and disagree on what `input` covers. Here they
//! become one [`Usage`], by two rules:
//!
//! - `input` is everything that the model read, cached or not; `cache_read` and `cache_write` say
//!   how much of it came from or went to a cache. (Anthropic counts cached input separately, so it
//!   is added; OpenAI and Gemini include it.)
//! - `output` is everything that the model wrote, `reasoning` the part that was not shown. (Gemini
//!   counts thoughts separately, so they are added.)
//!
//! Deliberately absent: prices. Only recorded costs are counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Billionths in one dollar, the unit in which costs are summed.
const NANOS: f64 = 1e9;

/// Tokens and cost of one or many turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "UsageJson", into = "UsageJson")]
pub struct Usage {
    /// Turns that report usage or cost.
    pub turns: u64,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Total tokens as reported, or the sum of input and output where no total is reported.
    pub total: u64,
    /// Of those read, how many came from a cache.
    pub cache_read: u64,
    /// Of those read, how many were put into a cache.
    pub cache_write: u64,
    /// Of those written, how many were thoughts.
    pub reasoning: u64,
    /// Turns that report a cost.
    pub priced: u64,
    /// The cost in billionths of a US dollar.
    pub cost_nanos: u64,
}

impl Usage {
    /// Reads the usage in a turn's `source_info`; `None` when it reports neither tokens nor cost.
    ///
    /// ```
    /// use tine_core::{json, usage::Usage};
    ///
    /// let info = br#"{"usage":{"input_tokens":5,"cache_read_input_tokens":90,"output_tokens":7}}"#;
    /// let usage = Usage::from_source_info(&json::parse(info, 8)?).expect("it reports tokens");
    /// assert_eq!((usage.input, usage.output, usage.total), (95, 7, 102));
    /// # Ok::<(), json::JsonError>(())
    /// ```
    pub fn from_source_info(source_info: &Json) -> Option<Usage> {
        let usage = source_info.get("usage").filter(|usage| usage.as_object().is_some());
        let cost = usage.and_then(cost).or_else(|| cost(source_info));
        let mut found = usage.and_then(tokens).unwrap_or_default();
        if found == Usage::default() && cost.is_none() {
            return None;
        }
        found.turns = 1;
        if let Some(nanos) = cost {
            found.priced = 1;
            found.cost_nanos = nanos;
        }
        Some(found)
    }

    /// Adds another's figures to these.
    pub fn add(&mut self, other: &Usage) {
        let fields: [(&mut u64, u64); 9] = [
            (&mut self.turns, other.turns),
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.total, other.total),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.reasoning, other.reasoning),
            (&mut self.priced, other.priced),
            (&mut self.cost_nanos, other.cost_nanos),
        ];
        for (sum, more) in fields {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns the cost in US dollars, if any turn reports one.
    pub fn cost_usd(&self) -> Option<f64> {
        // A sum of billionths is far below 2^53 for any realistic cost.
        #[allow(clippy::cast_precision_loss)]
        (self.priced > 0).then(|| self.cost_nanos as f64 / NANOS)
    }

    /// Converts a cost in US dollars to billionths; `None` when it is negative or absurdly large.
    pub fn nanos(dollars: f64) -> Option<u64> {
        let nanos = (dollars * NANOS).round();
        // The range check makes the cast safe.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (0.0..9e15).contains(&nanos).then_some(nanos as u64)
    }
}

/// Returns the first of these members that is a count; a dot descends one level.
fn first(usage: &Json, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| {
        name.split('.').try_fold(usage, |json, member| json.get(member)).and_then(Json::as_u64)
    })
}

fn tokens(usage: &Json) -> Option<Usage> {
    let apart_read = first(usage, &["cache_read_input_tokens"]);
    let apart_write = first(usage, &["cache_creation_input_tokens"]);
    let read = first(
        usage,
        &[
            "cache_read_tokens",
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cachedContentTokenCount",
        ],
    );
    let write = first(usage, &["cache_write_tokens"]);
    let thoughts = first(usage, &["thoughtsTokenCount"]);
    let reasoning = first(
        usage,
        &[
            "reasoning_tokens",
            "completion_tokens_details.reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
        ],
    );
    let input = first(usage, &["input_tokens", "prompt_tokens", "promptTokenCount"]);
    let output = first(usage, &["output_tokens", "completion_tokens", "candidatesTokenCount"]);
    let tools = first(usage, &["toolUsePromptTokenCount"]);
    let total = first(usage, &["total_tokens", "totalTokenCount"]);
    let sum =
        |parts: &[Option<u64>]| parts.iter().flatten().fold(0, |a: u64, b| a.saturating_add(*b));
    let found = Usage {
        input: sum(&[input, apart_read, apart_write, tools]),
        output: sum(&[output, thoughts]),
        cache_read: sum(&[apart_read.or(read)]),
        cache_write: sum(&[apart_write.or(write)]),
        reasoning: sum(&[thoughts.or(reasoning)]),
        ..Usage::default()
    };
    let total = total.unwrap_or(found.input.saturating_add(found.output));
    let found = Usage { total, ..found };
    (found != Usage::default()).then_some(found)
}

fn cost(json: &Json) -> Option<u64> {
    let cost = ["cost_usd", "total_cost_usd", "cost"].iter().find_map(|name| json.get(name))?;
    Usage::nanos(cost.as_number()?.as_f64())
}

/// Tokens and cost of some turns.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
struct UsageJson {
    /// Turns that report usage or cost.
    turns: u64,
    /// Tokens read, cached or not.
    input_tokens: u64,
    /// Tokens written, shown or not.
    output_tokens: u64,
    /// All tokens.
    total_tokens: u64,
    /// Tokens read from a cache, included in `input_tokens`.
    cache_read_tokens: u64,
    /// Tokens written to a cache, included in `input_tokens`.
    cache_write_tokens: u64,
    /// Tokens of reasoning, included in `output_tokens`.
    reasoning_tokens: u64,
    /// The cost in US dollars; `null` when no turn reports one.
    cost_usd: Option<f64>,
    /// Turns that report a cost.
    priced_turns: u64,
}

impl From<Usage> for UsageJson {
    fn from(usage: Usage) -> Self {
        UsageJson {
            turns: usage.turns,
            input_tokens: usage.input,
            output_tokens: usage.output,
            total_tokens: usage.total,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
            reasoning_tokens: usage.reasoning,
            cost_usd: usage.cost_usd(),
            priced_turns: usage.priced,
        }
    }
}

impl From<UsageJson> for Usage {
    fn from(form: UsageJson) -> Self {
        Usage {
            turns: form.turns,
            input: form.input_tokens,
            output: form.output_tokens,
            total: form.total_tokens,
            cache_read: form.cache_read_tokens,
            cache_write: form.cache_write_tokens,
            reasoning: form.reasoning_tokens,
            priced: form.priced_turns,
            cost_nanos: form.cost_usd.and_then(Usage::nanos).unwrap_or(0),
        }
    }
}

impl JsonSchema for Usage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        UsageJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        UsageJson::json_schema(generator)
    }
}
