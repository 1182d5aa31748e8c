//! Commits as text: one line, a paragraph, or all details.

use std::io::Write;

use tine_core::commit::{FacetTerm, Facets, FieldState, FieldValue};
use tine_core::{CommitHash, EntityId, Name};
use tine_engine::{CommitView, FieldChange, FieldConflict};

use crate::command_error::Result;
use crate::knowledge_view::{row, value, write_rows};
use crate::terminal::text::{count, cut, shell_word, visible, width, wrap};
use crate::terminal::{Paint, Screen, precise_time, short_time};

/// Maximum width of a value.
const MAX_VALUE_COLUMNS: usize = 120;

/// Minimum width of a message, however narrow the terminal.
const MIN_MESSAGE_COLUMNS: usize = 20;

/// Spaces between the parts of a line.
const GAP: usize = 2;

/// Maximum number of terms to list.
const MAX_TERMS: usize = 40;

/// Labels of a commit: branches that end with it, and its kind.
struct CommitBadges {
    heads: Vec<String>,
    kinds: Vec<String>,
}

impl CommitBadges {
    fn of(paint: Paint, it: &CommitView) -> Self {
        let label = |name: &Name| paint.branch(&format!("[{}]", visible(name.as_str())));
        let mut kinds = Vec::new();
        if it.commit.parents.len() > 1 {
            kinds.push(paint.dim("(merge)"));
        }
        let facets = it.commit.facets.as_ref();
        let conflicts = facets.map_or(0, |facets| facets.state.conflicts().count());
        if conflicts > 0 {
            kinds.push(paint.warning(&format!("({})", count(conflicts as u64, "conflict"))));
        }
        match &it.signature {
            Some(signature) if signature.valid => kinds.push(paint.dim("(signed)")),
            Some(_) => kinds.push(paint.warning("(bad signature)")),
            None => {}
        }
        if facets.is_none() {
            kinds.push(paint.warning("(purged)"));
        }
        CommitBadges { heads: it.heads.iter().map(label).collect(), kinds }
    }

    /// Returns the width of all labels; only correct without colours.
    fn columns(&self) -> usize {
        self.heads.iter().chain(&self.kinds).map(|mark| width(mark) + GAP).sum()
    }
}

/// Formats a commit on one line: hash, time, branches and the first line of the message. `others`
/// columns stay free.
pub(crate) fn commit_line(screen: &Screen, it: &CommitView, others: usize) -> String {
    let taken = 12 + GAP + 16 + GAP + CommitBadges::of(Paint::new(false), it).columns() + others;
    let room = screen
        .columns
        .map_or(MAX_VALUE_COLUMNS, |all| all.saturating_sub(taken).max(MIN_MESSAGE_COLUMNS));
    let CommitBadges { heads, kinds } = CommitBadges::of(screen.paint, it);
    let hash = screen.paint.hash(&it.hash.short());
    let time = screen.paint.dim(&short_time(it.commit.created_at));
    let message = cut(first_line(&it.commit.message), room);
    let parts = [vec![hash, time], heads, vec![message], kinds].concat();
    parts.join("  ")
}

/// Returns the first line of a message.
pub(crate) fn first_line(message: &str) -> &str {
    message.trim_start().lines().next().unwrap_or_default()
}

/// Writes a commit's author, time, message and window.
pub(crate) fn write_commit(out: &mut dyn Write, screen: &Screen, it: &CommitView) -> Result<()> {
    let paint = screen.paint;
    let mut heading = vec![
        paint.hash(&it.hash.short()),
        cut(&it.commit.author, 40),
        paint.dim(&short_time(it.commit.created_at)),
    ];
    let CommitBadges { heads, kinds } = CommitBadges::of(paint, it);
    heading.extend(heads.into_iter().chain(kinds));
    writeln!(out, "{}", heading.join("  "))?;
    write_message(out, screen, &it.commit.message)?;
    writeln!(out, "    {}", paint.dim(&window(it)))?;
    Ok(())
}

