//! `tine search`: full-text search of turns.

use clap::Args;
use tine_core::{Role, Timestamp};
use tine_engine::{SearchHit, SearchPage, SearchQuery};

use crate::arguments::day_or_time;
use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::text::{cut, shell_word, visible};
use crate::terminal::{Paging, Screen, short_time};

#[derive(Debug, Args)]
#[command(after_help = "\
A turn matches if it contains all words. \"…\" is a phrase, word* a prefix, A OR B matches either \
word, and -word excludes a word. Case and accents are ignored.

Examples:
  tine search tokyo spring
  tine search '\"best time\" kyot* OR osaka -winter'
  tine search 東京 --role assistant --since 2024-01-01
  tine search flights -c trip --branch autumn --tag budget")]
pub(crate) struct SearchArgs {
    /// Words to search for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only turns of this role: user, assistant, tool or system
    #[arg(short, long)]
    role: Option<Role>,
    /// Only turns on the path of this branch
    #[arg(short, long)]
    branch: Option<String>,
    /// Only turns at or after this day or time, such as 2024-01-15T10:30:00Z
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    since: Option<Timestamp>,
    /// Only turns before this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    until: Option<Timestamp>,
    /// Only turns with this tag; can be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Search every conversation, even if TINE_CONVERSATION is set
    #[arg(long)]
    all_conversations: bool,
    /// Include archived conversations
    #[arg(long)]
    archived: bool,
    /// Show at most N hits
    #[arg(short = 'n', long = "number", alias = "limit", value_name = "N", default_value_t = 20)]
    number: usize,
    /// Continue after the page that printed this cursor
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) fn search(session: &CliSession, args: SearchArgs) -> Result<()> {
    let named = session.named_conversation().filter(|_| !args.all_conversations);
    // A branch without a conversation is that of the only conversation.
    let conversation = match (&named, &args.branch) {
        (None, Some(_)) => session.scope()?,
        (named, _) => named.cloned(),
    };
    let query = SearchQuery {
        words: args.words.join(" "),
        conversation,
        branch: args.branch,
        role: args.role,
        from: args.since,
        to: args.until,
        tags: args.tags,
        archived: args.archived,
        cursor: args.cursor,
        limit: Some(args.number),
    };
    let page = session.engine.search(&session.call, query)?;
    if page.hits.is_empty() {
        session.check_project()?;
    }
    if session.answered_json(|| page.clone())? {
        return Ok(());
    }
    write_page(session, &page)
}

fn write_page(session: &CliSession, page: &SearchPage) -> Result<()> {
    let screen = &session.screen;
    if page.hits.is_empty() {
        return screen.line("no matches");
    }
    screen.text(Paging::Paged, |out| {
        for (index, hit) in page.hits.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            writeln!(out, "{}", heading(screen, hit))?;
            writeln!(out, "    {}", marked(screen, hit))?;
            writeln!(out, "    {}", screen.paint.dim(&open_with(hit)))?;
        }
        if let Some(next) = &page.next {
            writeln!(out, "\n{}", screen.paint.dim(&format!("… more with --cursor {next}")))?;
        }
        Ok(())
    })
}

fn heading(screen: &Screen, hit: &SearchHit) -> String {
    let paint = screen.paint;
    let mut parts = vec![
        paint.hash(&hit.hash.short()),
        paint.role(hit.role, hit.role.as_str()),
        paint.dim(&short_time(hit.created_at)),
        visible(hit.conversation.as_str()).into_owned(),
    ];
    parts.extend(hit.title.as_ref().map(|title| paint.bold(&cut(title, 60))));
    let names = hit.branches.iter().map(|name| visible(name.as_str()).into_owned());
    let mut names: Vec<String> = names.take(3).collect();
    if hit.branch_count > names.len() {
        names.push(format!("+{}", hit.branch_count - names.len()));
    }
    match names.is_empty() {
        true => parts.push(paint.dim("(on no branch)")),
        false => parts.push(paint.branch(&format!("[{}]", names.join(", ")))),
    }
    parts.extend(hit.tags.iter().map(|tag| paint.tag(&format!("#{}", visible(tag)))));
    parts.extend(hit.archived.then(|| paint.warning("(archived)")));
    parts.join("  ")
}

/// Formats the snippet with highlighted matches.
fn marked(screen: &Screen, hit: &SearchHit) -> String {
    let symbols: Vec<char> = hit.snippet.chars().collect();
    let part = |from: usize, to: usize| -> String {
        visible(&symbols[from..to].iter().collect::<String>()).into_owned()
    };
    let mut out = String::new();
    let mut at = 0;
    for &(from, to) in &hit.highlights {
        out.push_str(&part(at, from));
        out.push_str(&screen.paint.found(&part(from, to)));
        at = to;
    }
    out.push_str(&part(at, symbols.len()));
    out
}

/// Returns the command that shows the context of a hit.
fn open_with(hit: &SearchHit) -> String {
    let conversation = shell_word(hit.conversation.as_str());
    let mut command = format!("tine turn path -c {conversation} --around {}", hit.hash.short());
    if let Some(branch) = hit.branches.first() {
        command.push_str(&format!(" --branch {}", shell_word(branch.as_str())));
    }
    command
}
