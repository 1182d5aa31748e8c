//! What can go wrong between a store and its database, sorted by what to do about it.

use tine_store::StoreError;
use tokio_postgres::error::SqlState;

/// Why an exchange with the database failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody else was quicker: the same work over the new state may succeed.
    Conflict(String),
    /// The database went away, or never was there: another connection may do.
    Away(String),
    /// It is not the server that is trusted.
    Untrusted(String),
    /// Its disk is full.
    Full,
    /// It said no, and will again.
    Said(String),
    /// The rules broke the contract.
    Contract(String),
}

impl Failure {
    /// As the rules and the caller see it.
    pub(crate) fn told(&self) -> StoreError {
        match self {
            Failure::Conflict(_) => StoreError::Busy { waited_ms: 0 },
            Failure::Away(why) => StoreError::Unreachable { why: why.clone() },
            Failure::Untrusted(why) => StoreError::Address {
                why: format!(
                    "its server is not trusted: {why}; name the certificate of its authority \
                     with `sslrootcert=FILE`, its host as the certificate does, or another \
                     `sslmode`"
                ),
            },
            Failure::Full => StoreError::DiskFull,
            Failure::Said(why) => StoreError::Database { why: why.clone() },
            Failure::Contract(why) => StoreError::Contract(why.clone()),
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let source = std::error::Error::source(&error);
        let io = source.and_then(|it| it.downcast_ref::<std::io::Error>());
        if let Some(refused) = io.and_then(tine_net::tls::rejection) {
            return Failure::Untrusted(refused.to_string());
        }
        let Some(said) = error.as_db_error() else {
            let why = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
            // What is neither the server's word nor the line's is a defect here.
            return match error.is_closed() || is_of_the_line(&error) {
                true => Failure::Away(why),
                false => Failure::Said(why),
            };
        };
        let code = said.code();
        let why = match said.detail() {
            Some(detail) => format!("{} ({detail}) [{}]", said.message(), code.code()),
            None => format!("{} [{}]", said.message(), code.code()),
        };
        let conflicts = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
            SqlState::FOREIGN_KEY_VIOLATION,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        let away = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::QUERY_CANCELED,
        ];
        if conflicts.contains(code) {
            Failure::Conflict(why)
        } else if away.contains(code) || code.code().starts_with("08") || code.code() == IDLE {
            Failure::Away(why)
        } else if *code == SqlState::DISK_FULL {
            Failure::Full
        } else {
            Failure::Said(why)
        }
    }
}

/// A connection that the server closed because nothing was said for long.
const IDLE: &str = "57P05";

fn is_of_the_line(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}
