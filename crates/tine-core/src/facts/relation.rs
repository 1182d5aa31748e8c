//! Relationships between entities, turns and sources: a closed list of eight types.

use std::fmt;
use std::str::FromStr;

use crate::{EntityId, SourceId, TurnId};

/// A type of relationship.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// A message is part of its conversation.
    PartOf,
    /// A turn or source mentions an entity.
    RefersTo,
    /// A turn has an attachment.
    Embeds,
    /// One thing corrects another.
    Corrects,
    /// A payment settles an invoice, an answer settles a question.
    Settles,
    /// Two entities are the same.
    DuplicateOf,
    /// One thing requires another.
    DependsOn,
    /// One thing replaces another.
    Supersedes,
}

/// A name that is not one of the eight types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is no type of relationship; there are PART_OF, REFERS_TO, EMBEDS, CORRECTS, \
     SETTLES, DUPLICATE_OF, DEPENDS_ON and SUPERSEDES, and no other"
)]
pub struct UnknownRelation {
    /// What was given.
    pub given: String,
}

impl Relation {
    /// All of them.
    pub const ALL: [Relation; 8] = [
        Relation::PartOf,
        Relation::RefersTo,
        Relation::Embeds,
        Relation::Corrects,
        Relation::Settles,
        Relation::DuplicateOf,
        Relation::DependsOn,
        Relation::Supersedes,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::PartOf => "PART_OF",
            Relation::RefersTo => "REFERS_TO",
            Relation::Embeds => "EMBEDS",
            Relation::Corrects => "CORRECTS",
            Relation::Settles => "SETTLES",
            Relation::DuplicateOf => "DUPLICATE_OF",
            Relation::DependsOn => "DEPENDS_ON",
            Relation::Supersedes => "SUPERSEDES",
        }
    }

    /// Returns a label for display, phrased from the target's side where that reads better.
    ///
    /// ```
    /// use tine_core::facts::Relation;
    /// let label = Relation::PartOf.label("agent_message", "conversation");
    /// assert_eq!(label, "contains message");
    /// ```
    pub fn label(self, source_type: &str, target_type: &str) -> &'static str {
        match (self, source_type, target_type) {
            (Relation::PartOf, "agent_message", "conversation") => "contains message",
            (Relation::PartOf, ..) => "is part of",
            (Relation::RefersTo, "agent_message" | "conversation" | "turn", _) => "discusses",
            (Relation::RefersTo, "source", _) => "mentions",
            (Relation::RefersTo, ..) => "refers to",
            (Relation::Embeds, _, "source") => "has attachment",
            (Relation::Embeds, ..) => "embeds",
            (Relation::Corrects, ..) => "corrects",
            (Relation::Settles, ..) => "settles",
            (Relation::DuplicateOf, ..) => "is the same as",
            (Relation::DependsOn, ..) => "depends on",
            (Relation::Supersedes, "turn", "turn") => "replaces",
            (Relation::Supersedes, ..) => "supersedes",
        }
    }

    /// Returns the byte that encodes the type in keys.
    pub fn code(self) -> u8 {
        Self::ALL.iter().zip(1..).find(|(known, _)| **known == self).map_or(0, |(_, code)| code)
    }

    /// Returns the type that a byte encodes.
    pub fn from_code(code: u8) -> Option<Relation> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Relation {
    type Err = UnknownRelation;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|relation| relation.as_str() == text);
        known.ok_or_else(|| UnknownRelation { given: text.to_owned() })
    }
}

/// One end of a relationship. A conversation is named by its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// An entity.
    Entity(EntityId),
    /// A turn.
    Turn(TurnId),
    /// A source.
    Source(SourceId),
}

impl Endpoint {
    /// Returns `entity`, `turn` or `source`.
    pub fn kind(&self) -> &'static str {
        match self {
            Endpoint::Entity(_) => "entity",
            Endpoint::Turn(_) => "turn",
            Endpoint::Source(_) => "source",
        }
    }

    /// Returns the key form: a byte for the kind, then the sixteen bytes of the id.
    pub fn to_bytes(&self) -> [u8; 17] {
        let (code, id) = match self {
            Endpoint::Entity(id) => (1, id.as_bytes()),
            Endpoint::Turn(id) => (2, id.as_bytes()),
            Endpoint::Source(id) => (3, id.as_bytes()),
        };
        let mut bytes = [code; 17];
        bytes[1..].copy_from_slice(id);
        bytes
    }

    /// Reads the key form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Endpoint> {
        let (code, id) = bytes.split_first()?;
        let id: [u8; 16] = id.try_into().ok()?;
        match code {
            1 => Some(Endpoint::Entity(EntityId::from_bytes(id))),
            2 => Some(Endpoint::Turn(TurnId::from_bytes(id))),
            3 => Some(Endpoint::Source(SourceId::from_bytes(id))),
            _ => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Entity(id) => id.fmt(f),
            Endpoint::Turn(id) => id.fmt(f),
            Endpoint::Source(id) => id.fmt(f),
        }
    }
}
