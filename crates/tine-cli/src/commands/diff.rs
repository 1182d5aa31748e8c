//! `tine diff`: compares two turns, branches, commits or ranges of turns.

use std::io::Write;

use clap::Args;
use tine_core::commit::FacetTerm;
use tine_engine::{Diff, DiffQuery, DiffSide, DiffTurn, TurnChange, WordChange};

use crate::command_error::{CommandError, Result};
use crate::commit_view::{write_changes, write_terms};
use crate::session::CliSession;
use crate::terminal::text::{count, visible, wrap};
use crate::terminal::{Paging, Paint, Screen};

#[derive(Debug, Args)]
#[command(after_help = "\
Each side is a turn, a branch, a commit, or a range of turns A..B. Two commits are compared by \
their contents, without reading turns. Words that only the first side has are red or [-so-], \
words that only the second has green or {+so+}.

Examples:
  tine diff main osaka
  tine diff main..osaka             the same
  tine diff main...osaka            changes of osaka since the branches parted
  tine diff main~4..main~2 osaka~3..osaka
  tine diff main osaka --stat
  tine diff 3f2a9c01d7e4 91be02c64a10 --facets")]
pub(crate) struct DiffArgs {
    /// First side, or both sides as A..B or A...B
    #[arg(value_name = "A")]
    from: String,
    /// Second side [default: main]
    #[arg(value_name = "B")]
    to: Option<String>,
    /// Show only the amount of changes
    #[arg(long)]
    stat: bool,
    /// Show only topics and known facts
    #[arg(long, conflicts_with = "stat")]
    facets: bool,
    /// Show both versions of a turn instead of the words that differ
    #[arg(long)]
    no_words: bool,
}

pub(crate) fn diff(session: &CliSession, args: &DiffArgs) -> Result<()> {
    let found = compare(session, args)?;
    if session.answered_json(|| found.clone())? {
        return Ok(());
    }
    let screen = &session.screen;
    session.screen.text(Paging::Paged, |out| {
        write_sides(out, screen, &found)?;
        if args.stat {
            return write_counts(out, screen, &found);
        }
        if !args.facets {
            for change in &found.changes {
                write_change(out, screen, change, !args.no_words)?;
            }
            if found.left_out > 0 {
                writeln!(out, "\n… and {}", count(found.left_out, "more change"))?;
            }
        }
        write_facets(out, screen, &found)
    })
}

/// Runs the comparison that the arguments describe.
fn compare(session: &CliSession, args: &DiffArgs) -> Result<Diff> {
    let ask = |from: &str, to: &str| -> Result<Diff> {
        let query = DiffQuery {
            conversation: session.scope_of([from, to])?,
            from: from.to_owned(),
            to: to.to_owned(),
            limit: None,
        };
        Ok(session.engine.versioning().diff(&session.call, query)?)
    };
    if let Some(to) = &args.to {
        return ask(&args.from, to);
    }
    let Some((from, to)) = args.from.split_once("..") else {
        return ask(&args.from, session.branch());
    };
    let Some(to) = to.strip_prefix('.') else {
        return ask(side_or_tip(session, from), side_or_tip(session, to));
    };
    let (from, to) = (side_or_tip(session, from), side_or_tip(session, to));
    let both = ask(from, to)?;
    if both.from.conversation != both.to.conversation {
        let why = format!("`{from}` and `{to}` have no common turn; compare them as {from}..{to}");
        return Err(CommandError::invalid(why));
    }
    let fork_point = match (both.bases.first(), both.common) {
        (Some(commit), _) => commit.short(),
        (None, Some(turn)) => turn.short(),
        (None, None) => "root".to_owned(),
    };
    ask(&fork_point, to)
}

/// Replaces an omitted side with the session's branch.
fn side_or_tip<'s>(session: &'s CliSession, side: &'s str) -> &'s str {
    if side.is_empty() { session.branch() } else { side }
}

fn write_sides(out: &mut dyn Write, screen: &Screen, found: &Diff) -> Result<()> {
    let paint = screen.paint;
    let side = |side: &DiffSide| {
        let hash = match (side.commit, side.turn) {
            (Some(commit), _) => format!("commit {}", paint.hash(&commit.short())),
            (None, Some(turn)) => paint.hash(&turn.short()),
            (None, None) => "root".to_owned(),
        };
        let only = match side.commit {
            Some(_) => count(side.commits.len() as u64, "commit"),
            None => count(side.turns, "turn"),
        };
        format!("{}  {hash}  {only} only here", visible(&side.name))
    };
    writeln!(out, "{} {}", paint.lost("-"), side(&found.from))?;
    writeln!(out, "{} {}", paint.gained("+"), side(&found.to))?;
    let bases: Vec<String> = found.bases.iter().map(|base| paint.hash(&base.short())).collect();
    match (bases.is_empty(), found.common) {
        (false, _) => writeln!(out, "  both build on {}", bases.join(", "))?,
        (true, Some(turn)) => writeln!(out, "  both have {}", paint.hash(&turn.short()))?,
        (true, None) => {}
    }
    Ok(())
}

