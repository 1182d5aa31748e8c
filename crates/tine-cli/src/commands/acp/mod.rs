//! `tine acp`: an ACP agent over standard input and output, or a recorder in front of another
//! agent, and its installation in editors.

pub(crate) mod install;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tine_acp::{Agent, LINE_BYTES, Recorder};
use tine_core::{ErrorKind, Limits, ProjectId, Reference};
use tine_engine::{Call, Engine, SystemClock, SystemEntropy, TurnRef};
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::logging::{self, LogLevel};
use crate::settings::ECHO;
use crate::store_location::StoreLocation;

#[derive(Debug, Args)]
#[command(after_help = "\
An editor (Zed, JetBrains Air, Neovim …) starts this command and talks to it in the Agent Client
Protocol. Each session is a branch and each message a turn, so sessions can be read, searched,
verified and forked at any message. Several editors, `tine serve` and other commands can use one
store at once.

With COMMAND, that agent replies and Tine records it: its sessions can be listed, loaded and forked
at any message, even if the agent itself cannot do that.

Examples:
  tine acp                                reply with the input, to try it out
  tine acp --model claude                 reply with the model `claude` of tine.toml
  tine acp -- gemini --experimental-acp   record another agent
  tine acp install zed -- codex-acp       show and write the entry that starts it
  tine acp --from a9d2e63b -- codex-acp   continue from a turn, with another agent")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AcpArgs {
    #[command(subcommand)]
    subcommand: Option<AcpCommand>,
    /// Model that replies, from tine.toml, or `echo`
    #[arg(long, value_name = "NAME", default_value = ECHO, conflicts_with = "command")]
    model: String,
    /// Turn from which the first new session continues
    #[arg(long, value_name = "TURN", requires = "command")]
    from: Option<String>,
    /// Replace text that looks like a secret before it is recorded; always on with COMMAND
    #[arg(long, conflicts_with = "command")]
    redact: bool,
    /// Do not replace secrets
    #[arg(long, requires = "command")]
    no_redact: bool,
    /// Log level; logs go to standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LogLevel,
    /// Agent to record, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum AcpCommand {
    /// Add the agent to the settings of an editor
    Install(install::AcpInstallArgs),
}

pub(crate) fn acp(globals: &Globals, args: AcpArgs) -> Result<()> {
    if let Some(AcpCommand::Install(install)) = &args.subcommand {
        return install::install(globals, install);
    }
    globals.require_local("tine acp", "run it where the store is")?;
    let model = globals.settings.model(&args.model)?;
    logging::as_lines(args.log);
    let limits = Limits::default();
    let project = match globals.project() {
        Some(set) => ProjectId::new(set.value, &limits)?,
        None => ProjectId::default(),
    };
    let store = StoreLocation::from_globals(globals)?.open(OpenMode::Create)?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let engine = Engine::with(store, clock, entropy, limits);
    let call = Call::by(globals.actor()).in_project(project);
    let served = if args.command.is_empty() {
        let agent = Agent::new(engine, call, model).redacting(args.redact);
        tine_acp::serve(&agent, io::stdin(), io::stdout())
    } else {
        let from = match &args.from {
            Some(turn) => Some(existing_turn(&engine, &call, turn)?),
            None => None,
        };
        let recorder = Recorder {
            engine,
            call,
            command: args.command,
            redact: !args.no_redact,
            from,
            line_bytes: LINE_BYTES,
        };
        recorder.record(io::stdin(), io::stdout())
    };
    served.map_err(|error| {
        CommandError::refused(ErrorKind::Internal, format!("the connection failed: {error}"))
    })
}

/// Resolves an existing turn to its id, because a name may later refer to another turn.
fn existing_turn(engine: &Engine, call: &Call, turn: &str) -> Result<Reference> {
    let turn = engine.turn(call, TurnRef::of(Reference::parse(turn)?))?;
    Ok(turn.id.into())
}
