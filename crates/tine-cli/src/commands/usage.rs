//! `tine usage`: reports tokens and cost.
//!
//! Costs are those that turns record, or estimates from the prices in `tine.toml`. Where neither is
//! known the cost is shown as unknown, never as 0.

use std::collections::BTreeMap;
use std::io::Write;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tine_api::{UsageDimension, UsageGroup, UsageQuery};
use tine_core::{ProjectId, Timestamp, Usage};

use crate::arguments::{Globals, day_or_time};
use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{cut, width};

/// Rows of each table when no `--by` is given.
const ROWS: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "\
Tokens are those that turns record. A cost is the one that a turn records, or an estimate from the \
prices in tine.toml, in US dollars for a million tokens:

  [prices.\"claude-sonnet-4*\"]      a model, or all models that begin so
  input = 3.0
  output = 15.0
  cache_read = 0.3                 as input by default
  cache_write = 3.75               as input by default

Where neither is known the cost is \"unknown\"; \"+\" marks a sum of which a part is unknown. Days \
are in UTC.

Examples:
  tine usage
  tine usage --by model --since 2026-01-01
  tine usage --by day,model --program claude-code
  tine usage --by project --json")]
pub(crate) struct UsageArgs {
    /// Group by these, separated by commas: day, project, program, folder, model
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    by: Vec<GroupBy>,
    /// Count only turns since this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    since: Option<Timestamp>,
    /// Count only turns before this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    until: Option<Timestamp>,
    /// Count only conversations of this program, such as claude-code
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Count only conversations about this folder or one below it; or a folder's name
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,
}

/// What to group by. The order is that of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum GroupBy {
    Day,
    Project,
    Program,
    Folder,
    Model,
}

impl GroupBy {
    const ALL: [GroupBy; 5] =
        [GroupBy::Day, GroupBy::Project, GroupBy::Program, GroupBy::Folder, GroupBy::Model];

    fn name(self) -> &'static str {
        match self {
            GroupBy::Day => "day",
            GroupBy::Project => "project",
            GroupBy::Program => "program",
            GroupBy::Folder => "folder",
            GroupBy::Model => "model",
        }
    }

    /// Returns the dimension within one project.
    fn dimension(self) -> Option<UsageDimension> {
        UsageDimension::named(self.name())
    }

    /// Returns the value of a group, if it is known.
    fn value(self, project: &ProjectId, group: &UsageGroup) -> Option<String> {
        match self {
            GroupBy::Day => group.day.clone(),
            GroupBy::Project => Some(project.to_string()),
            GroupBy::Program => group.program.clone(),
            GroupBy::Folder => group.folder.clone(),
            GroupBy::Model => group.model.clone(),
        }
    }
}

/// The usage of one group, with the values of the dimensions that were asked for.
#[derive(Serialize)]
struct GroupDocument {
    #[serde(flatten)]
    values: BTreeMap<&'static str, Option<String>>,
    #[serde(flatten)]
    usage: Usage,
}

#[derive(Serialize)]
struct UsageDocument {
    projects: Vec<ProjectId>,
    total: Usage,
    groups: Vec<GroupDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<Usage>,
}

/// The reports of all projects.
struct Report {
    projects: Vec<ProjectId>,
    total: Usage,
    groups: Vec<(ProjectId, UsageGroup)>,
    rest: Option<Usage>,
}

impl Report {
    fn read(globals: &Globals, session: &CliSession, args: &UsageArgs) -> Result<Self> {
        let wanted = if args.by.is_empty() { &GroupBy::ALL[..] } else { &args.by[..] };
        let query = UsageQuery {
            by: wanted.iter().filter_map(|it| it.dimension()).collect(),
            since: args.since,
            until: args.until,
            program: args.program.clone(),
            folder: args.folder.clone(),
            prices: globals.settings.prices(),
        };
        let projects = match globals.project() {
            Some(_) => vec![session.call.project.clone()],
            None => session.engine.projects()?.into_iter().map(|project| project.id).collect(),
        };
        let (total, rest) = (Usage::default(), None);
        let mut report = Report { projects: Vec::new(), total, groups: Vec::new(), rest };
        for project in projects {
            let call = session.call.clone().in_project(project.clone());
            let mut found = session.engine.usage_report(&call, &query)?;
            if query.by.is_empty() && found.total.turns > 0 {
                found.groups.push(UsageGroup { usage: found.total, ..UsageGroup::default() });
            }
            report.total.add(&found.total);
            report.groups.extend(found.groups.into_iter().map(|it| (project.clone(), it)));
            if let Some(rest) = found.rest {
                report.rest.get_or_insert_default().add(&rest);
            }
            report.projects.push(project);
        }
        Ok(report)
    }

    /// Sums the groups by some dimensions.
    fn grouped(&self, by: &[GroupBy]) -> Vec<(Vec<Option<String>>, Usage)> {
        let mut sums: BTreeMap<Vec<Option<String>>, Usage> = BTreeMap::new();
        for (project, group) in &self.groups {
            let key = by.iter().map(|it| it.value(project, group)).collect();
            sums.entry(key).or_default().add(&group.usage);
        }
        sums.into_iter().collect()
    }
}

