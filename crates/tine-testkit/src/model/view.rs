//! What the model expects to be shown, in the engine's own types.

use tine_core::Metadata;
use tine_core::json::Object;
use tine_core::metadata::MetadataKey;
use tine_core::{Json, Limits};
use tine_engine::{Presence, Tail, TopologyRow, TurnView};
use tine_store::{Content, TurnOrigin};

use super::{Ix, Key, ModelTurnState, ModelValue, ReferenceModel, ShownTurn};

impl ReferenceModel {
    /// Returns a turn's metadata now.
    pub fn metadata(&self, turn: Ix) -> Metadata {
        let mut metadata = Metadata::default();
        for key in MetadataKey::ALL {
            if let ModelValue::Json(json) = self.get(&Key::Meta(turn, key)) {
                metadata
                    .set(key, json, &Limits::default())
                    .expect("only metadata that was taken is in the model");
            }
        }
        metadata
    }

    /// Returns a turn as the engine must show it.
    pub fn view(&self, turn: Ix) -> TurnView {
        let node = &self.nodes[turn];
        let id = |ix: Ix| self.nodes[ix].id.expect("every shown turn has a known id");
        let content = if node.purged {
            Content::Purged(node.digest)
        } else {
            Content::Kept(node.body.clone())
        };
        TurnView {
            conversation: self.conversations[node.conversation].id.clone(),
            id: id(turn),
            hash: node.hash,
            parent_hash: node.parent.map(|parent| self.nodes[parent].hash),
            parent: self.shown_parent(turn).map(id),
            depth: node.depth,
            role: node.role,
            content,
            tool_call_id: node.call.clone(),
            created_at: node.created_at,
            status: node.status,
            metadata: self.metadata(turn),
            origin: TurnOrigin {
                edited_from: node.edited_from.map(id),
                derived_from: node.derived_from.map(id),
                part_of: node.part.map(|(_, whole)| id(whole)),
                slot: None,
            },
            continues: self.continued(turn).map(id),
            presence: match self.state(turn) {
                ModelTurnState::Live => Presence::Live,
                ModelTurnState::Split { .. } => Presence::Split,
                _ => Presence::Deleted,
            },
            outcome: None,
        }
    }

    /// Returns the topology as the engine must show it.
    pub fn topology(&self, conversation: Ix) -> Vec<TopologyRow> {
        let rows = self.shown(conversation);
        let branches = self.branches_of(conversation);
        let id = |ix: Ix| self.nodes[ix].id.expect("every shown turn has a known id");
        rows.iter()
            .enumerate()
            .map(|(at, row)| {
                let node = &self.nodes[row.turn];
                let below = |row: &ShownTurn, other: &ShownTurn| other.parent == Some(row.turn);
                let children: Vec<_> = rows.iter().filter(|other| below(row, other)).collect();
                // Depth first: what lies below follows until the level comes back up.
                let descendants =
                    rows[at + 1..].iter().take_while(|other| other.level > row.level).count();
                let metadata = self.metadata(row.turn);
                let auto = metadata.auto_title.filter(|_| children.is_empty());
                let marks = self.values.iter().filter_map(|(key, value)| match (key, value) {
                    (Key::Mark(name), ModelValue::Place(Some(turn))) if *turn == row.turn => {
                        Some(name)
                    }
                    _ => None,
                });
                TopologyRow {
                    id: id(row.turn),
                    hash: node.hash,
                    parent: row.parent.map(id),
                    children: children.iter().map(|child| id(child.turn)).collect(),
                    role: node.role,
                    level: row.level,
                    created_at: node.created_at,
                    preview: if node.purged { String::new() } else { node.body.preview(80) },
                    title: metadata.title.or(auto),
                    tags: metadata.tags.into_iter().collect(),
                    descendants: u64::try_from(descendants).expect("a small tree"),
                    branches: branches
                        .iter()
                        .filter(|(_, branch)| self.tip(*branch) == Some(row.turn))
                        .map(|(name, _)| tine_core::Name::from_stored(name.clone()))
                        .collect(),
                    bookmarks: marks.map(tine_core::Name::from_stored).collect(),
                    status: node.status,
                    presence: Presence::Live,
                    purged: node.purged,
                }
            })
            .collect()
    }

    /// Returns every line of turns that no branch leads to, in the order of the tree.
    pub fn tails(&self, conversation: Ix) -> Vec<Tail> {
        let rows = self.shown(conversation);
        let branches = self.branches_of(conversation);
        let led: Vec<Ix> =
            branches.iter().flat_map(|(_, branch)| self.path(self.tip(*branch))).collect();
        let leaves = rows.iter().filter(|row| {
            rows.iter().all(|other| other.parent != Some(row.turn)) && !led.contains(&row.turn)
        });
        leaves
            .map(|leaf| {
                let path = self.path(Some(leaf.turn));
                let unled: Vec<Ix> = path.into_iter().filter(|turn| !led.contains(turn)).collect();
                let id = |ix: Ix| self.nodes[ix].id.expect("every shown turn has a known id");
                let node = &self.nodes[leaf.turn];
                Tail {
                    leaf: id(leaf.turn),
                    leaf_hash: node.hash,
                    first: id(unled[0]),
                    turns: u64::try_from(unled.len()).expect("a small tree"),
                    preview: if node.purged { String::new() } else { node.body.preview(80) },
                    created_at: node.created_at,
                }
            })
            .collect()
    }

    /// Returns a conversation's title, metadata and archive mark.
    pub fn fields(&self, conversation: Ix) -> (Option<String>, Json, bool) {
        let field = |name| match self.get(&Key::Field(conversation, name)) {
            ModelValue::Json(json) => json,
            _ => Json::Null,
        };
        let metadata = match field("metadata") {
            Json::Null => Json::Object(Object::new()),
            json => json,
        };
        let archived = self.get(&Key::Field(conversation, "archived")) == ModelValue::There;
        (field("title").as_str().map(str::to_owned), metadata, archived)
    }

    /// The engine chooses what a derivative inherits apart from turns.
    pub fn adopt_fields(&mut self, conversation: Ix, title: &Option<String>, metadata: &Json) {
        if let Some(title) = title {
            let value = ModelValue::Json(title.as_str().into());
            self.values.insert(Key::Field(conversation, "title"), value);
        }
        let value = ModelValue::Json(metadata.clone());
        self.values.insert(Key::Field(conversation, "metadata"), value);
    }
}
