//! The tokens that instructions and tools cost a host.

use tine_mcp::{INSTRUCTIONS, Toolset, token_cost};

#[test]
fn instructions_and_tools_stay_within_the_token_budget() {
    for set in Toolset::ALL {
        let cost = token_cost(set);
        println!(
            "{}: {} tools, {} + {} = {}",
            set.as_str(),
            cost.tools,
            cost.instructions,
            cost.list,
            cost.total()
        );
    }
    assert!(INSTRUCTIONS.len() < 2_000);
    assert!(token_cost(Toolset::Core).total() < 3_000, "{:?}", token_cost(Toolset::Core));
    assert!(token_cost(Toolset::All).total() < 6_000, "{:?}", token_cost(Toolset::All));
    assert_eq!(token_cost(Toolset::Core).tools, 12);
    assert_eq!(token_cost(Toolset::All).tools, 24);
}
