//! A store as text, to be compared with what is expected.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use tine_core::{Json, Limits, TurnId};
use tine_engine::{
    Call, Engine, FixedEntropy, Listing, ManualClock, Page, RelationshipQuery, TopologyQuery,
    TopologyRow, TurnRef, TurnView,
};
use tine_import::importer::{ImportSettings, Importer};
use tine_import::{Note, detect};
use tine_store::{Content, MemoryStore};

/// An engine whose clock stands still, so that messages without a time get a known one.
pub fn engine() -> Engine {
    let now = "2026-06-01T00:00:00Z".parse().expect("a time");
    let (clock, entropy) = (ManualClock::new(now, 0), FixedEntropy::new(1));
    let store = Arc::new(MemoryStore::new());
    Engine::with(store, Arc::new(clock), Arc::new(entropy), Limits::default())
}

/// Imports everything at a path.
pub fn import<'e>(engine: &'e Engine, path: &Path, settings: ImportSettings) -> Importer<'e> {
    let mut plan = detect::plan(&[path.to_owned()], None).expect("something to read");
    // A checkout gives files any times.
    plan.jobs.sort_by(|a, b| a.path.cmp(&b.path));
    let mut importer = Importer::begin(engine, &Call::by("tester"), settings).expect("a beginning");
    for job in &plan.jobs {
        importer.run(job).unwrap_or_else(|error| panic!("{}: {error}", job.path.display()));
    }
    importer.finish().expect("an end");
    importer
}

/// Everything that was imported, as people see it.
pub fn draw(engine: &Engine) -> String {
    let call = Call::by("tester");
    let mut out = String::new();
    let Listing { mut items, .. } =
        engine.conversations(&call, true, Page::default()).expect("a listing");
    items.sort_by(|a, b| a.id.cmp(&b.id));
    for conversation in items {
        let title = conversation.title.as_deref().unwrap_or("–");
        let folder = conversation.metadata.get("folder").and_then(Json::as_str).unwrap_or("–");
        writeln!(out, "# {} · {title} · {folder}", conversation.id).unwrap();
        let prompt = conversation.root.as_ref().and_then(|root| root.system_prompt.as_deref());
        if let Some(prompt) = prompt {
            writeln!(out, "system: {prompt}").unwrap();
        }
        let query = TopologyQuery::of(conversation.id.clone());
        let rows = engine.topology(&call, query).expect("a tree").rows;
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            draw_turn(engine, &call, &rows, row, &mut out);
        }
        let said: HashMap<TurnId, &str> =
            rows.iter().map(|row| (row.id, row.preview.as_str())).collect();
        for branch in engine.branches(&call, &conversation.id).expect("branches") {
            let tip = branch.tip.map_or("root", |tip| said[&tip]);
            writeln!(out, "= {}: {tip}", branch.name).unwrap();
        }
        for tail in engine.tails(&call, &conversation.id).expect("tails") {
            writeln!(out, "~ {}", tail.preview).unwrap();
        }
        for row in &rows {
            draw_relations(engine, &call, row, &mut out);
        }
        out.push('\n');
    }
    out
}

/// A line of turns stands flush; forks are indented.
fn draw_turn(
    engine: &Engine,
    call: &Call,
    rows: &[TopologyRow],
    row: &TopologyRow,
    out: &mut String,
) {
    let mut row = row;
    let indent = 2 * forks_above(rows, row);
    loop {
        let turn = engine.turn(call, TurnRef::of(row.id)).expect("a turn");
        writeln!(out, "{:indent$}{}", "", drawn(&turn)).unwrap();
        let children: Vec<&TopologyRow> =
            rows.iter().filter(|child| child.parent == Some(row.id)).collect();
        match children.as_slice() {
            [] => return,
            [only] => row = only,
            several => {
                for child in several {
                    draw_turn(engine, call, rows, child, out);
                }
                return;
            }
        }
    }
}

fn forks_above(rows: &[TopologyRow], row: &TopologyRow) -> usize {
    let (mut above, mut count) = (row, 0);
    loop {
        let siblings = rows.iter().filter(|other| other.parent == above.parent).count();
        count += usize::from(siblings > 1);
        match rows.iter().find(|other| Some(other.id) == above.parent) {
            Some(parent) => above = parent,
            None => return count,
        }
    }
}

fn drawn(turn: &TurnView) -> String {
    let said = match &turn.content {
        Content::Kept(body) => body.to_blocks_string(),
        Content::Purged(_) => "?".to_owned(),
    };
    let call = turn.tool_call_id.as_deref().map(|call| format!(" [{call}]")).unwrap_or_default();
    let tags: Vec<&str> = turn.metadata.tags.iter().map(String::as_str).collect();
    let tags = if tags.is_empty() { String::new() } else { format!(" #{}", tags.join(" #")) };
    let title = turn.metadata.title.as_ref().map(|it| format!(" «{it}»")).unwrap_or_default();
    let about = turn.metadata.source_info.as_ref().map(Json::to_canonical).unwrap_or_default();
    format!("{}{call}{tags}{title} {} {said} {about}", turn.role.as_str(), turn.created_at)
}

fn draw_relations(engine: &Engine, call: &Call, row: &TopologyRow, out: &mut String) {
    let query = RelationshipQuery {
        end: Some(tine_engine::End::Turn(row.id.into())),
        direction: tine_engine::Direction::Outgoing,
        relation: None,
    };
    let found = engine.relationships(call, query, Page::default()).expect("relationships");
    for edge in found.items {
        let target = match &edge.target {
            tine_core::facts::Endpoint::Turn(id) => {
                let turn = engine.turn(call, TurnRef::of(*id)).expect("a turn");
                format!("turn `{}` of {}", drawn(&turn), turn.conversation)
            }
            tine_core::facts::Endpoint::Source(id) => {
                let source = engine.source(call, *id).expect("a source");
                let name = source.original_filename.unwrap_or_default();
                format!("source {name} {} {} bytes", source.mime_type, source.size_bytes)
            }
            tine_core::facts::Endpoint::Entity(id) => format!("entity {id}"),
        };
        writeln!(out, "> {} {:?} {target}", row.preview, edge.relation).unwrap();
    }
}

/// Notes without the folder that they were found in.
pub fn notes(notes: &[Note], folder: &Path) -> String {
    let mut out = String::new();
    let mut notes = notes.to_vec();
    notes.sort();
    for note in notes {
        let file = note.file.display().to_string();
        let file = file.replace(&format!("{}/", folder.display()), "");
        let line = note.line.map(|line| format!(":{line}")).unwrap_or_default();
        let what = note.what.replace(&format!("{}/", folder.display()), "");
        writeln!(out, "! {file}{line}: {what}").unwrap();
    }
    out
}
