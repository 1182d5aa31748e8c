//! `tine drift`: shows how far a conversation's topic has moved, commit by commit.

use clap::Args;
use tine_api::{Drift, Listing};

use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::text::cut;
use crate::terminal::{Paging, short_time};

/// Width of a bar.
const BAR: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "\
Distances range from 0 (same words) to 1 (no word in common): first from the previous commit, then \
from the first.

Examples:
  tine commit drift
  tine commit drift --branch osaka --json")]
pub(crate) struct DriftArgs {
    /// Branch to use [default: main]
    #[arg(short, long)]
    branch: Option<String>,
}

pub(crate) fn drift(session: &CliSession, args: &DriftArgs) -> Result<()> {
    let branch = args.branch.as_deref().unwrap_or(session.branch());
    let conversation = session.conversation()?;
    let series = session.engine.versioning().drift(&session.call, &conversation, branch)?;
    let views = || series.to_vec();
    if session.answered_json(|| Listing::<Drift>::all(views()))? {
        return Ok(());
    }
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        for it in &series {
            let room = session.screen.columns.map_or(60, |all| all.saturating_sub(69).max(20));
            writeln!(
                out,
                "{}  {}  {}  {}  {}",
                paint.hash(&it.hash.short()),
                paint.dim(&short_time(it.created_at)),
                measured(it.from_parent),
                measured(it.from_first),
                cut(&it.message, room),
            )?;
        }
        Ok(())
    })
}

/// Formats a distance as a bar and a number.
fn measured(distance: Option<f64>) -> String {
    let Some(distance) = distance else {
        return format!("{}     –", "·".repeat(BAR));
    };
    let full = (distance.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("{}{} {distance:.3}", "█".repeat(full), "·".repeat(BAR - full))
}
