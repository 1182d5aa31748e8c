//! `tine ls`: lists conversations, most recently active first.
//!
//! On a terminal rows are cut to its width, and folders and programs give way to labels where there
//! is little room. Otherwise rows are separated by tabs and whole.

use std::collections::{HashMap, HashSet};
use std::io::{self, IsTerminal};

use clap::Args;
use tine_api::{Listing, Overview};
use tine_core::{ConversationId, Timestamp};
use tine_engine::{ConversationView, RecentQuery};

use crate::arguments::day_or_time;
use crate::command_error::Result;
use crate::conversation_choice::short_name;
use crate::session::CliSession;
use crate::terminal::text::{count, cut, visible, width};
use crate::terminal::{Paging, short_time};

/// Rows on a terminal, unless `-n` says otherwise.
const TERMINAL_ROWS: usize = 50;

/// The fewest columns of a label before other columns are left out.
const LABEL_COLUMNS: usize = 30;

/// Columns of a day and a time.
const TIME: usize = "2024-01-15 10:30".len();

/// Columns of a day.
const DATE: usize = "2024-01-15".len();

/// The most columns of an id, a program and a folder.
const CELL_COLUMNS: usize = 20;

#[derive(Debug, Default, Args)]
#[command(after_help = "\
The label of a conversation is its title or its first question. Times are those of the last \
message, also for imported conversations. Without a terminal, rows are separated by tabs: id, \
time, turns, program, folder, label.

Examples:
  tine ls
  tine ls parser bug
  tine ls --program claude-code --folder . -n 20
  tine ls --since 2026-01-01 --subagents
  tine ls --archived --json")]
pub(crate) struct LsArgs {
    /// List only conversations whose label, folder or id contains each of these words
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// List at most this many; 0 lists all [default: 50 on a terminal, else all]
    #[arg(short = 'n', long = "limit", value_name = "N")]
    limit: Option<usize>,
    /// List only conversations of this program, such as claude-code
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// List only conversations about this folder or one below it; or a folder's name
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,
    /// List only conversations with messages since this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    since: Option<Timestamp>,
    /// List only conversations whose last message is before this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    until: Option<Timestamp>,
    /// List only conversations with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Show sub-agents below the conversations that started them
    #[arg(long)]
    subagents: bool,
    /// Include archived conversations
    #[arg(long)]
    archived: bool,
    /// Show whole ids and folders, and the number of branches, which takes longer
    #[arg(short, long)]
    long: bool,
    /// Print ids and nothing else
    #[arg(long, conflicts_with = "long")]
    ids: bool,
}

pub(crate) fn ls(session: &CliSession, args: &LsArgs) -> Result<()> {
    let flat = session.screen.json || args.ids;
    let terminal = session.screen.columns.is_some() && !flat;
    let limit = args.limit.or(terminal.then_some(TERMINAL_ROWS)).filter(|limit| *limit > 0);
    let query = RecentQuery {
        include_archived: args.archived,
        top_level: !flat && !args.subagents,
        words: (!args.words.is_empty()).then(|| args.words.join(" ")),
        tag: args.tag.clone(),
        program: args.program.clone(),
        folder: args.folder.as_deref().map(absolute_folder),
        since: args.since,
        until: args.until,
    };
    let wanted = limit.filter(|_| !args.subagents || flat);
    let ask = |page| session.engine.recent_conversations(&session.call, &query, page);
    let Listing { items, next } = session.pages(wanted, ask)?;
    if session.answered_json(|| Listing { items: items.clone(), next: next.clone() })? {
        return Ok(());
    }
    if args.ids {
        return session.screen.text(Paging::Direct, |out| {
            items.iter().try_for_each(|it| Ok(writeln!(out, "{}", visible(it.id.as_str()))?))
        });
    }
    let (items, more) = match limit.filter(|_| args.subagents) {
        Some(limit) => first_families(below_parents(items), limit),
        None if args.subagents => (below_parents(items), false),
        None => (items.into_iter().map(|it| (it, 0)).collect(), next.is_some()),
    };
    let mut rows = Vec::with_capacity(items.len());
    for (conversation, level) in &items {
        rows.push(Row::new(session, conversation, *level, args)?);
    }
    let Some(columns) = session.screen.columns else { return write_separated(session, &rows) };
    if rows.is_empty() && io::stdout().is_terminal() {
        session.screen.aside("no conversations; `tine doctor` finds history on this machine");
    }
    if !args.long {
        shorten_ids(&mut rows);
    }
    write_aligned(session, &rows, columns, args.long)?;
    if more {
        let shown = count(items.len() as u64, "conversation");
        session.screen.aside(&format!("{shown} shown; -n 0 lists all"));
    }
    Ok(())
}

