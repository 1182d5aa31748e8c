//! Authentication and authorization.
//!
//! On the loopback interface no token is needed; elsewhere every request needs one. A token is a
//! random secret that is shown once; only its digest is stored, in a file that only its owner can
//! read. It gives access to one project or to all of them, read-only or read-write.
//!
//! Host and origin are checked on every route, so that a web page can neither reach the server
//! under another name (DNS rebinding) nor send requests from another origin.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use tine_core::{Digest, ErrorKind, ProjectId};

use crate::app::Options;
use crate::problem::Problem;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A token as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name, which is recorded as the author of changes.
    pub name: String,
    /// The SHA-256 of the secret, in hexadecimal.
    pub digest: String,
    /// The only project that it gives access to; all projects by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether it allows changes.
    pub write: bool,
    /// When it was created.
    pub created_at: String,
}

/// The file of tokens.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TokenFile {
    /// All valid tokens.
    pub tokens: Vec<Token>,
}

impl TokenFile {
    /// Reads the file; a missing file has no tokens.
    pub fn read(path: &Path) -> io::Result<TokenFile> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TokenFile::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file atomically; only its owner can read it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&beside)?;
        serde_json::to_writer_pretty(&file, self)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    }
}

/// Returns the digest of a secret, as it is stored.
pub fn token_digest(secret: &str) -> String {
    Digest::of(secret.as_bytes()).to_string()
}

/// The valid tokens, read again when their file changes.
pub(crate) struct Tokens {
    path: Option<PathBuf>,
    known: Mutex<(Option<Version>, TokenFile)>,
}

/// Identifies a version of the file. The time is not enough: two changes can fall into one tick of
/// the clock.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    modified: SystemTime,
    size_bytes: u64,
    inode: u64,
}

impl Version {
    fn of(path: &Path) -> Option<Version> {
        let found = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Version { modified: found.modified().ok()?, size_bytes: found.len(), inode })
    }
}

impl Tokens {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Tokens { path, known: Mutex::default() }
    }

    fn find(&self, secret: &str) -> Result<Option<Token>, Problem> {
        // Digests of random secrets need no constant-time comparison.
        self.with_digest(&token_digest(secret))
    }

    fn with_digest(&self, digest: &str) -> Result<Option<Token>, Problem> {
        let Some(path) = &self.path else {
            return Ok(None);
        };
        let version = Version::of(path);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != version || version.is_none() {
            let file = TokenFile::read(path).map_err(|error| {
                Problem::new(ErrorKind::Internal, format!("the tokens cannot be read: {error}"))
            })?;
            *known = (version, file);
        }
        Ok(known.1.tokens.iter().find(|token| token.digest == digest).cloned())
    }

    /// Returns whether the token of a caller is still valid and unchanged.
    pub(crate) fn still_admit(&self, caller: &Caller) -> bool {
        match &caller.token {
            None => true,
            Some(token) => {
                self.with_digest(&token.digest).is_ok_and(|it| it.as_ref() == Some(token))
            }
        }
    }
}

/// The caller of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    token: Option<Token>,
}

impl Caller {
    /// Returns the name of the token, which is recorded as the author of changes.
    pub(crate) fn name(&self) -> Option<String> {
        self.token.as_ref().map(|token| token.name.clone())
    }

    /// Returns the only project that the caller can access, if it cannot access all.
    pub(crate) fn only_project(&self) -> Option<ProjectId> {
        let project = self.token.as_ref()?.project.as_ref()?;
        Some(ProjectId::from_stored(project.clone()))
    }

    /// Checks access to a project.
    pub(crate) fn check(&self, project: &ProjectId, access: Access) -> Result<(), Problem> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        if self.only_project().is_some_and(|only| only != *project) {
            let why =
                format!("the token `{}` gives no access to the project {project}", token.name);
            return Err(Problem::new(ErrorKind::Forbidden, why));
        }
        self.check_write(access)
    }

    /// Checks access to the whole store.
    pub(crate) fn check_store(&self, access: Access) -> Result<(), Problem> {
        if let Some(project) = self.only_project() {
            let why = format!(
                "the token gives access to the project {project} only, not to the whole store"
            );
            return Err(Problem::new(ErrorKind::Forbidden, why));
        }
        self.check_write(access)
    }

    /// Checks that the caller may make changes, if the request does.
    pub(crate) fn check_write(&self, access: Access) -> Result<(), Problem> {
        match &self.token {
            Some(token) if access == Access::Write && !token.write => {
                let why = format!("the token `{}` is read-only", token.name);
                Err(Problem::new(ErrorKind::Forbidden, why))
            }
            _ => Ok(()),
        }
    }
}

