//! The configuration file of each MCP host and the format of its entries.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::commands::host_files::jsonc::{self, Member};
use crate::commands::host_files::{
    HostEntry, config_folder, folder_from_env, home, toml, zed_settings_file,
};

/// A program that starts servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
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

/// Name of the server in every host's configuration.
const NAME: &str = "tine";

impl Host {
    pub(crate) const ALL: [Host; 6] =
        [Host::ClaudeCode, Host::ClaudeDesktop, Host::Cursor, Host::Vscode, Host::Zed, Host::Codex];

    /// Returns the display name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Host::ClaudeCode => "Claude Code",
            Host::ClaudeDesktop => "Claude Desktop",
            Host::Cursor => "Cursor",
            Host::Vscode => "VS Code",
            Host::Zed => "Zed",
            Host::Codex => "Codex",
        }
    }

    /// Returns the configuration file; `None` without a home folder.
    pub(crate) fn file(self) -> Option<PathBuf> {
        let under_home = |path: &str| Some(home()?.join(path));
        match self {
            Host::ClaudeCode => match folder_from_env("CLAUDE_CONFIG_DIR") {
                Some(folder) => Some(folder.join(".claude.json")),
                None => under_home(".claude.json"),
            },
            Host::ClaudeDesktop => {
                Some(config_folder()?.join("Claude").join("claude_desktop_config.json"))
            }
            Host::Cursor => under_home(".cursor/mcp.json"),
            Host::Vscode => Some(config_folder()?.join("Code").join("User").join("mcp.json")),
            Host::Zed => zed_settings_file(),
            Host::Codex => match folder_from_env("CODEX_HOME") {
                Some(folder) => Some(folder.join("config.toml")),
                None => under_home(".codex/config.toml"),
            },
        }
    }

    /// Returns whether the host seems to be installed.
    pub(crate) fn is_here(self, file: &Path) -> bool {
        match self {
            // Its file is in the home folder itself.
            Host::ClaudeCode => file.exists() || file.with_file_name(".claude").exists(),
            _ => file.parent().is_some_and(Path::exists),
        }
    }

    /// Returns the name of the host's part of the file.
    fn section(self) -> &'static str {
        match self {
            Host::ClaudeCode | Host::ClaudeDesktop | Host::Cursor => "mcpServers",
            Host::Vscode => "servers",
            Host::Zed => "context_servers",
            Host::Codex => "mcp_servers",
        }
    }

    /// Returns whether the file's text has the entry.
    pub(crate) fn has_entry(self, text: &str) -> Result<bool, String> {
        match self {
            Host::Codex => toml::has(text, self.section(), NAME),
            _ => Ok(jsonc::names(text, self.section())?.iter().any(|name| name == NAME)),
        }
    }

    /// Returns the file's text with the entry added.
    pub(super) fn with_entry(self, text: &str, entry: &HostEntry) -> Result<String, String> {
        let section = self.section();
        if self == Host::Codex {
            return toml::set(text, section, NAME, entry);
        }
        let mut members = match self {
            Host::ClaudeCode | Host::Vscode => vec![("type", Member::Text("stdio"))],
            Host::Zed => vec![("source", Member::Text("custom"))],
            _ => Vec::new(),
        };
        members.push(("command", Member::Text(&entry.command)));
        members.push(("args", Member::List(&entry.arguments)));
        jsonc::set(text, section, NAME, &members)
    }
}
