//! `tine repl`: an interactive session with a current conversation and branch, and slash commands.
//!
//! Lines are parsed by the definitions of the commands and run by their code. The session keeps
//! only the current conversation and branch. Errors do not end the session.

mod arguments;
mod complete;
mod tokenize;

use std::cell::RefCell;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use tine_core::{ConversationId, ErrorKind};
use tine_engine::{Fork, ForkPoint, NewConversation};
use tine_store::OpenMode;

use self::arguments::{CheckoutArgs, ConversationArgs, ReplArguments, ReplCommand};
use self::complete::ReplCompleter;
use super::list;
use crate::arguments::{Arguments, Command, Globals};
use crate::command_error::{CommandError, Result};
use crate::session::{self, CliSession, MAIN};
use crate::terminal::text::visible;
use crate::terminal::{Paging, Screen};
use crate::user_dirs;

const PROMPT: &str = "tine> ";

/// Lines that are commands even without a slash.
const PLAIN_COMMANDS: [&str; 3] = ["exit", "quit", "help"];

/// Maximum number of lines in the history file.
const MAX_HISTORY_LINES: usize = 10_000;

const HELP: &str = "\
A line without a slash is appended as a turn of the user; to begin a turn with a slash, type two.
`exit`, `quit` and `help` are commands; append them with /say. Quotes keep spaces together, and
--api [URL] sends any command to a running server.

  /say TEXT [--role R]            append a turn
  /turns [--n N] [--role R]       list the turns of the branch
  /log [--n N] [--graph]          list the commits of the branch
  /commit [START END] --msg TEXT  seal turns
  /commits [--n N]                list all commits
  /show [REF]                     show a turn or a commit in full
  /tree                           draw the tree
  /search WORDS                   search the text of all turns
  /branch [NAME]                  list branches, or create one
  /checkout [-b] [NAME]           switch to another branch
  /fork [REF] [--name NAME]       create a branch at any turn
  /diff A [B]                     compare turns, branches or commits
  /merge FROM [--dry-run]         merge what was learned on another branch
  /resolve                        list or resolve conflicts
  /undo, /redo                    undo the last change, or redo it
  /conversation [ID] [--new]      list conversations, or switch to one
  /help [COMMAND]                 show this list, or describe a command
  /quit                           end the session

All other commands of `tine` work as well, such as /edit, /ops and /entity list.
";

#[derive(Debug, Args)]
#[command(after_help = "\
Without a terminal, commands are read from standard input, one per line, and only their output is \
written.

Examples:
  tine repl -c trip
  tine repl --api                   over the server on port 8000 of this computer
  printf '%s\\n' 'Where to?' '/commit --msg \"A question\"' | tine repl -c trip")]
pub(crate) struct ReplArgs {}

pub(crate) fn repl(globals: &Globals) -> Result<()> {
    let repl = Repl { globals: globals.clone() };
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        repl.run_interactive()
    } else {
        repl.run_batch()
    }
}

/// Whether the session continues after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplFlow {
    Continue,
    Quit,
}

/// The state of a session: its options, including the current conversation and branch.
struct Repl {
    globals: Globals,
}

