//! Where answers are written: standard output, through a pager when a person is reading.
//!
//! A reader who closes the pipe early is not an error; see [`crate::failure::Failure::ClosedPipe`].

use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use serde::Serialize;

use super::Paint;
use crate::arguments::{Colour, Globals};
use crate::failure::Result;

/// Whether an answer may be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    /// Goes through the pager.
    Paged,
    /// A few lines.
    Direct,
}

/// How to write answers.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    /// Whether answers are JSON documents.
    pub(crate) json: bool,
    /// Colours, or none.
    pub(crate) paint: Paint,
    /// Columns of the reader's terminal; `None` when there is no terminal.
    pub(crate) columns: Option<usize>,
    pager: Option<Vec<String>>,
}

impl Screen {
    /// The screen that the arguments and the environment ask for.
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

    /// Writes text.
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

    /// Writes one line beside the answer, to standard error.
    pub(crate) fn aside(&self, line: &str) {
        // Nobody who reads only the answer is to be stopped by this.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: &str) -> Result<()> {
        self.text(Paging::Direct, |out| Ok(writeln!(out, "{line}")?))
    }
}

fn columns() -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.filter(|columns| *columns > 0).or_else(|| {
        if !io::stdout().is_terminal() {
            return None;
        }
        terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns.into())
    })
}

/// The reader's pager, as a program and its arguments. An empty one, or `cat`, means none.
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
    // Quit on short output, pass colours on, leave the text on the screen; and it is UTF-8.
    for (name, value) in [("LESS", "FRX"), ("LESSCHARSET", "utf-8")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    // A pager that is not there is no reason not to show the answer.
    command.spawn().ok()
}
