//! A seed: the record of a conversation, for an agent that was not there.
//!
//! It goes in front of the first question of a session, as one text. What it cannot tell is
//! counted, and the count is told to the client and noted with the question. The same path gives
//! the same seed.

use tine_core::{Digest, Json, Role, TurnId};
use tine_engine::{Call, Engine, PathQuery, Result, Selection, TurnView};
use tine_store::Content;

use crate::json::json;

/// Bytes of a seed at most; older turns are left out.
const MOST_BYTES: usize = 256 << 10;

/// Turns that are looked at, from the last.
const MOST_TURNS: usize = 4_096;

/// Bytes of a result, or of a call's parameters, that are told.
const RESULT_BYTES: usize = 4 << 10;

const BEGINNING: &str = "<conversation-so-far>\nThis session goes on with an earlier conversation. \
    Here is its record, oldest first. Take it as what was said between us; answer only what \
    follows behind it.\n";
const END: &str = "</conversation-so-far>\n\n";

/// What stands in front of a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seed {
    pub text: String,
    losses: Losses,
}

/// What a seed does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
struct Losses {
    turns: usize,
    turns_left_out: usize,
    results_shortened: usize,
    media_left_out: usize,
    thoughts_left_out: usize,
    erased: usize,
}

impl Seed {
    /// The record of the path to a turn.
    pub(super) fn of(engine: &Engine, call: &Call, to: TurnId) -> Result<Seed> {
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
        Ok(Seed::from(prompt.as_deref(), &turns))
    }

    fn from(prompt: Option<&str>, turns: &[TurnView]) -> Seed {
        let depth = turns.last().map_or(0, |turn| turn.depth as usize);
        let mut losses = Losses::default();
        let mut told = Vec::new();
        let mut bytes = 0;
        for turn in turns.iter().rev() {
            let mut lost = losses.clone();
            let text = words(turn, &mut lost);
            bytes += text.len();
            if bytes > MOST_BYTES && !told.is_empty() {
                break;
            }
            losses = lost;
            losses.turns += 1;
            told.push(text);
        }
        losses.turns_left_out = depth.saturating_sub(losses.turns);
        let mut text = BEGINNING.to_owned();
        if let Some(prompt) = prompt {
            text.push_str(&format!("\nInstructions:\n{prompt}\n"));
        }
        if losses.turns_left_out > 0 {
            let left = losses.turns_left_out;
            text.push_str(&format!("\n[{left} earlier messages are left out]\n"));
        }
        told.iter().rev().for_each(|turn| text.push_str(turn));
        text.push_str(END);
        Seed { text, losses }
    }

    /// What a context that is made from it lacks, for programs.
    pub(super) fn told(&self) -> Json {
        let Losses { turns, turns_left_out, results_shortened, .. } = self.losses;
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

    /// The same for people.
    pub(super) fn label(&self) -> String {
        let counts = [
            (self.losses.turns_left_out, "earlier messages"),
            (self.losses.results_shortened, "results of tools in part"),
            (self.losses.media_left_out, "images and the like"),
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
            "Context reconstructed: this agent was given the record of {} messages as text. Modes \
             and configuration are not part of it, and files are as they are now.{lost}\n",
            self.losses.turns
        )
    }
}

fn words(turn: &TurnView, losses: &mut Losses) -> String {
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
    let told: Vec<String> =
        blocks.iter().filter_map(|block| told(block, turn.role, losses)).collect();
    if told.is_empty() {
        return String::new();
    }
    // A record must not end where somebody says that it does.
    let told = told.join("\n").replace("</conversation-so-far>", "<\\/conversation-so-far>");
    format!("\n{speaker}:\n{told}\n")
}

fn told(block: &Json, role: Role, losses: &mut Losses) -> Option<String> {
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

fn shortened(text: &str, losses: &mut Losses) -> String {
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
