//! The reference of the command line, docs/cli.md, which is made from the arguments themselves.

use std::fmt::Write as _;
use std::path::Path;

/// Set to write the page anew.
const UPDATE: &str = "TINE_UPDATE_DOCS";

fn reference() -> String {
    let mut page = "# The command line\n\nMade from what `tine` understands; `tine help COMMAND` \
                    shows the same. `TINE_UPDATE_DOCS=1 cargo test -p tine-cli reference` writes \
                    this page anew.\n"
        .to_owned();
    let mut tine = tine_cli::command().term_width(100);
    tine.build();
    add(&mut page, &mut tine, 2);
    page
}

fn add(page: &mut String, command: &mut clap::Command, level: usize) {
    let name = command.get_bin_name().unwrap_or("tine").to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let marks = "#".repeat(level.min(4));
    let _ = write!(page, "\n{marks} {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    let nested: Vec<String> =
        command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in nested.iter().filter(|name| *name != "help") {
        let command = command.find_subcommand_mut(name).expect("it was just listed");
        // What every command takes is told once.
        *command =
            command.clone().mut_args(|it| if it.is_global_set() { it.hide(true) } else { it });
        add(page, command, level + 1);
    }
}

#[test]
fn the_reference_of_the_command_line_is_what_it_understands() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let made = reference();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == made, "docs/cli.md is old; {UPDATE}=1 writes it anew");
}
