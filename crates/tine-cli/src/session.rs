//! A local store or a server, with everything that a command needs besides its own arguments.

use std::ops::Deref;
use std::sync::Arc;
use tine_api::Answer;

use serde::Serialize;
use tine_client::Client;
use tine_core::{ConversationId, ErrorKind, Limits, Name, ProjectId, Reference};
use tine_engine::{
    Call, Engine, Knowledge, Listing, Operations, Page, SystemClock, SystemEntropy, TurnRef,
    Versions,
};
use tine_store::OpenMode;

use crate::arguments::{Globals, local_only_error};
use crate::command_error::{CommandError, Result};
use crate::conversation_choice::{self, Choices};
use crate::store_location::StoreLocation;
use crate::terminal::{Paging, Screen};

/// Maximum number of conversations that an error lists.
const CONVERSATIONS_LISTED: usize = 10;

/// Page size for local reads. Small pages are for answers sent over a network; within one process a
/// whole tree is better read at once, from one state of the store.
const ROWS_AT_ONCE: usize = 1 << 20;

/// The default branch of every conversation.
pub(crate) const MAIN: &str = "main";

/// Returns the limits that apply on the command line.
pub(crate) fn limits() -> Limits {
    Limits { page_rows: ROWS_AT_ONCE, ..Limits::default() }
}

/// The engine that executes a command: in this process or on a server.
pub(crate) enum SessionEngine {
    /// An engine in this process, over a store on this machine.
    Local(Engine),
    /// A server.
    Remote(Client),
}

impl SessionEngine {
    /// Returns the local engine, or an error for a command that does not work over a server.
    pub(crate) fn require_local(&self, command: &str, instead: &str) -> Result<&Engine> {
        match self {
            SessionEngine::Local(engine) => Ok(engine),
            SessionEngine::Remote(client) => {
                Err(local_only_error(command, client.address(), instead))
            }
        }
    }

    /// Returns the operations on rings and commits.
    pub(crate) fn versioning(&self) -> &dyn Versions {
        match self {
            SessionEngine::Local(engine) => engine,
            SessionEngine::Remote(client) => client,
        }
    }

    /// Returns the operations on knowledge records.
    pub(crate) fn knowledge(&self) -> &dyn Knowledge {
        match self {
            SessionEngine::Local(engine) => engine,
            SessionEngine::Remote(client) => client,
        }
    }
}

impl Deref for SessionEngine {
    type Target = dyn Operations;

    fn deref(&self) -> &Self::Target {
        match self {
            SessionEngine::Local(engine) => engine,
            SessionEngine::Remote(client) => client,
        }
    }
}

/// One command's view of one store.
pub(crate) struct CliSession {
    pub(crate) engine: SessionEngine,
    /// The actor and the project of every request.
    pub(crate) call: Call,
    pub(crate) screen: Screen,
    conversation: Option<ConversationId>,
    /// What the arguments name the conversation by, if that is not its id.
    conversation_prefix: Option<String>,
    choices: Option<Choices>,
    branch: Option<String>,
    limits: Limits,
}

impl CliSession {
    /// Opens the store, or connects to the server, that the arguments name.
    pub(crate) fn open(globals: &Globals, mode: OpenMode) -> Result<Self> {
        if let Some(client) = client(globals)? {
            return CliSession::with_engine(SessionEngine::Remote(client), globals);
        }
        let store = StoreLocation::from_globals(globals)?.open(mode)?;
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let engine = Engine::with(store, clock, entropy, limits())
            .with_interpreters(globals.settings.interpreters()?);
        CliSession::with_engine(SessionEngine::Local(engine), globals)
    }

