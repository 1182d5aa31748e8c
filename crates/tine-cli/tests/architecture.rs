//! The code map of ARCHITECTURE.md against the code: each section is about the folders that its
//! heading names, and every name in its tables is a module or a folder there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A section of the map: the folders that it is about, and its lines.
struct Section<'p> {
    folders: Vec<&'p str>,
    lines: Vec<&'p str>,
}

fn sections(page: &str) -> Vec<Section<'_>> {
    let map = page.split("\n## ").find(|part| part.starts_with("Code map")).unwrap();
    let parts = map.split("\n### ").skip(1).map(|part| {
        let mut lines = part.lines();
        let folders = quoted(lines.next().unwrap_or_default());
        Section { folders, lines: lines.collect() }
    });
    parts.collect()
}

/// What stands between back quotes.
fn quoted(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Whether something quoted is a name such as `append` or `verify/state`, and no type, link or command.
fn is_name(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_/".contains(&byte);
    !text.is_empty() && !text.starts_with('/') && text.bytes().all(plain)
}

/// The modules below a folder; the roots of crates, programs and tests besides are none.
fn modules(folder: &Path, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "bin" {
            modules(&path, found);
        }
        let is_code = path.is_dir() || path.extension().is_some_and(|it| it == "rs");
        if is_code && !["lib", "main", "mod", "bin", "tests"].contains(&name.as_str()) {
            // A folder may hold no module but texts.
            let is_module = path.is_file() || path.join("mod.rs").is_file();
            if is_module || path.with_extension("rs").is_file() {
                found.insert(name);
            }
        }
    }
}

#[test]
fn the_code_map_names_every_module_and_nothing_else() {
    let page = fs::read_to_string(top().join("ARCHITECTURE.md")).unwrap();
    let sections = sections(&page);
    let mut wrong = BTreeMap::new();
    for Section { folders, lines } in &sections {
        let mut there = BTreeSet::new();
        for folder in folders {
            modules(&top().join(folder).join("src"), &mut there);
        }
        let told = lines.iter().flat_map(|line| quoted(line));
        let told: BTreeSet<&str> = told.flat_map(|name| name.split('/')).collect();
        for module in there.iter().filter(|module| !told.contains(module.as_str())) {
            wrong.insert(format!("{folders:?}: {module}"), "is not on the map");
        }
        let rows = lines.iter().filter(|line| line.starts_with('|'));
        for name in rows.flat_map(|row| quoted(row)).filter(|name| is_name(name)) {
            let is_module = name.split('/').all(|part| there.contains(part));
            let is_path = folders.iter().any(|folder| top().join(folder).join(name).exists());
            if !is_module && !is_path {
                wrong.insert(format!("{folders:?}: {name}"), "is not in the code");
            }
        }
    }
    let mapped: BTreeSet<&str> = sections.iter().flat_map(|it| it.folders.clone()).collect();
    for entry in fs::read_dir(top().join("crates")).unwrap() {
        let name = format!("crates/{}", entry.unwrap().file_name().to_str().unwrap());
        if !mapped.contains(name.as_str()) {
            wrong.insert(name, "is not on the map");
        }
    }
    for folder in mapped.iter().filter(|folder| !top().join(folder).is_dir()) {
        wrong.insert((*folder).to_owned(), "is not in the code");
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md: {wrong:#?}");
}
