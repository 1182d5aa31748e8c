//! `tine bookmark`, `tag` and `title`: annotations of turns and conversations.

use clap::{Args, Subcommand};
use tine_core::Reference;
use tine_engine::{ConversationPatch, MetadataPatch, TurnView};

use crate::arguments::{names_root, reference};
use crate::command_error::{CommandError, Result};
use crate::session::CliSession;
use crate::terminal::short_time;
use crate::terminal::text::{cut, visible, width};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "tine bookmark [NAME] [REF]\n       tine bookmark COMMAND",
    after_help = "\
Examples:
  tine bookmark                     list bookmarks
  tine bookmark set cheap main~3    set one, or move it
  tine bookmark delete cheap"
)]
pub(crate) struct BookmarkArgs {
    #[command(subcommand)]
    subcommand: Option<BookmarkCommand>,
    /// Bookmark to set; without it, all bookmarks of the project are listed
    name: Option<String>,
    /// Turn that it marks
    #[arg(value_name = "REF", value_parser = reference, default_value = "main")]
    turn: Reference,
    /// Delete a bookmark; its turn stays
    #[arg(short, long, value_name = "NAME", conflicts_with = "name")]
    delete: Option<String>,
}

#[derive(Debug, Subcommand)]
enum BookmarkCommand {
    /// List the bookmarks of the project
    List,
    /// Set a bookmark, or move it
    Set {
        /// Name of the bookmark
        name: String,
        /// Turn that it marks
        #[arg(value_name = "REF", value_parser = reference, default_value = "main")]
        turn: Reference,
    },
    /// Delete a bookmark; its turn stays
    Delete {
        /// Name of the bookmark
        name: String,
    },
}

pub(crate) fn bookmark(session: &CliSession, args: BookmarkArgs) -> Result<()> {
    let command = match (args.subcommand, args.name, args.delete) {
        (Some(command), ..) => command,
        (None, Some(name), _) => BookmarkCommand::Set { name, turn: args.turn },
        (None, None, Some(name)) => BookmarkCommand::Delete { name },
        (None, None, None) => BookmarkCommand::List,
    };
    let (done, verb) = match command {
        BookmarkCommand::List => return list(session),
        BookmarkCommand::Set { name, turn } => {
            let (name, turn) = (session.name(&name)?, session.turn(&turn)?);
            (session.engine.set_bookmark(&session.call, name, turn)?, "is on")
        }
        BookmarkCommand::Delete { name } => {
            let name = session.name(&name)?;
            (session.engine.delete_bookmark(&session.call, &name)?, "deleted; it was on")
        }
    };
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    let name = session.screen.paint.bookmark(&visible(done.name.as_str()));
    let hash = session.screen.paint.hash(&done.turn_hash.short());
    session.screen.line(&format!("★ {name} {verb} {hash}"))
}

