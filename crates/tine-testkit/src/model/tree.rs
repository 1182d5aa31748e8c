//! The tree as shown: halves in place of what was split, children in place of what went alone.

use tine_core::{ErrorKind, Name, Reference};

use super::{Half, Ix, Key, ModelTurnState, ModelValue, ReferenceModel, Rule, Stop, refuse};

/// One turn of the tree as shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownTurn {
    pub turn: Ix,
    /// Its parent as shown; `None` is the root.
    pub parent: Option<Ix>,
    /// Its distance from the root as shown.
    pub level: u32,
}

impl ReferenceModel {
    /// Returns a turn's state.
    pub fn state(&self, turn: Ix) -> ModelTurnState {
        match self.get(&Key::Turn(turn)) {
            ModelValue::State(state) => state,
            _ => ModelTurnState::Unborn,
        }
    }

    /// Children in the raw chain, oldest first. A left half is found through its whole.
    fn raw_children(&self, conversation: Ix, parent: Option<Ix>) -> Vec<Ix> {
        (0..self.nodes.len())
            .filter(|&ix| {
                let node = &self.nodes[ix];
                let left = matches!(node.part, Some((Half::Left, _)));
                node.conversation == conversation && node.parent == parent && !left
            })
            .collect()
    }

    /// What is shown at a turn's own place.
    fn expand(&self, turn: Ix) -> Vec<Ix> {
        match self.state(turn) {
            ModelTurnState::Unborn | ModelTurnState::Cascade => vec![],
            ModelTurnState::Live => vec![turn],
            ModelTurnState::Split { left, .. } => self.expand(left),
            ModelTurnState::Reparent => self.below(turn),
        }
    }

    /// What hangs below a turn: a whole's children follow its right half.
    fn below(&self, turn: Ix) -> Vec<Ix> {
        let node = &self.nodes[turn];
        let mut found = match node.part {
            Some((Half::Right, whole)) => self.below(whole),
            _ => vec![],
        };
        let own = self.raw_children(node.conversation, Some(turn));
        found.extend(own.into_iter().flat_map(|child| self.expand(child)));
        found
    }

    /// Children as shown, in order; of the root without a turn.
    pub fn children(&self, conversation: Ix, parent: Option<Ix>) -> Vec<Ix> {
        match parent {
            Some(turn) => self.below(turn),
            None => {
                let first = self.raw_children(conversation, None);
                first.into_iter().flat_map(|turn| self.expand(turn)).collect()
            }
        }
    }

    /// Returns the whole tree, parents before children, first children first.
    pub fn shown(&self, conversation: Ix) -> Vec<ShownTurn> {
        let mut rows = vec![];
        let first = self.children(conversation, None);
        let mut stack: Vec<ShownTurn> = first
            .into_iter()
            .rev()
            .map(|turn| ShownTurn { turn, parent: None, level: 1 })
            .collect();
        while let Some(row) = stack.pop() {
            rows.push(row);
            let below = self.children(conversation, Some(row.turn));
            stack.extend(below.into_iter().rev().map(|turn| ShownTurn {
                turn,
                parent: Some(row.turn),
                level: row.level + 1,
            }));
        }
        rows
    }

    /// Returns a turn's row, if it is shown.
    pub fn row(&self, turn: Ix) -> Option<ShownTurn> {
        let rows = self.shown(self.nodes[turn].conversation);
        rows.into_iter().find(|row| row.turn == turn)
    }

    /// Returns the parent as shown.
    pub fn shown_parent(&self, turn: Ix) -> Option<Ix> {
        self.row(turn).and_then(|row| row.parent)
    }

