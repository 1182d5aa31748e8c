//! The list of commands in docs/cli.md, which is made from their definitions.

use std::fmt::Write as _;
use std::path::Path;

use clap::Command;

use crate::harness::Home;

/// Set to update the page.
const UPDATE: &str = "TINE_UPDATE_DOCS";

/// Ends the part of the page that people write.
const MARK: &str = "<!-- Generated: TINE_UPDATE_DOCS=1 cargo test -p tine-cli reference -->\n";

/// Older spellings that the page lists, by the new ones.
const OLDER: [(&str, &str); 26] = [
    ("turns", "turn list"),
    ("path", "turn path"),
    ("split", "turn split"),
    ("tag", "turn tag"),
    ("inject", "turn inject"),
    ("restore", "branch restore"),
    ("tails", "branch tails"),
    ("commits", "commit list"),
    ("resolve", "commit resolve"),
    ("blame", "commit blame"),
    ("bisect", "commit bisect"),
    ("drift", "commit drift"),
    ("key", "commit key"),
    ("observations", "entity observations"),
    ("timeline", "entity timeline"),
    ("relate", "relation add"),
    ("relations", "relation list"),
    ("unrelate", "relation remove"),
    ("interpret", "run start"),
    ("purge", "store purge"),
    ("verify", "store verify"),
    ("stats", "store stats"),
    ("backup", "store backup"),
    ("migrate", "store migrate"),
    ("pack", "store pack"),
    ("token", "server token"),
];

fn reference() -> String {
    let root = tine_cli::command();
    let help = Home::new().ok(&["--help"]);
    let mut page = String::new();
    for line in help.lines().skip_while(|line| !line.starts_with("Usage")).skip(1) {
        if let Some(group) = line.strip_suffix(':').filter(|it| !it.starts_with("Examples")) {
            let _ = write!(page, "\n### {group}\n\n| command | |\n| --- | --- |\n");
        } else if let Some(entry) = line.strip_prefix("  ") {
            let names = entry.split("  ").next().unwrap_or_default();
            for name in names.split(", ") {
                let command = root.find_subcommand(name).expect("help lists commands");
                add(&mut page, name, command);
            }
        } else if line.starts_with("A turn is named") {
            break;
        }
    }
    page.push_str("\n## Older spellings\n\nThese still work and are not listed by `tine --help`: ");
    let older = OLDER.map(|(old, new)| format!("`tine {old}` (now `tine {new}`)"));
    let _ = writeln!(page, "{}, `tine watch` (now `tine server watch`).", older.join(", "));
    page
}

/// Adds a row for a command, and for those of its family.
fn add(page: &mut String, path: &str, command: &Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "| `tine {path}` | {about} |");
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        add(page, &format!("{path} {}", below.get_name()), below);
    }
}

#[test]
fn the_reference_lists_the_commands_that_there_are() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (written, _) = page.split_once(MARK).expect("the page has a mark");
    let made = format!("{written}{MARK}{}", reference());
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &made).unwrap();
    } else {
        assert!(page == made, "docs/cli.md is out of date; {UPDATE}=1 updates it");
    }
}

#[test]
fn older_spellings_are_those_of_hidden_commands() {
    let root = tine_cli::command();
    let mut listed: Vec<&str> = OLDER.iter().map(|(old, _)| *old).chain(["watch"]).collect();
    listed.sort_unstable();
    let hidden = root.get_subcommands().filter(|it| it.is_hide_set());
    let mut hidden: Vec<&str> = hidden.map(Command::get_name).collect();
    hidden.sort_unstable();
    assert_eq!(listed, hidden);
    for (_, new) in OLDER {
        let at = new.split(' ').try_fold(&root, |at, name| at.find_subcommand(name));
        assert!(at.is_some_and(|it| !it.is_hide_set()), "`tine {new}` does not exist");
    }
}