    /// Creates a session over an existing engine.
    pub(crate) fn with_engine(engine: SessionEngine, globals: &Globals) -> Result<Self> {
        let limits = limits();
        let project = match globals.project() {
            Some(set) => ProjectId::new(set.value, &limits)?,
            None => ProjectId::default(),
        };
        let call = Call::by(globals.actor()).in_project(project);
        let mut conversation_prefix = None;
        let conversation = match &globals.conversation {
            Some(text) if globals.whole_id => Some(ConversationId::new(text.as_str(), &limits)?),
            Some(text) => {
                let (id, whole) = conversation_choice::find(&*engine, &call, text, &limits)?;
                conversation_prefix = Some(text.clone()).filter(|_| !whole);
                Some(id)
            }
            None => None,
        };
        let choices = Choices::of(globals)?;
        let (screen, branch) = (Screen::new(globals), globals.branch.clone());
        Ok(CliSession {
            call,
            screen,
            conversation,
            conversation_prefix,
            choices,
            branch,
            limits,
            engine,
        })
    }

    /// Returns the limits that apply to requests.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Validates the name of a branch or bookmark.
    pub(crate) fn name(&self, text: &str) -> Result<Name> {
        Ok(Name::new(text, self.limits())?)
    }

    /// Validates a conversation's id.
    pub(crate) fn conversation_id(&self, text: &str) -> Result<ConversationId> {
        Ok(ConversationId::new(text, self.limits())?)
    }

    /// Returns the session's branch, if it is not `main`.
    pub(crate) fn other_branch(&self) -> Option<String> {
        self.branch.clone()
    }

    /// Returns the session's branch, which applies where a command names none.
    pub(crate) fn branch(&self) -> &str {
        self.branch.as_deref().unwrap_or(MAIN)
    }

    /// Returns a reference to the tip of the session's branch.
    pub(crate) fn tip(&self) -> Result<Reference> {
        Ok(Reference::parse(self.branch())?)
    }

    /// Returns the conversation that the arguments name, if any.
    pub(crate) fn named_conversation(&self) -> Option<&ConversationId> {
        self.conversation.as_ref()
    }

    /// Returns what the arguments name the conversation by, if that is not its id.
    pub(crate) fn conversation_prefix(&self) -> Option<&str> {
        self.conversation_prefix.as_deref()
    }

    /// Returns the named conversation, the only one in the project, or the one that `tine use`
    /// chose for this folder.
    pub(crate) fn conversation(&self) -> Result<ConversationId> {
        match self.named_or_only() {
            Err(error @ CommandError::AmbiguousConversation { .. }) => self.chosen()?.ok_or(error),
            found => found,
        }
    }