    /// Notes what stands, unseen, between turns and their parents as shown: an operation that follows such
    /// a link may be said to have read why it is as it is.
    pub(crate) fn pass(&mut self, turns: &[Ix]) {
        for &turn in turns {
            let above = self.shown_parent(turn);
            let mut at = Some(turn);
            while at != above {
                let Some(here) = at else { break };
                self.weak_read(Key::Turn(here));
                let node = &self.nodes[here];
                if let Some((_, whole)) = node.part {
                    self.open.weak_reads.insert(Key::Turn(whole));
                }
                let parent = self.nodes[here].parent;
                if let Some(parent) = parent {
                    self.weak_read(Key::Turn(parent));
                }
                at = parent.map(|parent| self.right_most(parent));
            }
        }
    }

    /// Root first, the turn last.
    pub fn path(&self, turn: Option<Ix>) -> Vec<Ix> {
        let mut path = vec![];
        let mut at = turn;
        while let Some(turn) = at {
            path.push(turn);
            at = self.shown_parent(turn);
        }
        path.reverse();
        path
    }

    /// Returns the turn and everything shown below it.
    pub fn subtree(&self, turn: Ix) -> Vec<Ix> {
        let conversation = self.nodes[turn].conversation;
        let mut found = vec![turn];
        let mut next = 0;
        while next < found.len() {
            found.extend(self.children(conversation, Some(found[next])));
            next += 1;
        }
        found
    }

    /// A split turn means its right half.
    pub fn right_most(&self, turn: Ix) -> Ix {
        match self.state(turn) {
            ModelTurnState::Split { right, .. } => self.right_most(right),
            _ => turn,
        }
    }

    pub(crate) fn left_most(&self, turn: Ix) -> Ix {
        match self.state(turn) {
            ModelTurnState::Split { left, .. } => self.left_most(left),
            _ => turn,
        }
    }

    /// Returns the last part of what comes before this turn in the text that both are parts of.
    pub(crate) fn continued(&self, turn: Ix) -> Option<Ix> {
        if self.state(turn) != ModelTurnState::Live {
            return None;
        }
        let mut part = turn;
        loop {
            let (half, whole) = self.nodes[part].part?;
            match (half, self.state(whole)) {
                (Half::Right, ModelTurnState::Split { left, .. }) => {
                    return Some(self.right_most(left));
                }
                (Half::Left, ModelTurnState::Split { .. }) => part = whole,
                _ => return None,
            }
        }
    }

    pub(crate) fn is_live(&self, turn: Ix) -> bool {
        self.state(turn) == ModelTurnState::Live && self.row(turn).is_some()
    }

    /// Returns whether a turn is shown, be it as several.
    fn is_whole(&self, turn: Ix) -> bool {
        match self.state(turn) {
            ModelTurnState::Live => true,
            ModelTurnState::Split { left, right } => self.is_whole(left) && self.is_whole(right),
            _ => false,
        }
    }

    /// What the next message can be equal to below a place: the turn that says it, and the turn
    /// to go on from.
    pub(crate) fn offers(&self, conversation: Ix, parent: Option<Ix>) -> Vec<(Ix, Ix)> {
        let mut offers = vec![];
        for child in self.children(conversation, parent) {
            offers.push((child, child));
            let mut at = child;
            while let Some((Half::Left, whole)) = self.nodes[at].part {
                if self.is_whole(whole) {
                    offers.push((whole, self.right_most(whole)));
                }
                at = whole;
            }
        }
        offers
    }

    /// Returns the nearest turn at or above this one that is shown.
    pub(crate) fn nearest_live(&self, turn: Ix) -> Option<Ix> {
        let mut at = Some(self.right_most(turn));
        while let Some(turn) = at {
            if self.is_live(turn) {
                return Some(turn);
            }
            at = self.nodes[turn].parent.map(|parent| self.right_most(parent));
        }
        None
    }

    /// Branches of a conversation in order of name.
    pub fn branches_of(&self, conversation: Ix) -> Vec<(String, Ix)> {
        let named = self.values.iter().filter_map(|(key, value)| match (key, value) {
            (Key::Name(of, name), ModelValue::Branch(branch)) if *of == conversation => {
                Some((name.clone(), *branch))
            }
            _ => None,
        });
        named.collect()
    }

