//! `tine observations`: lists all observations of one entity.

use clap::Args;
use tine_engine::AsOf;

use crate::command_error::Result;
use crate::knowledge_view::{entity_line, observation_line};
use crate::record_args;
use crate::session::CliSession;
use crate::terminal::Paging;

#[derive(Debug, Args)]
#[command(after_help = "\
Observations are never changed or removed. Storing a turn adds one, even if its text is the same. CONVERSATION:TURN names the message of a turn; if a question and an answer have one id, \
add the role: CONVERSATION:TURN:user, CONVERSATION:TURN:assistant.

Examples:
  tine entity observations trip:1
  tine entity observations trip:1:assistant
  tine entity observations ent_0123456789abcdef0123456789abcdef --json")]
pub(crate) struct ObservationsArgs {
    /// Entity: an id such as ent_…, or a turn as CONVERSATION:TURN
    #[arg(value_name = "ENTITY")]
    entity: String,
    /// Show at most N
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
}

pub(crate) fn observations(session: &CliSession, args: &ObservationsArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let entity = record_args::resolve_entity(session, &args.entity)?;
    let ask = |page| knowledge.observations(&session.call, entity, page);
    let found = session.pages(args.number, ask)?;
    if session.answered_json(|| found.clone())? {
        return Ok(());
    }
    let about = knowledge.entity(&session.call, entity, AsOf::default())?;
    session.screen.text(Paging::Paged, |out| {
        writeln!(out, "{}", entity_line(&session.screen, &about))?;
        for one in &found.items {
            writeln!(out, "{}", observation_line(&session.screen, one, Some(about.id)))?;
        }
        Ok(())
    })
}
