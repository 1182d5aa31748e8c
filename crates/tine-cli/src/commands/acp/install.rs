//! `tine acp install`: registers the agent in the settings of editors.
//!
//! For editors that are configured in Lua, the configuration is printed for the user to insert.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tine_core::ErrorKind;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::commands::host_files::jsonc::{self, Member};
use crate::commands::host_files::{
    self, HostEntry, HostFileArgs, HostFileChange, home, zed_settings_file,
};
use crate::settings::ECHO;
use crate::terminal::{Paging, Screen};

#[derive(Debug, Args)]
pub(crate) struct AcpInstallArgs {
    /// Editors to configure
    #[arg(value_name = "EDITOR", required_unless_present = "all")]
    editors: Vec<Editor>,
    /// Configure all installed editors
    #[arg(long, conflicts_with = "editors")]
    all: bool,
    /// Name of the agent in the editor [default: tine, or tine-PROGRAM with COMMAND]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Model that replies, from tine.toml, or `echo`
    #[arg(long, value_name = "NAME", default_value = ECHO, conflicts_with = "command")]
    model: String,
    #[command(flatten)]
    file_args: HostFileArgs,
    /// Agent to record, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A program that starts agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Editor {
    /// Zed
    Zed,
    /// The IDEs of JetBrains
    Jetbrains,
    /// Neovim with CodeCompanion
    Codecompanion,
    /// Neovim with agentic.nvim
    Agentic,
}

/// The part of the settings that lists agents.
const SECTION: &str = "agent_servers";

/// Configuration that the user has to insert.
#[derive(Serialize)]
struct PrintedSettings {
    host: &'static str,
    settings: String,
}

pub(super) fn install(globals: &Globals, args: &AcpInstallArgs) -> Result<()> {
    let (name, entry) = (name(args), entry(globals, args)?);
    let editors: &[Editor] =
        if args.all { &[Editor::Zed, Editor::Jetbrains] } else { &args.editors };
    let mut changes = Vec::new();
    let mut printed = Vec::new();
    for editor in editors {
        if let Some(settings) = editor.lua(&name, &entry) {
            printed.push(PrintedSettings { host: editor.name(), settings });
            continue;
        }
        let file = editor.file().ok_or_else(|| {
            CommandError::invalid(format!(
                "the home folder is unknown; cannot look for {} in",
                editor.name()
            ))
        })?;
        if !args.all || file.parent().is_some_and(Path::exists) {
            let with_entry = |text: &str| editor.with_entry(text, &name, &entry);
            changes.push(HostFileChange::plan(editor.name(), file, with_entry)?);
        }
    }
    if changes.is_empty() && printed.is_empty() {
        let why = "no editor was found; name one to create its file";
        return Err(CommandError::refused(ErrorKind::NotFound, why));
    }
    print(globals, &printed)?;
    match changes.is_empty() {
        true => Ok(()),
        false => host_files::apply_changes(globals, &changes, &args.file_args),
    }
}

fn print(globals: &Globals, printed: &[PrintedSettings]) -> Result<()> {
    let screen = Screen::new(globals);
    if printed.is_empty() {
        return Ok(());
    }
    if screen.json {
        return screen.document(&printed);
    }
    screen.text(Paging::Direct, |out| {
        for one in printed {
            writeln!(out, "{}: add this to its settings\n\n{}", one.host, one.settings)?;
        }
        Ok(())
    })
}

fn name(args: &AcpInstallArgs) -> String {
    let program = args.command.first().map(Path::new).and_then(Path::file_stem);
    match (&args.name, program) {
        (Some(name), _) => name.clone(),
        (None, Some(program)) => format!("tine-{}", program.to_string_lossy()),
        (None, None) => "tine".to_owned(),
    }
}

fn entry(globals: &Globals, args: &AcpInstallArgs) -> Result<HostEntry> {
    let mut entry = HostEntry::of(globals, "acp")?;
    if args.model != ECHO {
        globals.settings.model(&args.model)?;
        entry.arguments.extend(["--model".to_owned(), args.model.clone()]);
    }
    if !args.command.is_empty() {
        entry.arguments.push("--".to_owned());
        for argument in &args.command {
            let argument = argument.to_str().map(str::to_owned).ok_or_else(|| {
                CommandError::invalid("an argument that is not Unicode cannot be written there")
            })?;
            entry.arguments.push(argument);
        }
    }
    Ok(entry)
}

impl Editor {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Editor::Zed => "Zed",
            Editor::Jetbrains => "JetBrains",
            Editor::Codecompanion => "CodeCompanion",
            Editor::Agentic => "agentic.nvim",
        }
    }

    pub(crate) fn file(self) -> Option<PathBuf> {
        match self {
            Editor::Zed => zed_settings_file(),
            Editor::Jetbrains => Some(home()?.join(".jetbrains").join("acp.json")),
            Editor::Codecompanion | Editor::Agentic => None,
        }
    }

    /// Returns whether the settings' text starts `tine`, as an agent or to record one.
    pub(crate) fn has_entry(self, text: &str) -> std::result::Result<bool, String> {
        let names = jsonc::names(text, SECTION)?;
        Ok(names.iter().any(|name| name == "tine" || name.starts_with("tine-")))
    }

    fn with_entry(
        self,
        text: &str,
        name: &str,
        entry: &HostEntry,
    ) -> std::result::Result<String, String> {
        let mut members = match self {
            Editor::Zed => vec![("type", Member::Text("custom"))],
            _ => Vec::new(),
        };
        members.push(("command", Member::Text(&entry.command)));
        members.push(("args", Member::List(&entry.arguments)));
        jsonc::set(text, SECTION, name, &members)
    }

    /// Returns the configuration for plugins that are configured in Lua.
    fn lua(self, name: &str, entry: &HostEntry) -> Option<String> {
        let quoted_list = |items: &mut dyn Iterator<Item = &String>| {
            items.map(|item| quoted(item)).collect::<Vec<_>>().join(", ")
        };
        let name = quoted(name);
        match self {
            Editor::Zed | Editor::Jetbrains => None,
            Editor::Codecompanion => {
                let command =
                    quoted_list(&mut [&entry.command].into_iter().chain(&entry.arguments));
                Some(format!(
                    "require(\"codecompanion\").setup({{\n  adapters = {{\n    acp = {{\n      \
                     [{name}] = function()\n        return \
                     require(\"codecompanion.adapters\").extend(\"gemini_cli\", {{\n          \
                     name = {name},\n          formatted_name = {name},\n          commands = {{ \
                     default = {{ {command} }} }},\n        }})\n      end,\n    }},\n  }},\n}})\n"
                ))
            }
            Editor::Agentic => {
                let (command, arguments) =
                    (quoted(&entry.command), quoted_list(&mut entry.arguments.iter()));
                Some(format!(
                    "require(\"agentic\").setup({{\n  provider = {name},\n  acp_providers = \
                     {{\n    [{name}] = {{\n      name = {name},\n      command = {command},\n      \
                     args = {{ {arguments} }},\n    }},\n  }},\n}})\n"
                ))
            }
        }
    }
}

/// Quotes a string; JSON's syntax is valid in Lua.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
