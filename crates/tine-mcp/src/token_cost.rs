//! What a host spends to know this server: the tokens of its instructions and tools.

use rmcp::model::ListToolsResult;

use crate::INSTRUCTIONS;
use crate::tools::{self, Toolset};

/// Tokens that a host spends before the first call, counted with `o200k_base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCost {
    /// The number of tools.
    pub tools: usize,
    /// Tokens of the instructions.
    pub instructions: usize,
    /// Tokens of the response to `tools/list`.
    pub list: usize,
}

impl TokenCost {
    /// Returns the sum.
    pub fn total(&self) -> usize {
        self.instructions + self.list
    }
}

/// Counts the tokens of a toolset.
pub fn token_cost(set: Toolset) -> TokenCost {
    let offered = tools::of(set, false);
    let tools = offered.len();
    let list = serde_json::to_string(&ListToolsResult::with_all_items(offered));
    TokenCost {
        tools,
        instructions: tine_llm::tokens::count(INSTRUCTIONS),
        list: tine_llm::tokens::count(&list.unwrap_or_default()),
    }
}
