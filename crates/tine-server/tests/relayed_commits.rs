//! Commits over a server are those of an engine beside it.

use tine_core::json::{Json, Object};
use tine_core::sign::PrivateKey;
use tine_core::{
    ConversationId, EntityId, ErrorKind, Limits, Message, Name, Reference, Role, TurnId,
};
use tine_engine::{
    Append, BisectQuery, BlameOf, BlameQuery, CommitQuery, CommitView, Decision, DiffQuery, Fork,
    ForkPoint, Inject, Knowledge, MergeBranches, NewCommit, NewConversation, NewFact, Operations,
    Page, Predicate, ResolveConflicts, StoreFacts, Summary, Take, TurnRef, WindowRef,
};

use crate::relayed_knowledge::Both;

fn trip() -> ConversationId {
    ConversationId::new("trip: é", &Limits::default()).expect("an id")
}

fn at(turn: &str) -> TurnRef {
    TurnRef::within(trip(), Reference::parse(turn).expect("a reference"))
}

impl Both {
    fn say(&self, branch: &str, text: &str) -> TurnId {
        let messages = vec![Message::text(Role::User, text)];
        let request = Append { branch: Some(branch.to_owned()), ..Append::to(trip(), messages) };
        self.client.append(&self.call, request).expect("turns").turns[0].id
    }

    fn know(&self, turn: TurnId, field: &str, value: impl Into<Json>) -> EntityId {
        let mut fields = Object::new();
        fields.insert("name", "the trip".into());
        fields.insert(field, value.into());
        let fact = NewFact { turn: Some(turn.into()), ..NewFact::of("trip", fields) };
        let request = StoreFacts { entities: vec![fact], ..StoreFacts::default() };
        self.client.store_facts(&self.call, request).expect("facts").entities[0].entity
    }

    fn commit(&self, key: &str, branch: &str) -> CommitView {
        let request = NewCommit::of(trip(), format!("{key}: \u{1f338}")).on(branch);
        self.done(key, |it, call| it.commit(call, request.clone()), |made| made)
    }
}

/// A trip whose branch `side` was forked after the first turn, with facts.
fn parted() -> (Both, EntityId) {
    let both = Both::new();
    let named = NewConversation::named("trip: é").expect("an id");
    both.client.create_conversation(&both.call, named).expect("a conversation");
    let first = both.say("main", "Ann Miller plans a trip to Tokyo. What's the best time?");
    let entity = both.know(first, "budget", 9_007_199_254_740_993_u64);
    let (point, name) = (ForkPoint::At(first.into()), Some(Name::from_stored("side")));
    let fork = Fork { conversation: Some(trip()), point, name };
    both.client.fork(&both.call, fork).expect("a branch");
    (both, entity)
}

#[test]
fn commits_are_the_same_over_a_server() {
    let (both, _) = parted();
    let rings = both.agree(|it, call| it.rings(call, at("main")));
    assert!(!rings.names.is_empty(), "{rings:?}");
    let first = both.commit("first", "main");
    both.say("main", "Late March. We decided to fly.");
    let window = WindowRef { start: at("main").turn, end: at("main").turn };
    let windowed = NewCommit {
        window: Some(window),
        author: Some("Ann".to_owned()),
        ..NewCommit::of(trip(), "by its window")
    };
    let second = both.done("second", |it, call| it.commit(call, windowed.clone()), |made| made);
    assert_eq!(second.commit.parents, [first.hash]);

    let key = PrivateKey::from_random([3; 32]);
    let hash = second.hash.to_string();
    let signature = key.sign(&hash);
    let signed = both.done(
        "sign",
        |it, call| it.sign_commit(call, &hash, &key.public(), &signature),
        |signed| signed,
    );
    assert!(signed.signature.expect("a signature").valid);
    both.refuse(ErrorKind::Invalid, |it, call| {
        it.sign_commit(call, &hash, &key.public(), &key.sign("another"))
    });

    assert_eq!(both.agree(|it, call| it.commit_by_hash(call, &hash[..19])).hash, second.hash);
    both.refuse(ErrorKind::NotFound, |it, call| it.commit_by_hash(call, "0123456789"));
    let all = |conversation, branch: Option<&str>| CommitQuery {
        conversation,
        branch: branch.map(str::to_owned),
    };
    for query in [all(None, None), all(Some(trip()), None), all(Some(trip()), Some("main"))] {
        let listed = both.agree(|it, call| it.commits(call, query.clone(), Page::default()));
        assert_eq!(listed.items.len(), 2);
    }
    let page = |cursor| Page { limit: Some(1), cursor };
    let one = both.agree(|it, call| it.commits(call, all(None, None), page(None)));
    assert_eq!(one.items[0].hash, second.hash);
    let other = both.agree(|it, call| it.commits(call, all(None, None), page(one.next.clone())));
    assert_eq!((other.items[0].hash, other.next), (first.hash, None));
    both.refuse(ErrorKind::Invalid, |it, call| {
        it.commits(call, all(None, Some("main")), page(None))
    });
    both.refuse(ErrorKind::Invalid, |it, call| {
        it.commit(call, NewCommit::of(trip(), "nothing is new").on("main"))
    });
}

