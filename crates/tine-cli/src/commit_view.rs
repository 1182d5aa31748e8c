//! Commits as people read them: a line, a paragraph, or all that they hold.

use std::io::Write;

use tine_core::commit::{Facets, Held, Seen, Value};
use tine_core::{CommitHash, EntityId, Name};
use tine_engine::{CommitView, FieldChange, FieldConflict};

use crate::failure::Result;
use crate::knowledge_view::{row, rows, value};
use crate::terminal::text::{count, cut, visible, width, wrap};
use crate::terminal::{Paint, Screen, precise_time, short_time};

/// The longest value that is shown on a line.
const VALUE: usize = 120;

/// The shortest beginning of a message that says something.
const LEAST: usize = 20;

/// Spaces between the parts of a line.
const GAP: usize = 2;

/// Words of one kind that are listed without being asked for.
const WORDS: usize = 40;

/// Branches that end with a commit, and what sort of commit it is.
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

    /// Columns that they take on a line, if they have no colours.
    fn columns(&self) -> usize {
        self.heads.iter().chain(&self.kinds).map(|mark| width(mark) + GAP).sum()
    }
}

/// Hash, time, branches and the first line of the message, with some columns left for what else
/// stands on that line.
pub(crate) fn commit_line(screen: &Screen, it: &CommitView, others: usize) -> String {
    let taken = 12 + GAP + 16 + GAP + CommitBadges::of(Paint::new(false), it).columns() + others;
    let room = screen.columns.map_or(VALUE, |all| all.saturating_sub(taken).max(LEAST));
    let CommitBadges { heads, kinds } = CommitBadges::of(screen.paint, it);
    let hash = screen.paint.hash(&it.hash.short());
    let time = screen.paint.dim(&short_time(it.commit.created_at));
    let message = cut(first_line(&it.commit.message), room);
    let parts = [vec![hash, time], heads, vec![message], kinds].concat();
    parts.join("  ")
}

/// The beginning of a message, for a line.
pub(crate) fn first_line(message: &str) -> &str {
    message.trim_start().lines().next().unwrap_or_default()
}

/// Who made a commit and when, its message, and its turns.
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

/// The turns of a commit in a few words.
pub(crate) fn window(it: &CommitView) -> String {
    let turns = count(it.commit.turns, "turn");
    match &it.commit.window {
        None => "no turns of its own".to_owned(),
        Some(window) if window.start == window.end => format!("{turns}: {}", window.end.short()),
        Some(window) => format!("{turns}: {} … {}", window.start.short(), window.end.short()),
    }
}

/// Everything that a commit holds.
pub(crate) fn write_whole(out: &mut dyn Write, screen: &Screen, it: &CommitView) -> Result<()> {
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
        row("made at", commit.created_at),
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
    rows(out, screen, 0, &facts)?;
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
        let mut seen: Vec<&Seen> = set.values().collect();
        seen.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.text.cmp(&b.text)));
        let all: Vec<_> =
            seen.into_iter().map(|seen| row(&seen.text, evidence(screen, seen))).collect();
        rows(out, screen, 2, &all)?;
    }
    if facets.left_out > 0 {
        writeln!(out, "  … and {} rarer", count(facets.left_out, "word"))?;
    }
    let known: Vec<_> = facets
        .state
        .facts
        .iter()
        .flat_map(|(id, fact)| {
            let shown = fact.fields.iter().filter(|(_, held)| !says_nothing(held));
            shown.map(|(field, held)| {
                let thing = thing(fact.name.as_deref(), &fact.entity_type, *id);
                row(&format!("{thing} {field}"), held_text(held))
            })
        })
        .collect();
    if !known.is_empty() {
        writeln!(out, "\n{}", screen.paint.bold("known"))?;
        rows(out, screen, 2, &known)?;
    }
    let conflicts = FieldConflict::all_of(&facets.state);
    if !conflicts.is_empty() {
        writeln!(out)?;
        write_conflicts(out, screen, &conflicts)?;
    }
    Ok(())
}

