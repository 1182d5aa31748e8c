//! `tine projects`: lists projects.

use clap::Args;
use tine_api::Listing;

use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::short_time;
use crate::terminal::text::{visible, width};

#[derive(Debug, Args)]
#[command(after_help = "\
A project is a namespace of conversations and bookmarks. It is created with its first conversation.

Examples:
  tine projects
  tine ls --project work")]
pub(crate) struct ProjectsArgs {}

pub(crate) fn projects(session: &CliSession) -> Result<()> {
    let projects = session.engine.projects()?;
    let paint = session.screen.paint;
    let column = projects.iter().map(|it| width(it.id.as_str())).max().unwrap_or(0);
    session.list(&Listing::all(projects), |project| {
        let id = visible(project.id.as_str());
        let gap = " ".repeat(column.saturating_sub(width(project.id.as_str())));
        let time = project.created_at.map(short_time).unwrap_or_default();
        format!("{}{gap}  {}", paint.bold(&id), paint.dim(&time)).trim_end().to_owned()
    })
}
