//! What a host pays for knowing the server.

use tine_mcp::{INSTRUCTIONS, Toolset, cost};

#[test]
fn a_host_pays_little_for_knowing_the_server() {
    for set in Toolset::ALL {
        let cost = cost(set);
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
    assert!(cost(Toolset::Core).total() < 3_000, "{:?}", cost(Toolset::Core));
    assert!(cost(Toolset::All).total() < 6_000, "{:?}", cost(Toolset::All));
    assert_eq!(cost(Toolset::Core).tools, 12);
    assert_eq!(cost(Toolset::All).tools, 24);
}