/// Authenticates the caller of a request. `open` requests need no token: the page, which asks for one
/// itself, and health checks.
pub(crate) fn admit(
    tokens: &Tokens,
    options: &Options,
    headers: &HeaderMap,
    open: bool,
) -> Result<Caller, Problem> {
    check_host_and_origin(options, headers)?;
    let given = match headers.get(header::AUTHORIZATION) {
        None => None,
        Some(value) => {
            let text = value.to_str().unwrap_or_default();
            let secret =
                text.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
            let Some((_, secret)) = secret else {
                let why = "Authorization must have the form `Bearer TOKEN`";
                return Err(Problem::new(ErrorKind::Unauthorized, why));
            };
            Some(secret.trim())
        }
    };
    match given {
        Some(secret) => match tokens.find(secret)? {
            Some(token) => Ok(Caller { token: Some(token) }),
            None => Err(Problem::new(
                ErrorKind::Unauthorized,
                "the token is not valid; create one with `tine token create`",
            )),
        },
        None if options.token_required && !open => Err(Problem::new(
            ErrorKind::Unauthorized,
            "a token is required; create one with `tine token create` and send it as \
             `Authorization: Bearer …`",
        )),
        None => Ok(Caller::default()),
    }
}

fn check_host_and_origin(options: &Options, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    if !is_ours(options, host_name(host)) {
        let why = format!("`{host}` is not a name of this server; add it with --host");
        return Err(
            Problem::new(ErrorKind::Forbidden, why).with_status(StatusCode::MISDIRECTED_REQUEST)
        );
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let same = origin.split_once("://").is_some_and(|(_, name)| name == host);
        if !same {
            let why = format!("requests from the origin `{origin}` are not allowed");
            return Err(Problem::new(ErrorKind::Forbidden, why));
        }
    }
    Ok(())
}

/// Returns a host without its port.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_ours(options: &Options, name: &str) -> bool {
    ["localhost", "127.0.0.1", "::1"].contains(&name)
        || options.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};
    use tine_core::{ErrorKind, ProjectId};

    use super::{Access, Caller, Token, Tokens, admit};
    use crate::app::Options;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let (tokens, options) = (Tokens::new(None), Options::default());
        let refused = |pairs: &[(&'static str, &'static str)]| {
            admit(&tokens, &options, &headers(pairs), true)
                .is_err_and(|it| it.is(ErrorKind::Forbidden))
        };
        assert!(refused(&[("host", "evil.example:8000")]));
        assert!(refused(&[("host", "localhost.evil.example")]));
        assert!(refused(&[]));
        assert!(refused(&[("host", "localhost:8000"), ("origin", "http://evil.example")]));
        assert!(refused(&[("host", "localhost:8000"), ("origin", "null")]));
        assert!(refused(&[("host", "localhost:8000"), ("origin", "http://localhost:3000")]));
        for host in ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000"] {
            assert!(admit(&tokens, &options, &headers(&[("host", host)]), true).is_ok(), "{host}");
        }
        let own = [("host", "localhost:8000"), ("origin", "http://localhost:8000")];
        assert!(admit(&tokens, &options, &headers(&own), true).is_ok());
    }

    #[test]
    fn a_token_gives_access_to_its_project_only() {
        let token = Token {
            name: "reader".to_owned(),
            digest: String::new(),
            project: Some("trips".to_owned()),
            write: false,
            created_at: String::new(),
        };
        let caller = Caller { token: Some(token) };
        let project = |id: &str| ProjectId::from_stored(id);
        assert!(caller.check(&project("trips"), Access::Read).is_ok());
        assert!(caller.check(&project("trips"), Access::Write).is_err());
        assert!(caller.check(&project("default"), Access::Read).is_err());
        assert!(caller.check_store(Access::Read).is_err());
    }
}