fn list(session: &CliSession) -> Result<()> {
    let ask = |page| session.engine.bookmarks(&session.call, page);
    let mut found = session.pages(None, ask)?;
    if let Some(named) = session.named_conversation() {
        found.items.retain(|bookmark| bookmark.conversation == *named);
    }
    let paint = session.screen.paint;
    let column = found.items.iter().map(|it| width(it.name.as_str())).max().unwrap_or(0);
    session.list(&found, |bookmark| {
        let gap = " ".repeat(column.saturating_sub(width(bookmark.name.as_str())));
        let name = paint.bookmark(&visible(bookmark.name.as_str()));
        let hash = paint.hash(&bookmark.turn_hash.short());
        let time = paint.dim(&short_time(bookmark.created_at));
        let conversation = visible(bookmark.conversation.as_str());
        format!("{name}{gap}  {hash}  {time}  {conversation}")
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine turn tag main                list the tags
  tine turn tag main good budget    add two tags
  tine turn tag main --remove budget")]
pub(crate) struct TagArgs {
    /// Turn
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Reference,
    /// Tags to add
    #[arg(value_name = "TAG")]
    tags: Vec<String>,
    /// Tag to add; can be repeated
    #[arg(short, long, value_name = "TAG", allow_hyphen_values = true)]
    add: Vec<String>,
    /// Tag to remove; can be repeated
    #[arg(short, long, value_name = "TAG", allow_hyphen_values = true)]
    remove: Vec<String>,
}

pub(crate) fn tag(session: &CliSession, args: TagArgs) -> Result<()> {
    let turn = session.turn(&args.turn)?;
    let plain = |tag: String| tag.strip_prefix('+').map_or(tag.clone(), str::to_owned);
    let mut add_tags: Vec<String> = args.tags.into_iter().map(plain).collect();
    add_tags.extend(args.add);
    let done = if add_tags.is_empty() && args.remove.is_empty() {
        session.engine.turn(&session.call, turn)?
    } else {
        let remove_tags = args.remove;
        let patch = MetadataPatch { add_tags, remove_tags, ..MetadataPatch::default() };
        session.engine.patch_metadata(&session.call, turn, patch)?
    };
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    let paint = session.screen.paint;
    let tags: Vec<String> =
        done.metadata.tags.iter().map(|tag| paint.tag(&format!("#{}", visible(tag)))).collect();
    let tags = if tags.is_empty() { "no tags".to_owned() } else { tags.join(" ") };
    session.screen.line(&format!("{}  {tags}", paint.hash(&done.hash.short())))
}

#[derive(Debug, Args)]
#[command(
    override_usage = "tine title [OPTIONS] <REF> [TEXT]\n       tine title [OPTIONS] --whole [TEXT]",
    after_help = "\
Examples:
  tine title --whole 'Tokyo'        set the title of the conversation
  tine title main 'The plan'        set the title of a turn
  tine title main                   show it
  tine title main --clear --force"
)]
pub(crate) struct TitleArgs {
    /// Turn (without --whole), and the new title
    #[arg(value_name = "REF TEXT", num_args = 0..=2)]
    words: Vec<String>,
    /// Title of the conversation instead of a turn
    #[arg(short, long)]
    whole: bool,
    /// Replace an existing title
    #[arg(short, long)]
    force: bool,
    /// Set the automatic title, which any other title hides
    #[arg(long, conflicts_with = "whole")]
    auto: bool,
    /// Remove the title
    #[arg(long)]
    clear: bool,
}

pub(crate) fn title(session: &CliSession, args: TitleArgs) -> Result<()> {
    let mut words = args.words.iter().map(String::as_str);
    let turn = if args.whole { None } else { words.next() };
    let text = words.next();
    if words.next().is_some() {
        return Err(CommandError::invalid("expected one title; quote titles of several words"));
    }
    let change = match (text, args.clear) {
        (Some(_), true) => {
            return Err(CommandError::invalid("TEXT and --clear exclude each other"));
        }
        (Some(text), false) => Some(Some(text.to_owned())),
        (None, true) => Some(None),
        (None, false) => None,
    };
    match turn {
        None if !args.whole => {
            Err(CommandError::invalid("name a turn, or pass --whole for the conversation"))
        }
        None => title_conversation(session, change, args.force),
        Some(turn) => {
            let turn = Reference::parse(turn)?;
            if names_root(&turn) {
                return title_conversation(session, change, args.force);
            }
            let done = title_turn(session, &turn, change, &args)?;
            if session.answered_json(|| done.clone())? {
                return Ok(());
            }
            let title = if args.auto { &done.metadata.auto_title } else { &done.metadata.title };
            let hash = session.screen.paint.hash(&done.hash.short());
            session.screen.line(&format!("{hash}  {}", shown(session, title.as_deref())))
        }
    }
}

type Change = Option<Option<String>>;

fn title_turn(
    session: &CliSession,
    turn: &Reference,
    change: Change,
    args: &TitleArgs,
) -> Result<TurnView> {
    let turn = session.turn(turn)?;
    let force = args.force;
    let patch = match change {
        None => return Ok(session.engine.turn(&session.call, turn)?),
        change if args.auto => {
            MetadataPatch { auto_title: change, force, ..MetadataPatch::default() }
        }
        change => MetadataPatch { title: change, force, ..MetadataPatch::default() },
    };
    Ok(session.engine.patch_metadata(&session.call, turn, patch)?)
}

fn title_conversation(session: &CliSession, change: Change, force: bool) -> Result<()> {
    let id = session.conversation()?;
    let done = match change {
        None => session.engine.conversation(&session.call, &id)?,
        title => {
            let patch = ConversationPatch { title, force, ..ConversationPatch::default() };
            session.engine.patch_conversation(&session.call, &id, patch)?
        }
    };
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    let title = shown(session, done.title.as_deref());
    session.screen.line(&format!("{}  {title}", visible(done.id.as_str())))
}

fn shown(session: &CliSession, title: Option<&str>) -> String {
    match title {
        Some(title) => session.screen.paint.bold(&cut(title, usize::MAX)),
        None => "no title".to_owned(),
    }
}
