//! Ids and names as newtypes, parsed at the edge.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::hash::Digest;
use crate::limits::Limits;
use crate::time::Timestamp;

/// An id or a name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing was given.
    #[error("the {what} must not be empty")]
    Empty {
        /// What the text was meant to name.
        what: &'static str,
    },
    /// Longer than the limit.
    #[error("the {what} is too long: at most {limit} bytes, not {bytes}")]
    TooLong {
        /// What the text was meant to name.
        what: &'static str,
        /// The limit in force.
        limit: usize,
        /// What was given.
        bytes: usize,
    },
    /// Control characters would break every listing.
    #[error("the {what} must not hold control characters")]
    ControlCharacter {
        /// What the text was meant to name.
        what: &'static str,
    },
    /// The name means something else in a reference.
    #[error("`{name}` cannot be the name of a branch or bookmark: {why}")]
    Reserved {
        /// The name.
        name: String,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// Not an id of the kind that was asked for.
    #[error("`{text}` is not an id of the form {tag}…")]
    NotTagged {
        /// What was given.
        text: String,
        /// How such ids begin.
        tag: &'static str,
    },
    /// Not a UUID.
    #[error("`{text}` is not an id of the form 01890a5d-ac96-774b-bcce-b302099a8057")]
    NotAnId {
        /// What was given.
        text: String,
    },
}

impl NameError {
    /// Returns whether a limit was exceeded, as opposed to a malformed name.
    pub fn is_too_long(&self) -> bool {
        matches!(self, NameError::TooLong { .. })
    }
}

/// Checks a free-form key: not empty, within the limit, no control characters.
pub fn check_key(what: &'static str, text: &str, limits: &Limits) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > limits.name_bytes {
        let (limit, bytes) = (limits.name_bytes, text.len());
        return Err(NameError::TooLong { what, limit, bytes });
    }
    if text.chars().any(char::is_control) {
        return Err(NameError::ControlCharacter { what });
    }
    Ok(())
}

/// Every turn that is read carries its conversation's id, so copies share the text.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a text.
            pub fn new(text: impl Into<String>, limits: &Limits) -> Result<Self, NameError> {
                let text = text.into();
                check_key($what, &text, limits)?;
                Ok(Self(text.into()))
            }

            /// Wraps a stored text, which was checked when it was stored.
            pub fn from_stored(text: impl Into<String>) -> Self {
                Self(text.into().into())
            }

            /// Returns the text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A namespace: the unit of access and of sharding.
    ProjectId, "project id"
}
text_id! {
    /// A conversation's id, unique in its project, the caller's own or minted here.
    ConversationId, "conversation id"
}

impl Default for ProjectId {
    fn default() -> Self {
        ProjectId("default".into())
    }
}

/// The name of a branch or a bookmark.
///
/// Names share one space with turn references, so a name is not `root`, not eight or more
/// hexadecimal digits (a hash prefix), not an id, and holds no `~`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Checks and takes a name.
    pub fn new(text: impl Into<String>, limits: &Limits) -> Result<Self, NameError> {
        let name = text.into();
        check_key("name", &name, limits)?;
        let hex = name.strip_prefix(crate::hash::PREFIX).unwrap_or(&name);
        let why = if name == "root" {
            "it means the root of the conversation"
        } else if name.contains('~') {
            "`~` counts turns backwards, as in main~2"
        } else if hex.len() >= 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            "eight or more hexadecimal digits are read as a hash"
        } else if Uuid::parse_str(&name).is_ok() {
            "it has the form of an id"
        } else if name.trim() != name {
            "it begins or ends with white space"
        } else {
            return Ok(Name(name));
        };
        Err(NameError::Reserved { name, why })
    }

    /// Returns the branch that every conversation begins with.
    pub fn main() -> Self {
        Name("main".to_owned())
    }

    /// Wraps a stored name, which was checked when it was stored.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Name(text.into())
    }

    /// Returns the name `NAME-1`, `NAME-2` …, which resolves a collision. A name that would be too
    /// long is truncated before its number.
    ///
    /// ```
    /// use tine_core::{Limits, Name};
    ///
    /// assert_eq!(Name::main().numbered(2, &Limits::default()).as_str(), "main-2");
    /// ```
    pub fn numbered(&self, number: u64, limits: &Limits) -> Self {
        let number = format!("-{number}");
        let room = limits.name_bytes.saturating_sub(number.len()).min(self.0.len());
        let cut = (0..=room).rev().find(|at| self.0.is_char_boundary(*at)).unwrap_or(0);
        Name(format!("{}{number}", &self.0[..cut]))
    }

    /// Returns whether [`Name::numbered`] could have made this name from `base`.
    pub fn is_numbered(&self, base: &Name, limits: &Limits) -> bool {
        let number = self.0.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        number.is_some_and(|number| base.numbered(number, limits) == *self)
    }

    /// Returns the text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Returns the sixteen bytes, whose order is the order of creation.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Creates an id from its bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl $name {
            /// Writes the wire form into a buffer and returns it as text.
            pub fn encode<'b>(&self, buffer: &'b mut [u8; uuid::fmt::Hyphenated::LENGTH]) -> &'b str {
                self.0.hyphenated().encode_lower(buffer)
            }

            /// Appends the wire form.
            pub fn write(&self, out: &mut String) {
                out.push_str(self.encode(&mut [0; uuid::fmt::Hyphenated::LENGTH]));
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.encode(&mut [0; uuid::fmt::Hyphenated::LENGTH]))
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text)
                    .map(Self)
                    .map_err(|_| NameError::NotAnId { text: text.to_owned() })
            }
        }
    };
}