#[test]
fn merges_and_comparisons_are_the_same_over_a_server() {
    let (both, entity) = parted();
    let ours = both.say("main", "The budget is 6000, and we go in autumn.");
    both.know(ours, "budget", 6_000_u64);
    let theirs = both.say("side", "The budget is 7000, and we go in spring.");
    both.know(theirs, "budget", 7_000_u64);
    both.know(theirs, "city", "Kyoto");
    let (main, side) = (both.commit("main", "main"), both.commit("side", "side"));

    let diff = |from: &str, to: &str, limit| {
        let (from, to) = (from.to_owned(), to.to_owned());
        let query = DiffQuery { conversation: Some(trip()), from, to, limit };
        both.agree(|it, call| it.diff(call, query.clone()))
    };
    assert_eq!(diff("main", "side", None).changes.len(), 1);
    assert_eq!(diff("root", "main", Some(1)).left_out, 1);
    assert!(!diff(&main.hash.to_string(), &side.hash.to_string(), None).facts.is_empty());
    assert_eq!(diff("main~1..main", "side~1..side", None).changes.len(), 1);

    let merging = |dry_run, summary| MergeBranches {
        conversation: trip(),
        from: "side".to_owned(),
        into: None,
        message: Some("Together".to_owned()),
        author: None,
        summary,
        dry_run,
    };
    let rehearsed = both.agree(|it, call| it.merge(call, merging(true, Summary::None)));
    assert!(rehearsed.commit.is_none() && rehearsed.changes.len() == 2, "{rehearsed:?}");
    let merged =
        both.done("merge", |it, call| it.merge(call, merging(false, Summary::Generated)), |it| it);
    assert_eq!((merged.conflicts.len(), merged.changes.len()), (1, 2), "{merged:?}");
    assert!(merged.turn.is_some());
    assert!(both.agree(|it, call| it.merge(call, merging(false, Summary::None))).up_to_date);

    let resolve = |take| ResolveConflicts {
        conversation: trip(),
        branch: Some("main".to_owned()),
        decisions: vec![Decision { entity, field: "budget".to_owned(), take }],
        message: None,
        author: Some("Ann".to_owned()),
    };
    both.refuse(ErrorKind::Invalid, |it, call| it.resolve_conflicts(call, resolve(Take::Side(3))));
    let value = Take::Value(Json::from(9_007_199_254_740_993_u64));
    both.done("resolve", |it, call| it.resolve_conflicts(call, resolve(value.clone())), |it| it);

    let inject = Inject {
        turn: at(&theirs.to_string()),
        conversation: trip(),
        branch: Some("main".to_owned()),
    };
    both.done("inject", |it, call| it.inject(call, inject.clone()), |it| it);

    let blame = |of| BlameQuery { at: at("main"), of };
    let city = BlameOf::Field { entity, field: "city".to_owned() };
    let city = both.agree(|it, call| it.blame(call, blame(city.clone())));
    assert_eq!(city[0].turn_id, Some(theirs));
    let text = BlameOf::Text("in autumn".to_owned());
    assert_eq!(both.agree(|it, call| it.blame(call, blame(text.clone())))[0].turn_id, Some(ours));
    let text = BlameOf::Text("in winter".to_owned());
    both.refuse(ErrorKind::NotFound, |it, call| it.blame(call, blame(text.clone())));

    let bisect = |predicate| BisectQuery { at: at("main"), predicate };
    let fact = |value| Predicate::Fact { entity, field: "budget".to_owned(), value };
    for predicate in
        [Predicate::Contains("autumn".to_owned()), fact(Some(Json::from(6_000_u64))), fact(None)]
    {
        both.agree(|it, call| it.bisect(call, bisect(predicate.clone())));
    }
    let other = fact(Some(Json::from("6000")));
    both.refuse(ErrorKind::Invalid, |it, call| it.bisect(call, bisect(other.clone())));
    let drift = both.agree(|it, call| it.drift(call, &trip(), "main"));
    assert_eq!(drift.len(), 3);
}
