//! Failures of the database, classified by how to react.

use tine_store::StoreError;
use tokio_postgres::error::SqlState;

/// Why a request to the database failed.
#[derive(Debug)]
pub(crate) enum DatabaseFailure {
    /// Another transaction won: the same work over the new state may succeed.
    Conflict(String),
    /// The connection was lost or could not be opened: another connection may work.
    Unreachable(String),
    /// The server's certificate is not trusted.
    Untrusted(String),
    /// The server's disk is full.
    DiskFull,
    /// The server rejected the request, and would again.
    Rejected(String),
    /// The engine broke the store's contract.
    Contract(String),
}

pub(crate) type DatabaseResult<T> = Result<T, DatabaseFailure>;

impl From<DatabaseFailure> for StoreError {
    fn from(failure: DatabaseFailure) -> Self {
        failure.to_store_error()
    }
}

impl DatabaseFailure {
    /// Converts the failure for the engine and the caller.
    pub(crate) fn to_store_error(&self) -> StoreError {
        match self {
            DatabaseFailure::Conflict(_) => StoreError::Busy { waited_ms: 0 },
            DatabaseFailure::Unreachable(why) => StoreError::Unreachable { why: why.clone() },
            DatabaseFailure::Untrusted(why) => StoreError::Address {
                why: format!(
                    "its server is not trusted: {why}; name the certificate of its authority \
                     with `sslrootcert=FILE`, its host as the certificate does, or another \
                     `sslmode`"
                ),
            },
            DatabaseFailure::DiskFull => StoreError::DiskFull,
            DatabaseFailure::Rejected(why) => StoreError::Database { why: why.clone() },
            DatabaseFailure::Contract(why) => StoreError::Contract(why.clone()),
        }
    }
}

impl From<tokio_postgres::Error> for DatabaseFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        let source = std::error::Error::source(&error);
        let io = source.and_then(|it| it.downcast_ref::<std::io::Error>());
        if let Some(refused) = io.and_then(tine_net::tls::rejection) {
            return DatabaseFailure::Untrusted(refused.to_string());
        }
        let Some(reported) = error.as_db_error() else {
            let why = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
            // An error that neither the server nor the connection reports is a defect here.
            return match error.is_closed() || is_io_error(&error) {
                true => DatabaseFailure::Unreachable(why),
                false => DatabaseFailure::Rejected(why),
            };
        };
        let code = reported.code();
        let why = match reported.detail() {
            Some(detail) => format!("{} ({detail}) [{}]", reported.message(), code.code()),
            None => format!("{} [{}]", reported.message(), code.code()),
        };
        let conflicts = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
            SqlState::FOREIGN_KEY_VIOLATION,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        let unreachable = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::QUERY_CANCELED,
        ];
        if conflicts.contains(code) {
            DatabaseFailure::Conflict(why)
        } else if unreachable.contains(code)
            || code.code().starts_with("08")
            || code.code() == IDLE_SESSION_TIMEOUT
        {
            DatabaseFailure::Unreachable(why)
        } else if *code == SqlState::DISK_FULL {
            DatabaseFailure::DiskFull
        } else {
            DatabaseFailure::Rejected(why)
        }
    }
}

/// The server closed the session because it was idle for too long.
const IDLE_SESSION_TIMEOUT: &str = "57P05";

fn is_io_error(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}
