//! Tracks spending against a budget.
//!
//! The budget is checked before each attempt and updated after it. An attempt that exceeds it is
//! not aborted, and concurrent attempts do not see each other: spending may exceed the budget by
//! the attempts in flight. Attempts without reported usage, including those that were cut off, are
//! estimated from their size in bytes, so that they count against the budget too.

use std::sync::{Mutex, PoisonError};

use tine_core::Usage;

use crate::error::ModelError;
use crate::provider::{Price, Provider};

/// Assumed bytes per token where no usage is reported: low, so that the estimate errs high.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens and cost since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Input and output tokens.
    pub tokens: u64,
    /// Billionths of a US dollar.
    pub cost_nanos: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SpendingTracker {
    spent: Mutex<Spending>,
}

impl SpendingTracker {
    pub(crate) fn spent(&self) -> Spending {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error when the budget is used up.
    pub(crate) fn check(&self, provider: &Provider) -> Result<(), ModelError> {
        let Some(budget) = &provider.budget else { return Ok(()) };
        let spent = self.spent();
        let over = |spent: String, limit: String| {
            Err(ModelError::Budget { provider: provider.name.clone(), spent, limit })
        };
        if let Some(limit) = budget.max_tokens.filter(|limit| spent.tokens >= *limit) {
            return over(format!("{} tokens", spent.tokens), limit.to_string());
        }
        if let Some(limit) = budget.max_usd
            && Usage::nanos(limit).is_some_and(|limit| spent.cost_nanos >= limit)
        {
            return over(dollars(spent.cost_nanos), format!("{limit} US dollars"));
        }
        Ok(())
    }

    pub(crate) fn count(&self, usage: &Usage) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.tokens = spent.tokens.saturating_add(usage.total);
        spent.cost_nanos = spent.cost_nanos.saturating_add(usage.cost_nanos);
    }
}

/// Estimates the usage of an attempt that reported none.
pub(crate) fn estimate(price: Option<&Price>, request: usize, response: usize) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
    let (input, output) = (tokens(request), tokens(response));
    let total = input.saturating_add(output);
    with_cost(price, Usage { turns: 1, input, output, total, ..Usage::default() })
}

/// Adds the cost to a usage, unless the endpoint reported it.
pub(crate) fn with_cost(price: Option<&Price>, usage: Usage) -> Usage {
    let Some(price) = price.filter(|_| usage.priced == 0) else { return usage };
    let cached = price.cached_input_per_million.unwrap_or(price.input_per_million);
    let fresh = usage.input.saturating_sub(usage.cache_read);
    // Counts of tokens are far below 2^53.
    #[allow(clippy::cast_precision_loss)]
    let cost = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1e6;
    let dollars = cost(fresh, price.input_per_million)
        + cost(usage.cache_read, cached)
        + cost(usage.output, price.output_per_million);
    match Usage::nanos(dollars) {
        Some(cost_nanos) => Usage { priced: 1, cost_nanos, ..usage },
        None => usage,
    }
}

fn dollars(nanos: u64) -> String {
    let usage = Usage { priced: 1, cost_nanos: nanos, ..Usage::default() };
    usage.cost_usd().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use tine_core::Usage;

    use super::{estimate, with_cost};
    use crate::provider::Price;

    const PRICE: Price = Price {
        input_per_million: 2.0,
        output_per_million: 10.0,
        cached_input_per_million: Some(0.5),
    };

    #[test]
    fn a_cost_is_computed_from_the_price_unless_it_was_reported() {
        let usage = Usage { input: 1_000, cache_read: 400, output: 10, ..Usage::default() };
        assert_eq!(with_cost(Some(&PRICE), usage).cost_usd(), Some(0.0012 + 0.0002 + 0.0001));
        let reported = Usage { priced: 1, cost_nanos: 7, ..usage };
        assert_eq!(with_cost(Some(&PRICE), reported), reported);
        assert_eq!(with_cost(None, usage), usage);
    }

    #[test]
    fn unreported_usage_is_estimated_from_the_bytes() {
        let guess = estimate(Some(&PRICE), 300, 4);
        assert_eq!((guess.input, guess.output, guess.total), (100, 2, 102));
        assert_eq!(guess.cost_nanos, 220_000);
    }
}
