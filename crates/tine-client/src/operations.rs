//! Implements the operations on conversations as HTTP requests.

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tine_api::bodies::{
    self, BranchPatch, CallFields, ForkTurn, Nothing, PurgeBody, Request, RequestBody,
};
use tine_api::{
    Append, Appended, BookmarkView, BranchView, Call, ConversationPatch, ConversationView, Delete,
    DeleteMode, Deleted, Derive, Derived, Edit, Edited, Error, Fork, ForkPoint, Listing,
    MetadataPatch, MoveBranch, NewConversation, OperationView, Operations, Page, PathPage,
    PathQuery, ProjectView, Purge, PurgeTarget, Purged, RecentQuery, Result, SearchPage,
    SearchQuery, Selection, SplitDone, SplitTurn, Stats, Tail, TopologyPage, TopologyQuery,
    TurnRef, TurnView, Undone, UsageQuery, UsageReport, UsageTotals, Verified, Window, WindowQuery,
};
use tine_core::{ConversationId, ErrorKind, Name, ProjectId, Reference, Role};

use crate::exchange::{AnswerTimeout, ClientRequest};
use crate::url_path::UrlPath;
use crate::{Client, pages, refusal};

/// The default number of hits in a page.
const SEARCH_HITS: usize = 20;

/// The conversation in which names are looked up.
pub(crate) const WITHIN: &str = "conversation_id";

impl Client {
    pub(crate) fn get<T: DeserializeOwned>(&self, call: &Call, address: UrlPath) -> Result<T> {
        self.get_patiently(call, address, AnswerTimeout::Ordinary)
    }

    pub(crate) fn get_patiently<T: DeserializeOwned>(
        &self,
        call: &Call,
        address: UrlPath,
        timeout: AnswerTimeout,
    ) -> Result<T> {
        let address = address.with("project_id", &call.project);
        self.exchange.ask(&ClientRequest {
            method: Method::GET,
            address,
            call: Some(call),
            body: None,
            reads: true,
            timeout,
        })
    }

    /// Sends a request in a body that also has the call's key.
    pub(crate) fn send<T: DeserializeOwned>(
        &self,
        call: &Call,
        method: Method,
        address: UrlPath,
        request: impl Request + Serialize,
    ) -> Result<T> {
        self.send_patiently(call, method, address, request, AnswerTimeout::Ordinary)
    }

    pub(crate) fn send_patiently<T: DeserializeOwned, R: Request + Serialize>(
        &self,
        call: &Call,
        method: Method,
        address: UrlPath,
        request: R,
        timeout: AnswerTimeout,
    ) -> Result<T> {
        let has = |field| R::CALL_FIELDS.contains(&field);
        let fields = CallFields {
            return_turn: has("return_turn"),
            redacted: if has("redacted") { call.redacted.clone() } else { Default::default() },
            idempotency_key: call.idempotency_key.clone(),
            ..CallFields::default()
        };
        let body = serde_json::to_vec(&RequestBody { request, fields }).map_err(|error| {
            refusal(ErrorKind::Internal, format!("the request cannot be written: {error}"))
        })?;
        self.exchange.ask(&ClientRequest {
            method,
            address: address.with("project_id", &call.project),
            call: Some(call),
            body: Some(body),
            reads: false,
            timeout,
        })
    }

    pub(crate) fn remove<T: DeserializeOwned>(&self, call: &Call, address: UrlPath) -> Result<T> {
        let address = address.with("project_id", &call.project);
        self.exchange.ask(&ClientRequest {
            method: Method::DELETE,
            address,
            call: Some(call),
            body: None,
            reads: false,
            timeout: AnswerTimeout::Ordinary,
        })
    }

    /// Reads a list of one page.
    pub(crate) fn items<T: DeserializeOwned>(
        &self,
        call: &Call,
        address: UrlPath,
    ) -> Result<Vec<T>> {
        let listing: Listing<T> = self.get(call, address)?;
        Ok(listing.items)
    }

