//! ARCHITECTURE.md against the tree: it names every crate and every folder of the engine, every
//! path that it names exists, and it stays short; and what crates depend on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most words that the page may have.
const WORDS: usize = 2_500;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(top().join("ARCHITECTURE.md")).unwrap()
}

/// The folders below a folder that hold code, as paths from the top of the project.
fn folders(of: &str) -> Vec<String> {
    let entries = fs::read_dir(top().join(of)).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    folders.map(|path| format!("{of}/{}", path.file_name().unwrap().to_str().unwrap())).collect()
}

/// The text between back quotes.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    let prose = page.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2))
}

#[test]
fn every_crate_and_every_folder_of_the_engine_is_on_the_page() {
    let page = page();
    let there = [folders("crates"), folders("crates/tine-engine/src")].concat();
    assert!(there.len() > 20, "{there:?}");
    for folder in there {
        assert!(page.contains(&format!("`{folder}`")), "{folder} is missing");
    }
}

#[test]
fn every_path_on_the_page_exists() {
    let page = page();
    let starts = ["crates/", "scripts/", "docs/", "web/"];
    let paths = quoted(&page).filter(|text| starts.iter().any(|start| text.starts_with(start)));
    let missing: Vec<&str> = paths.filter(|path| !top().join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_is_short() {
    let words = page().split_whitespace().count();
    assert!(words <= WORDS, "{words} words, at most {WORDS}");
}

/// The names of everything that a crate is compiled with.
fn dependencies(arguments: &[&str]) -> BTreeSet<String> {
    let listed = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(arguments)
        .current_dir(top())
        .output()
        .expect("cargo runs");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let text = String::from_utf8(listed.stdout).expect("names");
    text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

#[test]
fn the_client_compiles_no_store_and_no_dictionary() {
    let found = dependencies(&["--package", "tine-client"]);
    let tine: Vec<&String> = found.iter().filter(|name| name.starts_with("tine-")).collect();
    assert_eq!(tine, ["tine-api", "tine-client", "tine-core", "tine-net"]);
    for heavy in ["rusqlite", "libsqlite3-sys", "zstd", "jieba-rs", "tokio-postgres"] {
        assert!(!found.contains(heavy), "{heavy}");
    }
}

#[test]
fn the_engine_can_be_embedded_with_few_dependencies() {
    let found = dependencies(&["--package", "tine-engine", "--no-default-features"]);
    assert!(found.len() < 50, "{} crates: {found:?}", found.len());
    for heavy in ["rusqlite", "zstd", "jieba-rs", "ed25519-dalek"] {
        assert!(!found.contains(heavy), "{heavy}");
    }
}
