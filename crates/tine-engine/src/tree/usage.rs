//! Tokens and cost, summed over turns.
//!
//! Turns are read once, segment by segment, and none is kept: what is held is one sum for each
//! model, and one for each place at which a branch leaves a segment.
//!
//! A turn is counted once however often it is shown. The halves of a split carry the metadata of
//! their whole, and copies that of their originals, so both are passed over in totals; on a
//! branch's line the half that the text begins with counts for the whole.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use tine_core::{ConversationId, Json, Usage};
use tine_store::{Conversation, Read, SegmentNo, Turn};

use crate::log::activity::is_in_folder;
use crate::tree::overview;
use crate::tree::resolve;
use crate::tree::shown::{SegmentRun, Tree, TurnState};
use crate::{
    Call, Engine, Result, UsageDimension, UsageGroup, UsageQuery, UsageReport, UsageShare,
    UsageTotals,
};

/// Stands for the model of turns that name none.
const NO_MODEL: &str = "unknown";

/// Conversations that are looked up at once.
const BATCH: usize = 256;

/// The most groups of a report.
const GROUPS: usize = 10_000;

impl Engine {
    /// Tokens and cost of a conversation, or of all conversations of the project. Reads every
    /// turn of them.
    pub fn usage(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<UsageTotals> {
        let limit = self.limits().page_rows;
        self.read(|records| match conversation {
            Some(id) => of_conversation(records, &resolve::conversation(records, call, id)?, limit),
            None => of_project(records, call, limit),
        })
    }

    /// Tokens and cost of the project, grouped by day, program, folder and model. Reads every turn
    /// of it.
    pub fn usage_report(&self, call: &Call, query: &UsageQuery) -> Result<UsageReport> {
        self.read(|records| {
            let mut report = GroupedUsage::default();
            each_conversation(records, call, &mut |conversation| {
                let metadata = &conversation.metadata;
                let (program, folder) = (overview::program(metadata), overview::folder(metadata));
                let wanted = query.program.as_deref().is_none_or(|it| program == Some(it));
                if !wanted || !is_in_folder(folder, query.folder.as_deref()) {
                    return Ok(());
                }
                for extent in records.segments(conversation.key)? {
                    each_turn(records, extent.segment.no, extent.turns, &mut |turn, usage| {
                        let early = query.since.is_some_and(|since| turn.created_at < since);
                        let late = query.until.is_some_and(|until| turn.created_at >= until);
                        if counts(&turn) && !early && !late {
                            let usage = query.prices.estimate(recorded_model(&turn), usage);
                            report.add(group(query, &turn, program, folder), &usage);
                        }
                        Ok(())
                    })?;
                }
                Ok(())
            })?;
            let mut report = report.finish();
            if query.by.is_empty() {
                report.groups.clear();
            }
            Ok(report)
        })
    }
}

/// Usage by model, with no more names than the limit allows.
struct UsageByModel {
    limit: usize,
    each: BTreeMap<String, Usage>,
    rest: Usage,
}

impl UsageByModel {
    fn new(limit: usize) -> Self {
        UsageByModel { limit, each: BTreeMap::new(), rest: Usage::default() }
    }

    fn add(&mut self, model: &str, usage: &Usage) {
        if let Some(sum) = self.each.get_mut(model) {
            sum.add(usage);
        } else if self.each.len() < self.limit {
            self.each.insert(model.to_owned(), *usage);
        } else {
            self.rest.add(usage);
        }
    }

    fn shares(self) -> Vec<UsageShare> {
        let each = self.each.into_iter().map(|(name, usage)| share(Some(name), usage));
        let rest = (self.rest != Usage::default()).then(|| share(None, self.rest));
        each.chain(rest).collect()
    }
}

fn share(name: Option<String>, usage: Usage) -> UsageShare {
    UsageShare { name, usage }
}

/// Adds a share under a name, or beyond the limit to the share without one.
fn add_share(shares: &mut Vec<UsageShare>, limit: usize, name: String, usage: Usage) {
    let full = shares.len() >= limit;
    match shares.last_mut() {
        Some(rest) if rest.name.is_none() => rest.usage.add(&usage),
        _ if full => shares.push(share(None, usage)),
        _ => shares.push(share(Some(name), usage)),
    }
}

/// The values of the requested dimensions: day, program, folder and model.
type GroupKey = [Option<String>; 4];

/// Usage by group, with no more groups than a report may have.
#[derive(Default)]
struct GroupedUsage {
    total: Usage,
    groups: BTreeMap<GroupKey, Usage>,
    rest: Option<Usage>,
}

impl GroupedUsage {
    fn add(&mut self, key: GroupKey, usage: &Usage) {
        self.total.add(usage);
        let full = self.groups.len() >= GROUPS;
        match self.groups.entry(key) {
            Entry::Occupied(mut sum) => sum.get_mut().add(usage),
            Entry::Vacant(_) if full => self.rest.get_or_insert_default().add(usage),
            Entry::Vacant(place) => drop(place.insert(*usage)),
        }
    }