/// Returns the absolute path of a folder that exists; any other text is a name.
fn absolute_folder(folder: &str) -> String {
    let is_path = folder.starts_with('.') || folder.contains(std::path::is_separator);
    let found = is_path.then(|| std::fs::canonicalize(folder).ok()).flatten();
    found.map_or_else(|| folder.to_owned(), |path| path.display().to_string())
}

/// Puts sub-agents below the conversation that started them, with their level.
fn below_parents(items: Vec<ConversationView>) -> Vec<(ConversationView, usize)> {
    let listed: HashSet<ConversationId> = items.iter().map(|it| it.id.clone()).collect();
    let mut below: HashMap<ConversationId, Vec<ConversationView>> = HashMap::new();
    let mut open = Vec::new();
    for conversation in items {
        let parent = conversation.overview.as_ref().and_then(|it| it.started_by.clone());
        match parent.filter(|parent| listed.contains(parent)) {
            Some(parent) => below.entry(parent).or_default().push(conversation),
            None => open.push((conversation, 0)),
        }
    }
    open.reverse();
    let mut ordered = Vec::new();
    while let Some((conversation, level)) = open.pop() {
        let children = below.remove(&conversation.id).unwrap_or_default();
        open.extend(children.into_iter().rev().map(|child| (child, level + 1)));
        ordered.push((conversation, level));
    }
    ordered
}

/// Keeps the first conversations with their sub-agents, and returns whether there are more.
fn first_families(
    mut items: Vec<(ConversationView, usize)>,
    limit: usize,
) -> (Vec<(ConversationView, usize)>, bool) {
    let starts = items.iter().enumerate().filter(|(_, (_, level))| *level == 0);
    let end = starts.map(|(at, _)| at).nth(limit);
    items.truncate(end.unwrap_or(items.len()));
    (items, end.is_some())
}

struct Row {
    id: String,
    /// The id or the part of it that follows the program's name.
    name: String,
    time: Timestamp,
    turns: u64,
    branches: Option<u64>,
    program: String,
    folder: String,
    label: String,
    level: usize,
}

impl Row {
    fn new(
        session: &CliSession,
        conversation: &ConversationView,
        level: usize,
        args: &LsArgs,
    ) -> Result<Self> {
        let branches = match args.long {
            true => {
                let stats = session.engine.stats(&session.call, Some(&conversation.id))?;
                Some(stats.conversation.unwrap_or_default().branches)
            }
            false => None,
        };
        let Overview { label, turns, program, folder, subagents, .. } =
            conversation.overview.clone().unwrap_or_default();
        let mut label = label.unwrap_or_else(|| "(empty)".to_owned());
        if subagents > 0 && level == 0 && !args.subagents {
            label.push_str(&format!(" (+{})", count(subagents, "sub-agent")));
        }
        let marks =
            [(conversation.archived, " (archived)"), (conversation.root.is_none(), " (purged)")];
        for (_, mark) in marks.iter().filter(|(applies, _)| *applies) {
            label.push_str(mark);
        }
        Ok(Row {
            id: conversation.id.to_string(),
            name: short_name(conversation.id.as_str()).to_owned(),
            time: conversation.active_at,
            turns,
            branches,
            program: program.unwrap_or_default(),
            folder: folder.unwrap_or_default(),
            label,
            level,
        })
    }
}

