//! `tine show`: shows one turn, the root, or a commit in full.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use tine_core::{ErrorKind, Json, Reference};
use tine_engine::{CommitView, Presence, TurnRef, TurnRings, TurnView};

use crate::arguments::{names_root, reference};
use crate::command_error::{CommandError, Result};
use crate::commit_view::write_commit_details;
use crate::knowledge_view::{row, write_rows};
use crate::labels::Labels;
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{cut, visible};
use crate::transcript::{badges, one_line, write_content, write_wrapped};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine show main
  tine show a9d2e63be84c --siblings
  tine show main~1 --versions --json
  tine show main~1 --rings          keywords, intent and names
  tine show 3f2a9c01d7e4            a commit, by its hash")]
pub(crate) struct ShowArgs {
    /// Turn, or hash of a commit [default: main]
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Option<Reference>,
    /// List its children
    #[arg(long)]
    children: bool,
    /// List its siblings
    #[arg(long)]
    siblings: bool,
    /// List its versions: turns that it was edited from or into
    #[arg(long)]
    versions: bool,
    /// Show keywords, intent, facets, sentences and names
    #[arg(long)]
    rings: bool,
}

/// A turn and its neighbours.
struct TurnDetails {
    turn: TurnView,
    children: Vec<TurnView>,
    siblings: Vec<TurnView>,
    versions: Vec<TurnView>,
    rings: Option<TurnRings>,
}

pub(crate) fn show(session: &CliSession, args: &ShowArgs) -> Result<()> {
    let named = match &args.turn {
        Some(named) => named.clone(),
        None => session.tip()?,
    };
    if names_root(&named) {
        return show_root(session);
    }
    let turn = match turn_or_commit(session, &named) {
        Ok(TurnOrCommit::Turn(turn)) => *turn,
        Ok(TurnOrCommit::Commit(commit)) => return show_commit(session, &commit),
        // A branch can end on the root.
        Err(CommandError::Engine(error)) if error.details.is_root => return show_root(session),
        Err(failure) => return Err(failure),
    };
    let by_id = || TurnRef::within(turn.conversation.clone(), turn.id);
    let rings = match args.rings {
        true => Some(session.engine.versioning().rings(&session.call, by_id())?),
        false => None,
    };
    // A deleted turn has no neighbours in the visible tree.
    let beside = |find: &dyn Fn(TurnRef) -> tine_api::Result<Vec<TurnView>>| match turn.presence {
        Presence::Deleted => Ok(Vec::new()),
        Presence::Live | Presence::Split => find(by_id()),
    };
    let shown = TurnDetails {
        rings,
        children: beside(&|turn| session.engine.children(&session.call, turn))?,
        siblings: beside(&|turn| session.engine.siblings(&session.call, turn))?,
        versions: beside(&|turn| session.engine.versions(&session.call, turn))?,
        turn,
    };
    if session.answered_json(|| document(&shown, args))? {
        return Ok(());
    }
    let labels = Labels::of(session, &shown.turn.conversation)?;
    session.screen.text(Paging::Paged, |out| {
        write_facts(out, session, &shown, &labels)?;
        writeln!(out)?;
        write_content(out, &session.screen, &shown.turn)?;
        let lists = [
            ("children", args.children, &shown.children),
            ("siblings", args.siblings, &shown.siblings),
            ("versions", args.versions, &shown.versions),
        ];
        for (name, requested, turns) in lists {
            if requested {
                writeln!(out, "\n{name}")?;
                for turn in turns {
                    writeln!(out, "  {}", one_line(&session.screen, turn, 2))?;
                }
            }
        }
        match &shown.rings {
            Some(rings) => write_rings(out, session, rings),
            None => Ok(()),
        }
    })
}

enum TurnOrCommit {
    Turn(Box<TurnView>),
    Commit(Box<CommitView>),
}

