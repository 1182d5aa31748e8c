//! `tine mcp install`: the entry that starts the server, in the files of hosts.

use clap::Args;
use tine_core::Kind;

use super::Offer;
use super::hosts::Host;
use crate::arguments::Globals;
use crate::commands::host_files::{self, Change, Entry, Manner};
use crate::failure::{Failure, Result};

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// For which hosts
    #[arg(value_name = "HOST", required_unless_present = "all")]
    hosts: Vec<Host>,
    /// For every host that is on this machine
    #[arg(long, conflicts_with = "hosts")]
    all: bool,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    offer: Offer,
}

pub(super) fn install(globals: &Globals, args: &InstallArgs) -> Result<()> {
    let entry = entry(globals, args)?;
    let mut changes = Vec::new();
    let hosts: &[Host] = if args.all { &Host::ALL } else { &args.hosts };
    for host in hosts {
        let file = host.file().ok_or_else(|| {
            Failure::invalid(format!("no home folder is known to look for {} in", host.name()))
        })?;
        if !args.all || host.is_here(&file) {
            let with_entry = |text: &str| host.with_entry(text, &entry);
            changes.push(Change::planned(host.name(), file, with_entry)?);
        }
    }
    if changes.is_empty() {
        let why = "none of the hosts seems to be on this machine; name one to make its file";
        return Err(Failure::refused(Kind::NotFound, why));
    }
    host_files::carry_out(globals, &changes, &args.manner)
}

/// How the server is to be started.
fn entry(globals: &Globals, args: &InstallArgs) -> Result<Entry> {
    let mut entry = Entry::of(globals, "mcp")?;
    let toolset = args.offer.toolset.toolset();
    if toolset != tine_mcp::Toolset::Core {
        entry.arguments.extend(["--toolset".to_owned(), toolset.as_str().to_owned()]);
    }
    if args.offer.read_only {
        entry.arguments.push("--read-only".to_owned());
    }
    Ok(entry)
}