uuid_id! {
    /// One turn, for ever: a UUIDv7 that is never reused.
    TurnId
}
uuid_id! {
    /// One branch, also when it is renamed.
    BranchId
}

/// Ids with a prefix that names their type: `ent_…`, `src_…`.
macro_rules! tagged_id {
    ($(#[$doc:meta])* $name:ident, $tag:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Returns the sixteen bytes.
            pub fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Creates an id from its bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Derives an id from a digest of what it names.
            pub fn of(digest: &Digest) -> Self {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&digest.0[..16]);
                Self(bytes)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($tag)?;
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let wrong = || NameError::NotTagged { text: text.to_owned(), tag: $tag };
                let digits = text.strip_prefix($tag).ok_or_else(wrong)?;
                Ok(Self(sixteen_bytes(digits).ok_or_else(wrong)?))
            }
        }
    };
}

tagged_id! {
    /// An entity: derived from its type and identity key, within a project.
    EntityId, "ent_"
}
tagged_id! {
    /// A source: derived from its bytes, within a project.
    SourceId, "src_"
}
tagged_id! {
    /// One run of an interpreter over a source.
    InterpretationId, "int_"
}

/// An observation: its entity, and its sequence number within the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObservationId {
    /// The entity that it was recorded for; merging or splitting entities does not change it.
    pub entity: EntityId,
    /// Increases with every observation of the entity. It is made from the time and random bits, so
    /// that observations of two stores can be merged.
    pub seq: u64,
}

impl fmt::Display for ObservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("obs_")?;
        self.entity.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "_{:016x}", self.seq)
    }
}

impl FromStr for ObservationId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NameError::NotTagged { text: text.to_owned(), tag: "obs_" };
        let (digits, seq) =
            text.strip_prefix("obs_").and_then(|rest| rest.split_once('_')).ok_or_else(wrong)?;
        let entity = EntityId::from_bytes(sixteen_bytes(digits).ok_or_else(wrong)?);
        let hex = seq.len() == 16 && seq.bytes().all(|byte| !byte.is_ascii_uppercase());
        let seq = u64::from_str_radix(seq, 16).ok().filter(|seq| hex && *seq > 0);
        let seq = seq.ok_or_else(wrong)?;
        Ok(ObservationId { entity, seq })
    }
}

fn sixteen_bytes(digits: &str) -> Option<[u8; 16]> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 32 || !digits.bytes().all(lower) {
        return None;
    }
    let mut bytes = [0; 16];
    for (place, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *place = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Generates UUIDv7 ids from a time and random bytes supplied by the caller.
///
/// Ids from one source always increase, also within a millisecond and when the clock goes
/// back: appends then land at the right edge of every index over ids.
#[derive(Debug, Default)]
pub struct IdSource {
    last: u128,
}

impl IdSource {
    /// Returns the next id.
    pub fn next(&mut self, now: Timestamp, random: [u8; 10]) -> Uuid {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let fresh = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        let mut bits = fresh.as_u128();
        if bits >> 64 <= self.last >> 64 {
            bits = successor(self.last, &random);
        }
        self.last = bits;
        Uuid::from_u128(bits)
    }

    /// Returns a turn id.
    pub fn turn(&mut self, now: Timestamp, random: [u8; 10]) -> TurnId {
        TurnId(self.next(now, random))
    }

    /// Returns a branch id.
    pub fn branch(&mut self, now: Timestamp, random: [u8; 10]) -> BranchId {
        BranchId(self.next(now, random))
    }
}

/// Returns the next id within the same millisecond: the 12 bits after the time are a counter, which
/// carries into the time, and the 62 bits after it are random.
///
/// So the first eight bytes distinguish the ids of one source, however quickly they are generated,
/// and a lookup by them finds one turn.
fn successor(last: u128, random: &[u8; 10]) -> u128 {
    const TAIL: u128 = (1 << 62) - 1;
    let counter = (last >> 64 & 0xfff) + 1;
    let time = (last >> 80) + (counter >> 12);
    let mut tail = [0; 16];
    tail[6..].copy_from_slice(random);
    let tail = u128::from_be_bytes(tail) & TAIL;
    time << 80 | 0x7 << 76 | (counter & 0xfff) << 64 | 0b10 << 62 | tail
}
