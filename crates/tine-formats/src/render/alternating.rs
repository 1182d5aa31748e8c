//! What providers with two roles and one system prompt have in common.

use tine_core::Role;

use super::notes::{BlockRef, Notes};
use super::tool_calls::RequestStep;
use super::turn_parts::{Part, PartKind, TurnParts};

/// A message that is on no path: the first message must have the role `user`.
pub(super) const BEGINNING: &str = "(The conversation begins with the assistant.)";

pub(super) const FIRST_IS_USER: &str = "the first message must have the role `user`";

pub(super) const LAST_IS_ASSISTANT: &str = "it is an assistant turn; some models reject a request that ends with one, so add a user message";

/// Takes what the system says first out of the steps, as one text.
pub(super) fn leading_system(
    steps: Vec<RequestStep>,
    notes: &mut Notes,
) -> (Option<String>, Vec<RequestStep>) {
    let is_system =
        |step: &RequestStep| matches!(step, RequestStep::Say(said) if said.role == Role::System);
    let leading = steps.iter().take_while(|step| is_system(step)).count();
    let mut steps = steps;
    let rest = steps.split_off(leading);
    let mut texts: Vec<String> = Vec::new();
    for step in steps {
        let RequestStep::Say(said) = step else { continue };
        for part in said.parts {
            texts.extend(system_text(part, notes));
        }
    }
    ((!texts.is_empty()).then(|| texts.join("\n\n")), rest)
}

fn system_text(part: Part, notes: &mut Notes) -> Option<String> {
    match part.what {
        PartKind::Text(text) => Some(text),
        PartKind::Summary(text) => Some(super::turn_parts::labeled_summary(&text)),
        PartKind::Media(media) => {
            let text = media.as_text();
            match &text {
                Some(_) => notes.changed(part.at, media.describe(), "it is written as text"),
                None => notes.left_out(part.at, media.describe(), "a system prompt is text"),
            }
            text
        }
        PartKind::Thinking { .. } => {
            notes.left_out(part.at, "thinking", "a system prompt is text");
            None
        }
        PartKind::Other { kind, .. } => {
            let what = format!("a block of type `{kind}`");
            notes.left_out(part.at, what, "a system prompt is text");
            None
        }
        PartKind::Call(_) => None,
    }
}

/// What the system says later, as the user's and marked.
pub(super) fn system_as_user(said: TurnParts, notes: &mut Notes) -> TurnParts {
    if said.role != Role::System {
        return said;
    }
    let mut said = said;
    for part in &mut said.parts {
        if let PartKind::Text(text) = &mut part.what {
            *text = format!("<system>\n{text}\n</system>");
        }
    }
    let why =
        "the only system prompt is at the beginning; the turn is written with the role `user`";
    notes.changed(BlockRef::turn(said.turn), "a system turn", why);
    TurnParts { role: Role::User, ..said }
}