fn write_message(out: &mut dyn Write, screen: &Screen, message: &str) -> Result<()> {
    let columns = screen.columns.map(|all| all.saturating_sub(4));
    for line in wrap(message.trim_end(), columns) {
        writeln!(out, "{}", format!("    {line}").trim_end())?;
    }
    Ok(())
}

/// Describes the turns of a commit.
pub(crate) fn window(it: &CommitView) -> String {
    let turns = count(it.commit.turns, "turn");
    match &it.commit.window {
        None => "no turns of its own".to_owned(),
        Some(window) if window.start == window.end => format!("{turns}: {}", window.end.short()),
        Some(window) => format!("{turns}: {} … {}", window.start.short(), window.end.short()),
    }
}

/// Writes all details of a commit.
pub(crate) fn write_commit_details(
    out: &mut dyn Write,
    screen: &Screen,
    it: &CommitView,
) -> Result<()> {
    let commit = &it.commit;
    let hashes = |hashes: &[CommitHash]| {
        hashes.iter().map(|hash| hash.to_string()).collect::<Vec<_>>().join(", ")
    };
    let heads = it.heads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut facts = vec![
        row("commit", it.hash),
        row(
            "parents",
            if commit.parents.is_empty() { "none".into() } else { hashes(&commit.parents) },
        ),
        row("conversation", visible(commit.conversation.as_str())),
        row("root hash", commit.root_hash),
        row("branch", visible(commit.branch.as_str())),
        row("author", visible(&commit.author)),
        row("created at", commit.created_at),
        row("turns", window(it)),
    ];
    if let Some(window) = &commit.window {
        facts.push(row("first turn", window.start));
        facts.push(row("last turn", window.end));
    }
    if !heads.is_empty() {
        facts.push(row("last of", visible(&heads)));
    }
    if let Some(signature) = &it.signature {
        let state = if signature.valid { "valid" } else { "NOT VALID" };
        let at = precise_time(signature.signed_at);
        facts.push(row("signature", format!("{state}, by {}, since {at}", signature.public_key)));
    }
    write_rows(out, screen, 0, &facts)?;
    writeln!(out)?;
    write_message(out, screen, &commit.message)?;
    match &commit.facets {
        None => writeln!(out, "\n{}", screen.paint.warning("its facets were erased"))?,
        Some(facets) => write_facets(out, screen, facets)?,
    }
    Ok(())
}

fn write_facets(out: &mut dyn Write, screen: &Screen, facets: &Facets) -> Result<()> {
    let sets = [
        ("entities", &facets.entities),
        ("keywords", &facets.keywords),
        ("topics", &facets.topics),
    ];
    for (name, set) in sets {
        if set.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", screen.paint.bold(name))?;
        let mut seen: Vec<&FacetTerm> = set.values().collect();
        seen.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.text.cmp(&b.text)));
        let all: Vec<_> =
            seen.into_iter().map(|seen| row(&seen.text, evidence(screen, seen))).collect();
        write_rows(out, screen, 2, &all)?;
    }
    if facets.left_out > 0 {
        writeln!(out, "  … and {} rarer", count(facets.left_out, "word"))?;
    }
    let fact_rows: Vec<_> = facets
        .state
        .facts
        .iter()
        .flat_map(|(id, fact)| {
            let shown = fact.fields.iter().filter(|(_, held)| !is_absent(held));
            shown.map(|(field, held)| {
                let label = entity_label(fact.name.as_deref(), &fact.entity_type, *id);
                row(&format!("{label} {field}"), field_text(held))
            })
        })
        .collect();
    if !fact_rows.is_empty() {
        writeln!(out, "\n{}", screen.paint.bold("known"))?;
        write_rows(out, screen, 2, &fact_rows)?;
    }
    let conflicts = FieldConflict::all_of(&facets.state);
    if !conflicts.is_empty() {
        writeln!(out)?;
        write_conflicts(out, screen, &conflicts)?;
    }
    Ok(())
}

/// Formats where a term occurs first, and in how many turns.
pub(crate) fn evidence(screen: &Screen, seen: &FacetTerm) -> String {
    let turns = count(seen.turns, "turn");
    let text = match &seen.at {
        Some(at) => format!("{} {}–{}, {turns}", at.turn.short(), at.span.0, at.span.1),
        None => turns,
    };
    screen.paint.dim(&text)
}

