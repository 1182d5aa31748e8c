//! What it costs a host to know this server: the tokens of its instructions and of its tools.

use rmcp::model::ListToolsResult;

use crate::INSTRUCTIONS;
use crate::tools::{self, Toolset};

/// Tokens that a host spends before the first call, counted in `o200k_base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Tools in the set.
    pub tools: usize,
    /// Tokens of the instructions.
    pub instructions: usize,
    /// Tokens of the answer to `tools/list`.
    pub list: usize,
}

impl Cost {
    /// All of it.
    pub fn total(&self) -> usize {
        self.instructions + self.list
    }
}

/// The cost of a set of tools.
pub fn cost(set: Toolset) -> Cost {
    let offered = tools::of(set, false);
    let tools = offered.len();
    let list = serde_json::to_string(&ListToolsResult::with_all_items(offered));
    Cost {
        tools,
        instructions: tine_llm::tokens::count(INSTRUCTIONS),
        list: tine_llm::tokens::count(&list.unwrap_or_default()),
    }
}
