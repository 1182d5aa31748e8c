//! Merging branches.

use tine_core::Json;
use tine_core::commit::{FactState, FieldState};
use tine_core::{ConversationId, EntityId, TurnId};
use tine_engine::{CommitView, Decision, ResolveConflicts, Summary, Take};

use crate::world::{World, for_each_store, user};

/// A conversation with a trip of 5,000 to Tokyo and a hotel, and a branch beside `main`.
fn parted(world: &World) -> (ConversationId, EntityId, TurnId) {
    let talk = world.talk("trip");
    let said = world.say(&talk, &["Plan a trip to Tokyo for 5000."]);
    let hotel = ("hotel", Json::from("Park"));
    let trip =
        world.trip(said[0], &[("budget", 5_000_u64.into()), ("city", "Tokyo".into()), hotel]);
    world.fork_at(&talk, said[0], "side");
    (talk, trip, said[0])
}

fn state(view: &CommitView) -> &FactState {
    &view.commit.facets.as_ref().expect("facets").state
}

fn value(view: &CommitView, entity: EntityId, field: &str) -> Option<Json> {
    match state(view).field(entity, field)? {
        FieldState::Value(value) => value.json.clone(),
        FieldState::Conflict(_) => Some("conflict".into()),
    }
}

#[test]
fn sides_that_change_different_fields_never_conflict() {
    for_each_store(|world| {
        let (talk, trip, root) = parted(world);
        let ours = world.say(&talk, &["Make it 6000, and no hotel."]);
        world.trip(ours[0], &[("budget", 6_000_u64.into()), ("hotel", Json::Null)]);
        let theirs = world.say_under(&talk, root, "side", user("Rather Kyoto."));
        world.trip(theirs, &[("city", "Kyoto".into())]);
        let merged = world.merge(&talk, "side", "main");
        assert!(merged.conflicts.is_empty(), "{:?}", merged.conflicts);
        assert_eq!(merged.committed.len(), 2);
        let commit = merged.commit.expect("a merge");
        assert_eq!(commit.commit.parents.len(), 2);
        assert_eq!(commit.commit.window, None);
        assert_eq!(value(&commit, trip, "budget"), Some(6_000_u64.into()));
        assert_eq!(value(&commit, trip, "city"), Some("Kyoto".into()));
        assert_eq!(value(&commit, trip, "hotel"), None, "a deletion stays deleted");
        // The turns of `main` are its own.
        assert_eq!(world.path(&talk, "main").matches("Kyoto").count(), 0);
        // Merged facts are still known after further turns.
        world.say(&talk, &["And then?"]);
        let next = world.commit(&talk, "main", "later");
        assert_eq!(value(&next, trip, "city"), Some("Kyoto".into()));
        assert_eq!(value(&next, trip, "hotel"), None);
        world.verified();
    });
}

#[test]
fn merging_an_ancestor_changes_nothing() {
    for_each_store(|world| {
        let (talk, _, root) = parted(world);
        world.say(&talk, &["More on main."]);
        let before = world.export();
        let merged = world.merge(&talk, "side", "main");
        assert!(merged.up_to_date && merged.commit.is_none());
        assert_eq!(world.export(), before);
        let theirs = world.say_under(&talk, root, "side", user("Rather Kyoto."));
        world.trip(theirs, &[("city", "Kyoto".into())]);
        assert!(!world.merge(&talk, "side", "main").up_to_date);
        assert!(world.merge(&talk, "side", "main").up_to_date);
        world.verified();
    });
}

#[test]
fn a_conflict_is_kept_until_it_is_resolved() {
    for_each_store(|world| {
        let (talk, trip, root) = parted(world);
        let ours = world.say(&talk, &["Make it 6000."]);
        world.trip(ours[0], &[("budget", 6_000_u64.into())]);
        let theirs = world.say_under(&talk, root, "side", user("4000 at most, no city yet."));
        world.trip(theirs, &[("budget", 4_000_u64.into()), ("city", Json::Null)]);
        let main = world.say(&talk, &["Kyoto is nicer."]);
        world.trip(main[0], &[("city", "Kyoto".into())]);
        let merged = world.merge(&talk, "side", "main");
        let fields: Vec<&str> = merged.conflicts.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["budget", "city"], "modified here, deleted there is one too");
        let budget = &merged.conflicts[0];
        let sides: Vec<_> = budget.sides.iter().map(|side| side.json.clone()).collect();
        assert_eq!(sides, [Some(6_000_u64.into()), Some(4_000_u64.into())]);
        assert_eq!(budget.bases[0].json, Some(5_000_u64.into()));
        world.say(&talk, &["Let's see."]);
        let carried = world.commit(&talk, "main", "later");
        assert_eq!(state(&carried).conflicts().count(), 2);
        let decide = |field: &str, take: Take| Decision { entity: trip, field: field.into(), take };
        let request = ResolveConflicts {
            conversation: talk.clone(),
            branch: None,
            decisions: vec![
                decide("budget", Take::Side(2)),
                decide("city", Take::Value("Nara".into())),
            ],
            message: None,
            author: None,
        };
        let decided = world.engine.resolve_conflicts(&world.call, request).expect("a decision");
        assert_eq!(state(&decided).conflicts().count(), 0);
        assert_eq!(value(&decided, trip, "budget"), Some(4_000_u64.into()));
        assert_eq!(value(&decided, trip, "city"), Some("Nara".into()));
        // A turn that says something new decides by itself.
        let last = world.say(&talk, &["7000, final."]);
        world.trip(last[0], &[("budget", 7_000_u64.into())]);
        let newest = world.commit(&talk, "main", "final");
        assert_eq!(value(&newest, trip, "budget"), Some(7_000_u64.into()));
        assert_eq!(value(&newest, trip, "city"), Some("Nara".into()));
        world.verified();
    });
}

#[test]
fn a_dry_run_reports_the_result_of_a_merge_and_writes_nothing() {
    for_each_store(|world| {
        let (talk, _, root) = parted(world);
        let theirs = world.say_under(&talk, root, "side", user("Let's go with Kyoto."));
        world.trip(theirs, &[("city", "Kyoto".into())]);
        let before = world.export();
        let mut request = world.merging(&talk, "side", "main");
        request.dry_run = true;
        request.summary = Summary::Generated;
        let preview = world.engine.merge(&world.call, request.clone()).expect("a rehearsal");
        assert_eq!(world.export(), before);
        assert_eq!(preview.changes.len(), 1);
        assert!(preview.commit.is_none() && preview.dry_run && !preview.up_to_date);
        assert!(
            preview.summary.iter().any(|line| line.text.contains("Kyoto")),
            "{:?}",
            preview.summary
        );
        assert!(preview.summary.iter().any(|line| line.turn.is_some()));
        request.dry_run = false;
        let done = world.engine.merge(&world.call, request).expect("a merge");
        let turn = done.turn.expect("a turn about the other side");
        assert!(world.path(&talk, "main").contains("From the branch side"));
        let commit = done.commit.expect("a merge").commit;
        assert_eq!(commit.turns, 1);
        let hash = world.engine.turn(&world.call, world.turn(turn)).expect("a turn").hash;
        assert_eq!(commit.window.expect("a window").end, hash);
        world.verified();
    });
}
