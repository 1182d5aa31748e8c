//! Small numbers turned into turns, branches and conversations that are there.

use tine_core::{ConversationId, Limits, Name, Reference, Role};
use tine_engine::{MoveBranch, TurnRef};

use crate::model::{Ix, Key, ModelTurnState, ModelValue, ReferenceModel};

pub(super) const BRANCHES: [&str; 4] = ["main", "one", "two", "main-1"];
const CONVERSATIONS: usize = 4;

pub(super) fn nth<T: Copy>(items: &[T], n: u8) -> T {
    items[usize::from(n) % items.len()]
}

/// A turn of a conversation, shown or (sometimes) not, written in one of several ways.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    pub(super) conversation: u8,
    pub(super) nth: u8,
    pub(super) form: u8,
    pub(super) also_gone: bool,
}

pub(super) fn reference(text: &str) -> Reference {
    Reference::parse(text).expect("a sound reference")
}

impl Pick {
    pub(super) fn turn(self, model: &ReferenceModel) -> (Option<ConversationId>, Reference) {
        let (ix, id) = conversation(model, self.conversation);
        let Some(id) = id else { return (None, reference("root")) };
        let turns: Vec<Ix> = if self.also_gone {
            (0..model.nodes.len()).filter(|&turn| model.nodes[turn].conversation == ix).collect()
        } else {
            model.shown(ix).iter().map(|row| row.turn).collect()
        };
        if turns.is_empty() {
            return (Some(id), reference("root"));
        }
        let turn = nth(&turns, self.nth);
        let node = &model.nodes[turn];
        let hex = node.hash.0.to_hex();
        let whole = matches!(model.state(turn), ModelTurnState::Split { .. });
        let text = match (self.form % 8, node.id) {
            (0, _) if !whole => node.hash.to_string(),
            (1, _) if !whole => hex,
            (2, _) if !whole => hex[..16].to_owned(),
            (_, Some(turn_id)) => turn_id.to_string(),
            (_, None) => hex,
        };
        (Some(id), reference(&text))
    }

    pub(super) fn turn_ref(self, model: &ReferenceModel) -> TurnRef {
        let (conversation, turn) = self.turn(model);
        // An id needs no conversation; everything else is looked up in one.
        let conversation =
            conversation.filter(|_| self.form.is_multiple_of(2) || turn.turn_id().is_none());
        TurnRef { conversation, turn }
    }
}

/// Returns a conversation that is there, or the first one ever made.
pub(super) fn conversation(model: &ReferenceModel, n: u8) -> (Ix, Option<ConversationId>) {
    let there: Vec<Ix> = (0..model.conversations.len())
        .filter(|&ix| model.get(&Key::Conversation(ix)) == ModelValue::There)
        .collect();
    let any: Vec<Ix> = (0..model.conversations.len()).collect();
    let from = if there.is_empty() { &any } else { &there };
    match from.is_empty() {
        true => (0, None),
        false => {
            let ix = nth(from, n);
            (ix, Some(model.conversations[ix].id.clone()))
        }
    }
}

pub(super) fn branch_text(model: &ReferenceModel, conversation: Ix, n: u8) -> String {
    let branches = model.branches_of(conversation);
    if n % 4 == 3 || branches.is_empty() {
        return nth(&BRANCHES, n / 4).to_owned();
    }
    let (name, ix) = &branches[usize::from(n / 4) % branches.len()];
    match (n % 4, model.branches[*ix].id) {
        (2, Some(id)) => id.to_string(),
        _ => name.clone(),
    }
}

/// Returns a branch other than `main`, where there is one.
pub(super) fn side_branch(model: &ReferenceModel, conversation: Ix, n: u8) -> String {
    let branches = model.branches_of(conversation);
    let side: Vec<_> = branches.iter().filter(|(name, _)| name != "main").collect();
    match side.get(usize::from(n) % side.len().max(1)) {
        Some((name, _)) if n % 8 != 7 => name.clone(),
        _ => branch_text(model, conversation, n),
    }
}

pub(super) fn name(text: &str) -> Name {
    Name::new(text, &Limits::default()).expect("a sound name")
}

pub(super) fn mint(model: &ReferenceModel) -> Option<ConversationId> {
    let n = model.conversations.len();
    let id = ConversationId::new(format!("talk-{n}"), &Limits::default());
    (n < CONVERSATIONS).then(|| id.expect("a sound id"))
}

pub(super) fn seq_back(model: &ReferenceModel, conversation: Ix, back: Option<u8>) -> Option<u64> {
    let log = model.conversations[conversation].log;
    let back = u64::from(back?);
    // Entries that are themselves undo or redo are left out: nothing is said about them.
    let ops = model.ops.iter().filter(|op| op.conversation == conversation && op.is_work());
    let seqs: Vec<u64> = ops.map(|op| op.seq).collect();
    if seqs.is_empty() || back == 255 {
        return Some(log + 7);
    }
    let len = u64::try_from(seqs.len()).expect("a short log");
    Some(seqs[usize::try_from(len - 1 - back % len).expect("a short log")])
}

/// Mostly a turn that can be split, with the number of places for it; now and then any turn.
pub(super) fn splittable(model: &ReferenceModel, pick: Pick, n: u8) -> (TurnRef, usize) {
    let (ix, id) = conversation(model, pick.conversation);
    let length = |turn: &Ix| {
        let node = &model.nodes[*turn];
        let spoken = matches!(node.role, Role::User | Role::Assistant) && !node.purged;
        let text = node.body.text_only().filter(|_| spoken).unwrap_or_default();
        text.chars().count()
    };
    let shown = model.shown(ix).into_iter().map(|row| row.turn);
    let turns: Vec<Ix> = shown.filter(|turn| length(turn) > 1).collect();
    if n.is_multiple_of(8) || turns.is_empty() {
        return (pick.turn_ref(model), 5);
    }
    let turn = nth(&turns, pick.nth);
    match model.nodes[turn].id {
        Some(found) => (TurnRef { conversation: id, turn: found.into() }, length(&turn) - 1),
        None => (pick.turn_ref(model), 5),
    }
}

pub(super) fn moving(
    model: &ReferenceModel,
    to: Pick,
    branch: u8,
    at: Option<Reference>,
) -> Option<MoveBranch> {
    let (ix, id) = conversation(model, to.conversation);
    let branch = branch_text(model, ix, branch);
    Some(MoveBranch { conversation: id?, branch, to: at, expected_tip: None })
}
