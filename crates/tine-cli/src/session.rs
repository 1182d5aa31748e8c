//! A store, here or behind a server, and everything that a command needs besides its own
//! arguments.

use std::ops::Deref;
use std::sync::Arc;
use tine_api::Answer;

use serde::Serialize;
use tine_client::Client;
use tine_core::{ConversationId, Kind, Limits, Name, ProjectId, Reference};
use tine_engine::{
    Call, Engine, Knowledge, Listing, Operations, Page, SystemClock, SystemEntropy, TurnRef,
    Versions,
};
use tine_store::OpenMode;

use crate::arguments::{Globals, local_only_error};
use crate::failure::{Failure, Result};
use crate::store_location::StoreLocation;
use crate::terminal::Screen;

/// How many conversations an error lists.
const CONVERSATIONS_LISTED: usize = 10;

/// Rows that are asked for at once. Pages are for answers that travel; within one process a whole
/// tree is better read in one go, from one state of the store.
const ROWS_AT_ONCE: usize = 1 << 20;

/// The branch that every conversation begins with.
pub(crate) const MAIN: &str = "main";

/// The limits in force on the command line.
pub(crate) fn limits() -> Limits {
    Limits { page_rows: ROWS_AT_ONCE, ..Limits::default() }
}

/// Where the engine is that does the work.
pub(crate) enum SessionEngine {
    /// In this process, over a store on this machine.
    Local(Engine),
    /// Behind a server.
    Remote(Client),
}

impl SessionEngine {
    /// The engine itself, for a command that works on the store and not over a server.
    pub(crate) fn require_local(&self, command: &str, instead: &str) -> Result<&Engine> {
        match self {
            SessionEngine::Local(engine) => Ok(engine),
            SessionEngine::Remote(client) => {
                Err(local_only_error(command, client.address(), instead))
            }
        }
    }

    /// Rings and commits.
    pub(crate) fn versioning(&self) -> &dyn Versions {
        match self {
            SessionEngine::Local(engine) => engine,
            SessionEngine::Remote(client) => client,
        }
    }

    /// What was learned.
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
    /// The rules over the store.
    pub(crate) engine: SessionEngine,
    /// Who asks, and in which project.
    pub(crate) call: Call,
    /// Where answers are written.
    pub(crate) screen: Screen,
    conversation: Option<ConversationId>,
    branch: Option<String>,
    limits: Limits,
}

impl CliSession {
    /// Opens the store that the arguments name, or turns to the server that they name.
    pub(crate) fn open(globals: &Globals, mode: OpenMode) -> Result<Self> {
        if let Some(client) = client(globals)? {
            return CliSession::over(SessionEngine::Remote(client), globals);
        }
        let store = StoreLocation::of(globals)?.open(mode)?;
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let engine = Engine::with(store, clock, entropy, limits())
            .with_interpreters(globals.settings.interpreters()?);
        CliSession::over(SessionEngine::Local(engine), globals)
    }

    /// A session over an engine that is there already.
    pub(crate) fn over(engine: SessionEngine, globals: &Globals) -> Result<Self> {
        let limits = limits();
        let project = match globals.project() {
            Some(set) => ProjectId::new(set.value, &limits)?,
            None => ProjectId::default(),
        };
        let conversation = match &globals.conversation {
            Some(id) => Some(ConversationId::new(id.as_str(), &limits)?),
            None => None,
        };
        let call = Call::by(globals.actor()).in_project(project);
        let (screen, branch) = (Screen::new(globals), globals.branch.clone());
        Ok(CliSession { call, screen, conversation, branch, limits, engine })
    }

    /// The limits in force.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A branch's or bookmark's name, checked.
    pub(crate) fn name(&self, text: &str) -> Result<Name> {
        Ok(Name::new(text, self.limits())?)
    }

    /// A conversation's id, checked.
    pub(crate) fn conversation_id(&self, text: &str) -> Result<ConversationId> {
        Ok(ConversationId::new(text, self.limits())?)
    }

    /// The branch that is meant where none is named, if another than `main`.
    pub(crate) fn other_branch(&self) -> Option<String> {
        self.branch.clone()
    }

    /// The branch that is meant where none is named.
    pub(crate) fn branch(&self) -> &str {
        self.branch.as_deref().unwrap_or(MAIN)
    }

    /// The turn that is meant where none is named: the end of the branch.
    pub(crate) fn tip(&self) -> Result<Reference> {
        Ok(Reference::parse(self.branch())?)
    }

    /// The conversation that was named, if one was.
    pub(crate) fn named_conversation(&self) -> Option<&ConversationId> {
        self.conversation.as_ref()
    }

    /// The conversation that is meant: the one named, else the only one there is.
    pub(crate) fn conversation(&self) -> Result<ConversationId> {
        if let Some(named) = &self.conversation {
            return Ok(named.clone());
        }
        let page = Page { cursor: None, limit: Some(CONVERSATIONS_LISTED) };
        let listing = self.engine.conversations(&self.call, false, page)?;
        let mut ids: Vec<ConversationId> = listing.items.into_iter().map(|it| it.id).collect();
        match ids.len() {
            0 => Err(Failure::refused(
                Kind::NotFound,
                format!(
                    "there is no conversation in the project `{}`; `tine new` makes one",
                    self.call.project
                ),
            )),
            1 => Ok(ids.remove(0)),
            _ => Err(Failure::Several { conversations: ids, more: listing.next.is_some() }),
        }
    }

    /// The conversation in which a reference is looked up. Ids and hashes do without one, so
    /// several conversations are no reason to refuse: the engine looks in all of them.
    pub(crate) fn scope(&self) -> Result<Option<ConversationId>> {
        match self.conversation() {
            Ok(conversation) => Ok(Some(conversation)),
            Err(Failure::Several { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// A turn by reference.
    pub(crate) fn turn(&self, reference: &Reference) -> Result<TurnRef> {
        Ok(TurnRef { conversation: self.scope()?, turn: reference.clone() })
    }

    /// The same call with a key, if there is one.
    pub(crate) fn call_with(&self, key: Option<&str>) -> Call {
        match key {
            Some(key) => self.call.clone().with_key(key),
            None => self.call.clone(),
        }
    }

    /// Up to `wanted` items, page by page, and where to go on; all without a number.
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
        Ok(all)
    }

    /// Answers with one JSON document and says so, when that is what was asked for.
    pub(crate) fn answered_json<T: Serialize>(&self, body: impl FnOnce() -> T) -> Result<bool> {
        if !self.screen.json {
            return Ok(false);
        }
        self.screen.document(&Answer::new(&self.call.project, body()))?;
        Ok(true)
    }
}

/// The server that the arguments name, if they name one.
pub(crate) fn client(globals: &Globals) -> Result<Option<Client>> {
    let Some(url) = globals.server()? else { return Ok(None) };
    let client = Client::new(&url)?.with_limits(limits());
    Ok(Some(match globals.token()? {
        Some(token) => client.with_token(&token)?,
        None => client,
    }))
}