/// Writes one term per line with its evidence.
pub(crate) fn write_terms(
    out: &mut dyn Write,
    screen: &Screen,
    seen: &[FacetTerm],
    paint: impl Fn(&str) -> String,
) -> Result<()> {
    for one in seen.iter().take(MAX_TERMS) {
        let text = paint(&cut(&one.text, MAX_VALUE_COLUMNS));
        writeln!(out, "  {text}  {}", evidence(screen, one))?;
    }
    if seen.len() > MAX_TERMS {
        writeln!(out, "  … and {} more", seen.len() - MAX_TERMS)?;
    }
    Ok(())
}

fn is_absent(held: &FieldState) -> bool {
    matches!(held, FieldState::Value(FieldValue { json: None, .. }))
}

/// Formats the value of a field, or all sides of a conflict, on one line.
pub(crate) fn field_text(held: &FieldState) -> String {
    match held {
        FieldState::Value(value) => side_text(value),
        FieldState::Conflict(conflict) => {
            let sides: Vec<String> = conflict.sides.iter().map(side_text).collect();
            format!("undecided: {}", sides.join(" or "))
        }
    }
}

fn side_text(side: &FieldValue) -> String {
    side.json.as_ref().map_or_else(|| "(nothing)".to_owned(), |json| value(json, MAX_VALUE_COLUMNS))
}

/// Returns the type of an entity with its name or, without one, its id.
fn entity_label(name: Option<&str>, entity_type: &str, id: EntityId) -> String {
    match name {
        Some(name) => format!("{entity_type} “{}”", cut(name, 60)),
        None => format!("{entity_type} {id}"),
    }
}

/// Writes fields that differ between two sides.
pub(crate) fn write_changes(
    out: &mut dyn Write,
    screen: &Screen,
    changes: &[FieldChange],
) -> Result<()> {
    let paint = screen.paint;
    for change in changes {
        let label = entity_label(change.name.as_deref(), &change.entity_type, change.entity);
        let side =
            |held: &Option<FieldState>| held.as_ref().map_or("(nothing)".to_owned(), field_text);
        writeln!(
            out,
            "  {} {}: {} → {}",
            visible(&label),
            paint.bold(&visible(&change.field)),
            paint.lost(&side(&change.from)),
            paint.gained(&side(&change.to)),
        )?;
    }
    Ok(())
}

/// Writes unresolved conflicts with the value of each side.
pub(crate) fn write_conflicts(
    out: &mut dyn Write,
    screen: &Screen,
    conflicts: &[FieldConflict],
) -> Result<()> {
    let paint = screen.paint;
    writeln!(out, "{}", paint.warning("conflicts"))?;
    for it in conflicts {
        let label = entity_label(it.name.as_deref(), &it.entity_type, it.entity);
        let was =
            it.bases.first().map(side_text).map(|was| format!(" (was {was})")).unwrap_or_default();
        let field = visible(&it.field);
        let id = paint.dim(&format!("{}.{field}", it.entity));
        writeln!(out, "  {} {}{was}  {id}", visible(&label), paint.bold(&field))?;
        for (number, side) in (1..).zip(&it.sides) {
            writeln!(out, "    side {number}: {}", side_text(side))?;
        }
    }
    Ok(())
}

/// Writes commands that resolve the first conflict.
pub(crate) fn write_resolve_hints(
    out: &mut dyn Write,
    conflicts: &[FieldConflict],
    branch: &str,
) -> Result<()> {
    let Some(first) = conflicts.first() else { return Ok(()) };
    let field = format!("{}.{}", first.entity, first.field);
    let on = match branch {
        crate::session::MAIN => String::new(),
        other => format!(" --branch {}", shell_word(other)),
    };
    writeln!(out, "\nTo resolve one (until then the branch keeps all sides):")?;
    writeln!(out, "  tine commit resolve {field} --side 1{on}")?;
    writeln!(out, "  tine commit resolve {field} --value JSON{on}")?;
    Ok(())
}
