//! What turns are about, and commits: each operation as one request.

use http::Method;
use tine_core::ConversationId;
use tine_engine::{
    BisectQuery, Bisected, BlameOf, BlameQuery, Blamed, Call, CommitQuery, CommitView, Diff,
    DiffQuery, Drift, Inject, Injected, Listing, MergeBranches, Merged, NewCommit, Page, Predicate,
    ResolveConflicts, Result, TurnRef, TurnRings, Versions,
};
use tine_formats::view::{self, Items};
use tine_formats::wire;

use crate::Client;
use crate::address::Address;
use crate::operations::{WITHIN, branch_at, read, turn_at};

/// An address with the end of a path.
fn along(address: Address, at: &TurnRef) -> Address {
    address.with_option(WITHIN, at.conversation.as_ref()).with("at", at.turn.as_str())
}

impl Versions for Client {
    fn rings(&self, call: &Call, turn: TurnRef) -> Result<TurnRings> {
        let found: view::TurnRings = self.get(call, turn_at(&turn, &["rings"]))?;
        read(found.try_into())
    }

    fn commit(&self, call: &Call, request: NewCommit) -> Result<CommitView> {
        let idempotency_key = call.idempotency_key.clone();
        let body = wire::NewCommit { idempotency_key, ..request.into() };
        let made: view::Commit = self.send(call, Method::POST, Address::of(&["commits"]), &body)?;
        read(made.try_into())
    }

    fn commit_by_hash(&self, call: &Call, hash: &str) -> Result<CommitView> {
        let found: view::Commit = self.get(call, Address::of(&["commits", hash]))?;
        read(found.try_into())
    }

    fn commits(&self, call: &Call, query: CommitQuery, page: Page) -> Result<Listing<CommitView>> {
        let address = Address::of(&["commits"])
            .with_option(WITHIN, query.conversation)
            .with_option("branch", query.branch);
        self.listing(call, &address, page, |it: view::Commit| it.try_into())
    }

    fn sign_commit(
        &self,
        call: &Call,
        commit: &str,
        public_key: &str,
        signature: &str,
    ) -> Result<CommitView> {
        let body = wire::SignCommit {
            public_key: public_key.to_owned(),
            value: signature.to_owned(),
            idempotency_key: call.idempotency_key.clone(),
            ..wire::SignCommit::default()
        };
        let address = Address::of(&["commits", commit, "signature"]);
        let signed: view::Commit = self.send(call, Method::POST, address, &body)?;
        read(signed.try_into())
    }

    fn diff(&self, call: &Call, query: DiffQuery) -> Result<Diff> {
        let address = Address::of(&["diff"])
            .with("from", &query.from)
            .with("to", &query.to)
            .with_option(WITHIN, query.conversation)
            .with_option("limit", query.limit);
        let found: view::Diff = self.get(call, address)?;
        read(found.try_into())
    }

    fn merge(&self, call: &Call, request: MergeBranches) -> Result<Merged> {
        let idempotency_key = call.idempotency_key.clone();
        let body = wire::Merge { idempotency_key, ..request.into() };
        let done: view::Merged = self.send(call, Method::POST, Address::of(&["merges"]), &body)?;
        read(done.try_into())
    }

    fn resolve_conflicts(&self, call: &Call, request: ResolveConflicts) -> Result<CommitView> {
        let branch = request.branch.as_deref().unwrap_or("main");
        let address = branch_at(&request.conversation, branch, &["resolutions"]);
        let idempotency_key = call.idempotency_key.clone();
        let body = wire::ResolveConflicts { idempotency_key, ..request.into() };
        let made: view::Commit = self.send(call, Method::POST, address, &body)?;
        read(made.try_into())
    }

    fn inject(&self, call: &Call, request: Inject) -> Result<Injected> {
        let address = Address::of(&["turns", request.turn.turn.as_str(), "inject"]);
        let idempotency_key = call.idempotency_key.clone();
        let body = wire::Inject { idempotency_key, ..request.into() };
        let done: view::Injected = self.send(call, Method::POST, address, &body)?;
        read(done.try_into())
    }

    fn blame(&self, call: &Call, query: BlameQuery) -> Result<Vec<Blamed>> {
        let address = along(Address::of(&["blame"]), &query.at);
        let address = match query.of {
            BlameOf::Text(text) => address.with("text", text),
            BlameOf::Field { entity, field } => {
                address.with("entity_id", entity).with("field", field)
            }
        };
        let found: Items<view::Blamed> = self.get(call, address)?;
        found.items.into_iter().map(|it| read(it.try_into())).collect()
    }

    fn bisect(&self, call: &Call, query: BisectQuery) -> Result<Bisected> {
        let address = along(Address::of(&["bisect"]), &query.at);
        let address = match query.predicate {
            Predicate::Contains(text) => address.with("contains", text),
            Predicate::Fact { entity, field, value } => address
                .with("entity_id", entity)
                .with("field", field)
                .with_option("value", value.map(|value| value.to_canonical())),
        };
        let found: view::Bisected = self.get(call, address)?;
        read(found.try_into())
    }

    fn drift(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<Vec<Drift>> {
        let address = Address::of(&["drift"]).with(WITHIN, conversation).with("branch", branch);
        let found: Items<view::Drift> = self.get(call, address)?;
        found.items.into_iter().map(|it| read(it.try_into())).collect()
    }
}
