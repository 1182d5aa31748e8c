//! The page that describes the format says what is true.

use super::sample;
use super::script;
use super::stories::{export, import, memory};

const PAGE: &str = include_str!("../../../../docs/bundle.md");

#[test]
fn the_documented_example_is_a_bundle() {
    let (_, behind) = PAGE.split_once("<!-- example -->\n```\n").unwrap();
    let (example, _) = behind.split_once("```\n").unwrap();
    let (content, said) = script::run(example.as_bytes());
    assert!(content, "{said}");
    sample::verify(example.as_bytes()).unwrap();
    let engine = memory(1);
    import(&engine, example.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(export(&engine, &["trip"])).unwrap(), example);
}

#[test]
fn every_guarantee_names_existing_tests() {
    let tests = [
        include_str!("form.rs"),
        include_str!("page.rs"),
        include_str!("random.rs"),
        include_str!("refusals.rs"),
        include_str!("script.rs"),
        include_str!("transfer.rs"),
    ]
    .concat();
    let (_, guarantees) = PAGE.split_once("## Guarantees").unwrap();
    let (guarantees, _) = guarantees.split_once("## How").unwrap();
    let rows: Vec<&str> =
        guarantees.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.len() > 10);
    for row in rows {
        let named = row.split('|').nth(2).unwrap();
        let names: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            assert!(tests.contains(&format!("fn {name}(")), "there is no test {name}");
        }
    }
}
