//! The page that describes the renderings names tests that exist.

const PAGE: &str = include_str!("../../../../docs/rendering.md");

#[test]
fn every_rule_names_existing_tests() {
    let tests = [
        include_str!("budget.rs"),
        include_str!("from_the_tip.rs"),
        include_str!("golden.rs"),
        include_str!("page.rs"),
        include_str!("random.rs"),
        include_str!("rules.rs"),
        include_str!("../../../tine-core/tests/messages.rs"),
        include_str!("../../../tine-core/tests/usage.rs"),
        include_str!("../../../tine-engine/tests/usage.rs"),
        include_str!("../../../tine-llm/tests/tokens.rs"),
    ]
    .concat();
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let mut rules = 0;
    for row in rows {
        let cell = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap();
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        for name in &names {
            assert!(tests.contains(&format!("fn {name}(")), "there is no test {name}");
        }
        assert!(!names.is_empty() || cell == "shown by", "{row}");
        rules += 1;
    }
    assert!(rules > 20);
}
