//! Who may do what.
//!
//! On the loopback no token is needed; elsewhere every request needs one. A token is a random
//! word that is shown once; what is kept of it is its digest, in a file that only its owner can
//! read. It reaches one project or all of them, for reading or for writing too.
//!
//! Names are checked on every route, so that a page in a browser cannot reach the server under a
//! name of its own (DNS rebinding), nor send requests from another origin.

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

/// What a request wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// What its owner calls it; also the name that changes are recorded under.
    pub name: String,
    /// The SHA-256 of its word, in hex.
    pub digest: String,
    /// The project that it reaches; all of them without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether it may change something.
    pub write: bool,
    /// When it was made.
    pub created_at: String,
}

/// The file of tokens.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TokenFile {
    /// All that are valid.
    pub tokens: Vec<Token>,
}

impl TokenFile {
    /// Reads the file; one that is not there has no tokens.
    pub fn read(path: &Path) -> io::Result<TokenFile> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TokenFile::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file in one step, readable for its owner only.
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

/// The digest under which a token's word is kept.
pub fn token_digest(word: &str) -> String {
    Digest::of(word.as_bytes()).to_string()
}

/// The valid tokens, read again when their file changes.
pub(crate) struct Tokens {
    path: Option<PathBuf>,
    known: Mutex<(Option<Version>, TokenFile)>,
}

/// What tells one state of the file from the next. The time alone does not: two changes can fall
/// into one tick of the clock.
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

    fn find(&self, word: &str) -> Result<Option<Token>, Problem> {
        // Digests of random words: how long a comparison takes tells nothing about the word.
        self.with_digest(&token_digest(word))
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

    /// Whether a caller that came in before may still do what it could do then.
    pub(crate) fn still_admit(&self, caller: &Caller) -> bool {
        match &caller.token {
            None => true,
            Some(token) => {
                self.with_digest(&token.digest).is_ok_and(|it| it.as_ref() == Some(token))
            }
        }
    }
}

/// Who sends a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    token: Option<Token>,
}

impl Caller {
    /// The name that changes are recorded under, if there is a token.
    pub(crate) fn name(&self) -> Option<String> {
        self.token.as_ref().map(|token| token.name.clone())
    }

    /// The one project that the caller reaches, if it is not all.
    pub(crate) fn only_project(&self) -> Option<ProjectId> {
        let project = self.token.as_ref()?.project.as_ref()?;
        Some(ProjectId::from_stored(project.clone()))
    }

    /// Refuses what the caller may not do.
    pub(crate) fn check(&self, project: &ProjectId, access: Access) -> Result<(), Problem> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        if self.only_project().is_some_and(|only| only != *project) {
            let why = format!("the token `{}` does not reach the project {project}", token.name);
            return Err(Problem::new(ErrorKind::Forbidden, why));
        }
        self.check_write(access)
    }

    /// Refuses what the caller may not do to the whole store.
    pub(crate) fn check_store(&self, access: Access) -> Result<(), Problem> {
        if let Some(project) = self.only_project() {
            let why = format!("the token reaches the project {project} only, not the whole store");
            return Err(Problem::new(ErrorKind::Forbidden, why));
        }
        self.check_write(access)
    }

    /// Refuses a change by a caller that may only read.
    pub(crate) fn check_write(&self, access: Access) -> Result<(), Problem> {
        match &self.token {
            Some(token) if access == Access::Write && !token.write => {
                let why = format!("the token `{}` may only read", token.name);
                Err(Problem::new(ErrorKind::Forbidden, why))
            }
            _ => Ok(()),
        }
    }
}

/// Finds out who asks, and refuses who may not. What is `open` anybody may have: the page, which
/// asks for a token itself.
pub(crate) fn admit(
    tokens: &Tokens,
    options: &Options,
    headers: &HeaderMap,
    open: bool,
) -> Result<Caller, Problem> {
    check_names(options, headers)?;
    let given = match headers.get(header::AUTHORIZATION) {
        None => None,
        Some(value) => {
            let text = value.to_str().unwrap_or_default();
            let word = text.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
            let Some((_, word)) = word else {
                let why = "Authorization must be `Bearer` and a token";
                return Err(Problem::new(ErrorKind::Unauthorized, why));
            };
            Some(word.trim())
        }
    };
    match given {
        Some(word) => match tokens.find(word)? {
            Some(token) => Ok(Caller { token: Some(token) }),
            None => Err(Problem::new(
                ErrorKind::Unauthorized,
                "this token is not valid; `tine token create` makes one",
            )),
        },
        None if options.token_required && !open => Err(Problem::new(
            ErrorKind::Unauthorized,
            "a token is needed; `tine token create` makes one, sent as `Authorization: Bearer …`",
        )),
        None => Ok(Caller::default()),
    }
}

fn check_names(options: &Options, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    if !is_ours(options, host_name(host)) {
        let why = format!("`{host}` is not a name of this server; --host adds one");
        return Err(
            Problem::new(ErrorKind::Forbidden, why).with_status(StatusCode::MISDIRECTED_REQUEST)
        );
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let same = origin.split_once("://").is_some_and(|(_, name)| name == host);
        if !same {
            let why = format!("requests from pages of `{origin}` are not taken");
            return Err(Problem::new(ErrorKind::Forbidden, why));
        }
    }
    Ok(())
}

/// A host without its port.
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
    fn a_page_of_another_site_cannot_ask_in_its_name() {
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
    fn a_token_reaches_as_far_as_it_says() {
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
