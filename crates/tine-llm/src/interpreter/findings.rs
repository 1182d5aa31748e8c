//! Parses findings from a model's answer.
//!
//! A finding whose quote does not occur in the text was invented and is dropped, as is everything
//! else that cannot be used, each with a note that says why. The rest of the answer is kept.

use std::collections::HashMap;
use std::ops::Range;

use tine_analysis::Finding;
use tine_core::Json;
use tine_core::json::{self, Object};

use super::prompt::EntityType;

/// The maximum nesting of an answer.
const DEPTH: usize = 16;

/// The maximum number of findings in a text.
const MOST_FINDINGS: usize = 1_000;

/// The maximum number of notes on an answer.
const MOST_NOTES: usize = 100;

/// The longest name of a field.
const FIELD_BYTES: usize = 64;

/// The longest quote that is searched for with different white space.
const LOOSE_BYTES: usize = 512;

/// The longest part of an answer in a note, in characters.
const REPEATED: usize = 80;

/// Parses an answer. An unusable answer is an error, an unusable part of it a note.
pub(super) fn read(
    answer: &str,
    text: &str,
    types: &[EntityType],
    notes: &mut Vec<String>,
) -> Result<Vec<Finding>, String> {
    let root = json::parse(payload(answer).as_bytes(), DEPTH)
        .map_err(|error| format!("it is not the JSON that was asked for: {error}"))?;
    let items = root.as_array().or_else(|| root.get("findings")?.as_array());
    let items = items.ok_or("it has no list of `findings`")?;
    let mut reader = FindingsReader { text, types, used: HashMap::new(), notes: Notes::default() };
    let mut findings = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if findings.len() == MOST_FINDINGS {
            reader.notes.add(format!("everything after {MOST_FINDINGS} findings was left out"));
            break;
        }
        match reader.finding(item) {
            Ok(finding) => findings.push(finding),
            Err(why) => reader.notes.add(format!("finding {} was left out: {why}", index + 1)),
        }
    }
    notes.extend(reader.notes.end());
    Ok(findings)
}

/// Returns the JSON in an answer, without thoughts before it or a fence around it.
fn payload(answer: &str) -> &str {
    let answer = answer.trim();
    let answer = match answer.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>")) {
        Some((_, rest)) => rest.trim(),
        None => answer,
    };
    let fenced = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match fenced {
        Some(inner) => inner.strip_prefix("json").unwrap_or(inner).trim(),
        None => answer,
    }
}

#[derive(Default)]
struct Notes {
    kept: Vec<String>,
    more: usize,
}

impl Notes {
    fn add(&mut self, note: String) {
        match self.kept.len() < MOST_NOTES {
            true => self.kept.push(note),
            false => self.more += 1,
        }
    }

    fn end(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("{} more notes were left out", self.more));
        }
        self.kept
    }
}

struct FindingsReader<'a> {
    text: &'a str,
    types: &'a [EntityType],
    /// Where to search next for a quote of a type.
    used: HashMap<(String, String), usize>,
    notes: Notes,
}

