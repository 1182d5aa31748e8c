//! `tine mcp`: an MCP server over standard input and output, and its installation in hosts.

pub(crate) mod hosts;
mod install;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tine_core::{ErrorKind, Limits, ProjectId};
use tine_engine::{Engine, SystemClock, SystemEntropy};
use tine_mcp::{AllowedFolders, McpOptions, McpServer, Toolset, serve_stdio};
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::logging::{self, LogLevel};
use crate::store_location::StoreLocation;
use crate::terminal::{Paging, Screen};

#[derive(Debug, Args)]
#[command(after_help = "\
A host (Claude Code, Cursor, Zed …) starts this command and talks to it over standard input and
output. Several hosts, `tine serve` and other commands can use one store at once. `tine serve` has
the same tools at /mcp.

Examples:
  tine mcp install claude-code         show and write the entry that starts it
  tine mcp install --all --dry-run     show the entries for all installed hosts
  tine mcp --toolset all --project trips
  tine mcp --count                     show the token cost of the tools")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    subcommand: Option<McpCommand>,
    #[command(flatten)]
    toolset_args: ToolsetArgs,
    /// Folder whose files may be stored by path; can be repeated
    #[arg(long, value_name = "FOLDER")]
    allow_path: Vec<PathBuf>,
    /// Replace text that looks like a secret before it is recorded
    #[arg(long)]
    redact: bool,
    /// Put whole results into their text, for hosts that show models only that
    #[arg(long)]
    whole_text: bool,
    /// Log level; logs go to standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LogLevel,
    /// Print the token cost of instructions and tools, and exit
    #[arg(long)]
    count: bool,
}

/// What a host is offered.
#[derive(Debug, Args)]
pub(crate) struct ToolsetArgs {
    /// Tools to offer
    #[arg(long, value_name = "SET", default_value = "core")]
    toolset: ToolsetName,
    /// Offer only tools that read
    #[arg(long)]
    read_only: bool,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Add the server to the configuration of a host
    Install(install::McpInstallArgs),
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ToolsetName {
    /// Tools for daily work.
    Core,
    /// Tools for facts and entities.
    Memory,
    /// Tools for the tree.
    Tree,
    /// All tools.
    All,
}

impl ToolsetName {
    fn toolset(self) -> Toolset {
        match self {
            ToolsetName::Core => Toolset::Core,
            ToolsetName::Memory => Toolset::Memory,
            ToolsetName::Tree => Toolset::Tree,
            ToolsetName::All => Toolset::All,
        }
    }
}

pub(crate) fn mcp(globals: &Globals, args: McpArgs) -> Result<()> {
    if let Some(McpCommand::Install(install)) = args.subcommand {
        return install::install(globals, &install);
    }
    if args.count {
        return count(globals);
    }
    globals.require_local("tine mcp", "hosts reach the server at /mcp")?;
    logging::as_lines(args.log);
    let limits = Limits::default();
    let project = match globals.project() {
        Some(set) => ProjectId::new(set.value, &limits)?,
        None => ProjectId::default(),
    };
    let files = AllowedFolders::new(args.allow_path).map_err(|error| {
        CommandError::invalid(format!("cannot use a folder of --allow-path: {error}"))
    })?;
    let store = StoreLocation::from_globals(globals)?.open(OpenMode::Create)?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let engine = Engine::with(store, clock, entropy, limits)
        .with_interpreters(globals.settings.interpreters()?);
    let options = McpOptions {
        actor: globals.actor(),
        project,
        toolset: args.toolset_args.toolset.toolset(),
        read_only: args.toolset_args.read_only,
        files,
        redact: args.redact,
        whole_text: args.whole_text,
        interprets: true,
    };
    let internal = |why: String| CommandError::refused(ErrorKind::Internal, why);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| internal(format!("the server cannot start: {error}")))?;
    let served = runtime.block_on(serve_stdio(McpServer::new(engine, options)));
    // An unfinished run is restarted by the next process.
    runtime.shutdown_background();
    served.map_err(|error| internal(error.to_string()))
}

/// The token cost of one toolset.
#[derive(Serialize)]
struct ToolsetCost {
    toolset: &'static str,
    tools: usize,
    instructions: usize,
    tools_list: usize,
    total: usize,
}

fn count(globals: &Globals) -> Result<()> {
    let counted = Toolset::ALL.map(|set| {
        let cost = tine_mcp::token_cost(set);
        ToolsetCost {
            toolset: set.as_str(),
            tools: cost.tools,
            instructions: cost.instructions,
            tools_list: cost.list,
            total: cost.total(),
        }
    });
    let screen = Screen::new(globals);
    if screen.json {
        return screen.document(&counted);
    }
    screen.text(Paging::Direct, |out| {
        writeln!(
            out,
            "{:8} {:>5} {:>12} {:>10} {:>6}",
            "", "tools", "instructions", "tools/list", "total"
        )?;
        for set in &counted {
            writeln!(
                out,
                "{:8} {:>5} {:>12} {:>10} {:>6}",
                set.toolset, set.tools, set.instructions, set.tools_list, set.total
            )?;
        }
        Ok(writeln!(out, "tokens in o200k_base")?)
    })
}
