//! `tine mcp install`: registers the server in the configuration of hosts.

use clap::Args;
use tine_core::ErrorKind;

use super::ToolsetArgs;
use super::hosts::Host;
use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::commands::host_files::{self, HostEntry, HostFileArgs, HostFileChange};

#[derive(Debug, Args)]
pub(crate) struct McpInstallArgs {
    /// Hosts to configure
    #[arg(value_name = "HOST", required_unless_present = "all")]
    hosts: Vec<Host>,
    /// Configure all installed hosts
    #[arg(long, conflicts_with = "hosts")]
    all: bool,
    #[command(flatten)]
    file_args: HostFileArgs,
    #[command(flatten)]
    toolset_args: ToolsetArgs,
}

pub(super) fn install(globals: &Globals, args: &McpInstallArgs) -> Result<()> {
    let entry = entry(globals, args)?;
    let mut changes = Vec::new();
    let hosts: &[Host] = if args.all { &Host::ALL } else { &args.hosts };
    for host in hosts {
        let file = host.file().ok_or_else(|| {
            CommandError::invalid(format!(
                "the home folder is unknown; cannot look for {} in",
                host.name()
            ))
        })?;
        if !args.all || host.is_here(&file) {
            let with_entry = |text: &str| host.with_entry(text, &entry);
            changes.push(HostFileChange::plan(host.name(), file, with_entry)?);
        }
    }
    if changes.is_empty() {
        let why = "no host was found; name one to create its file";
        return Err(CommandError::refused(ErrorKind::NotFound, why));
    }
    host_files::apply_changes(globals, &changes, &args.file_args)
}

/// Returns the entry that starts the server.
fn entry(globals: &Globals, args: &McpInstallArgs) -> Result<HostEntry> {
    let mut entry = HostEntry::of(globals, "mcp")?;
    let toolset = args.toolset_args.toolset.toolset();
    if toolset != tine_mcp::Toolset::Core {
        entry.arguments.extend(["--toolset".to_owned(), toolset.as_str().to_owned()]);
    }
    if args.toolset_args.read_only {
        entry.arguments.push("--read-only".to_owned());
    }
    Ok(entry)
}
