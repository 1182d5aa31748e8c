//! `tine tree`: draws the whole conversation. [`crate::tree`] describes the layout.

use std::io::Write;

use clap::Args;
use tine_core::{ConversationId, ErrorKind, Reference, TurnId};
use tine_engine::{ConversationView, TopologyPage, TopologyQuery};

use crate::arguments::{names_root, reference};
use crate::command_error::Result;
use crate::session::{CliSession, MAIN};
use crate::terminal::Paging;
use crate::tree::{Drawing, RootRow, draw, lay_out};

#[derive(Debug, Args)]
#[command(after_help = "\
The line of main stays in the first column. Side lines are indented and come before the next turn \
of the line.

●  a branch leads here     ○  none does (see `tine branch tails`)
×  deleted                 ×N turns folded below

Examples:
  tine tree
  tine tree a9d2e63be84c            only the subtree of this turn
  tine tree --depth 0               the line of main, side lines folded
  tine tree --branch osaka --all")]
pub(crate) struct TreeArgs {
    /// Draw only the subtree of this turn
    #[arg(value_name = "REF", value_parser = reference)]
    under: Option<Reference>,
    /// Include deleted turns
    #[arg(short, long)]
    all: bool,
    /// Fold side lines more than N forks away
    #[arg(short, long, value_name = "N")]
    depth: Option<usize>,
    /// Branch in the first column [default: main]
    #[arg(short, long)]
    branch: Option<String>,
}

pub(crate) fn tree(session: &CliSession, args: &TreeArgs) -> Result<()> {
    let (conversation, under) = match &args.under {
        Some(reference) if !names_root(reference) => {
            let turn = session.engine.turn(&session.call, session.turn(reference)?)?;
            (turn.conversation, Some(turn.id))
        }
        _ => (session.conversation()?, None),
    };
    let topology = whole_topology(session, &conversation, under, args.all)?;
    if session.answered_json(|| topology.clone())? {
        return Ok(());
    }
    let branch = args.branch.as_deref().unwrap_or(session.branch());
    let line = match session.engine.branch(&session.call, &conversation, branch) {
        Ok(branch) => branch.tip,
        Err(error) if error.kind() == ErrorKind::NotFound && branch == MAIN => None,
        Err(error) => return Err(error.into()),
    };
    let head = match under {
        Some(_) => None,
        None => Some(head(session, &conversation)?),
    };
    session.screen.text(Paging::Paged, |out| {
        write_tree(out, session, head.as_ref(), &topology, line, args.depth)
    })
}

/// Draws a topology.
pub(crate) fn write_tree(
    out: &mut dyn Write,
    session: &CliSession,
    head: Option<&RootRow>,
    topology: &TopologyPage,
    line: Option<TurnId>,
    depth: Option<usize>,
) -> Result<()> {
    let lines = lay_out(&topology.rows, &topology.first, line, depth);
    let drawing = Drawing { paint: session.screen.paint, columns: session.screen.columns };
    Ok(draw(out, &drawing, head, &topology.rows, &lines)?)
}

/// Fetches all pages of a topology.
pub(crate) fn whole_topology(
    session: &CliSession,
    conversation: &ConversationId,
    under: Option<TurnId>,
    include_deleted: bool,
) -> Result<TopologyPage> {
    let under = under.map(Reference::from);
    let mut query =
        TopologyQuery { under, include_deleted, ..TopologyQuery::of(conversation.clone()) };
    let mut topology = session.engine.topology(&session.call, query.clone())?;
    while let Some(cursor) = topology.next.take() {
        query.cursor = Some(cursor);
        let page = session.engine.topology(&session.call, query.clone())?;
        topology.rows.extend(page.rows);
        topology.next = page.next;
    }
    Ok(topology)
}

/// Returns the row of the root: the conversation's id, title and configuration.
pub(crate) fn head(session: &CliSession, id: &ConversationId) -> Result<RootRow> {
    let conversation = session.engine.conversation(&session.call, id)?;
    let branches = session.engine.branches(&session.call, id)?;
    let at_root = branches.iter().filter(|branch| branch.tip.is_none());
    Ok(RootRow {
        text: head_text(&conversation),
        branches: at_root.map(|branch| branch.name.to_string()).collect(),
    })
}

fn head_text(conversation: &ConversationView) -> String {
    let mut parts = vec![conversation.id.to_string()];
    parts.extend(conversation.title.clone());
    if conversation.archived {
        parts.push("(archived)".to_owned());
    }
    match &conversation.root {
        None => parts.push("(purged)".to_owned()),
        Some(root) => parts.extend(root.system_prompt.clone()),
    }
    parts.join(" · ")
}
