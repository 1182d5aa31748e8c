//! The guide's commands, as they stand there.

use std::process::Command;

use crate::harness::{Home, finish};

#[test]
fn every_command_of_the_guide_works_as_shown() {
    let guide = include_str!("../../../../docs/provenance.md");
    let mut script = "set -eu\n".to_owned();
    let mut inside = false;
    for line in guide.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => script.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    assert!(script.matches("tine ").count() > 30, "{script}");
    let home = Home::new();
    let file = home.write("guide.sh", &script);
    let command = home.command(&[]);
    let mut shell = Command::new("sh");
    shell.env_clear().current_dir(home.path("")).arg("-x").arg(file);
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_tine")).parent().expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    shell.env("PATH", format!("{}:{path}", folder.display()));
    let ran = finish(&mut shell, b"");
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
}
