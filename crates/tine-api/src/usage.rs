//! Reports of tokens and cost, and the prices that estimate a cost where none is recorded.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{Timestamp, Usage};

/// What a usage report groups by.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum UsageDimension {
    /// The day on which a turn was created, in UTC.
    Day,
    /// The program that the conversation comes from.
    Program,
    /// The folder that was worked in.
    Folder,
    /// The model that answered.
    Model,
}

impl UsageDimension {
    /// All of them.
    pub const ALL: [UsageDimension; 4] = [
        UsageDimension::Day,
        UsageDimension::Program,
        UsageDimension::Folder,
        UsageDimension::Model,
    ];

    /// Returns the name in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            UsageDimension::Day => "day",
            UsageDimension::Program => "program",
            UsageDimension::Folder => "folder",
            UsageDimension::Model => "model",
        }
    }

    /// Returns the dimension of a name.
    pub fn named(name: &str) -> Option<Self> {
        UsageDimension::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

/// Which usage to report, and how to group it.
#[derive(Clone, Debug, Default)]
pub struct UsageQuery {
    /// The dimensions to group by; without any there is only a total.
    pub by: Vec<UsageDimension>,
    /// Only turns created at this time or later.
    pub since: Option<Timestamp>,
    /// Only turns created before this time.
    pub until: Option<Timestamp>,
    /// Only conversations of this program.
    pub program: Option<String>,
    /// Only conversations of this folder or one below it, as in [`RecentQuery`](crate::RecentQuery).
    pub folder: Option<String>,
    /// Prices for turns that record no cost. A server uses its own.
    pub prices: Prices,
}

/// Tokens and cost of a project.
///
/// Costs are those that turns record or else estimates from the server's prices. Turns without
/// either count in `turns` and not in `priced_turns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// All of it.
    pub total: Usage,
    /// By the requested dimensions, in order of day, program, folder and model.
    pub groups: Vec<UsageGroup>,
    /// The rest, if there are too many groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Usage>,
}

/// The usage of one group. Dimensions that were not requested or are not known are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageGroup {
    /// The day, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its share.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from a cache; as `input` by default.
    pub cache_read: Option<f64>,
    /// Tokens written to a cache; as `input` by default.
    pub cache_write: Option<f64>,
}

impl ModelPrice {
    /// Returns whether every price is a sensible number.
    pub fn is_valid(&self) -> bool {
        let caches = [self.cache_read, self.cache_write];
        let mut all = [self.input, self.output].into_iter().chain(caches.into_iter().flatten());
        all.all(|price| price.is_finite() && (0.0..=1e6).contains(&price))
    }

    /// Returns what some usage costs, in billionths of a dollar.
    fn nanos(&self, usage: &Usage) -> Option<u64> {
        // Token counts are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let dollars = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        Usage::nanos(
            dollars(usage.input.saturating_sub(cached), self.input)
                + dollars(usage.cache_read, self.cache_read.unwrap_or(self.input))
                + dollars(usage.cache_write, self.cache_write.unwrap_or(self.input))
                + dollars(usage.output, self.output),
        )
    }
}

/// Prices by model. A name that ends in `*` stands for all models that begin so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, ModelPrice>);

impl Prices {
    /// Returns the price of a model: the one of its name or else of the longest beginning.
    pub fn of(&self, model: &str) -> Option<&ModelPrice> {
        let begins = |name: &&String| {
            name.strip_suffix('*').is_some_and(|beginning| model.starts_with(beginning))
        };
        let longest = || self.0.keys().filter(begins).max_by_key(|name| name.len());
        self.0.get(model).or_else(|| self.0.get(longest()?))
    }

    /// Returns the usage of one turn with its cost estimated, if it records none and the model has
    /// a price.
    pub fn estimate(&self, model: Option<&str>, usage: &Usage) -> Usage {
        let mut priced = *usage;
        if usage.priced == 0
            && let Some(nanos) = model.and_then(|model| self.of(model)?.nanos(usage))
        {
            (priced.priced, priced.cost_nanos) = (usage.turns, nanos);
        }
        priced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: f64) -> ModelPrice {
        ModelPrice { input, output: 10.0, cache_read: Some(0.5), cache_write: None }
    }

    #[test]
    fn the_longest_name_that_fits_sets_the_price() {
        let names = [("small*", 1.0), ("small-2*", 2.0), ("small-2-mini", 3.0)];
        let prices = Prices(names.map(|(name, input)| (name.to_owned(), price(input))).into());
        for (model, input) in [
            ("small", Some(1.0)),
            ("small-2.5", Some(2.0)),
            ("small-2-mini", Some(3.0)),
            ("x", None),
        ] {
            assert_eq!(prices.of(model).map(|price| price.input), input, "{model}");
        }
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_recorded_costs_stay() {
        let prices = Prices([("m".to_owned(), price(2.0))].into());
        let usage = Usage {
            turns: 1,
            input: 3_000_000,
            cache_read: 1_000_000,
            cache_write: 1_000_000,
            output: 100_000,
            ..Usage::default()
        };
        assert_eq!(prices.estimate(Some("m"), &usage).cost_usd(), Some(2.0 + 0.5 + 2.0 + 1.0));
        assert_eq!(prices.estimate(Some("other"), &usage).cost_usd(), None);
        assert_eq!(prices.estimate(None, &usage).cost_usd(), None);
        let recorded = Usage { priced: 1, cost_nanos: 7, ..usage };
        assert_eq!(prices.estimate(Some("m"), &recorded), recorded);
    }
}
