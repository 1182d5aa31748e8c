//! `tine token`: creates, lists and revokes access tokens of a server.

use clap::{Args, Subcommand};
use serde::Serialize;
use tine_core::{Digest, ErrorKind, Limits, Name, ProjectId};
use tine_engine::{Clock, Entropy, SystemClock, SystemEntropy};
use tine_server::{Token, TokenFile, token_digest};
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::store_location::StoreLocation;
use crate::terminal::{Paging, Screen};

#[derive(Debug, Args)]
#[command(after_help = "\
A token is shown only when it is created; the store keeps its digest. Changes apply to a running \
server at once.

Examples:
  tine server token create phone --project trips --read
  tine server token list
  tine server token revoke phone")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    subcommand: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token and print it
    Create {
        /// Name of the token, recorded as the author of its changes
        name: String,
        /// Allow reading only
        #[arg(long)]
        read: bool,
        /// Allow every project, not only --project
        #[arg(long)]
        all_projects: bool,
    },
    /// List tokens
    List,
    /// Revoke a token
    Revoke {
        /// Name of the token
        name: String,
    },
}

#[derive(Serialize)]
struct TokenDocument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    project: Option<&'a str>,
    write: bool,
    created_at: &'a str,
}

impl<'a> TokenDocument<'a> {
    fn of(token: &'a Token, secret: Option<&'a str>) -> Self {
        TokenDocument {
            name: &token.name,
            token: secret,
            project: token.project.as_deref(),
            write: token.write,
            created_at: &token.created_at,
        }
    }
}

pub(crate) fn token(globals: &Globals, args: TokenArgs) -> Result<()> {
    globals.require_local("tine server token", "run it there, with --store PATH")?;
    let location = StoreLocation::from_globals(globals)?;
    let path = location.token_file()?;
    let failed = |error: std::io::Error| {
        CommandError::refused(ErrorKind::Internal, format!("{}: {error}", path.display()))
    };
    let mut file = TokenFile::read(&path).map_err(failed)?;
    let screen = Screen::new(globals);
    match args.subcommand {
        TokenCommand::Create { name, read, all_projects } => {
            let limits = Limits::default();
            let name = Name::new(name, &limits)?.to_string();
            if file.tokens.iter().any(|token| token.name == name) {
                let why = format!("the token `{name}` exists; revoke it or choose another name");
                return Err(CommandError::refused(ErrorKind::Conflict, why));
            }
            let project = match (all_projects, globals.project()) {
                (true, _) => None,
                (false, Some(set)) => Some(ProjectId::new(set.value, &limits)?.to_string()),
                (false, None) => Some(ProjectId::default().to_string()),
            };
            let secret = random_token();
            let created_at = SystemClock.now().to_string();
            let made =
                Token { name, digest: token_digest(&secret), project, write: !read, created_at };
            file.tokens.push(made.clone());
            // Tokens belong to a store: create the store in the folder first.
            match &location {
                StoreLocation::Folder(_) => drop(location.open(OpenMode::Create)?),
                StoreLocation::Database(_) => {
                    let folder = path.parent().unwrap_or(&path);
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
            }
            file.write(&path).map_err(failed)?;
            if screen.json {
                return screen.document(&TokenDocument::of(&made, Some(&secret)));
            }
            screen.line(&secret)
        }
        TokenCommand::List => {
            if screen.json {
                let all: Vec<_> =
                    file.tokens.iter().map(|token| TokenDocument::of(token, None)).collect();
                return screen.document(&all);
            }
            screen.text(Paging::Paged, |out| {
                for token in &file.tokens {
                    let reach = token.project.as_deref().unwrap_or("every project");
                    let access = if token.write { "writes" } else { "reads" };
                    writeln!(out, "{}  {access} {reach}  since {}", token.name, token.created_at)?;
                }
                Ok(())
            })
        }
        TokenCommand::Revoke { name } => {
            let before = file.tokens.len();
            file.tokens.retain(|token| token.name != name);
            if file.tokens.len() == before {
                let why =
                    format!("there is no token `{name}`; `tine server token list` lists tokens");
                return Err(CommandError::refused(ErrorKind::NotFound, why));
            }
            file.write(&path).map_err(failed)?;
            if screen.json {
                return screen.document(&serde_json::json!({ "revoked": name }));
            }
            screen.line(&format!("revoked {name}"))
        }
    }
}

/// Returns an unguessable token, hashed from 30 random bytes.
fn random_token() -> String {
    let mut bytes = Vec::with_capacity(30);
    for _ in 0..3 {
        bytes.extend_from_slice(&SystemEntropy.ten_bytes());
    }
    format!("tine_{}", Digest::of(&bytes))
}
