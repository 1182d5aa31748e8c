//! Where each host keeps its servers, and how an entry looks there.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::commands::host_files::jsonc::{self, quoted};
use crate::commands::host_files::{Entry, folder, home, list, settings, zed};

/// A program that starts servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Host {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Zed
    Zed,
    /// Codex
    Codex,
}

/// Name of the server in every host.
const NAME: &str = "tine";

impl Host {
    pub(super) const ALL: [Host; 6] =
        [Host::ClaudeCode, Host::ClaudeDesktop, Host::Cursor, Host::Vscode, Host::Zed, Host::Codex];

    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Host::ClaudeCode => "Claude Code",
            Host::ClaudeDesktop => "Claude Desktop",
            Host::Cursor => "Cursor",
            Host::Vscode => "VS Code",
            Host::Zed => "Zed",
            Host::Codex => "Codex",
        }
    }

    /// Its file of settings; `None` where no home is known.
    pub(super) fn file(self) -> Option<PathBuf> {
        let under_home = |path: &str| Some(home()?.join(path));
        match self {
            Host::ClaudeCode => match folder("CLAUDE_CONFIG_DIR") {
                Some(folder) => Some(folder.join(".claude.json")),
                None => under_home(".claude.json"),
            },
            Host::ClaudeDesktop => {
                Some(settings()?.join("Claude").join("claude_desktop_config.json"))
            }
            Host::Cursor => under_home(".cursor/mcp.json"),
            Host::Vscode => Some(settings()?.join("Code").join("User").join("mcp.json")),
            Host::Zed => zed(),
            Host::Codex => match folder("CODEX_HOME") {
                Some(folder) => Some(folder.join("config.toml")),
                None => under_home(".codex/config.toml"),
            },
        }
    }

    /// Whether the host seems to be on this machine.
    pub(super) fn is_here(self, file: &Path) -> bool {
        match self {
            // Its file lies in the home itself.
            Host::ClaudeCode => file.exists() || file.with_file_name(".claude").exists(),
            _ => file.parent().is_some_and(Path::exists),
        }
    }

    /// The file's text with the entry in it.
    pub(super) fn with_entry(self, text: &str, entry: &Entry) -> Result<String, String> {
        let section = match self {
            Host::ClaudeCode | Host::ClaudeDesktop | Host::Cursor => "mcpServers",
            Host::Vscode => "servers",
            Host::Zed => "context_servers",
            Host::Codex => return in_toml(text, entry),
        };
        let extra = match self {
            Host::ClaudeCode | Host::Vscode => Some(("type", "stdio")),
            Host::Zed => Some(("source", "custom")),
            _ => None,
        };
        let extra = extra.map_or(String::new(), |(name, value)| {
            format!("  {}: {},\n", quoted(name), quoted(value))
        });
        let value = format!(
            "{{\n{extra}  \"command\": {},\n  \"args\": {}\n}}",
            quoted(&entry.command),
            list(&entry.arguments)
        );
        jsonc::set(text, section, NAME, &value).map_err(|error| error.to_string())
    }
}

/// TOML with the entry as a table of its own, in the place of the one that is there.
fn in_toml(text: &str, entry: &Entry) -> Result<String, String> {
    let parse =
        |text: &str| text.parse::<toml::Table>().map_err(|error| error.message().to_owned());
    parse(text)?;
    let header = format!("[mcp_servers.{NAME}]");
    let table = format!(
        "{header}\ncommand = {}\nargs = {}\n",
        quoted(&entry.command),
        list(&entry.arguments)
    );
    let (mut lines, mut held) = (Vec::new(), Vec::new());
    let (mut placed, mut within) = (false, false);
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if bare.starts_with('[') {
            within = bare == header || bare.starts_with(&format!("[mcp_servers.{NAME}."));
            if !within {
                lines.append(&mut held);
            }
            if bare == header {
                lines.push(table.clone());
                placed = true;
            }
        }
        // Comments and blank lines before the next table belong to that.
        if !within {
            lines.push(line.to_owned());
        } else if bare.is_empty() || bare.starts_with('#') {
            held.push(line.to_owned());
        } else {
            held.clear();
        }
    }
    lines.append(&mut held);
    let mut out = lines.concat();
    if !placed {
        if !out.is_empty() {
            out.push_str(if out.ends_with('\n') { "\n" } else { "\n\n" });
        }
        out.push_str(&table);
    } else if !out.ends_with('\n') {
        out.push('\n');
    }
    // A table that was written in another form would now be there twice.
    let read = parse(&out)
        .map_err(|_| format!("`{NAME}` is set there in a way that cannot be changed safely"))?;
    let command = read.get("mcp_servers").and_then(|it| it.get(NAME)?.get("command")?.as_str());
    match command == Some(entry.command.as_str()) {
        true => Ok(out),
        false => Err(format!("`{NAME}` is set there in a way that cannot be changed safely")),
    }
}
