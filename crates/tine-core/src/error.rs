//! The one list of error kinds that every surface uses.
//!
//! A kind is a stable code. The details of a failure are in the error that carries the kind; this
//! file only maps kinds to HTTP statuses, JSON-RPC codes and exit codes.

use std::fmt;

/// The kind of a failure. The codes are part of the public contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request itself is wrong; sending it again unchanged will fail again.
    Invalid,
    /// A named thing does not exist.
    NotFound,
    /// A reference matches several things.
    Ambiguous,
    /// A concurrent change got there first; the error carries the current state.
    Conflict,
    /// An idempotency key was used before for a different request.
    IdempotencyMismatch,
    /// The target is referenced or is the root, and cannot be removed.
    Protected,
    /// The operation makes no sense for this kind of record.
    Unsupported,
    /// A named limit was exceeded; nothing was stored.
    TooLarge,
    /// No valid token was given.
    Unauthorized,
    /// The token does not grant access to this.
    Forbidden,
    /// Temporarily unavailable; try again.
    Busy,
    /// A stored record does not match its hash.
    Corrupt,
    /// A bug or an I/O failure on this side.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of the documentation's table.
    pub const ALL: [ErrorKind; 13] = [
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Ambiguous,
        ErrorKind::Conflict,
        ErrorKind::IdempotencyMismatch,
        ErrorKind::Protected,
        ErrorKind::Unsupported,
        ErrorKind::TooLarge,
        ErrorKind::Unauthorized,
        ErrorKind::Forbidden,
        ErrorKind::Busy,
        ErrorKind::Corrupt,
        ErrorKind::Internal,
    ];

    /// Returns the stable code, as it appears on every wire.
    pub const fn code(self) -> &'static str {
        self.row().0
    }

    /// Returns the kind with this code.
    pub fn parse(code: &str) -> Option<ErrorKind> {
        ErrorKind::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Returns the HTTP status. `conflict` becomes 412 where the request was conditional
    /// (`If-Match`).
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// Returns the JSON-RPC error code.
    pub const fn json_rpc_code(self) -> i32 {
        self.row().2
    }

    /// Returns the exit code of the `tine` command.
    pub const fn exit_code(self) -> u8 {
        self.row().3
    }

    const fn row(self) -> (&'static str, u16, i32, u8) {
        match self {
            ErrorKind::Invalid => ("invalid", 400, -32602, 2),
            ErrorKind::NotFound => ("not_found", 404, -32002, 3),
            ErrorKind::Ambiguous => ("ambiguous", 409, -32011, 4),
            ErrorKind::Conflict => ("conflict", 409, -32009, 5),
            ErrorKind::IdempotencyMismatch => ("idempotency_mismatch", 409, -32012, 6),
            ErrorKind::Protected => ("protected", 409, -32013, 7),
            ErrorKind::Unsupported => ("unsupported", 422, -32014, 8),
            ErrorKind::TooLarge => ("too_large", 413, -32015, 9),
            ErrorKind::Unauthorized => ("unauthorized", 401, -32000, 10),
            ErrorKind::Forbidden => ("forbidden", 403, -32003, 11),
            ErrorKind::Busy => ("busy", 503, -32004, 12),
            ErrorKind::Corrupt => ("corrupt", 500, -32005, 13),
            ErrorKind::Internal => ("internal", 500, -32603, 1),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A name that is not in the list of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`")]
pub struct UnknownName {
    /// What the name was meant to be.
    pub what: &'static str,
    /// What was given.
    pub name: String,
}