    fn finish(self) -> UsageReport {
        let groups = self.groups.into_iter().map(|([day, program, folder, model], usage)| {
            UsageGroup { day, program, folder, model, usage }
        });
        UsageReport { total: self.total, groups: groups.collect(), rest: self.rest }
    }
}

fn group(query: &UsageQuery, turn: &Turn, program: Option<&str>, folder: Option<&str>) -> GroupKey {
    let wanted = |dimension| query.by.contains(&dimension);
    let day = || turn.created_at.to_string().chars().take(10).collect();
    [
        wanted(UsageDimension::Day).then(day),
        program.filter(|_| wanted(UsageDimension::Program)).map(str::to_owned),
        folder.filter(|_| wanted(UsageDimension::Folder)).map(str::to_owned),
        recorded_model(turn).filter(|_| wanted(UsageDimension::Model)).map(str::to_owned),
    ]
}

/// Visits the conversations of a project, also archived ones.
fn each_conversation(
    records: &dyn Read,
    call: &Call,
    visit: &mut dyn FnMut(&Conversation) -> Result<()>,
) -> Result<()> {
    let mut after = None;
    loop {
        let found = records.conversations(&call.project, after, BATCH)?;
        let Some(last) = found.last() else { return Ok(()) };
        after = Some(last.key);
        found.iter().filter(|it| it.visibility.is_there()).try_for_each(&mut *visit)?;
    }
}

/// Returns all conversations of a project, also hidden ones.
fn of_project(records: &dyn Read, call: &Call, limit: usize) -> Result<UsageTotals> {
    let mut models = UsageByModel::new(limit);
    let mut total = Usage::default();
    let mut conversations = Vec::new();
    each_conversation(records, call, &mut |conversation| {
        let mut sum = Usage::default();
        for extent in records.segments(conversation.key)? {
            each_turn(records, extent.segment.no, extent.turns, &mut |turn, usage| {
                if counts(&turn) {
                    models.add(model(&turn), usage);
                    sum.add(usage);
                }
                Ok(())
            })?;
        }
        total.add(&sum);
        if sum != Usage::default() {
            add_share(&mut conversations, limit, conversation.id.to_string(), sum);
        }
        Ok(())
    })?;
    let models = models.shares();
    Ok(UsageTotals { total, models, conversations, branches: Vec::new() })
}

/// Returns one conversation and its branches.
fn of_conversation(
    records: &dyn Read,
    conversation: &Conversation,
    limit: usize,
) -> Result<UsageTotals> {
    let tree = Tree::new(records, conversation.key);
    let mut lines: Vec<(tine_core::Name, Vec<SegmentRun>)> = Vec::new();
    // For each segment the places up to which some branch follows it, with the sum up to there.
    let mut marks: HashMap<SegmentNo, BTreeMap<u32, Usage>> = HashMap::new();
    for branch in records.branches(conversation.key)? {
        let runs = branch.tip.map(|tip| tree.path_runs(tip)).transpose()?.unwrap_or_default();
        for run in &runs {
            marks.entry(run.segment).or_default().insert(run.to, Usage::default());
        }
        lines.push((branch.name, runs));
    }
    let mut models = UsageByModel::new(limit);
    let mut total = Usage::default();
    for extent in records.segments(conversation.key)? {
        let mut places = marks.get_mut(&extent.segment.no).map(|marked| marked.iter_mut());
        let mut next = places.as_mut().and_then(Iterator::next);
        let mut so_far = Usage::default();
        each_turn(records, extent.segment.no, extent.turns, &mut |turn, usage| {
            if counts(&turn) {
                models.add(model(&turn), usage);
                total.add(usage);
            }
            while let Some((place, sum)) = &mut next
                && **place < turn.loc.index
            {
                **sum = so_far;
                next = places.as_mut().and_then(Iterator::next);
            }
            if next.is_some() && counts_on_line(&tree, &turn)? {
                so_far.add(usage);
            }
            Ok(())
        })?;
        while let Some((_, sum)) = next {
            *sum = so_far;
            next = places.as_mut().and_then(Iterator::next);
        }
    }
    let mut branches = Vec::new();
    for (name, runs) in lines {
        let mut sum = Usage::default();
        for run in runs {
            let up_to = marks.get(&run.segment).and_then(|marked| marked.get(&run.to));
            sum.add(up_to.unwrap_or(&Usage::default()));
        }
        if sum == Usage::default() {
            continue;
        }
        add_share(&mut branches, limit, name.to_string(), sum);
    }
    let models = models.shares();
    Ok(UsageTotals { total, models, branches, conversations: Vec::new() })
}

/// Visits the turns of a segment whose usage is recorded.
fn each_turn(
    records: &dyn Read,
    segment: SegmentNo,
    turns: u32,
    visit: &mut dyn FnMut(Turn, &Usage) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    records.turns(segment, 0, turns.saturating_sub(1), &mut |turn| {
        if let Some(usage) = turn.metadata.source_info.as_ref().and_then(Usage::from_source_info) {
            outcome = visit(turn, &usage);
        }
        Ok(outcome.is_ok())
    })?;
    outcome
}

fn model(turn: &Turn) -> &str {
    recorded_model(turn).unwrap_or(NO_MODEL)
}

fn recorded_model(turn: &Turn) -> Option<&str> {
    let recorded = turn.metadata.source_info.as_ref().and_then(|info| info.get("model"));
    recorded.and_then(Json::as_str).filter(|name| !name.is_empty())
}

fn counts(turn: &Turn) -> bool {
    turn.origin.part_of.is_none() && turn.origin.derived_from.is_none()
}

fn counts_on_line(tree: &Tree<'_>, turn: &Turn) -> Result<bool> {
    if turn.origin.derived_from.is_some() || !tree.begins(turn.loc)? {
        return Ok(false);
    }
    Ok(matches!(tree.state(turn.loc)?, TurnState::Live | TurnState::Split(_)))
}
