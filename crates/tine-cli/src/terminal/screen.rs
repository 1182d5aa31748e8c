//! Writes answers to standard output, through a pager on a terminal.
//!
//! A reader who closes the pipe early is not an error; see [`crate::command_error::CommandError::ClosedPipe`].

use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use serde::Serialize;

use super::Paint;
use crate::arguments::{Colour, Globals};
use crate::command_error::Result;

/// Whether an answer may need a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    /// Uses the pager.
    Paged,
    /// Writes directly: the answer is a few lines.
    Direct,
}

/// The output of a command and its settings.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    /// Whether answers are JSON documents.
    pub(crate) json: bool,
    pub(crate) paint: Paint,
    /// Width of the terminal; `None` without a terminal.
    pub(crate) columns: Option<usize>,
    pager: Option<Vec<String>>,
}

impl Screen {
    /// Configures output from the arguments and the environment.
    pub(crate) fn new(globals: &Globals) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = match globals.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !no_color && !dumb,
        };
        let pager = (terminal && !globals.no_pager && !globals.json && !dumb).then(pager).flatten();
        Screen { json: globals.json, paint: Paint::new(colour), columns: columns(), pager }
    }

    /// Writes one JSON document.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        serde_json::to_writer(&mut out, document).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Writes text, through the pager if requested and available.
    pub(crate) fn text(
        &self,
        paging: Paging,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        if paging == Paging::Paged
            && let Some(mut child) = self.pager.as_deref().and_then(start)
        {
            let written = match child.stdin.take() {
                Some(input) => {
                    let mut out = BufWriter::new(input);
                    write(&mut out).and_then(|()| Ok(out.flush()?))
                }
                None => Ok(()),
            };
            child.wait()?;
            return written;
        }
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        Ok(out.flush()?)
    }

    /// Writes one line to standard error.
    pub(crate) fn aside(&self, line: &str) {
        // A closed standard error must not stop the command.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: &str) -> Result<()> {
        self.text(Paging::Direct, |out| Ok(writeln!(out, "{line}")?))
    }
}

fn columns() -> Option<usize> {
    let from_env = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    from_env.filter(|columns| *columns > 0).or_else(|| {
        if !io::stdout().is_terminal() {
            return None;
        }
        terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns.into())
    })
}

/// Returns the user's pager as a program and its arguments. An empty value or `cat` means none.
fn pager() -> Option<Vec<String>> {
    let chosen = ["TINE_PAGER", "PAGER"].iter().find_map(|name| env::var(name).ok());
    let chosen = chosen.unwrap_or_else(|| "less -FRX".to_owned());
    let words: Vec<String> = chosen.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty() && words != ["cat"]).then_some(words)
}

fn start(pager: &[String]) -> Option<Child> {
    let (program, arguments) = pager.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    // Quit on short output, pass colours through, keep the text on the screen; the text is UTF-8.
    for (name, value) in [("LESS", "FRX"), ("LESSCHARSET", "utf-8")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    // If the pager cannot be started, the answer is written directly.
    command.spawn().ok()
}