impl FindingsReader<'_> {
    fn finding(&mut self, item: &Json) -> Result<Finding, String> {
        let name = item.get("entity_type").and_then(Json::as_str);
        let name = name.ok_or("it has no `entity_type`")?.trim().to_ascii_lowercase();
        let requested = self.types.iter().find(|it| it.name == name);
        let entity_type =
            requested.ok_or_else(|| format!("the type {} was not requested", shown(&name)))?;
        let entity_type = entity_type.name.clone();
        let span = self.span(item, &entity_type)?;
        let fields = self.fields(item.get("fields"), &entity_type)?;
        Ok(Finding { entity_type, fields, span: Some(span) })
    }

    /// Returns the bytes of the quote, or those that the answer names.
    fn span(&mut self, item: &Json, entity_type: &str) -> Result<Range<usize>, String> {
        if let Some(quote) = item.get("quote").and_then(Json::as_str) {
            let span = self.find(entity_type, quote.trim());
            return span.ok_or_else(|| format!("{} is not in the text", shown(quote)));
        }
        let ends = item.get("span").and_then(Json::as_array).ok_or("nothing says so")?;
        let end = |index: usize| usize::try_from(ends.get(index)?.as_u64()?).ok();
        let span = end(0).zip(end(1)).filter(|_| ends.len() == 2).map(|(start, end)| start..end);
        let span = span.filter(|span| self.text.get(span.clone()).is_some_and(|it| !it.is_empty()));
        span.ok_or_else(|| "its `span` is no stretch of the text".to_owned())
    }

    /// Returns the first occurrence of a quote that no finding of the type has, or else the first.
    fn find(&mut self, entity_type: &str, quote: &str) -> Option<Range<usize>> {
        if quote.is_empty() {
            return None;
        }
        let next = self.used.entry((entity_type.to_owned(), quote.to_owned())).or_default();
        let span = locate(self.text, quote, *next).or_else(|| locate(self.text, quote, 0))?;
        *next = span.end;
        Some(span)
    }

    fn fields(&mut self, given: Option<&Json>, entity_type: &str) -> Result<Object, String> {
        let pairs: Vec<(&str, &Json)> = match given {
            Some(Json::Object(object)) => object.iter().collect(),
            Some(Json::Array(items)) => {
                let pairs = items.iter();
                let pairs =
                    pairs.map(|item| Some((item.get("name")?.as_str()?, item.get("value")?)));
                pairs
                    .collect::<Option<Vec<_>>>()
                    .ok_or("its `fields` are not pairs of `name` and `value`")?
            }
            _ => return Err("it has no `fields`".to_owned()),
        };
        let mut fields = Object::new();
        for (name, value) in pairs {
            let name = name.trim();
            let named = (1..=FIELD_BYTES).contains(&name.len()) && !name.contains(char::is_control);
            let why = match usable(value) {
                _ if !named => "has no name that can be used",
                _ if fields.contains_key(name) => "is told twice",
                Usable::Empty => continue,
                Usable::No => "is neither a text, a number, a truth value nor a list of texts",
                Usable::Yes(value) => {
                    fields.insert(name, value);
                    continue;
                }
            };
            self.notes.add(format!("the field {} of a {entity_type} {why}", shown(name)));
        }
        if fields.is_empty() {
            Err(format!("a {entity_type} of which nothing is said"))
        } else {
            Ok(fields)
        }
    }
}

enum Usable {
    Yes(Json),
    /// The value is empty.
    Empty,
    No,
}

fn usable(value: &Json) -> Usable {
    match value {
        Json::Null => Usable::Empty,
        Json::Bool(_) | Json::Number(_) => Usable::Yes(value.clone()),
        Json::String(text) if text.trim().is_empty() => Usable::Empty,
        Json::String(text) => Usable::Yes(Json::from(text.trim())),
        Json::Array(items) if items.is_empty() => Usable::Empty,
        Json::Array(items) if items.iter().all(|item| item.as_str().is_some()) => {
            Usable::Yes(value.clone())
        }
        Json::Array(_) | Json::Object(_) => Usable::No,
    }
}

/// Finds a quote after a position: exactly, or else with different white space.
fn locate(text: &str, quote: &str, from: usize) -> Option<Range<usize>> {
    if let Some(at) = text[from..].find(quote) {
        return Some(from + at..from + at + quote.len());
    }
    let mut words = quote.split_whitespace();
    let first = words.next().filter(|_| quote.len() <= LOOSE_BYTES)?;
    let rest: Vec<&str> = words.collect();
    if rest.is_empty() {
        return None;
    }
    let starts = text[from..].match_indices(first).map(|(at, _)| from + at);
    starts.into_iter().find_map(|start| {
        let end = rest.iter().try_fold(start + first.len(), |end, word| {
            let spaced = text[end..].trim_start();
            let gap = text.len() - end - spaced.len();
            (gap > 0 && spaced.starts_with(word)).then(|| end + gap + word.len())
        })?;
        Some(start..end)
    })
}

/// Quotes a part of an answer, shortened.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(REPEATED).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", short.escape_debug())
}
