//! Authentication and authorization.
//!
//! `TokenRule` says when a request needs a token. A token is a random secret that is shown once;
//! only its digest is stored, in a file that only its owner can read. It gives access to one project
//! or to all of them, read-only or read-write. Without authentication the caller may do everything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use tine_core::{Digest, ErrorKind, ProjectId};

use crate::problem::Problem;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// When a request needs a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenRule {
    /// As soon as any token exists.
    #[default]
    IfAnyExists,
    /// Always.
    Always,
    /// Never; a token that is sent must still be valid.
    Never,
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

    /// Returns whether a request without a token is refused.
    fn required(&self, rule: TokenRule) -> Result<bool, Problem> {
        match rule {
            TokenRule::Always => Ok(true),
            TokenRule::Never => Ok(false),
            TokenRule::IfAnyExists => self.read(|tokens| !tokens.is_empty()),
        }
    }

    fn with_digest(&self, digest: &str) -> Result<Option<Token>, Problem> {
        self.read(|tokens| tokens.iter().find(|token| token.digest == digest).cloned())
    }

    /// Looks at the tokens as the file has them now.
    fn read<T>(&self, look: impl FnOnce(&[Token]) -> T) -> Result<T, Problem> {
        let Some(path) = &self.path else {
            return Ok(look(&[]));
        };
        let version = Version::of(path);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != version || version.is_none() {
            let file = TokenFile::read(path).map_err(|error| {
                Problem::new(ErrorKind::Internal, format!("the tokens cannot be read: {error}"))
            })?;
            *known = (version, file);
        }
        Ok(look(&known.1.tokens))
    }

    /// Returns whether a caller that was admitted earlier would still be admitted as the same.
    pub(crate) fn still_admit(&self, rule: TokenRule, caller: &Caller) -> bool {
        match &caller.token {
            None => self.required(rule).is_ok_and(|required| !required),
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
    rule: TokenRule,
    headers: &HeaderMap,
    open: bool,
) -> Result<Caller, Problem> {
    let unauthorized = |why| Problem::new(ErrorKind::Unauthorized, why);
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        if !open && tokens.required(rule)? {
            return Err(unauthorized(
                "a token is required; create one with `tine server token create` and send it as \
                 `Authorization: Bearer …`",
            ));
        }
        return Ok(Caller::default());
    };
    let text = value.to_str().unwrap_or_default();
    let Some((_, secret)) =
        text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
    else {
        return Err(unauthorized("Authorization must have the form `Bearer TOKEN`"));
    };
    // Digests of random secrets need no constant-time comparison.
    match tokens.with_digest(&token_digest(secret.trim()))? {
        Some(token) => Ok(Caller { token: Some(token) }),
        None => {
            Err(unauthorized("the token is not valid; create one with `tine server token create`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use tine_core::ProjectId;

    use super::{Access, Caller, Token};

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