    /// Reads one of the lists of turns that a turn has.
    fn turns(&self, call: &Call, turn: &TurnRef, list: &str) -> Result<Vec<TurnView>> {
        self.items(call, turn_at(turn, &[list]))
    }

    fn turn_back(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>,
        verb: &str,
    ) -> Result<Undone> {
        let operation = operation.map_or_else(|| "latest".to_owned(), |it| it.to_string());
        let address = UrlPath::of(&["operations", &operation, verb]).with(WITHIN, conversation);
        self.send(call, Method::POST, address, Nothing {})
    }

    fn move_branch(&self, call: &Call, request: MoveBranch, verb: &str) -> Result<BranchView> {
        let address = branch_at(&request.conversation, &request.branch, &[verb]);
        self.send(call, Method::POST, address, request)
    }

    /// Returns one page of a listing, assembled from as many pages of the server as it takes.
    pub(crate) fn listing<T: DeserializeOwned>(
        &self,
        call: &Call,
        address: &UrlPath,
        page: Page,
    ) -> Result<Listing<T>> {
        let mut items = Vec::new();
        let next = pages::walk(page.limit, page.cursor, &self.limits, |cursor, rows| {
            let address = address.clone().with_option("cursor", cursor).with("limit", rows);
            let found: Listing<T> = self.get(call, address)?;
            let count = found.items.len();
            items.extend(found.items);
            Ok((count, found.next))
        })?;
        Ok(Listing { items, next })
    }
}

/// Returns the error for an answer that cannot be parsed.
pub(crate) fn unreadable(why: &str) -> Error {
    refusal(ErrorKind::Internal, format!("the server's answer cannot be read: {why}"))
}

/// Sets the project of a conversation, which answers leave out.
fn in_project(call: &Call, conversation: ConversationView) -> ConversationView {
    ConversationView { project: call.project.clone(), ..conversation }
}

fn conversation_at(id: &ConversationId, rest: &[&str]) -> UrlPath {
    let mut pieces = vec!["conversations", id.as_str()];
    pieces.extend(rest);
    UrlPath::of(&pieces)
}

pub(crate) fn branch_at(conversation: &ConversationId, branch: &str, rest: &[&str]) -> UrlPath {
    let mut pieces = vec!["branches", branch];
    pieces.extend(rest);
    conversation_at(conversation, &pieces)
}

pub(crate) fn turn_at(turn: &TurnRef, rest: &[&str]) -> UrlPath {
    let mut pieces = vec!["turns", turn.turn.as_str()];
    pieces.extend(rest);
    UrlPath::of(&pieces).with_option(WITHIN, turn.conversation.as_ref())
}

impl Operations for Client {
    fn create_project(&self, id: &ProjectId) -> Result<(ProjectView, bool)> {
        let body = bodies::NewProject { project_id: id.clone() };
        self.exchange.ask_whether_created(&ClientRequest {
            method: Method::POST,
            address: UrlPath::of(&["projects"]),
            call: None,
            body: Some(serde_json::to_vec(&body).unwrap_or_default()),
            reads: true,
            timeout: AnswerTimeout::Ordinary,
        })
    }

    fn projects(&self) -> Result<Vec<ProjectView>> {
        let projects: Listing<_> = self.exchange.ask(&ClientRequest {
            method: Method::GET,
            address: UrlPath::of(&["projects"]),
            call: None,
            body: None,
            reads: true,
            timeout: AnswerTimeout::Ordinary,
        })?;
        Ok(projects.items)
    }

    fn project(&self, id: &ProjectId) -> Result<ProjectView> {
        self.exchange.ask(&ClientRequest {
            method: Method::GET,
            address: UrlPath::of(&["projects", id.as_str()]),
            call: None,
            body: None,
            reads: true,
            timeout: AnswerTimeout::Ordinary,
        })
    }