impl Repl {
    /// Reads lines from a terminal, with editing, completion and history.
    fn run_interactive(self) -> Result<()> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .max_history_size(MAX_HISTORY_LINES)
            .map_err(unusable)?
            .build();
        let mut editor: Editor<ReplCompleter, FileHistory> =
            Editor::with_config(config).map_err(unusable)?;
        let history = history_file();
        if let Some(file) = &history {
            // A missing or unreadable history is empty.
            let _ = editor.load_history(file);
        }
        self.print_greeting();
        let repl = Rc::new(RefCell::new(self));
        editor.set_helper(Some(ReplCompleter { repl: Rc::clone(&repl) }));
        loop {
            match editor.readline(PROMPT) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    if let Some(file) = &history {
                        let _ = editor.append_history(file);
                    }
                    if repl.borrow_mut().run_line(&line)? == ReplFlow::Quit {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(unusable(error)),
            }
        }
    }

    /// Reads lines from standard input.
    fn run_batch(mut self) -> Result<()> {
        let limit = session::limits().body_bytes;
        loop {
            let mut bytes = Vec::new();
            // Release the lock while a command runs: `/say -` reads from standard input.
            let taken = io::stdin()
                .lock()
                .take(u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1))
                .read_until(b'\n', &mut bytes);
            taken.map_err(|error| CommandError::invalid(format!("standard input: {error}")))?;
            if bytes.is_empty() {
                return Ok(());
            }
            if bytes.len() > limit {
                let why =
                    format!("the line is longer than {limit} bytes, the limit for one request");
                return Err(CommandError::refused(ErrorKind::TooLarge, why));
            }
            match String::from_utf8(bytes) {
                Ok(line) => {
                    if self.run_line(&line)? == ReplFlow::Quit {
                        return Ok(());
                    }
                }
                Err(_) => {
                    self.report_failure(&CommandError::invalid("the line is not valid UTF-8"))
                }
            }
        }
    }

    /// Runs a line and reports its error. Only a closed output ends the session.
    fn run_line(&mut self, line: &str) -> Result<ReplFlow> {
        match self.dispatch(line.trim()) {
            Err(CommandError::ClosedPipe) => Err(CommandError::ClosedPipe),
            Err(failure) => {
                self.report_failure(&failure);
                Ok(ReplFlow::Continue)
            }
            next => next,
        }
    }

    fn report_failure(&self, failure: &CommandError) {
        let _ = failure.report(self.globals.json);
    }

    fn dispatch(&mut self, line: &str) -> Result<ReplFlow> {
        let message = match line.strip_prefix('/') {
            None if line.is_empty() => return Ok(ReplFlow::Continue),
            None => Some(line),
            Some(rest) => rest.starts_with('/').then_some(rest),
        };
        if let Some(command) = message.filter(|text| PLAIN_COMMANDS.contains(text)) {
            return self.dispatch(&format!("/{command}"));
        }
        if let Some(text) = message {
            let command = Command::Append(super::append::AppendArgs::literal_text(text));
            super::run(Arguments { globals: self.globals.clone(), command })?;
            return Ok(ReplFlow::Continue);
        }
        let parsed = tokenize::tokenize(&line[1..]);
        if let Some(quote) = parsed.open_quote {
            let why =
                format!("the quote {quote} is not closed; a line without a slash needs no quotes");
            return Err(CommandError::invalid(why));
        }
        let name = parsed.tokens.first().map(String::as_str).unwrap_or_default();
        if arguments::command().find_subcommand(name).is_none() {
            return Err(unknown(name));
        }
        match arguments::parse(parsed.tokens) {
            Ok(arguments) => self.run_command(arguments),
            Err(error) => {
                self.show_usage(&error)?;
                Ok(ReplFlow::Continue)
            }
        }
    }

    /// Writes requested help, or the usage error of a line.
    fn show_usage(&self, error: &clap::Error) -> Result<()> {
        if error.use_stderr() && self.globals.json {
            self.report_failure(&CommandError::usage(error));
            return Ok(());
        }
        let text = arguments::with_slashes(&error.render().to_string());
        let screen = Screen::new(&self.globals);
        if error.use_stderr() {
            screen.aside(text.trim_end());
            return Ok(());
        }
        screen.text(Paging::Paged, |out| Ok(out.write_all(text.as_bytes())?))
    }

    fn run_command(&mut self, arguments: ReplArguments) -> Result<ReplFlow> {
        let globals = arguments.globals.overriding(&self.globals);
        match arguments.line {
            ReplCommand::Quit => return Ok(ReplFlow::Quit),
            ReplCommand::Help { command } => help(&globals, command.as_deref())?,
            ReplCommand::Checkout(args) => self.checkout(globals, args)?,
            ReplCommand::Conversation(args) => self.conversation(globals, args)?,
            ReplCommand::Tine(command) => match (*command).member() {
                Command::Repl(_)
                | Command::Serve(_)
                | Command::Mcp(_)
                | Command::Acp(_)
                | Command::Watch(_) => {
                    return Err(CommandError::invalid(
                        "this command runs in a shell only; /quit ends the session",
                    ));
                }
                // Standard input holds the next lines of the session.
                Command::Append(args) if args.reads_stdin_unasked() => {
                    return Err(CommandError::invalid("no text given; use /say TEXT"));
                }
                Command::Edit(args) if args.reads_stdin_unasked() => {
                    return Err(CommandError::invalid("no text given; use /edit REF TEXT"));
                }
                Command::Log(mut args) => {
                    args.commits = true;
                    super::run(Arguments { globals, command: Command::Log(args) })?;
                }
                command => super::run(Arguments { globals, command })?,
            },
        }
        Ok(ReplFlow::Continue)
    }

    fn checkout(&mut self, mut globals: Globals, args: CheckoutArgs) -> Result<()> {
        globals.read_settings()?;
        let session = CliSession::open(&globals, OpenMode::Existing)?;
        let conversation = session.conversation()?;
        let branch = match args.name {
            None => {
                return session.screen.line(&location_line(
                    &session,
                    session.branch(),
                    &conversation,
                ));
            }
            Some(name) if args.make => {
                let at = match args.at {
                    Some(at) => at,
                    None => session.tip()?,
                };
                let name = Some(session.name(&name)?);
                let point = ForkPoint::At(at);
                let request = Fork { conversation: Some(conversation.clone()), point, name };
                session.engine.fork(&session.call, request)?
            }
            Some(name) => session.engine.branch(&session.call, &conversation, &name)?,
        };
        self.globals.conversation = Some(conversation.to_string());
        self.globals.branch = Some(branch.name.to_string()).filter(|name| name != MAIN);
        session.screen.line(&super::branches::ends_on(&session, &branch))
    }

    fn conversation(&mut self, mut globals: Globals, args: ConversationArgs) -> Result<()> {
        let Some(id) = args.id else {
            let command = Command::Ls(list::LsArgs::default());
            return super::run(Arguments { globals, command });
        };
        globals.read_settings()?;
        let new = args.new || args.system.is_some();
        let mode = if new { OpenMode::Create } else { OpenMode::Existing };
        let session = CliSession::open(&globals, mode)?;
        let id = session.conversation_id(&id)?;
        let view = if new {
            let request = NewConversation {
                id: Some(id),
                system_prompt: args.system,
                ..NewConversation::default()
            };
            session.engine.create_conversation(&session.call, request)?
        } else {
            session.engine.conversation(&session.call, &id).map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    let why = format!("{error}; /conversation {id} --new creates it");
                    CommandError::refused(ErrorKind::NotFound, why)
                }
                _ => error.into(),
            })?
        };
        self.globals.conversation = Some(view.id.to_string());
        self.globals.branch = None;
        session.screen.line(&location_line(&session, MAIN, &view.id))
    }

    /// Prints the current conversation and a hint.
    fn print_greeting(&self) {
        let screen = Screen::new(&self.globals);
        if let Ok(session) = self.session()
            && let Ok(conversation) = session.conversation()
        {
            screen.aside(&location_line(&session, session.branch(), &conversation));
        }
        screen.aside("/help lists commands; a line without a slash is appended as a turn");
    }

    /// Opens a session with the current settings, outside of any command.
    fn session(&self) -> Result<CliSession> {
        let mut globals = self.globals.clone();
        globals.read_settings()?;
        CliSession::open(&globals, OpenMode::Existing)
    }
}

