//! What the engine answers about commits, written as JSON and read back.

use sha2::{Digest, Sha256};
use tine_core::json::{Json, Object};
use tine_core::sign::PrivateKey;
use tine_core::{ConversationId, EntityId, Message, Name, Reference, Role, TurnId};
use tine_engine::{
    Append, BisectQuery, BlameOf, BlameQuery, Call, CommitQuery, CommitView, Decision, DiffQuery,
    Engine, Fork, ForkPoint, Inject, MergeBranches, NewCommit, NewConversation, NewFact, Page,
    Predicate, Purge, PurgeTarget, ResolveConflicts, StoreFacts, Summary, Take, TurnRef,
};
use tine_store::MemoryStore;

use super::{at, check};

struct Talk {
    engine: Engine,
    call: Call,
    trip: ConversationId,
}

impl Talk {
    fn say(&self, branch: &str, text: &str) -> TurnId {
        let messages = vec![Message::text(Role::User, text)];
        let request =
            Append { branch: Some(branch.to_owned()), ..Append::to(self.trip.clone(), messages) };
        self.engine.append(&self.call, request).unwrap().turns[0].id
    }

    fn know(&self, turn: TurnId, field: &str, value: impl Into<Json>) -> EntityId {
        let mut fields = Object::new();
        fields.insert("name", "the trip".into());
        fields.insert(field, value.into());
        let turn = Some(Reference::from(turn));
        let fact = NewFact { turn, ..NewFact::of("trip", fields) };
        let request = StoreFacts { entities: vec![fact], ..StoreFacts::default() };
        self.engine.store_facts(&self.call, request).unwrap().entities[0].entity
    }

    fn within(&self, turn: &str) -> TurnRef {
        TurnRef::within(self.trip.clone(), at(turn))
    }

    fn commit(&self, branch: &str) -> CommitView {
        let request = NewCommit::of(self.trip.clone(), format!("On {branch}: é")).on(branch);
        self.engine.commit(&self.call, request).unwrap()
    }

    fn merging(&self, from: &str) -> MergeBranches {
        MergeBranches {
            conversation: self.trip.clone(),
            from: from.to_owned(),
            into: None,
            message: None,
            author: Some("Ann".to_owned()),
            summary: Summary::None,
            dry_run: false,
        }
    }

    fn diff(&self, from: &str, to: &str) -> tine_engine::Diff {
        let query = DiffQuery {
            conversation: Some(self.trip.clone()),
            from: from.to_owned(),
            to: to.to_owned(),
            limit: None,
        };
        self.engine.diff(&self.call, query).unwrap()
    }
}

/// A conversation about a trip, with a branch `side` at its first turn.
fn talk() -> (Talk, EntityId) {
    let engine = Engine::new(MemoryStore::new());
    let call = Call::by("somebody");
    let trip = engine.create_conversation(&call, NewConversation::named("trip").unwrap());
    let talk = Talk { trip: trip.unwrap().id, engine, call };
    let first = talk.say("main", "Ann Miller plans a trip to Tokyo. 🌸 What's the best time?");
    let entity = talk.know(first, "budget", 5_000_u64);
    let (conversation, name) = (Some(talk.trip.clone()), Some(Name::from_stored("side")));
    let fork = Fork { conversation, point: ForkPoint::At(at(&first.to_string())), name };
    talk.engine.fork(&talk.call, fork).unwrap();
    (talk, entity)
}