    fn create_conversation(
        &self,
        call: &Call,
        request: NewConversation,
    ) -> Result<ConversationView> {
        let address = UrlPath::of(&["conversations"]);
        self.send(call, Method::POST, address, request).map(|made| in_project(call, made))
    }

    fn derive(&self, call: &Call, request: Derive) -> Result<Derived> {
        let address = conversation_at(&request.conversation, &["derive"]);
        let done: Derived = self.send(call, Method::POST, address, request)?;
        Ok(Derived { conversation: in_project(call, done.conversation), ..done })
    }

    fn conversation(&self, call: &Call, id: &ConversationId) -> Result<ConversationView> {
        self.get(call, conversation_at(id, &[])).map(|made| in_project(call, made))
    }

    fn conversations(
        &self,
        call: &Call,
        include_archived: bool,
        page: Page,
    ) -> Result<Listing<ConversationView>> {
        let address = UrlPath::of(&["conversations"]).with("archived", include_archived);
        let found = self.listing(call, &address, page)?;
        let items = found.items.into_iter().map(|it| in_project(call, it)).collect();
        Ok(Listing { items, next: found.next })
    }

    fn recent_conversations(
        &self,
        call: &Call,
        query: &RecentQuery,
        page: Page,
    ) -> Result<Listing<ConversationView>> {
        let address = UrlPath::of(&["conversations"])
            .with("order", "activity")
            .with("archived", query.include_archived)
            .with("top_level", query.top_level)
            .with_option("q", query.words.as_ref())
            .with_option("tag", query.tag.as_ref())
            .with_option("program", query.program.as_ref())
            .with_option("folder", query.folder.as_ref())
            .with_option("since", query.since)
            .with_option("until", query.until);
        let found = self.listing(call, &address, page)?;
        let items = found.items.into_iter().map(|it| in_project(call, it)).collect();
        Ok(Listing { items, next: found.next })
    }

    fn patch_conversation(
        &self,
        call: &Call,
        id: &ConversationId,
        patch: ConversationPatch,
    ) -> Result<ConversationView> {
        let address = conversation_at(id, &[]);
        self.send(call, Method::PATCH, address, patch).map(|made| in_project(call, made))
    }

    fn append(&self, call: &Call, request: Append) -> Result<Appended> {
        let address = conversation_at(&request.conversation, &["turns"]);
        self.send(call, Method::POST, address, request)
    }

    fn turn(&self, call: &Call, turn: TurnRef) -> Result<TurnView> {
        self.get(call, turn_at(&turn, &[]).with("rings", false))
    }

