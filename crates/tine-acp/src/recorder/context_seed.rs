//! The seed: the transcript of a conversation for an agent that was not part of it.
//!
//! It goes before the first question of a session, as one text. What it leaves out is counted; the
//! counts are shown to the client and recorded with the question. The same path gives the same
//! seed.

use tine_core::{Digest, Json, Role, TurnId};
use tine_engine::{Call, Engine, PathQuery, Result, Selection, TurnView};
use tine_store::Content;

use crate::json_macro::json;

/// The largest seed; older turns are left out.
const MOST_BYTES: usize = 256 << 10;

/// The most turns that are read.
const MOST_TURNS: usize = 4_096;

/// The longest result or parameters of a call that are included whole.
const RESULT_BYTES: usize = 4 << 10;

const BEGINNING: &str = "<conversation-so-far>\nThis session continues an earlier conversation. \
    Here is its transcript, oldest message first. Treat it as what we said so far; answer only what \
    follows it.\n";
const END: &str = "</conversation-so-far>\n\n";

/// The transcript before a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ContextSeed {
    pub text: String,
    losses: SeedLosses,
}

/// What a seed leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
struct SeedLosses {
    turns: usize,
    turns_left_out: usize,
    results_shortened: usize,
    media_left_out: usize,
    thoughts_left_out: usize,
    erased: usize,
}

impl ContextSeed {
    /// Creates the transcript of the path to a turn.
    pub(super) fn of(engine: &Engine, call: &Call, to: TurnId) -> Result<ContextSeed> {
        let mut query = PathQuery {
            conversation: None,
            to: Some(to.into()),
            selection: Selection::Last(MOST_TURNS),
            cursor: None,
            limit: None,
        };
        let mut turns = Vec::new();
        let root = loop {
            let page = engine.path(call, query.clone())?;
            turns.extend(page.turns);
            if page.next.is_none() {
                break page.root;
            }
            query.cursor = page.next;
        };
        let prompt = root.and_then(|root| root.system_prompt);
        Ok(ContextSeed::from(prompt.as_deref(), &turns))
    }

    fn from(prompt: Option<&str>, turns: &[TurnView]) -> ContextSeed {
        let depth = turns.last().map_or(0, |turn| turn.depth as usize);
        let mut losses = SeedLosses::default();
        let mut texts = Vec::new();
        let mut bytes = 0;
        for turn in turns.iter().rev() {
            let mut lost = losses.clone();
            let text = turn_text(turn, &mut lost);
            bytes += text.len();
            if bytes > MOST_BYTES && !texts.is_empty() {
                break;
            }
            losses = lost;
            losses.turns += 1;
            texts.push(text);
        }
        losses.turns_left_out = depth.saturating_sub(losses.turns);
        let mut text = BEGINNING.to_owned();
        if let Some(prompt) = prompt {
            text.push_str(&format!("\nInstructions:\n{prompt}\n"));
        }
        if losses.turns_left_out > 0 {
            let left = losses.turns_left_out;
            text.push_str(&format!("\n[{left} earlier messages left out]\n"));
        }
        texts.iter().rev().for_each(|turn| text.push_str(turn));
        text.push_str(END);
        ContextSeed { text, losses }
    }

    /// Returns what the seed contains and leaves out, for programs.
    pub(super) fn to_json(&self) -> Json {
        let SeedLosses { turns, turns_left_out, results_shortened, .. } = self.losses;
        json!({
            "kind": "seed",
            "sha256": Digest::of(self.text.as_bytes()).to_hex(),
            "bytes": self.text.len(),
            "turns": turns,
            "lost": {
                "turns": turns_left_out,
                "resultsShortened": results_shortened,
                "media": self.losses.media_left_out,
                "thoughts": self.losses.thoughts_left_out,
                "erased": self.losses.erased,
                "always": ["modes", "configuration", "provider caches", "files as they were"],
            },
        })
    }

    /// Returns the same for people.
    pub(super) fn label(&self) -> String {
        let counts = [
            (self.losses.turns_left_out, "earlier messages"),
            (self.losses.results_shortened, "tool results in part"),
            (self.losses.media_left_out, "images or audio"),
            (self.losses.thoughts_left_out, "thoughts"),
            (self.losses.erased, "erased messages"),
        ];
        let lost: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let lost = match lost.is_empty() {
            true => String::new(),
            false => format!(" Left out: {}.", lost.join(", ")),
        };
        format!(
            "Context reconstructed: this agent was given a transcript of {} messages. Modes and \
             configuration are not included, and files are in their current state.{lost}\n",
            self.losses.turns
        )
    }
}

fn turn_text(turn: &TurnView, losses: &mut SeedLosses) -> String {
    let speaker = match turn.role {
        Role::User => "User".to_owned(),
        Role::Assistant => "Assistant".to_owned(),
        Role::System => "System".to_owned(),
        Role::Tool => format!("Result of {}", turn.tool_call_id.as_deref().unwrap_or("a call")),
    };
    let Content::Kept(body) = &turn.content else {
        losses.erased += 1;
        return format!("\n{speaker}:\n[erased]\n");
    };
    let blocks = body.blocks().unwrap_or_default();
    let texts: Vec<String> =
        blocks.iter().filter_map(|block| block_text(block, turn.role, losses)).collect();
    if texts.is_empty() {
        return String::new();
    }
    // Content must not be able to end the transcript.
    let texts = texts.join("\n").replace("</conversation-so-far>", "<\\/conversation-so-far>");
    format!("\n{speaker}:\n{texts}\n")
}

fn block_text(block: &Json, role: Role, losses: &mut SeedLosses) -> Option<String> {
    let member = |name: &str| block.get(name).and_then(Json::as_str).unwrap_or_default();
    match member("type") {
        "text" | "summary" if role == Role::Tool => Some(shortened(member("text"), losses)),
        "text" | "summary" => Some(member("text").to_owned()),
        "thinking" => {
            losses.thoughts_left_out += 1;
            None
        }
        "tool-use" => {
            let given = block.get("parameters").map(Json::to_canonical).unwrap_or_default();
            let given = shortened(&given, losses);
            Some(format!("[call {} of {} with {given}]", member("id"), member("name")))
        }
        "resource_link" => Some(format!("[{}]({})", member("name"), member("uri"))),
        "resource" => {
            let resource = block.get("resource")?;
            let uri = resource.get("uri").and_then(Json::as_str).unwrap_or_default();
            match resource.get("text").and_then(Json::as_str) {
                Some(text) => Some(format!("[{uri}]\n{text}")),
                None => {
                    losses.media_left_out += 1;
                    Some(format!("[{uri}]"))
                }
            }
        }
        kind @ ("image" | "audio") => {
            losses.media_left_out += 1;
            Some(format!("[{kind}]"))
        }
        _ => Some(shortened(&block.to_canonical(), losses)),
    }
}

fn shortened(text: &str, losses: &mut SeedLosses) -> String {
    if text.len() <= RESULT_BYTES {
        return text.to_owned();
    }
    losses.results_shortened += 1;
    let mut end = RESULT_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} [… {} bytes more]", &text[..end], text.len() - end)
}