fn location_line(session: &CliSession, branch: &str, conversation: &ConversationId) -> String {
    let label = session.screen.paint.branch(&format!("[{}]", visible(branch)));
    format!("conversation {} {label}", visible(conversation.as_str()))
}

fn help(globals: &Globals, name: Option<&str>) -> Result<()> {
    let screen = Screen::new(globals);
    let Some(name) = name else {
        return screen.text(Paging::Direct, |out| Ok(out.write_all(HELP.as_bytes())?));
    };
    let name = name.trim_start_matches('/');
    // Build first, so that global arguments are propagated to the command.
    let mut all = crate::help::arrange(arguments::command());
    all.build();
    let command = all.find_subcommand_mut(name).ok_or_else(|| unknown(name))?;
    let text = arguments::with_slashes(&command.render_help().to_string());
    screen.text(Paging::Paged, |out| Ok(out.write_all(text.as_bytes())?))
}

fn unknown(name: &str) -> CommandError {
    let hint = match crate::help::command_meaning(&arguments::command(), name) {
        Some(command) => format!("did you mean /{command}?"),
        None => "/help lists the commands".to_owned(),
    };
    let why = format!("there is no command /{}; {hint}", visible(name));
    CommandError::invalid(why)
}

/// Returns the history file, if a state folder is available.
fn history_file() -> Option<PathBuf> {
    let folder = user_dirs::state_folder()?;
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

fn unusable(error: ReadlineError) -> CommandError {
    CommandError::invalid(format!("cannot use the terminal: {error}"))
}