/// Resolves a reference to a turn or, failing that, to a commit.
fn turn_or_commit(session: &CliSession, named: &Reference) -> Result<TurnOrCommit> {
    let refused = match session.scope_of([named.as_str()]).and_then(|conversation| {
        let turn = TurnRef { conversation, turn: named.clone() };
        Ok(session.engine.turn(&session.call, turn)?)
    }) {
        Ok(turn) => return Ok(TurnOrCommit::Turn(Box::new(turn))),
        Err(CommandError::Engine(error)) if error.kind() == ErrorKind::NotFound => error,
        Err(failure) => return Err(failure),
    };
    match session.engine.versioning().commit_by_hash(&session.call, named.as_str()) {
        Ok(commit) => Ok(TurnOrCommit::Commit(Box::new(commit))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(refused.into()),
        Err(error) => Err(error.into()),
    }
}

fn show_commit(session: &CliSession, commit: &CommitView) -> Result<()> {
    if session.answered_json(|| commit.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| write_commit_details(out, &session.screen, commit))
}

fn write_rings(out: &mut dyn Write, session: &CliSession, about: &TurnRings) -> Result<()> {
    let rings = &about.rings;
    let list =
        |items: Vec<String>| if items.is_empty() { "–".to_owned() } else { items.join(", ") };
    let keywords = rings.keywords.iter().map(|it| visible(&it.text).into_owned()).collect();
    let facets = rings.facets.iter().map(|it| it.name.to_owned()).collect();
    let names = about.names.iter().map(|it| format!("{} ({})", visible(&it.name), it.entity_type));
    let rows = [
        row("keywords", list(keywords)),
        row("intent", rings.intent.as_str()),
        row("facets", list(facets)),
        row("names", list(names.collect())),
        row("found by", &about.extractor),
    ];
    writeln!(out, "\nrings")?;
    write_rows(out, &session.screen, 2, &rows)?;
    let letters: Vec<char> = about.text.chars().collect();
    for (number, segment) in (1..).zip(&rings.segments) {
        let text: String =
            letters.get(segment.start..segment.end).unwrap_or_default().iter().collect();
        let room = session.screen.columns.map_or(400, |all| all.saturating_sub(8).max(20));
        writeln!(out, "  {number:>3}  {}", cut(&text, room))?;
    }
    Ok(())
}

fn document(shown: &TurnDetails, args: &ShowArgs) -> impl Serialize {
    #[derive(Serialize)]
    struct TurnDocument {
        #[serde(flatten)]
        turn: TurnView,
        #[serde(skip_serializing_if = "Option::is_none")]
        children: Option<Vec<TurnView>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        siblings: Option<Vec<TurnView>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        versions: Option<Vec<TurnView>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rings: Option<TurnRings>,
    }
    let views = |requested: bool, turns: &[TurnView]| requested.then(|| turns.to_vec());
    TurnDocument {
        turn: shown.turn.clone(),
        children: views(args.children, &shown.children),
        siblings: views(args.siblings, &shown.siblings),
        versions: views(args.versions, &shown.versions),
        rings: shown.rings.clone(),
    }
}

fn write_facts(
    out: &mut dyn Write,
    session: &CliSession,
    shown: &TurnDetails,
    labels: &Labels,
) -> Result<()> {
    let (turn, paint) = (&shown.turn, session.screen.paint);
    let mut fact = |name: &str, value: &str| -> Result<()> {
        let name = paint.dim(&format!("{name:<12}"));
        Ok(writeln!(out, "{name} {}", visible(value))?)
    };
    fact("turn", &turn.id.to_string())?;
    fact("hash", &turn.hash.to_string())?;
    let parent_hash = turn.parent_hash.map(|hash| hash.to_string());
    fact("parent hash", parent_hash.as_deref().unwrap_or("none (a first turn)"))?;
    fact("parent", &turn.parent.map_or("root".to_owned(), |id| id.to_string()))?;
    fact("conversation", turn.conversation.as_str())?;
    fact("role", turn.role.as_str())?;
    fact("created at", &turn.created_at.to_string())?;
    fact("depth", &turn.depth.to_string())?;
    if let Some(place) = shown.siblings.iter().position(|sibling| sibling.id == turn.id) {
        fact("sibling", &format!("{} of {}", place + 1, shown.siblings.len()))?;
    }
    fact("children", &shown.children.len().to_string())?;
    if shown.versions.len() > 1 {
        fact("versions", &shown.versions.len().to_string())?;
    }
    let origins = [
        ("edited from", turn.origin.edited_from),
        ("copied from", turn.origin.derived_from),
        ("half of", turn.origin.part_of),
    ];
    for (name, origin) in origins {
        if let Some(id) = origin {
            fact(name, &id.to_string())?;
        }
    }
    let lists = [
        ("branches", labels.branches(&turn.id).join(", ")),
        ("bookmarks", labels.bookmarks(&turn.id).join(", ")),
        ("state", badges(turn).join(", ")),
        ("title", turn.metadata.title.clone().unwrap_or_default()),
        ("auto title", turn.metadata.auto_title.clone().unwrap_or_default()),
        ("tags", turn.metadata.tags.iter().cloned().collect::<Vec<_>>().join(", ")),
        ("source", turn.metadata.source_info.as_ref().map(Json::to_canonical).unwrap_or_default()),
        (
            "custom data",
            turn.metadata.custom_data.as_ref().map(Json::to_canonical).unwrap_or_default(),
        ),
    ];
    for (name, value) in lists {
        if !value.is_empty() {
            fact(name, &value)?;
        }
    }
    Ok(())
}

/// Shows the root, which is not a turn but the start of the conversation.
fn show_root(session: &CliSession) -> Result<()> {
    let id = session.conversation()?;
    let conversation = session.engine.conversation(&session.call, &id)?;
    if session.answered_json(|| conversation.clone())? {
        return Ok(());
    }
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        let mut fact = |name: &str, value: &str| -> Result<()> {
            let name = paint.dim(&format!("{name:<12}"));
            Ok(writeln!(out, "{name} {}", visible(value))?)
        };
        fact("conversation", conversation.id.as_str())?;
        fact("root hash", &conversation.root_hash.to_string())?;
        fact("created at", &conversation.created_at.to_string())?;
        if let Some(title) = &conversation.title {
            fact("title", title)?;
        }
        if let Some(from) = &conversation.derived_from {
            fact("derived from", from.conversation.as_str())?;
        }
        match &conversation.root {
            None => fact("state", "purged")?,
            Some(root) => {
                if !root.config.is_null() {
                    fact("config", &root.config.to_canonical())?;
                }
                if let Some(prompt) = &root.system_prompt {
                    writeln!(out)?;
                    write_wrapped(out, &session.screen, prompt, None)?;
                }
            }
        }
        Ok(())
    })
}
