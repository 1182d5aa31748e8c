//! `tine verify`, `stats` and `backup`: maintenance of a store.

use std::io::Write;
use std::path::PathBuf;
use tine_api::{Stats, UsageShare, UsageTotals};

use clap::Args;
use serde::Serialize;
use tine_core::ErrorKind;
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::commands::{backup, repair};
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{count, cut, visible, width};

#[derive(Debug, Args)]
#[command(after_help = "\
Exits with 13 if a record fails the check, and names every such record.

--repair only reads the store. Intact conversations are copied as they are, damaged ones as far as \
they can be verified. The rest is listed in left-out.jsonl in the new folder, with the text of \
turns. Exits with 13 if anything was left out.

Examples:
  tine store verify
  tine store verify --repair /mnt/disk/tine-new")]
pub(crate) struct VerifyArgs {
    /// Copy what is intact to a new store in this folder
    #[arg(long, value_name = "NEW_FOLDER")]
    repair: Option<PathBuf>,
}

pub(crate) fn verify(globals: &Globals, args: &VerifyArgs) -> Result<()> {
    if let Some(folder) = &args.repair {
        let instead = "stop the server and run it there, with --store PATH";
        globals.require_local("tine store verify --repair", instead)?;
        return repair::repair(globals, folder);
    }
    let session = CliSession::open(globals, OpenMode::Existing)?;
    let found = session.engine.verify()?;
    let failed = found.problems.len();
    if !session.answered_json(|| found.clone())? {
        session.screen.text(Paging::Direct, |out| {
            for problem in &found.problems {
                writeln!(out, "{}: {}", visible(&problem.record), visible(&problem.why))?;
            }
            write!(
                out,
                "checked {}, {}, {}",
                count(found.conversations, "conversation"),
                count(found.turns, "turn"),
                count(found.operations, "operation")
            )?;
            if found.purged_turns > 0 {
                write!(out, " (and {} that were purged)", count(found.purged_turns, "turn"))?;
            }
            writeln!(out, "{}", if failed == 0 { ": all is well" } else { "" })?;
            Ok(())
        })?;
    }
    if failed > 0 {
        let records = if failed == 1 { "record fails" } else { "records fail" };
        return Err(CommandError::refused(
            ErrorKind::Corrupt,
            format!("{failed} {records} the check"),
        ));
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Tokens and cost come from the metadata of turns (source_info: usage, cost).

Examples:
  tine store stats
  tine store stats --usage
  tine store stats -c trip --json")]
pub(crate) struct StatsArgs {
    /// Include tokens and cost; always included with -c
    #[arg(long)]
    usage: bool,
}

pub(crate) fn stats(session: &CliSession, args: &StatsArgs) -> Result<()> {
    let named = session.named_conversation();
    let stats = session.engine.stats(&session.call, named)?;
    let usage = match named.is_some() || args.usage {
        true => Some(session.engine.usage(&session.call, named)?),
        false => None,
    };
    let document = || Stats { usage: usage.clone(), ..stats.clone() };
    if session.answered_json(document)? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        let store = &stats.store;
        writeln!(out, "store")?;
        write_counts(
            out,
            &[
                ("projects", store.projects),
                ("conversations", store.conversations),
                ("turns", store.turns),
                ("branches", store.branches),
                ("bookmarks", store.bookmarks),
                ("operations", store.operations),
                ("bytes on disk", store.disk_bytes),
            ],
        )?;
        if let (Some(id), Some(its)) = (named, &stats.conversation) {
            writeln!(out, "{}", visible(id.as_str()))?;
            write_counts(
                out,
                &[
                    ("turns", its.turns),
                    ("deleted", its.deleted),
                    ("forks", its.forks),
                    ("leaves", its.leaves),
                    ("longest path", its.longest_path),
                    ("branches", its.branches),
                    ("tails", its.tails),
                    ("operations", its.operations),
                ],
            )?;
        }
        match usage {
            Some(usage) if usage.total.turns > 0 => write_usage(out, &usage),
            _ => Ok(()),
        }
    })
}

/// Writes tokens and cost as a table, one line per share.
fn write_usage(out: &mut dyn Write, usage: &UsageTotals) -> Result<()> {
    let groups = [
        ("model", &usage.models),
        ("branch", &usage.branches),
        ("conversation", &usage.conversations),
    ];
    let each = |(what, shares): &(&str, &Vec<UsageShare>)| {
        shares.iter().map(|share| width(what) + 1 + width(label(share))).max()
    };
    let wide = groups.iter().filter_map(each).max().unwrap_or(0).clamp(14, 48);
    let mut line = |name: &str, figures: [&str; 4]| -> Result<()> {
        let name = cut(name, wide);
        let space = " ".repeat(wide.saturating_sub(width(&name)));
        let [input, output, total, cost] = figures;
        let row = format!("  {name}{space} {input:>12} {output:>12} {total:>12} {cost:>12}");
        Ok(writeln!(out, "{}", row.trim_end())?)
    };
    line("tokens", ["input", "output", "total", "US$"])?;
    let mut row = |name: &str, usage: &tine_core::Usage| {
        let cost = usage.cost_usd().map_or_else(String::new, |cost| format!("{cost:.4}"));
        let figures = [usage.input, usage.output, usage.total];
        let [input, output, total] = figures.map(|figure| figure.to_string());
        line(name, [&input, &output, &total, &cost])
    };
    row("all", &usage.total)?;
    for (what, shares) in groups {
        for share in shares {
            row(&format!("{what} {}", label(share)), &share.usage)?;
        }
    }
    Ok(())
}

fn label(share: &UsageShare) -> &str {
    share.name.as_deref().unwrap_or("(others)")
}

fn write_counts(out: &mut dyn Write, rows: &[(&str, u64)]) -> Result<()> {
    for (name, count) in rows {
        writeln!(out, "  {name:<14} {count:>12}")?;
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
A folder that `tine store backup` filled before is replaced by the new copy, unless something was \
written to it since.

Examples:
  tine store backup /mnt/backup/tine
  tine store verify --store /mnt/backup/tine")]
pub(crate) struct BackupArgs {
    /// Folder to copy to: new, empty, or an earlier backup
    folder: PathBuf,
}

pub(crate) fn backup(session: &CliSession, args: &BackupArgs) -> Result<()> {
    let instead = "run it there, or export the conversations with `tine export --all`";
    let engine = session.engine.require_local("tine store backup", instead)?;
    backup::backup(engine, &args.folder)?;
    #[derive(Serialize)]
    struct BackupDocument {
        folder: PathBuf,
    }
    if session.answered_json(|| BackupDocument { folder: args.folder.clone() })? {
        return Ok(());
    }
    session.screen.line(&format!("the store is copied to {}", args.folder.display()))
}