/// Writes whole rows, separated by tabs.
fn write_separated(session: &CliSession, rows: &[Row]) -> Result<()> {
    let cell = |text: &str| cut(text, usize::MAX);
    session.screen.text(Paging::Direct, |out| {
        for row in rows {
            let id = format!("{}{}", "  ".repeat(row.level), cell(&row.id));
            let (turns, program) = (row.turns, cell(&row.program));
            let (folder, label) = (cell(&row.folder), cell(&row.label));
            write!(out, "{id}\t{}\t{turns}\t{program}\t{folder}\t{label}", row.time)?;
            match row.branches {
                Some(branches) => writeln!(out, "\t{branches}")?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    })
}

/// Shortens ids to beginnings that no other row has.
fn shorten_ids(rows: &mut [Row]) {
    const SHORTEST: usize = 8;
    let mut names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    names.sort_unstable();
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    for row in rows {
        let at = names.partition_point(|name| *name < row.name);
        let before = at.checked_sub(1).map_or(0, |it| common(&names[it], &row.name));
        let after = names.get(at + 1).map_or(0, |next| common(next, &row.name));
        let length = before.max(after).saturating_add(1).max(SHORTEST);
        row.id = match row.name.chars().count() <= CELL_COLUMNS.max(length) {
            true => row.name.clone(),
            false => row.name.chars().take(length).collect(),
        };
    }
}

fn write_aligned(session: &CliSession, rows: &[Row], columns: usize, long: bool) -> Result<()> {
    let paint = session.screen.paint;
    let most = if long { usize::MAX } else { CELL_COLUMNS };
    let widest = |cell: &dyn Fn(&Row) -> usize| rows.iter().map(cell).max().unwrap_or(0).min(most);
    let folder_of = |row: &Row| match long {
        true => row.folder.clone(),
        false => last_part(&row.folder).to_owned(),
    };
    let ids = rows.iter().map(|row| row.level * 2 + width(&visible(&row.id))).max().unwrap_or(0);
    // A head would disturb scripts that set COLUMNS.
    let head = io::stdout().is_terminal() && !rows.is_empty();
    let turns =
        widest(&|row| row.turns.to_string().len()).max(if head { "turns".len() } else { 0 });
    let mut programs = widest(&|row| width(&row.program));
    let mut folders = widest(&|row| width(&folder_of(row)));
    let counts = rows.iter().filter_map(|row| row.branches).max();
    let branches = counts.map_or(0, |most| branch_count(most).len() + 2);
    let others = ids + 2 + 2 + turns + 2 + branches;
    let whole_time = long || columns >= others + TIME + LABEL_COLUMNS;
    let fixed = others + if whole_time { TIME } else { DATE };
    let gap = |cell: usize| if cell == 0 { 0 } else { cell + 2 };
    let fits = |cells: usize| long || columns >= fixed + cells + LABEL_COLUMNS;
    if !fits(gap(folders) + gap(programs)) {
        folders = 0;
    }
    if !fits(gap(programs)) {
        programs = 0;
    }
    let room = columns.saturating_sub(fixed + gap(folders) + gap(programs));
    session.screen.text(Paging::Paged, |out| {
        if head {
            let time = padded("last message", if whole_time { TIME } else { DATE });
            let mut line = format!("{}  {time}  {:>turns$}  ", padded("id", ids), "turns");
            let others =
                [("branches", branches), ("program", gap(programs)), ("folder", gap(folders))];
            for (name, cell) in others.iter().filter(|(_, cell)| *cell > 0) {
                line.push_str(&format!("{}  ", padded(name, cell.saturating_sub(2))));
            }
            writeln!(out, "{}", paint.dim(cut(&line, columns).trim_end()))?;
        }
        for row in rows {
            let indent = "  ".repeat(row.level);
            let id = padded(&row.id, ids.saturating_sub(indent.len()));
            let time = short_time(row.time);
            let time =
                paint.dim(if whole_time { &time } else { time.get(..DATE).unwrap_or(&time) });
            write!(out, "{indent}{}  {time}  {:>turns$}  ", paint.bold(&id), row.turns)?;
            if let Some(number) = row.branches {
                write!(out, "{}  ", padded(&branch_count(number), branches - 2))?;
            }
            if programs > 0 {
                write!(out, "{}  ", paint.tag(&padded(&row.program, programs)))?;
            }
            if folders > 0 {
                write!(out, "{}  ", paint.dim(&padded(&folder_of(row), folders)))?;
            }
            writeln!(out, "{}", cut(row.label.trim(), room).trim_end())?;
        }
        Ok(())
    })
}

fn branch_count(number: u64) -> String {
    if number == 1 { "1 branch".to_owned() } else { format!("{number} branches") }
}

/// Returns the last part of a folder.
fn last_part(folder: &str) -> &str {
    let folder = folder.trim_end_matches(['/', '\\']);
    folder.rsplit(['/', '\\']).next().unwrap_or(folder)
}

/// Cuts or pads a text to a number of columns.
fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let gap = " ".repeat(columns.saturating_sub(width(&text)));
    text + &gap
}