/// Where a word was said first, and in how many turns.
pub(crate) fn evidence(screen: &Screen, seen: &Seen) -> String {
    let turns = count(seen.turns, "turn");
    let text = match &seen.at {
        Some(at) => format!("{} {}–{}, {turns}", at.turn.short(), at.span.0, at.span.1),
        None => turns,
    };
    screen.paint.dim(&text)
}

/// Words with a sign before each, on lines that fit.
pub(crate) fn write_words(
    out: &mut dyn Write,
    screen: &Screen,
    seen: &[Seen],
    paint: impl Fn(&str) -> String,
) -> Result<()> {
    for one in seen.iter().take(WORDS) {
        let text = paint(&cut(&one.text, VALUE));
        writeln!(out, "  {text}  {}", evidence(screen, one))?;
    }
    if seen.len() > WORDS {
        writeln!(out, "  … and {} more", seen.len() - WORDS)?;
    }
    Ok(())
}

fn says_nothing(held: &Held) -> bool {
    matches!(held, Held::Value(Value { json: None, .. }))
}

/// What is known of a field, on one line.
pub(crate) fn held_text(held: &Held) -> String {
    match held {
        Held::Value(value) => said(value),
        Held::Conflict(conflict) => {
            let sides: Vec<String> = conflict.sides.iter().map(said).collect();
            format!("undecided: {}", sides.join(" or "))
        }
    }
}

fn said(side: &Value) -> String {
    side.json.as_ref().map_or_else(|| "(nothing)".to_owned(), |json| value(json, VALUE))
}

/// How people call an entity.
fn thing(name: Option<&str>, entity_type: &str, id: EntityId) -> String {
    match name {
        Some(name) => format!("{entity_type} “{}”", cut(name, 60)),
        None => format!("{entity_type} {id}"),
    }
}

/// Fields that are not the same on two sides.
pub(crate) fn write_changes(
    out: &mut dyn Write,
    screen: &Screen,
    changes: &[FieldChange],
) -> Result<()> {
    let paint = screen.paint;
    for change in changes {
        let thing = thing(change.name.as_deref(), &change.entity_type, change.entity);
        let side = |held: &Option<Held>| held.as_ref().map_or("(nothing)".to_owned(), held_text);
        writeln!(
            out,
            "  {} {}: {} → {}",
            visible(&thing),
            paint.bold(&visible(&change.field)),
            paint.lost(&side(&change.from)),
            paint.gained(&side(&change.to)),
        )?;
    }
    Ok(())
}

/// Fields that nobody has decided, and what the sides say.
pub(crate) fn write_conflicts(
    out: &mut dyn Write,
    screen: &Screen,
    conflicts: &[FieldConflict],
) -> Result<()> {
    let paint = screen.paint;
    writeln!(out, "{}", paint.warning("conflicts"))?;
    for it in conflicts {
        let thing = thing(it.name.as_deref(), &it.entity_type, it.entity);
        let was = it.bases.first().map(said).map(|was| format!(" (was {was})")).unwrap_or_default();
        let field = visible(&it.field);
        let id = paint.dim(&format!("{}.{field}", it.entity));
        writeln!(out, "  {} {}{was}  {id}", visible(&thing), paint.bold(&field))?;
        for (number, side) in (1..).zip(&it.sides) {
            writeln!(out, "    side {number}: {}", said(side))?;
        }
    }
    Ok(())
}

/// What can be typed to decide conflicts.
pub(crate) fn write_ways_out(
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
    writeln!(out, "\nDecide when you like; until then the branch keeps all sides:")?;
    writeln!(out, "  tine resolve {field} --side 1{on}")?;
    writeln!(out, "  tine resolve {field} --value JSON{on}")?;
    Ok(())
}

/// A word as it has to be typed in a shell.
fn shell_word(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./@".contains(sign);
    if word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", visible(word).replace('\'', r"'\''"))
}
