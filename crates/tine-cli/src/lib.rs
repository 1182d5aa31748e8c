//! The command line of Tine: arguments in, one engine operation, text or JSON out.
//!
//! [`arguments`] are parsed once, a command in [`commands`] sends one request to the engine through
//! a [`session`], and the answer is written once to the [`terminal`], as text or as one JSON
//! document.
//!
//! Only this crate chooses a store. It holds no rules of the tree: the engine validates every
//! request, and exit codes come from its table of error kinds.

mod arguments;
mod command_error;
mod commands;
mod commit_view;
mod conversation_choice;
mod editor;
pub mod graph;
mod help;
mod input;
mod knowledge_view;
mod labels;
mod logging;
mod record_args;
mod server_peer;
mod session;
mod settings;
mod store_location;
pub mod terminal;
mod transcript;
pub mod tree;
mod user_dirs;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::arguments::Arguments;
use crate::command_error::CommandError;

/// Returns the definition of the command line, for completions and documentation.
pub fn command() -> clap::Command {
    arguments::with_settings_file(Arguments::command())
}

/// Returns the same definition with help as it is shown, and empty environment variables treated as
/// unset.
fn command_here() -> clap::Command {
    help::arrange(command()).mut_args(|argument| {
        let value = argument.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) {
            argument.env(None::<&str>)
        } else {
            argument
        }
    })
}

fn eprint_help() -> std::io::Result<()> {
    write!(std::io::stderr(), "{}", command_here().render_help())
}

/// Runs one command and returns its exit code.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    if arguments.len() < 2 {
        // Without arguments, show the help.
        let _ = eprint_help();
        return ExitCode::from(tine_core::ErrorKind::Invalid.exit_code());
    }
    let mut command = command_here();
    let arguments = help::with_numbers(&command, arguments::with_api_joined(arguments));
    // Usage errors are reported before parsing has succeeded, so look for the flag directly.
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let parsed = command.try_get_matches_from_mut(&arguments).and_then(|matches| {
        let mut parsed = Arguments::from_arg_matches(&matches)?;
        parsed.globals.config = arguments::settings_file(&matches);
        Ok(parsed)
    });
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            if let Some(unknown) = help::unknown_command(&command, &arguments, &error) {
                return unknown.report(wants_json);
            }
            if wants_json && error.use_stderr() {
                return CommandError::usage(&error).report(true);
            }
            // A pipe that closes while help is printed is not an error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let json = parsed.globals.json;
    match commands::run(parsed) {
        Ok(()) | Err(CommandError::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}
