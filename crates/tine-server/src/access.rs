//! Who may do what: tokens, and the rule that says when one is required.
//!
//! A token is a random word that is shown once; the server keeps its digest, in a file that only
//! its owner can read. It gives access to one project or all of them, read-only or with writes.
//! Without authentication the caller may do everything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use tine_core::{Digest, ErrorKind, ProjectId};

use crate::problem::Problem;

/// What a request wants to do.
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

    /// Whether a request without a token is refused.
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

    /// Whether a caller that was admitted earlier may still do what it could do then.
    pub(crate) fn still_admit(&self, rule: TokenRule, caller: &Caller) -> bool {
        match &caller.token {
            None => self.required(rule).is_ok_and(|required| !required),
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

/// Identifies the caller by its token and refuses a request that lacks a required one. What is
/// `open` needs none: probes, and the page, which asks for a token itself.
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
                "a token is required; `tine server token create` makes one, sent as \
                 `Authorization: Bearer …`",
            ));
        }
        return Ok(Caller::default());
    };
    let text = value.to_str().unwrap_or_default();
    let Some((_, word)) =
        text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
    else {
        return Err(unauthorized("Authorization must be `Bearer` and a token"));
    };
    // Digests of random words: how long a comparison takes says nothing about the word.
    match tokens.with_digest(&token_digest(word.trim()))? {
        Some(token) => Ok(Caller { token: Some(token) }),
        None => Err(unauthorized("this token is not valid; `tine server token create` makes one")),
    }
}

#[cfg(test)]
mod tests {
    use tine_core::ProjectId;

    use super::{Access, Caller, Token};

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