#[test]
fn every_answer_about_commits_is_read_back_equal_from_its_json() {
    let (talk, entity) = talk();
    let (engine, call) = (&talk.engine, &talk.call);
    let rings = engine.rings(call, talk.within("main")).unwrap();
    assert!(!rings.names.is_empty() && rings.rings.segments.len() > 1, "{rings:?}");
    check(&rings);

    let first = talk.commit("main");
    check(&first);
    let key = PrivateKey::from_random([7; 32]);
    let hash = first.hash.to_string();
    let signed = engine.sign_commit(call, &hash, &key.public(), &key.sign(&hash)).unwrap();
    assert!(signed.signature.as_ref().unwrap().valid);
    check(&signed);

    let ours = talk.say("main", "The budget is 6000 now, and we go in autumn.");
    talk.know(ours, "budget", 6_000_u64);
    let theirs = talk.say("side", "The budget is 7000 now, and we go in spring.");
    talk.know(theirs, "budget", 7_000_u64);
    talk.know(theirs, "city", "Kyoto");
    talk.know(theirs, "booking", 9_007_199_254_740_993_u64);
    let side = talk.commit("side");

    check(&talk.diff("main", "side"));
    check(&talk.diff(&hash, &side.hash.to_string()));
    check(&talk.diff("root", "main"));

    let rehearsed = MergeBranches { dry_run: true, ..talk.merging("side") };
    let rehearsed = engine.merge(call, rehearsed).unwrap();
    assert!(rehearsed.commit.is_none() && !rehearsed.changes.is_empty());
    check(&rehearsed);
    let merge = MergeBranches { summary: Summary::Generated, ..talk.merging("side") };
    let merged = engine.merge(call, merge).unwrap();
    assert_eq!(merged.conflicts.len(), 1);
    check(&merged);
    check(&talk.diff("main~1", "main"));
    check(&engine.merge(call, talk.merging("side")).unwrap());
    let resolve = ResolveConflicts {
        conversation: talk.trip.clone(),
        branch: None,
        decisions: vec![Decision { entity, field: "budget".to_owned(), take: Take::Side(2) }],
        message: None,
        author: None,
    };
    check(&engine.resolve_conflicts(call, resolve).unwrap());

    let inject = Inject {
        turn: talk.within(&theirs.to_string()),
        conversation: talk.trip.clone(),
        branch: None,
    };
    check(&engine.inject(call, inject).unwrap());
    let field = BlameOf::Field { entity, field: "city".to_owned() };
    for of in [field, BlameOf::Text("autumn".to_owned())] {
        for blamed in engine.blame(call, BlameQuery { at: talk.within("main"), of }).unwrap() {
            check(&blamed);
        }
    }
    let predicate = Predicate::Contains("autumn".to_owned());
    let bisect = BisectQuery { at: talk.within("main"), predicate };
    check(&engine.bisect(call, bisect).unwrap());
    let drift = engine.drift(call, &talk.trip, "main").unwrap();
    assert!(drift.iter().any(|one| one.from_parent.is_some_and(|far| far > 0.0)), "{drift:?}");
    for one in drift {
        check(&one);
    }

    let target = PurgeTarget::Turn(talk.within(&theirs.to_string()));
    let plan = engine.purge(call, Purge { target: target.clone(), confirm: None }).unwrap();
    engine.purge(call, Purge { target, confirm: plan.confirm }).unwrap();
    let commits = engine.commits(call, CommitQuery::default(), Page::default()).unwrap().items;
    assert_eq!(commits.len(), 5);
    for commit in commits {
        check(&commit);
    }
}

/// The members of a commit that its hash covers, as the reference of the interface lists them.
const HASHED: [&str; 10] = [
    "author",
    "branch",
    "conversation_id",
    "created_at",
    "facet_snapshot",
    "message",
    "parent_hashes",
    "root_hash",
    "turn_count",
    "turn_window",
];

#[test]
fn hashing_the_members_of_a_commit_gives_its_hash() {
    let (talk, _) = talk();
    let first = talk.commit("main");
    let said = talk.say("side", "Rather Kyoto, é.");
    talk.know(said, "city", "Kyōto 🌸");
    let merged = talk.engine.merge(&talk.call, talk.merging("side")).unwrap();
    for commit in [first, merged.commit.unwrap()] {
        let text = serde_json::to_string(&commit).unwrap();
        let mut answer: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap();
        answer.retain(|name, _| HASHED.contains(&name.as_str()));
        assert_eq!(answer.len(), HASHED.len(), "{text}");
        // Another canonicaliser than Tine's own.
        let canonical = serde_json_canonicalizer::to_string(&answer).unwrap();
        let digest = Sha256::digest(canonical.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(format!("sha256:{hex}"), commit.hash.to_string());
    }
}