pub(crate) fn usage(globals: &Globals, session: &CliSession, args: &UsageArgs) -> Result<()> {
    let report = Report::read(globals, session, args)?;
    let mut by = args.by.clone();
    by.sort_unstable();
    by.dedup();
    if session.screen.json {
        let columns = if by.is_empty() { &GroupBy::ALL[..] } else { &by[..] };
        let groups = report.grouped(columns).into_iter().map(|(values, usage)| GroupDocument {
            values: columns.iter().map(|it| it.name()).zip(values).collect(),
            usage,
        });
        return session.screen.document(&UsageDocument {
            projects: report.projects.clone(),
            total: report.total,
            groups: groups.collect(),
            rest: report.rest,
        });
    }
    session.screen.text(Paging::Paged, |out| {
        if report.total == Usage::default() {
            return Ok(writeln!(out, "no turn records tokens or cost")?);
        }
        if by.is_empty() {
            write_overview(out, session, &report)?;
        } else {
            let by_day = by.contains(&GroupBy::Day);
            let groups = report.grouped(&by);
            let order = if by_day { Order::AsIs } else { Order::LargestFirst };
            write_table(out, session, &by, groups, (order, usize::MAX))?;
        }
        if let Some(rest) = &report.rest {
            writeln!(out, "not grouped: {}", figures(rest).join("  "))?;
        }
        let total = figures(&report.total);
        writeln!(out, "total: {} input, {} output, {}", total[1], total[2], total[3])?;
        let unpriced = report.total.turns - report.total.priced.min(report.total.turns);
        if unpriced > 0 {
            let text = format!(
                "{unpriced} of {} turns have no known cost; add prices to tine.toml \
                 (tine usage --help)",
                report.total.turns
            );
            writeln!(out, "{}", session.screen.paint.dim(&text))?;
        }
        Ok(())
    })
}

/// Writes one short table for each dimension.
fn write_overview(out: &mut dyn Write, session: &CliSession, report: &Report) -> Result<()> {
    for dimension in [GroupBy::Model, GroupBy::Program, GroupBy::Project, GroupBy::Folder] {
        let groups = report.grouped(&[dimension]);
        if groups.len() == 1 && matches!(dimension, GroupBy::Project | GroupBy::Folder) {
            continue;
        }
        write_table(out, session, &[dimension], groups, (Order::LargestFirst, ROWS))?;
        writeln!(out)?;
    }
    write_table(
        out,
        session,
        &[GroupBy::Day],
        report.grouped(&[GroupBy::Day]),
        (Order::Last, ROWS),
    )?;
    Ok(writeln!(out)?)
}

/// Which rows a table shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    AsIs,
    LargestFirst,
    /// The last rows, in order.
    Last,
}

fn write_table(
    out: &mut dyn Write,
    session: &CliSession,
    by: &[GroupBy],
    mut groups: Vec<(Vec<Option<String>>, Usage)>,
    (order, most): (Order, usize),
) -> Result<()> {
    let paint = session.screen.paint;
    let all = groups.len();
    match order {
        Order::AsIs => {}
        Order::LargestFirst => {
            groups.sort_by_key(|(_, usage)| std::cmp::Reverse((usage.cost_nanos, usage.total)));
        }
        Order::Last => drop(groups.drain(..all.saturating_sub(most))),
    }
    groups.truncate(most);
    let heads = ["turns", "input", "output", "cost"];
    let mut table: Vec<(Vec<String>, [String; 4])> = Vec::with_capacity(groups.len() + 1);
    let names = by.iter().map(|it| it.name().to_owned()).collect();
    table.push((names, heads.map(str::to_owned)));
    for (values, usage) in &groups {
        let known = |value: &Option<String>| {
            value.as_deref().map_or_else(|| "(unknown)".to_owned(), |it| cut(it, usize::MAX))
        };
        table.push((values.iter().map(known).collect(), figures(usage)));
    }
    let number_columns: Vec<usize> = (0..heads.len())
        .map(|at| table.iter().map(|(_, figures)| figures[at].len()).max().unwrap_or(0))
        .collect();
    let numbers: usize = number_columns.iter().map(|column| column + 2).sum();
    let room = session.screen.columns.map_or(usize::MAX, |all| all.saturating_sub(numbers));
    let most_columns = (room / by.len().max(1)).saturating_sub(2).max(10);
    let name_columns: Vec<usize> = (0..by.len())
        .map(|at| table.iter().map(|(names, _)| width(&names[at])).max().unwrap_or(0))
        .map(|column| column.min(most_columns))
        .collect();
    for (at, (names, figures)) in table.iter().enumerate() {
        let mut line = String::new();
        for (name, column) in names.iter().zip(&name_columns) {
            let name = cut(name, *column);
            let gap = column - width(&name) + 2;
            line.push_str(&format!("{name}{:gap$}", ""));
        }
        for (figure, column) in figures.iter().zip(&number_columns) {
            line.push_str(&format!("{figure:>column$}  "));
        }
        let line = line.trim_end();
        writeln!(out, "{}", if at == 0 { paint.bold(line) } else { line.to_owned() })?;
    }
    if all > groups.len() {
        let flag = by.iter().map(|it| it.name()).collect::<Vec<_>>().join(",");
        let text = format!("… {} more; --by {flag} shows all", all - groups.len());
        writeln!(out, "{}", paint.dim(&text))?;
    }
    Ok(())
}

/// Formats turns, input, output and cost.
fn figures(usage: &Usage) -> [String; 4] {
    let cost = match usage.cost_usd() {
        None => "unknown".to_owned(),
        Some(dollars) => {
            let partly = if usage.priced < usage.turns { "+" } else { "" };
            format!("${dollars:.2}{partly}")
        }
    };
    [grouped_digits(usage.turns), grouped_digits(usage.input), grouped_digits(usage.output), cost]
}

/// Formats a number with a comma between groups of three digits.
fn grouped_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
