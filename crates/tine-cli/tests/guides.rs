//! Runs the commands of the documentation, and checks its links and the tests that it names.
//!
//! The blocks of a page run in order in one folder. Parts that do not work in a test (an address, a
//! drive, a command that never ends) are replaced; a replacement that no longer occurs on the page
//! fails. Every page with commands must be in one of the lists.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Home, Server, finish};

/// Pages whose commands do not run here, and the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    ("CONTRIBUTING.md", "its commands run the tests themselves"),
    ("docs/acp-conformance.md", "scripts/test-acp runs the suite"),
    ("docs/interpretation.md", "the judge is a test: crates/tine-analysis/tests/rules/judge"),
    ("docs/performance.md", "measurements take minutes"),
    ("docs/rings.md", "the judge is a test: crates/tine-analysis/tests/rings"),
    ("fuzz/README.md", "the long form; the short one is part of cargo test"),
];

/// Pages without replacements, with their minimum number of commands.
const PAGES: &[(&str, usize)] = &[
    ("docs/concepts.md", 10),
    ("docs/for-builders.md", 9),
    ("docs/for-operators.md", 6),
    ("docs/configuration.md", 2),
    ("docs/provenance.md", 30),
    ("docs/commits.md", 30),
    ("docs/rendering.md", 5),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the blocks of a language in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}");
    let mut blocks: Vec<String> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.trim_end() {
            line if line == start => {
                inside = true;
                blocks.push(String::new());
            }
            "```" => inside = false,
            line if inside => {
                let block = blocks.last_mut().expect("a block was started");
                block.push_str(line);
                block.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

/// Runs the commands of a page, at least `least` of them, with replacements.
fn run_page(home: &Home, name: &str, least: usize, changes: &[(&str, &str)]) {
    let mut script = blocks(&page(name), "sh").concat();
    for (stands, runs) in changes {
        assert!(script.contains(stands), "{name} no longer has `{stands}`");
        script = script.replace(stands, runs);
    }
    let commands = script.matches("tine ").count();
    assert!(commands >= least, "only {commands} commands in {name}");
    let file = home.write("guide.sh", format!("set -eu\n{script}"));
    let command = home.command(&[]);
    let mut shell = Command::new("sh");
    shell.env_clear().current_dir(home.path("")).arg("-x").arg(file);
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let folder = Path::new(env!("CARGO_BIN_EXE_tine")).parent().expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    shell.env("PATH", format!("{}:{path}", folder.display()));
    let ran = finish(&mut shell, b"");
    assert_eq!(ran.code, 0, "{name}\n{}\n{}", ran.out, ran.err);
}

/// Returns a home folder with the logs of two agents and an export in their usual places.
fn with_logs() -> Home {
    let home = Home::new();
    let fixtures = root().join("crates/tine-import/tests/fixtures");
    let copy = |from: &str, to: &str| {
        let to = home.path(to);
        std::fs::create_dir_all(to.parent().expect("a folder")).unwrap();
        let copied = Command::new("cp").arg("-r").arg(fixtures.join(from)).arg(&to).status();
        assert!(copied.expect("cp runs").success(), "{from}");
    };
    copy("claude-code/input", ".claude/projects");
    copy("codex/input/sessions", ".codex/sessions");
    copy("chatgpt/input/export.zip", "chatgpt-export.zip");
    home
}

/// Stops a command that never ends after two seconds.
fn for_a_while(command: &str) -> String {
    format!("timeout 2 {command} || test $? = 124")
}

#[test]
fn every_command_of_the_guides_works_as_shown() {
    for (name, least) in PAGES {
        let home = if *name == "docs/rendering.md" { Home::with_trip() } else { Home::new() };
        run_page(&home, name, *least, &[]);
    }
}

#[test]
fn every_command_of_the_readme_works_as_shown() {
    let home = with_logs();
    let script = root().join("docs/verify_bundle.py").display().to_string();
    let changes: &[(&str, &str)] = &[
        // This test is part of the run, and the build is tested by other means.
        ("bash scripts/serve ", ": "),
        ("bash scripts/test ", ": "),
        ("docs/verify_bundle.py", &script),
        ("/media/stick/tine", "stick"),
        ("tine serve      ", &for_a_while("tine serve --listen 127.0.0.1:0")),
        ("tine mcp install", "tine mcp install --yes"),
        ("tine acp install", "tine acp install --yes"),
    ];
    run_page(&home, "README.md", 24, changes);
}

#[test]
fn every_command_of_the_pages_on_imports_works_as_shown() {
    let home = with_logs();
    home.ok(&["new", "trip"]);
    let watch = for_a_while("tine import --watch");
    let changes = [("tine import --watch", watch.as_str())];
    run_page(&home, "docs/import.md", 5, &changes);
    let changes = [
        changes[0],
        ("/media/stick/tine", "stick"),
        ("tine mcp install", "tine mcp install --yes"),
        ("tine acp install", "tine acp install --yes"),
    ];
    run_page(&with_logs(), "docs/for-users.md", 10, &changes);
}

#[test]
fn every_command_of_the_guide_to_rest_works_as_shown() {
    let home = Home::new();
    home.write("report.pdf", "%PDF-1.4");
    let text = "Anna Berg will pay 3000 euros by Friday.";
    home.ok(&["store", "turn", "trip", "--turn-id", "1", "--interpret", "wait", text]);
    let server = Server::start(&home.path("store"), "127.0.0.1:0", &["--model", "echo"]);
    let first = "curl \"http://127.0.0.1:8000/api/v1/entities/$ENTITY/provenance";
    let names = format!(
        "ENTITY=$(tine entity list --type person | cut -d' ' -f1)\n\
         SOURCE=$(tine source list | cut -d' ' -f1)\n\
         tine interpret \"$SOURCE\" --wait\n\
         RUN=$(tine interpret --of \"$SOURCE\" | head -1 | cut -d' ' -f1)\n\
         OTHER=$(tine interpret --of \"$SOURCE\" | tail -1 | cut -d' ' -f1)\n{first}"
    );
    let events = for_a_while("curl -N http://127.0.0.1:8000/api/v1/events");
    let changes = [
        (first, names.as_str()),
        ("curl -N http://127.0.0.1:8000/api/v1/events", events.as_str()),
        // The server runs already.
        ("tine serve --model echo", ":"),
        // These need a failed run and a run by a model.
        ("curl -X POST \"http://127.0.0.1:8000/api/v1/interpretations/$RUN/retry\"", ":"),
        ("curl \"http://127.0.0.1:8000/api/v1/prompts/$HASH\"", ":"),
        ("curl ", "curl -fsS "),
        ("http://127.0.0.1:8000", server.url.as_str()),
    ];
    run_page(&home, "docs/rest.md", 5, &changes);
}

#[test]
fn every_command_of_the_page_on_sync_works_as_shown() {
    let home = Home::with_trip();
    let server = Server::start(&home.path("other"), "127.0.0.1:0", &[]);
    let changes = [("/media/stick/tine", "stick"), ("http://127.0.0.1:8000", server.url.as_str())];
    run_page(&home, "docs/sync.md", 3, &changes);
}

#[test]
fn every_command_of_the_page_on_search_works_as_shown() {
    let home = Home::with_trip();
    home.ok(&["fork", "main", "--name", "autumn"]);
    run_page(&home, "docs/search.md", 4, &[]);
}

#[test]
fn every_command_of_the_page_on_repair_works_as_shown() {
    run_page(&Home::with_trip(), "docs/reliability.md", 1, &[("NEW_FOLDER", "new-store")]);
}

#[test]
fn every_command_of_the_pages_on_hosts_works_as_shown() {
    let changes = &[("tine mcp install", "tine mcp install --yes")];
    run_page(&Home::new(), "docs/mcp.md", 1, changes);
    let settings = "[models.claude]\nkind = \"anthropic\"\nmodel = \"claude-opus-4-6\"\n";
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/tine")).unwrap();
    home.write(".config/tine/tine.toml", settings);
    let changes = &[
        ("tine acp install", "tine acp install --yes"),
        // These agents are not installed; scripts/test-acp records others.
        ("tine acp -- ", ": "),
        ("tine acp --from ", ": "),
    ];
    run_page(&home, "docs/acp.md", 3, changes);
}

#[test]
fn the_rust_of_the_guide_for_builders_is_an_example_that_runs() {
    let example = include_str!("../../tine-engine/src/lib.rs");
    let shown = blocks(&page("docs/for-builders.md"), "rust").concat();
    assert!(shown.contains("Engine::new"), "the guide has no example in Rust");
    for line in shown.lines() {
        let runs = example.lines().any(|it| it.trim_start_matches("//!").trim_start() == line);
        assert!(runs, "the example of tine-engine has no line `{line}`");
    }
}

#[test]
fn blocks_of_json_are_json() {
    for (name, text) in pages() {
        for block in blocks(&text, "json") {
            // An ellipsis stands for omitted content.
            let block = block.replace("{…}", "{}").replace("[…]", "[]");
            let read = serde_json::from_str::<serde_json::Value>(&block);
            assert!(read.is_ok(), "{name}: {read:?} in {block}");
        }
    }
}

#[test]
fn every_page_with_commands_is_run_somewhere() {
    let source = include_str!("guides.rs");
    for (name, text) in pages() {
        let known = ELSEWHERE.iter().any(|(page, _)| *page == name)
            || source.contains(&format!("\"{name}\","));
        assert!(blocks(&text, "sh").is_empty() || known, "the commands of {name} are not run");
    }
    for (name, why) in ELSEWHERE {
        assert!(!blocks(&page(name), "sh").is_empty(), "{name} ({why}) has no commands");
    }
}

/// Returns a page without its code blocks.
fn prose(page: &str) -> String {
    let mut inside = false;
    let lines = page.lines().filter(|line| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_to_a_file_and_an_anchor_that_exist() {
    for (name, text) in pages() {
        let folder = root().join(&name).parent().expect("a folder").to_owned();
        let text = prose(&text);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root().join(&name) } else { folder.join(path) };
            assert!(target.exists(), "{name} links to {link}, which does not exist");
            if !wanted.is_empty() {
                let linked = prose(&std::fs::read_to_string(&target).expect("a page"));
                let headings = linked.lines().filter(|line| line.starts_with('#'));
                let mut found = headings.map(|line| anchor(line.trim_start_matches('#')));
                assert!(found.any(|it| it == wanted), "{name}: no anchor {link}");
            }
        }
    }
}

/// Appends the source code below a folder.
fn read_sources(folder: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() && !path.ends_with("target") {
            read_sources(&path, sources);
        } else if path.extension().is_some_and(|it| it == "rs") {
            sources.push_str(&std::fs::read_to_string(&path).expect("source code"));
        }
    }
}

#[test]
fn every_test_that_a_page_names_exists() {
    let mut sources = String::new();
    ["crates", "rig", "bench"].iter().for_each(|it| read_sources(&root().join(it), &mut sources));
    let mut names = 0;
    for (name, text) in pages() {
        for quoted in prose(&text).split('`').skip(1).step_by(2) {
            let test = quoted.rsplit("::").next().expect("at least one part");
            let plain =
                test.chars().all(|it| it.is_ascii_lowercase() || "_0123456789".contains(it));
            // Fewer underscores are fields and options.
            if plain && test.matches('_').count() >= 4 {
                assert!(sources.contains(&format!("fn {test}(")), "{name}: no test `{quoted}`");
                names += 1;
            }
        }
    }
    assert!(names > 100, "only {names} tests are named");
}

/// Returns the name and text of every page of the documentation.
fn pages() -> Vec<(String, String)> {
    let single = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"];
    let mut names: Vec<String> = single.map(str::to_owned).into();
    for folder in ["docs", "docs/results", "deploy", "fuzz"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("there is documentation") {
            let name = entry.expect("a readable folder").file_name();
            let name = name.to_str().expect("a plain name");
            if name.ends_with(".md") {
                names.push(format!("{folder}/{name}"));
            }
        }
    }
    names.into_iter().map(|name| (name.clone(), page(&name))).collect()
}