fn write_counts(out: &mut dyn Write, screen: &Screen, found: &Diff) -> Result<()> {
    let turns = |wanted: fn(&TurnChange) -> bool| {
        found.changes.iter().filter(|change| wanted(change)).count()
    };
    let counts = [
        ("changed", turns(|it| matches!(it, TurnChange::Changed { .. }))),
        ("gained", turns(|it| matches!(it, TurnChange::Gained { .. }))),
        ("lost", turns(|it| matches!(it, TurnChange::Lost { .. }))),
        ("repeated", turns(|it| matches!(it, TurnChange::Equal { .. }))),
    ];
    let counts: Vec<String> =
        counts.iter().map(|(what, number)| format!("{number} {what}")).collect();
    writeln!(out, "turns     {}", counts.join(", "))?;
    let sets =
        [("entities", &found.entities), ("keywords", &found.keywords), ("topics", &found.topics)];
    for (name, set) in sets {
        let (gained, lost) = (set.gained.len(), set.lost.len());
        let (more, less) = (format!("+{gained}"), format!("-{lost}"));
        let kept = set.kept.len();
        let paint = screen.paint;
        writeln!(out, "{name:<9} {} {} ={kept}", paint.gained(&more), paint.lost(&less))?;
    }
    Ok(writeln!(out, "facts     {}", count(found.facts.len() as u64, "change"))?)
}

fn write_change(
    out: &mut dyn Write,
    screen: &Screen,
    change: &TurnChange,
    words: bool,
) -> Result<()> {
    let paint = screen.paint;
    let heading = |sign: String, turn: &DiffTurn, more: &str| {
        let hash = paint.hash(&turn.hash.short());
        format!("\n{sign} {hash}  {}{more}", paint.role(turn.role, turn.role.as_str()))
    };
    match change {
        TurnChange::Equal { from, to } => {
            let again = format!("  repeated as {}", paint.hash(&to.hash.short()));
            writeln!(out, "{}", heading("=".to_owned(), from, &again))?;
        }
        TurnChange::Changed { from, to, words: changed } => {
            let now = format!("  now {}", paint.hash(&to.hash.short()));
            writeln!(out, "{}", heading("~".to_owned(), from, &now))?;
            if words {
                let text: String = changed.iter().map(|word| marked(paint, word)).collect();
                write_marked(out, &text)?;
            } else {
                write_text(out, screen, &from.text, |line| paint.lost(&format!("- {line}")))?;
                write_text(out, screen, &to.text, |line| paint.gained(&format!("+ {line}")))?;
            }
        }
        TurnChange::Lost { from: turn } => {
            writeln!(out, "{}", heading(paint.lost("-"), turn, ""))?;
            write_text(out, screen, &turn.text, |line| paint.lost(line))?;
        }
        TurnChange::Gained { to: turn } => {
            writeln!(out, "{}", heading(paint.gained("+"), turn, ""))?;
            write_text(out, screen, &turn.text, |line| paint.gained(line))?;
        }
    }
    Ok(())
}

/// Formats words of one side in its colour, or between markers without colours.
fn marked(paint: Paint, word: &WordChange) -> String {
    let each_line = |text: &str, wrap: &dyn Fn(&str) -> String| {
        text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
    };
    match word {
        WordChange::Kept(text) => visible(text).into_owned(),
        WordChange::Lost(text) if paint.is_on() => {
            each_line(&visible(text), &|line| paint.lost(line))
        }
        WordChange::Gained(text) if paint.is_on() => {
            each_line(&visible(text), &|line| paint.gained(line))
        }
        WordChange::Lost(text) => format!("[-{}-]", visible(text)),
        WordChange::Gained(text) => format!("{{+{}+}}", visible(text)),
    }
}

/// Writes marked text without wrapping, because escape sequences have no width.
fn write_marked(out: &mut dyn Write, text: &str) -> Result<()> {
    for line in text.split('\n') {
        writeln!(out, "{}", format!("    {line}").trim_end())?;
    }
    Ok(())
}

fn write_text(
    out: &mut dyn Write,
    screen: &Screen,
    text: &str,
    paint: impl Fn(&str) -> String,
) -> Result<()> {
    for line in wrap(text, screen.columns.map(|all| all.saturating_sub(6))) {
        writeln!(out, "{}", format!("    {}", paint(&line)).trim_end())?;
    }
    Ok(())
}

fn write_facets(out: &mut dyn Write, screen: &Screen, found: &Diff) -> Result<()> {
    let paint = screen.paint;
    let sets =
        [("entities", &found.entities), ("keywords", &found.keywords), ("topics", &found.topics)];
    for (name, set) in sets {
        if set.gained.is_empty() && set.lost.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", paint.bold(name))?;
        let write_side = |out: &mut dyn Write,
                          seen: &[FacetTerm],
                          sign: char,
                          colour: &dyn Fn(&str) -> String| {
            write_terms(out, screen, seen, |word| colour(&format!("{sign} {word}")))
        };
        write_side(out, &set.lost, '-', &|word| paint.lost(word))?;
        write_side(out, &set.gained, '+', &|word| paint.gained(word))?;
    }
    if !found.facts.is_empty() {
        writeln!(out, "\n{}", paint.bold("known"))?;
        write_changes(out, screen, &found.facts)?;
    }
    Ok(())
}