    /// Returns the conversation that `tine use` chose for this folder, if it still exists.
    pub(crate) fn chosen(&self) -> Result<Option<ConversationId>> {
        let chosen = self.choices.as_ref().and_then(|it| it.chosen(&self.call.project));
        let Some(id) = chosen else { return Ok(None) };
        match self.engine.branches(&self.call, &id) {
            Ok(_) => Ok(Some(id)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the named conversation or the only one in the project.
    pub(crate) fn named_or_only(&self) -> Result<ConversationId> {
        if let Some(named) = &self.conversation {
            return Ok(named.clone());
        }
        let page = Page { cursor: None, limit: Some(CONVERSATIONS_LISTED) };
        let listing = self.engine.conversations(&self.call, false, page)?;
        let mut ids: Vec<ConversationId> = listing.items.into_iter().map(|it| it.id).collect();
        match ids.len() {
            0 => {
                self.check_project()?;
                let why = format!(
                    "the project `{}` has no conversation; `tine new` creates one",
                    self.call.project
                );
                Err(CommandError::refused(ErrorKind::NotFound, why))
            }
            1 => Ok(ids.remove(0)),
            _ => Err(CommandError::AmbiguousConversation {
                conversations: ids,
                more: listing.next.is_some(),
            }),
        }
    }

    /// Returns the conversation in which references are looked up. Ids and hashes need none, so
    /// with several conversations this is `None` and the engine searches all of them.
    pub(crate) fn scope(&self) -> Result<Option<ConversationId>> {
        match self.named_or_only() {
            Ok(conversation) => Ok(Some(conversation)),
            Err(CommandError::AmbiguousConversation { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the conversation in which these references are looked up. Ids and hashes are found
    /// in all conversations, names of branches in the one that `tine use` chose.
    pub(crate) fn scope_of<'r>(
        &self,
        references: impl IntoIterator<Item = &'r str>,
    ) -> Result<Option<ConversationId>> {
        if let Some(scope) = self.scope()? {
            return Ok(Some(scope));
        }
        let is_name = |text: &str| {
            Reference::parse(text).is_ok_and(|it| {
                it.turn_id().is_none() && it.turn_hash().is_none() && it.hash_prefix().is_none()
            })
        };
        match references.into_iter().all(is_name) {
            true => self.chosen(),
            false => Ok(None),
        }
    }

    /// Scopes a reference to the session's conversation.
    pub(crate) fn turn(&self, reference: &Reference) -> Result<TurnRef> {
        let conversation = self.scope_of([reference.as_str()])?;
        Ok(TurnRef { conversation, turn: reference.clone() })
    }

    /// Returns the session's call with an idempotency key, if one is given.
    pub(crate) fn call_with(&self, key: Option<&str>) -> Call {
        match key {
            Some(key) => self.call.clone().with_key(key),
            None => self.call.clone(),
        }
    }

    /// Fetches up to `wanted` items page by page, or all of them, with the cursor for the rest.
    pub(crate) fn pages<T>(
        &self,
        wanted: Option<usize>,
        mut ask: impl FnMut(Page) -> tine_api::Result<Listing<T>>,
    ) -> Result<Listing<T>> {
        let wanted = wanted.unwrap_or(usize::MAX);
        let mut all = Listing { items: Vec::new(), next: None };
        while all.items.len() < wanted {
            let missing = (wanted - all.items.len()).min(self.limits().page_rows);
            let found = ask(Page { cursor: all.next.take(), limit: Some(missing) })?;
            all.items.extend(found.items);
            all.next = found.next;
            if all.next.is_none() {
                break;
            }
        }
        if all.items.is_empty() {
            self.check_project()?;
        }
        Ok(all)
    }

    /// Returns an error if the project does not exist, so that a misspelt name is not an empty list.
    pub(crate) fn check_project(&self) -> Result<()> {
        let wanted = &self.call.project;
        if *wanted == ProjectId::default()
            || self.engine.projects()?.iter().any(|it| it.id == *wanted)
        {
            return Ok(());
        }
        let why = format!("there is no project `{wanted}`; `tine projects` lists projects");
        Err(CommandError::refused(ErrorKind::NotFound, why))
    }

    /// Writes a listing: as JSON if `--json` is set, else one line per item.
    pub(crate) fn list<T: Serialize>(
        &self,
        found: &Listing<T>,
        line: impl Fn(&T) -> String,
    ) -> Result<()> {
        if self.answered_json(|| found)? {
            return Ok(());
        }
        self.screen.text(Paging::Paged, |out| {
            Ok(found.items.iter().try_for_each(|item| writeln!(out, "{}", line(item)))?)
        })
    }

    /// Writes the answer as JSON if `--json` is set, and returns whether it did.
    pub(crate) fn answered_json<T: Serialize>(&self, body: impl FnOnce() -> T) -> Result<bool> {
        if !self.screen.json {
            return Ok(false);
        }
        self.screen.document(&Answer::new(&self.call.project, body()))?;
        Ok(true)
    }
}

/// Returns a client for the server that the arguments name, if any.
pub(crate) fn client(globals: &Globals) -> Result<Option<Client>> {
    let Some(url) = globals.server()? else { return Ok(None) };
    let client = Client::new(&url)?.with_limits(limits());
    Ok(Some(match globals.token()? {
        Some(token) => client.with_token(&token)?,
        None => client,
    }))
}
