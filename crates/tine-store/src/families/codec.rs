//! The bytes of keys: the parts of a key one after the other.
//!
//! Numbers are big-endian, so that bytes sort as they do. A text ends with a zero byte, which no
//! text contains; the last part of a key may be a text without it (`as tail`).

use tine_core::facts::{Endpoint, Relation, Slot};
use tine_core::{
    BranchId, CommitHash, ConversationId, Digest, EntityId, InterpretationId, ObservationId, Role,
    SourceId, Timestamp, TurnId,
};

use super::key::{ConversationTag, Edge};

/// One part of a key.
pub(super) trait KeyPart: Sized {
    /// Appends the bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes the part from the beginning of the bytes.
    fn read(bytes: &mut &[u8]) -> Option<Self>;

    /// Returns the bytes of this part alone.
    fn key_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// A text at the end of a key.
pub(super) trait KeyTail: Sized {
    fn text(&self) -> &str;
    fn from_text(text: String) -> Self;

    fn read_tail(bytes: &mut &[u8]) -> Option<Self> {
        String::from_utf8(std::mem::take(bytes).to_vec()).ok().map(Self::from_text)
    }
}

macro_rules! fixed_parts {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl KeyPart for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let to: fn(&$type) -> _ = $to;
                out.extend(to(self));
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let (part, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some($from(*part))
            }
        }
    )*};
}

fixed_parts! {
    u32: |it| it.to_be_bytes(), u32::from_be_bytes;
    u64: |it| it.to_be_bytes(), u64::from_be_bytes;
    EntityId: |it| *it.as_bytes(), EntityId::from_bytes;
    InterpretationId: |it| *it.as_bytes(), InterpretationId::from_bytes;
    SourceId: |it| *it.as_bytes(), SourceId::from_bytes;
    TurnId: |it| *it.as_bytes(), TurnId::from_bytes;
    BranchId: |it| *it.as_bytes(), BranchId::from_bytes;
    ConversationTag: |it| it.0, ConversationTag;
    Digest: |it| it.0, Digest;
    CommitHash: |it| it.0.0, |bytes| CommitHash(Digest(bytes));
    // Times before 1970 sort first.
    Timestamp: |it| (it.as_millis().wrapping_sub(i64::MIN) as u64).to_be_bytes(),
        |bytes| Timestamp::from_millis((u64::from_be_bytes(bytes) as i64).wrapping_add(i64::MIN));
}

macro_rules! text_parts {
    ($($type:ty: $from:expr;)*) => {$(
        impl KeyTail for $type {
            fn text(&self) -> &str {
                self.as_str()
            }

            fn from_text(text: String) -> Self {
                $from(text)
            }
        }

        impl KeyPart for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend(self.as_str().as_bytes());
                out.push(0);
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let end = bytes.iter().position(|byte| *byte == 0)?;
                let text = Self::read_tail(&mut &bytes[..end]);
                *bytes = &bytes[end + 1..];
                text
            }
        }
    )*};
}

text_parts! {
    String: String::from;
    ConversationId: ConversationId::from_stored;
}

impl KeyPart for ObservationId {
    fn write(&self, out: &mut Vec<u8>) {
        self.entity.write(out);
        self.seq.write(out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(ObservationId { entity: KeyPart::read(bytes)?, seq: KeyPart::read(bytes)? })
    }
}

impl KeyPart for Role {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Role::System => 0,
            Role::User => 1,
            Role::Assistant => 2,
            Role::Tool => 3,
        });
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (code, rest) = bytes.split_first()?;
        *bytes = rest;
        let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
        roles.into_iter().nth(usize::from(*code))
    }
}

impl KeyPart for Slot {
    fn write(&self, out: &mut Vec<u8>) {
        self.turn_id.write(out);
        self.role.write(out);
        self.part.write(out);
        self.tool_call_id.clone().unwrap_or_default().write(out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (turn_id, role) = (KeyPart::read(bytes)?, KeyPart::read(bytes)?);
        let (part, call): (_, String) = (KeyPart::read(bytes)?, KeyPart::read(bytes)?);
        let tool_call_id = Some(call).filter(|call| !call.is_empty());
        Some(Slot { turn_id, role, tool_call_id, part })
    }
}

impl KeyPart for Edge {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.source.to_bytes());
        out.push(self.relation.code());
        out.extend(self.target.to_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (edge, rest) = bytes.split_at_checked(35)?;
        *bytes = rest;
        Some(Edge {
            relation: Relation::from_code(edge[17])?,
            source: Endpoint::from_bytes(&edge[..17])?,
            target: Endpoint::from_bytes(&edge[18..])?,
        })
    }
}

/// Implements the codec of a key type from a table: for each variant its fields, and the order in
/// which they are written.
macro_rules! key_codec {
    (@write $out:ident, $part:ident) => {
        KeyPart::write($part, &mut $out)
    };
    (@write $out:ident, $part:ident tail) => {
        $out.extend(KeyTail::text($part).as_bytes())
    };
    (@write $out:ident, $part:ident reversed) => {
        KeyPart::write(&$part.reversed(), &mut $out)
    };
    (@read $bytes:ident) => {
        KeyPart::read($bytes)?
    };
    (@read $bytes:ident tail) => {
        KeyTail::read_tail($bytes)?
    };
    (@read $bytes:ident reversed) => {
        <Edge as KeyPart>::read($bytes)?.reversed()
    };
    ($key:ident, $of:ident: $kind:ident;
     $($variant:ident $shape:tt = [$($part:ident $(as $codec:ident)?),*];)*) => {
        impl $key {
            #[doc = concat!("Returns the ", stringify!($of), ".")]
            #[allow(unused_variables, reason = "the table names the fields for the other methods")]
            pub fn $of(&self) -> $kind {
                match self {
                    $($key::$variant $shape => $kind::$variant,)*
                    $key::Unreadable { $of, .. } => *$of,
                }
            }

            #[doc = concat!("Returns the bytes; of one ", stringify!($of), " they sort as keys do.")]
            pub fn to_bytes(&self) -> Vec<u8> {
                let mut out = Vec::with_capacity(48);
                match self {
                    $($key::$variant $shape => {
                        $(key_codec!(@write out, $part $($codec)?);)*
                    })*
                    $key::Unreadable { bytes, .. } => out.extend(bytes),
                }
                out
            }

            /// Reads the bytes of a key.
            pub fn from_bytes($of: $kind, bytes: &[u8]) -> $key {
                let mut rest = bytes;
                let key = Self::parse($of, &mut rest).filter(|_| rest.is_empty());
                key.unwrap_or_else(|| $key::Unreadable { $of, bytes: bytes.to_vec() })
            }

            fn parse($of: $kind, bytes: &mut &[u8]) -> Option<$key> {
                Some(match $of {
                    $($kind::$variant => {
                        $(let $part = key_codec!(@read bytes $($codec)?);)*
                        $key::$variant $shape
                    })*
                })
            }
        }
    };
}
pub(super) use key_codec;
