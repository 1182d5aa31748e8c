//! `tine timeline`: lists dated records in order.

use clap::Args;
use tine_core::Timestamp;
use tine_engine::TimelineEntry;

use crate::arguments::day_or_time;
use crate::command_error::Result;
use crate::knowledge_view::room;
use crate::session::CliSession;
use crate::terminal::text::{cut, width};

#[derive(Debug, Args)]
#[command(after_help = "\
The timeline follows corrections: a corrected date moves, a deleted entity disappears.

Examples:
  tine entity timeline
  tine entity timeline --from 2025-03-01 --to 2025-04-01")]
pub(crate) struct TimelineArgs {
    /// Start at this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    from: Option<Timestamp>,
    /// End before this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    to: Option<Timestamp>,
    /// Show at most N
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
}

pub(crate) fn timeline(session: &CliSession, args: &TimelineArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let ask = |page| knowledge.timeline(&session.call, args.from, args.to, page);
    let found = session.pages(args.number, ask)?;
    let paint = session.screen.paint;
    let what = |one: &TimelineEntry| format!("{}.{}", one.entity_type, one.field);
    let dates = found.items.iter().map(|one| width(&one.date)).max().unwrap_or(0);
    let fields = found.items.iter().map(|one| width(&what(one))).max().unwrap_or(0);
    session.list(&found, |one| {
        let (date, what) = (&one.date, what(one));
        let name = one.name.as_deref().unwrap_or_default();
        let name = cut(name, room(&session.screen, dates + fields + 36 + 6));
        let id = paint.hash(&one.entity.to_string());
        format!("{date:<dates$}  {what:<fields$}  {id}  {name}").trim_end().to_owned()
    })
}