    fn children(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>> {
        self.turns(call, &turn, "children")
    }

    fn siblings(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>> {
        self.turns(call, &turn, "siblings")
    }

    fn versions(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>> {
        self.turns(call, &turn, "versions")
    }

    fn path(&self, call: &Call, query: PathQuery) -> Result<PathPage> {
        let turn = match query.to {
            Some(to) => to,
            None => Reference::parse("main")?,
        };
        let turn = TurnRef { conversation: query.conversation, turn };
        let last = match query.selection {
            Selection::Whole => None,
            Selection::Last(last) => Some(last),
        };
        let address = turn_at(&turn, &["path"]).with_option("last", last);
        let mut whole: Option<PathPage> = None;
        let next = pages::walk(query.limit, query.cursor, &self.limits, |cursor, rows| {
            let address = address.clone().with_option("cursor", cursor).with("limit", rows);
            let page: PathPage = self.get(call, address)?;
            let (count, next) = (page.turns.len(), page.next.clone());
            match &mut whole {
                None => whole = Some(page),
                Some(whole) => whole.turns.extend(page.turns),
            }
            Ok((count, next))
        })?;
        let whole = whole.ok_or_else(|| refusal(ErrorKind::Internal, "a path has no page"))?;
        Ok(PathPage { next, ..whole })
    }

    fn window(&self, call: &Call, query: WindowQuery) -> Result<Window> {
        let address = turn_at(&query.turn, &["path"])
            .with("before", query.before)
            .with("after", query.after)
            .with_option("branch", query.branch);
        self.get(call, address)
    }

    fn topology(&self, call: &Call, query: TopologyQuery) -> Result<TopologyPage> {
        let address = conversation_at(&query.conversation, &["topology"])
            .with_option("under", query.under.as_ref().map(Reference::as_str))
            .with("deleted", query.include_deleted);
        let mut whole: Option<TopologyPage> = None;
        let next = pages::walk(query.limit, query.cursor, &self.limits, |cursor, rows| {
            let address = address.clone().with_option("cursor", cursor).with("limit", rows);
            let page: TopologyPage = self.get(call, address)?;
            let (count, next) = (page.rows.len(), page.next.clone());
            match &mut whole {
                None => whole = Some(page),
                Some(whole) => whole.rows.extend(page.rows),
            }
            Ok((count, next))
        })?;
        let whole = whole.ok_or_else(|| refusal(ErrorKind::Internal, "a topology has no page"))?;
        Ok(TopologyPage { next, ..whole })
    }

    fn search(&self, call: &Call, request: SearchQuery) -> Result<SearchPage> {
        // No server accepts such a query, and it might not fit into an address.
        let (limit, given) = (self.limits.query_bytes, request.words.len());
        if given > limit {
            let why =
                format!("bytes in a search: at most {limit}, not {given}; nothing was stored");
            return Err(refusal(ErrorKind::TooLarge, why));
        }
        let tags = (!request.tags.is_empty()).then(|| request.tags.join(","));
        let address = UrlPath::of(&["search"])
            .with("q", request.words)
            .with_option("conversation_id", request.conversation)
            .with_option("branch", request.branch)
            .with_option("role", request.role.map(Role::as_str))
            .with_option("since", request.from)
            .with_option("until", request.to)
            .with_option("tag", tags)
            .with("archived", request.archived);
        let mut hits = Vec::new();
        let limit = request.limit.or(Some(SEARCH_HITS));
        let next = pages::walk(limit, request.cursor, &self.limits, |cursor, rows| {
            let address = address.clone().with_option("cursor", cursor).with("limit", rows);
            let page: SearchPage = self.get(call, address)?;
            let count = page.hits.len();
            hits.extend(page.hits);
            Ok((count, page.next))
        })?;
        Ok(SearchPage { hits, next })
    }

    fn tails(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<Tail>> {
        self.items(call, conversation_at(conversation, &["tails"]))
    }

    fn branches(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<BranchView>> {
        let address = conversation_at(conversation, &["branches"]);
        self.items(call, address)
    }

    fn branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<BranchView> {
        self.get(call, branch_at(conversation, branch, &[]))
    }

    fn rename_branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
        name: Name,
    ) -> Result<BranchView> {
        let address = branch_at(conversation, branch, &[]);
        self.send(call, Method::PATCH, address, BranchPatch { name })
    }

    fn delete_branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<BranchView> {
        self.remove(call, branch_at(conversation, branch, &[]))
    }

    fn fork(&self, call: &Call, request: Fork) -> Result<BranchView> {
        let (turn, inclusive) = match request.point {
            ForkPoint::At(turn) => (turn, true),
            ForkPoint::Before(turn) => (turn, false),
        };
        let body = ForkTurn { name: request.name, inclusive: Some(inclusive) };
        let turn = TurnRef { conversation: request.conversation, turn };
        self.send(call, Method::POST, turn_at(&turn, &["fork"]), body)
    }

    fn revert(&self, call: &Call, request: MoveBranch) -> Result<BranchView> {
        self.move_branch(call, request, "revert")
    }

    fn restore(&self, call: &Call, request: MoveBranch) -> Result<BranchView> {
        self.move_branch(call, request, "restore")
    }

    fn edit(&self, call: &Call, request: Edit) -> Result<Edited> {
        let address = turn_at(&request.turn, &["edit"]);
        self.send(call, Method::POST, address, request)
    }

    fn split(&self, call: &Call, request: SplitTurn) -> Result<SplitDone> {
        let address = turn_at(&request.turn, &["split"]);
        self.send(call, Method::POST, address, request)
    }

    fn delete(&self, call: &Call, request: Delete) -> Result<Deleted> {
        let mode = match request.mode {
            DeleteMode::Cascade => "cascade",
            DeleteMode::Reparent => "reparent",
        };
        let address = turn_at(&request.turn, &[])
            .with("mode", mode)
            .with("force", request.force)
            .with("dry_run", request.dry_run);
        self.remove(call, address)
    }

    fn patch_metadata(&self, call: &Call, turn: TurnRef, patch: MetadataPatch) -> Result<TurnView> {
        self.send(call, Method::PATCH, turn_at(&turn, &["metadata"]), patch)
    }

    fn set_bookmark(&self, call: &Call, name: Name, turn: TurnRef) -> Result<BookmarkView> {
        let address = UrlPath::of(&["bookmarks", name.as_str()]);
        self.send(call, Method::PUT, address, turn)
    }

    fn delete_bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView> {
        self.remove(call, UrlPath::of(&["bookmarks", name.as_str()]))
    }

    fn bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView> {
        self.get(call, UrlPath::of(&["bookmarks", name.as_str()]))
    }

    fn bookmarks(&self, call: &Call, page: Page) -> Result<Listing<BookmarkView>> {
        self.listing(call, &UrlPath::of(&["bookmarks"]), page)
    }

    fn undo(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>,
    ) -> Result<Undone> {
        self.turn_back(call, conversation, operation, "undo")
    }

    fn redo(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>,
    ) -> Result<Undone> {
        self.turn_back(call, conversation, operation, "redo")
    }

    fn operations(
        &self,
        call: &Call,
        conversation: &ConversationId,
        page: Page,
    ) -> Result<Listing<OperationView>> {
        let address = UrlPath::of(&["operations"]).with(WITHIN, conversation);
        self.listing(call, &address, page)
    }

    fn purge(&self, call: &Call, request: Purge) -> Result<Purged> {
        let body = PurgeBody { confirm: request.confirm };
        let address = match &request.target {
            PurgeTarget::Turn(turn) => turn_at(turn, &["purge"]),
            PurgeTarget::Conversation(id) => conversation_at(id, &["purge"]),
            PurgeTarget::Source(id) => UrlPath::of(&["sources", &id.to_string(), "purge"]),
        };
        self.send_patiently(call, Method::POST, address, body, AnswerTimeout::Long)
    }

    fn stats(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<Stats> {
        let address = UrlPath::of(&["stats"]).with_option(WITHIN, conversation);
        self.get(call, address.with("usage", false))
    }

    fn usage(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<UsageTotals> {
        let address = UrlPath::of(&["stats"]).with_option(WITHIN, conversation);
        let found: Stats = self.get(call, address.with("usage", true))?;
        found.usage.ok_or_else(|| refusal(ErrorKind::Internal, "the answer has no usage"))
    }

    fn usage_report(&self, call: &Call, query: &UsageQuery) -> Result<UsageReport> {
        let by: Vec<&str> = query.by.iter().map(|dimension| dimension.as_str()).collect();
        let address = UrlPath::of(&["usage"])
            .with_option("by", Some(by.join(",")).filter(|by| !by.is_empty()))
            .with_option("since", query.since)
            .with_option("until", query.until)
            .with_option("program", query.program.as_ref())
            .with_option("folder", query.folder.as_ref());
        self.get_patiently(call, address, AnswerTimeout::Long)
    }

    fn verify(&self) -> Result<Verified> {
        self.exchange.ask(&ClientRequest {
            method: Method::POST,
            address: UrlPath::of(&["verify"]),
            call: None,
            body: Some(Vec::new()),
            reads: true,
            timeout: AnswerTimeout::Long,
        })
    }
}
