//! Implements the operations on commits and rings as HTTP requests.

use http::Method;
use tine_api::bodies::{self, SignCommit};
use tine_api::{
    BisectQuery, Bisected, BlameOf, BlameQuery, Blamed, Call, CommitQuery, CommitView, Diff,
    DiffQuery, Drift, Inject, Injected, Listing, MergeBranches, Merged, NewCommit, Page, Predicate,
    ResolveConflicts, Result, TurnRef, TurnRings, Versions,
};
use tine_core::ConversationId;

use crate::Client;
use crate::operations::{WITHIN, branch_at, turn_at};
use crate::url_path::UrlPath;

/// Returns an address with the end of a path.
fn along(address: UrlPath, at: &TurnRef) -> UrlPath {
    address.with_option(WITHIN, at.conversation.as_ref()).with("at", at.turn.as_str())
}

impl Versions for Client {
    fn rings(&self, call: &Call, turn: TurnRef) -> Result<TurnRings> {
        self.get(call, turn_at(&turn, &["rings"]))
    }

    fn commit(&self, call: &Call, request: NewCommit) -> Result<CommitView> {
        self.send(call, Method::POST, UrlPath::of(&["commits"]), request)
    }

    fn commit_by_hash(&self, call: &Call, hash: &str) -> Result<CommitView> {
        self.get(call, UrlPath::of(&["commits", hash]))
    }

    fn commits(&self, call: &Call, query: CommitQuery, page: Page) -> Result<Listing<CommitView>> {
        let address = UrlPath::of(&["commits"])
            .with_option(WITHIN, query.conversation)
            .with_option("branch", query.branch);
        self.listing(call, &address, page)
    }

    fn sign_commit(
        &self,
        call: &Call,
        commit: &str,
        public_key: &str,
        signature: &str,
    ) -> Result<CommitView> {
        let (public_key, value) = (public_key.to_owned(), signature.to_owned());
        let address = UrlPath::of(&["commits", commit, "signature"]);
        self.send(call, Method::POST, address, SignCommit { public_key, value })
    }

    fn diff(&self, call: &Call, query: DiffQuery) -> Result<Diff> {
        let address = UrlPath::of(&["diff"])
            .with("from", &query.from)
            .with("to", &query.to)
            .with_option(WITHIN, query.conversation)
            .with_option("limit", query.limit);
        self.get(call, address)
    }

    fn merge(&self, call: &Call, request: MergeBranches) -> Result<Merged> {
        self.send(call, Method::POST, UrlPath::of(&["merges"]), request)
    }

    fn resolve_conflicts(&self, call: &Call, request: ResolveConflicts) -> Result<CommitView> {
        let branch = request.branch.as_deref().unwrap_or("main");
        let address = branch_at(&request.conversation, branch, &["resolutions"]);
        self.send(call, Method::POST, address, request)
    }

    fn inject(&self, call: &Call, request: Inject) -> Result<Injected> {
        let address = UrlPath::of(&["turns", request.turn.turn.as_str(), "inject"]);
        self.send(call, Method::POST, address, bodies::Inject::from(request))
    }

    fn blame(&self, call: &Call, query: BlameQuery) -> Result<Vec<Blamed>> {
        let address = along(UrlPath::of(&["blame"]), &query.at);
        let address = match query.of {
            BlameOf::Text(text) => address.with("text", text),
            BlameOf::Field { entity, field } => {
                address.with("entity_id", entity).with("field", field)
            }
        };
        self.items(call, address)
    }

    fn bisect(&self, call: &Call, query: BisectQuery) -> Result<Bisected> {
        let address = along(UrlPath::of(&["bisect"]), &query.at);
        let address = match query.predicate {
            Predicate::Contains(text) => address.with("contains", text),
            Predicate::Fact { entity, field, value } => address
                .with("entity_id", entity)
                .with("field", field)
                .with_option("value", value.map(|value| value.to_canonical())),
        };
        self.get(call, address)
    }

    fn drift(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<Vec<Drift>> {
        let address = UrlPath::of(&["drift"]).with(WITHIN, conversation).with("branch", branch);
        self.items(call, address)
    }
}
