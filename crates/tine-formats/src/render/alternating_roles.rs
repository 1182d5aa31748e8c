//! Rules of providers with two alternating roles and one system prompt.

use tine_core::Role;

use super::notes::{BlockRef, Notes};
use super::tool_calls::RequestStep;
use super::turn_parts::{Part, PartKind, TurnParts};

/// The text of the user message that is added before a leading assistant message.
pub(super) const BEGINNING: &str = "(The conversation begins with the assistant.)";

pub(super) const FIRST_IS_USER: &str = "the first message must have the role `user`";

pub(super) const LAST_IS_ASSISTANT: &str = "it is an assistant turn; some models reject a request \
    that ends with one, so add a user message";

/// Splits the leading system turns off and joins their texts.
pub(super) fn leading_system(
    mut steps: Vec<RequestStep>,
    notes: &mut Notes,
) -> (Option<String>, Vec<RequestStep>) {
    let is_system = |step: &RequestStep| matches!(step, RequestStep::Message(turn) if turn.role == Role::System);
    let leading = steps.iter().take_while(|step| is_system(step)).count();
    let rest = steps.split_off(leading);
    let mut texts: Vec<String> = Vec::new();
    for step in steps {
        let RequestStep::Message(turn) = step else { continue };
        texts.extend(turn.parts.into_iter().filter_map(|part| system_text(part, notes)));
    }
    ((!texts.is_empty()).then(|| texts.join("\n\n")), rest)
}

fn system_text(part: Part, notes: &mut Notes) -> Option<String> {
    if let Some(text) = part.as_text(notes) {
        return Some(text.into_owned());
    }
    if let Some(what) = part.describe() {
        notes.left_out(part.at, what, "a system prompt is text");
    }
    None
}

/// Turns a later system turn into a user turn with marked texts.
pub(super) fn with_user_role(mut turn: TurnParts, notes: &mut Notes) -> TurnParts {
    if turn.role != Role::System {
        return turn;
    }
    for part in &mut turn.parts {
        if let PartKind::Text(text) = &mut part.kind {
            *text = format!("<system>\n{text}\n</system>");
        }
    }
    let why =
        "the only system prompt is at the beginning; the turn is written with the role `user`";
    notes.changed(BlockRef::turn(turn.turn_id), "a system turn", why);
    TurnParts { role: Role::User, ..turn }
}