    /// Returns where a branch ends.
    pub fn tip(&self, branch: Ix) -> Option<Ix> {
        match self.get(&Key::Tip(branch)) {
            ModelValue::Place(tip) => tip,
            _ => None,
        }
    }

    /// Returns a branch by name or id.
    pub(crate) fn branch(&self, conversation: Ix, text: &str) -> Option<Ix> {
        let branches = self.branches_of(conversation);
        let by_name = branches.iter().find(|(name, _)| name == text);
        let by_id = || {
            branches
                .iter()
                .find(|(_, ix)| self.branches[*ix].id.is_some_and(|id| id.to_string() == text))
        };
        by_name.or_else(by_id).map(|(_, branch)| *branch)
    }

    /// Returns the turn that a reference names, before a split is looked through; `None` is the
    /// root.
    pub(crate) fn refer(
        &mut self,
        conversation: Option<Ix>,
        reference: &Reference,
    ) -> Rule<Option<Ix>> {
        if reference.is_root() {
            return if conversation.is_some() { Ok(None) } else { Err(Stop::Unspecified) };
        }
        let base = reference.base();
        let plain = base.strip_prefix("sha256:").unwrap_or(base);
        let by_id = (0..self.nodes.len())
            .find(|&ix| self.nodes[ix].id.is_some_and(|id| id.to_string() == base));
        if let Some(ix) = by_id {
            return match conversation {
                Some(named) if named != self.nodes[ix].conversation => {
                    refuse(&[ErrorKind::NotFound, ErrorKind::Invalid])
                }
                _ => self.back(Some(ix), reference.back()),
            };
        }
        if let Some(conversation) = conversation {
            if let Some(branch) = self.branch(conversation, base) {
                self.weak_read(Key::Tip(branch));
                return self.back(self.tip(branch), reference.back());
            }
            if let ModelValue::Place(Some(turn)) = self.get(&Key::Mark(base.to_owned())) {
                self.weak_read(Key::Mark(base.to_owned()));
                return if self.nodes[turn].conversation == conversation {
                    self.back(Some(turn), reference.back())
                } else {
                    Err(Stop::Unspecified)
                };
            }
        }
        let by_hash: Vec<Ix> = (0..self.nodes.len())
            .filter(|&ix| self.nodes[ix].hash.0.to_hex().starts_with(plain))
            .filter(|&ix| conversation.is_none_or(|of| self.nodes[ix].conversation == of))
            .collect();
        match by_hash.as_slice() {
            [] => refuse(&[ErrorKind::NotFound]),
            [ix] => self.back(Some(*ix), reference.back()),
            _ => refuse(&[ErrorKind::Ambiguous]),
        }
    }

    fn back(&self, turn: Option<Ix>, steps: usize) -> Rule<Option<Ix>> {
        if steps == 0 {
            return Ok(turn);
        }
        let path = self.path(turn);
        match path.len().checked_sub(steps + 1) {
            Some(at) => Ok(Some(path[at])),
            None => Err(Stop::Unspecified),
        }
    }

    /// Returns the turn that a reference names as shown; `None` is the root.
    pub(crate) fn refer_live(
        &mut self,
        conversation: Option<Ix>,
        reference: &Reference,
    ) -> Rule<Option<Ix>> {
        let Some(turn) = self.refer(conversation, reference)? else { return Ok(None) };
        let turn = self.right_most(turn);
        if self.is_live(turn) { Ok(Some(turn)) } else { refuse(&[ErrorKind::NotFound]) }
    }

    /// Returns the smallest `{stem}-{n}` that no branch has.
    pub(crate) fn free_name(&self, conversation: Ix, stem: &str) -> Name {
        let taken = self.branches_of(conversation);
        let free = (1..).map(|n| format!("{stem}-{n}"));
        let mut free = free.filter(|name| taken.iter().all(|(other, _)| other != name));
        Name::from_stored(free.next().expect("numbers do not run out"))
    }
}
