//! `tine bookmark`, `tag` and `title`: annotations of turns and conversations.

use clap::Args;
use tine_api::{BookmarkView, Listing};
use tine_core::Reference;
use tine_engine::{ConversationPatch, MetadataPatch, TurnView};

use crate::arguments::{names_root, reference};
use crate::command_error::{CommandError, Result};
use crate::session::CliSession;
use crate::terminal::text::{cut, visible, width};
use crate::terminal::{Paging, short_time};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine bookmark                     list them
  tine bookmark cheap main~3        set one, or move it
  tine bookmark --delete cheap")]
pub(crate) struct BookmarkArgs {
    /// The bookmark to set; without it, all of the project are listed
    name: Option<String>,
    /// The turn
    #[arg(value_name = "REF", value_parser = reference, default_value = "main")]
    turn: Reference,
    /// Delete a bookmark; its turn stays
    #[arg(short, long, value_name = "NAME", conflicts_with = "name")]
    delete: Option<String>,
}

pub(crate) fn bookmark(session: &CliSession, args: &BookmarkArgs) -> Result<()> {
    let done = match (&args.name, &args.delete) {
        (None, None) => return list(session),
        (Some(name), _) => {
            let (name, turn) = (session.name(name)?, session.turn(&args.turn)?);
            session.engine.set_bookmark(&session.call, name, turn)?
        }
        (None, Some(name)) => {
            let name = session.name(name)?;
            session.engine.delete_bookmark(&session.call, &name)?
        }
    };
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    let verb = if args.delete.is_some() { "deleted; it was on" } else { "is on" };
    let name = session.screen.paint.bookmark(&visible(done.name.as_str()));
    let hash = session.screen.paint.hash(&done.turn_hash.short());
    session.screen.line(&format!("★ {name} {verb} {hash}"))
}

fn list(session: &CliSession) -> Result<()> {
    let ask = |page| session.engine.bookmarks(&session.call, page);
    let mut bookmarks = session.pages(None, ask)?.items;
    if let Some(named) = session.named_conversation() {
        bookmarks.retain(|bookmark| bookmark.conversation == *named);
    }
    let views = || bookmarks.to_vec();
    if session.answered_json(|| Listing::<BookmarkView>::all(views()))? {
        return Ok(());
    }
    let paint = session.screen.paint;
    let column = bookmarks.iter().map(|it| width(it.name.as_str())).max().unwrap_or(0);
    session.screen.text(Paging::Paged, |out| {
        for bookmark in &bookmarks {
            let gap = " ".repeat(column.saturating_sub(width(bookmark.name.as_str())));
            let name = paint.bookmark(&visible(bookmark.name.as_str()));
            let hash = paint.hash(&bookmark.turn_hash.short());
            let time = paint.dim(&short_time(bookmark.created_at));
            let conversation = visible(bookmark.conversation.as_str());
            writeln!(out, "{name}{gap}  {hash}  {time}  {conversation}")?;
        }
        Ok(())
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine tag main                     show them
  tine tag main good budget         add two
  tine tag main --remove budget")]
pub(crate) struct TagArgs {
    /// The turn
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Reference,
    /// Tags to add
    #[arg(value_name = "TAG")]
    tags: Vec<String>,
    /// A tag to add; can be given several times
    #[arg(short, long, value_name = "TAG", allow_hyphen_values = true)]
    add: Vec<String>,
    /// A tag to remove; can be given several times
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
  tine title main 'The plan'        title a turn
  tine title main                   show its title
  tine title --whole 'Tokyo'        title the conversation
  tine title main --clear --force"
)]
pub(crate) struct TitleArgs {
    /// The turn, unless --whole is given, and the title
    #[arg(value_name = "REF TEXT", num_args = 0..=2)]
    words: Vec<String>,
    /// The conversation instead of a turn
    #[arg(short, long)]
    whole: bool,
    /// Replace a title that is set already
    #[arg(short, long)]
    force: bool,
    /// The machine's title, shown only while there is no other and nothing follows
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
        return Err(CommandError::invalid("give one title; put several words in quotes"));
    }
    let change = match (text, args.clear) {
        (Some(_), true) => return Err(CommandError::invalid("give a title or --clear, not both")),
        (Some(text), false) => Some(Some(text.to_owned())),
        (None, true) => Some(None),
        (None, false) => None,
    };
    match turn {
        None if !args.whole => {
            Err(CommandError::invalid("say which turn, or --whole for the conversation"))
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
