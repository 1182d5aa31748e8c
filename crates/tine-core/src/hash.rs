//! SHA-256 digests and the hashes of the contract, each over RFC 8785 bytes.
//!
//! The bytes are written key by key in canonical order rather than through a JSON value: the
//! key sets are fixed and appends are frequent. A test compares them with the general
//! canonicaliser.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::json::{Json, write_canonical_string};
use crate::message::{Body, Role};
use crate::time::Timestamp;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// The text is not 64 hexadecimal digits, with or without `sha256:` before them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a sha256 hash (64 hexadecimal digits)")]
pub struct DigestError {
    /// What was given.
    pub text: String,
}

/// The prefix that hashes carry on every wire.
pub const PREFIX: &str = "sha256:";

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        let mut hex = String::with_capacity(64);
        self.write_hex(&mut hex);
        hex
    }

    /// Appends the wire form.
    pub fn write(&self, out: &mut String) {
        out.push_str(PREFIX);
        self.write_hex(out);
    }

    fn write_hex(&self, out: &mut String) {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        out.push_str(std::str::from_utf8(&digits).unwrap_or_default());
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Computes a digest incrementally.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all of them.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One `write_str`, so that `to_string` allocates once.
        let mut text = String::with_capacity(PREFIX.len() + 64);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || DigestError { text: text.to_owned() };
        let hex = text.strip_prefix(PREFIX).unwrap_or(text).as_bytes();
        if hex.len() != 64 {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let high = hex_digit(pair[0]).ok_or_else(error)?;
            let low = hex_digit(pair[1]).ok_or_else(error)?;
            *byte = high << 4 | low;
        }
        Ok(Digest(bytes))
    }
}

/// Bytes as lower-case hexadecimal digits.
///
/// ```
/// use tine_core::hash::{from_hex, to_hex};
/// assert_eq!(to_hex(&[0, 255]), "00ff");
/// assert_eq!(from_hex("00fF"), Some(vec![0, 255]));
/// assert_eq!(from_hex("+f"), None);
/// ```
pub fn to_hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(HEX[usize::from(digit)])).collect()
}

/// Bytes out of hexadecimal digits of either case.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(hex_digit(*high)? << 4 | hex_digit(*low)?);
    pairs.iter().map(byte).collect::<Option<_>>().filter(|_| rest.is_empty())
}

pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Digest);

        impl $name {
            /// Returns the first twelve hexadecimal digits, as shown to people.
            pub fn short(&self) -> String {
                self.0.to_hex()[..12].to_owned()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = DigestError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }
    };
}

hash_type! {
    /// The hash of a turn and all turns before it.
    TurnHash
}
hash_type! {
    /// The hash of a conversation's system prompt and configuration.
    RootHash
}
hash_type! {
    /// The hash of a commit and, through its parents, its history.
    CommitHash
}
hash_type! {
    /// The hash of an entry of the operation log and all entries before it.
    OperationHash
}

/// Returns the hash of a turn: its content, role and time, and through the parent's hash everything
/// that led to it.
///
/// ```
/// use tine_core::{hash::turn_hash, Body, Role};
/// let hash = turn_hash(
///     None,
///     Role::User,
///     &Body::Text("What's the best time to visit Tokyo?".into()),
///     None,
///     "2024-01-15T10:30:00Z".parse().unwrap(),
/// );
/// assert!(hash.to_string().starts_with("sha256:a9d2e63be84cb3d0"));
/// ```
pub fn turn_hash(
    parent: Option<&TurnHash>,
    role: Role,
    body: &Body,
    tool_call_id: Option<&str>,
    created_at: Timestamp,
) -> TurnHash {
    let mut bytes = String::with_capacity(body.stored_len() + 256);
    bytes.push_str("{\"content\":");
    body.write_hashed_form(&mut bytes);
    bytes.push_str(",\"created_at\":\"");
    bytes.push_str(&created_at.to_string());
    bytes.push_str("\",\"parent_turn_hash\":");
    match parent {
        Some(hash) => {
            bytes.push('"');
            bytes.push_str(&hash.to_string());
            bytes.push('"');
        }
        None => bytes.push_str("null"),
    }
    write_role_and_call(&mut bytes, role, tool_call_id);
    TurnHash(Digest::of(bytes.as_bytes()))
}

/// Returns the digest of role, content and tool call id, which identifies equal messages.
pub fn message_digest(role: Role, body: &Body, tool_call_id: Option<&str>) -> Digest {
    let mut bytes = String::with_capacity(body.stored_len() + 128);
    bytes.push_str("{\"content\":");
    body.write_blocks(&mut bytes);
    write_role_and_call(&mut bytes, role, tool_call_id);
    Digest::of(bytes.as_bytes())
}

fn write_role_and_call(bytes: &mut String, role: Role, tool_call_id: Option<&str>) {
    bytes.push_str(",\"role\":\"");
    bytes.push_str(role.as_str());
    bytes.push('"');
    if let Some(call) = tool_call_id {
        bytes.push_str(",\"tool_call_id\":");
        write_canonical_string(bytes, call);
    }
    bytes.push('}');
}

/// Returns the hash of a conversation's root.
pub fn root_hash(system_prompt: Option<&str>, config: &Json) -> RootHash {
    let mut bytes = String::from("{\"config\":");
    config.write_canonical(&mut bytes);
    bytes.push_str(",\"system_prompt\":");
    match system_prompt {
        Some(prompt) => write_canonical_string(&mut bytes, prompt),
        None => bytes.push_str("null"),
    }
    bytes.push('}');
    RootHash(Digest::of(bytes.as_bytes()))
}

/// What the hash of an operation covers.
///
/// The detail enters by its digest, so that an erasure can remove the detail and leave the
/// chain verifiable.
#[derive(Clone, Copy, Debug)]
pub struct OperationSeal<'a> {
    /// The conversation whose log this is.
    pub conversation_id: &'a str,
    /// Position in that log, from 1.
    pub seq: u64,
    /// The operation before it.
    pub previous: Option<&'a OperationHash>,
    /// What was done.
    pub kind: &'a str,
    /// Who did it.
    pub actor: &'a str,
    /// When.
    pub at: Timestamp,
    /// The digest of the canonical detail.
    pub detail: &'a Digest,
}

/// Returns the chain hash of an operation.
pub fn operation_hash(seal: &OperationSeal<'_>) -> OperationHash {
    let mut bytes = String::with_capacity(384);
    bytes.push_str("{\"actor\":");
    write_canonical_string(&mut bytes, seal.actor);
    bytes.push_str(",\"at\":\"");
    bytes.push_str(&seal.at.to_string());
    bytes.push_str("\",\"conversation_id\":");
    write_canonical_string(&mut bytes, seal.conversation_id);
    bytes.push_str(",\"detail_digest\":\"");
    bytes.push_str(&seal.detail.to_string());
    bytes.push_str("\",\"kind\":");
    write_canonical_string(&mut bytes, seal.kind);
    bytes.push_str(",\"previous\":");
    match seal.previous {
        Some(hash) => {
            bytes.push('"');
            bytes.push_str(&hash.to_string());
            bytes.push('"');
        }
        None => bytes.push_str("null"),
    }
    bytes.push_str(",\"seq\":");
    bytes.push_str(&seal.seq.to_string());
    bytes.push('}');
    OperationHash(Digest::of(bytes.as_bytes()))
}
