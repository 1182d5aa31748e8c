//! Three-way merges of what is known, for any states.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tine_core::commit::{
    Commit, Facets, Fact, FactState, FieldConflict, FieldState, FieldValue, merge, merge_base_of,
};
use tine_core::json::Json;
use tine_core::{EntityId, ObservationId};

const FIELDS: [&str; 3] = ["budget", "city", "tags"];

fn entity(n: u8) -> EntityId {
    EntityId::from_bytes([n; 16])
}

/// A value of a field, or nothing. `tags` is a set.
fn value(field: &'static str) -> BoxedStrategy<Option<Json>> {
    if field == "tags" {
        let members = prop::collection::btree_set(0_u64..4, 0..4);
        let set = members.prop_map(|members: BTreeSet<u64>| {
            let members: Vec<Json> = members.into_iter().map(Json::from).collect();
            (!members.is_empty()).then_some(Json::Array(members))
        });
        return set.boxed();
    }
    prop::option::weighted(0.8, (0_u64..3).prop_map(Json::from)).boxed()
}

fn state() -> impl Strategy<Value = FactState> {
    let fact = (value(FIELDS[0]), value(FIELDS[1]), value(FIELDS[2]));
    prop::collection::vec(fact, 2).prop_map(|facts| {
        let mut state = FactState::default();
        for (n, (budget, city, tags)) in (0..).zip(facts) {
            let about = Fact {
                entity_type: "trip".to_owned(),
                sets: BTreeSet::from(["tags".to_owned()]),
                ..Fact::default()
            };
            for (field, json) in FIELDS.iter().zip([budget, city, tags]) {
                let from = vec![ObservationId { entity: entity(n), seq: 1 }];
                let held =
                    json.map(|json| FieldState::Value(FieldValue { json: Some(json), from }));
                state.set(entity(n), &about, field, held);
            }
        }
        state
    })
}

/// The same whatever the order in which sides are listed.
fn unordered(state: &FactState) -> FactState {
    let mut state = state.clone();
    for fact in state.facts.values_mut() {
        for held in fact.fields.values_mut() {
            if let FieldState::Conflict(FieldConflict { sides, bases }) = held {
                let key = |value: &FieldValue| value.json.as_ref().map(Json::to_canonical);
                sides.sort_by_key(key);
                bases.sort_by_key(key);
            }
        }
    }
    state
}

fn json(state: &FactState, n: u8, field: &str) -> Option<Json> {
    match state.field(entity(n), field) {
        Some(FieldState::Value(value)) => value.json.clone(),
        Some(FieldState::Conflict(_)) => panic!("a conflict"),
        None => None,
    }
}

proptest! {
    #[test]
    fn merging_is_symmetric(base in state(), ours in state(), theirs in state()) {
        let one = merge(&base, &ours, &theirs);
        let other = merge(&base, &theirs, &ours);
        prop_assert_eq!(unordered(&one), unordered(&other));
    }

    #[test]
    fn merging_an_unchanged_side_changes_nothing(base in state(), ours in state()) {
        prop_assert_eq!(merge(&base, &ours, &base), ours.clone());
        prop_assert_eq!(merge(&base, &base, &ours), ours.clone());
        prop_assert_eq!(merge(&base, &ours, &ours), ours);
    }

    /// One side changes some fields, the other side others.
    #[test]
    fn independent_edits_never_conflict(
        base in state(),
        other in state(),
        mine in prop::collection::vec(any::<bool>(), 6),
    ) {
        let (mut ours, mut theirs, mut wanted) = (base.clone(), base.clone(), base.clone());
        let about = Fact {
            entity_type: "trip".to_owned(),
            sets: BTreeSet::from(["tags".to_owned()]),
            ..Fact::default()
        };
        for (at, mine) in mine.iter().enumerate() {
            let (n, field) = (u8::try_from(at / 3).unwrap(), FIELDS[at % 3]);
            let held = other.field(entity(n), field).cloned();
            let side = if *mine { &mut ours } else { &mut theirs };
            side.set(entity(n), &about, field, held.clone());
            wanted.set(entity(n), &about, field, held);
        }
        let merged = merge(&base, &ours, &theirs);
        prop_assert_eq!(merged.conflicts().count(), 0);
        prop_assert_eq!(merged, wanted);
    }

    /// Wherever both sides changed a field to different values, there is a conflict that holds
    /// both; and nowhere else.
    #[test]
    fn a_conflict_is_never_lost(base in state(), ours in state(), theirs in state()) {
        let merged = merge(&base, &ours, &theirs);
        for n in 0..2 {
            for field in ["budget", "city"] {
                let [was, a, b] = [&base, &ours, &theirs].map(|state| json(state, n, field));
                let held = merged.field(entity(n), field);
                if was != a && was != b && a != b {
                    let Some(FieldState::Conflict(conflict)) = held else {
                        return Err(TestCaseError::fail(format!("{field} is no conflict")));
                    };
                    let sides: Vec<_> = conflict.sides.iter().map(|it| it.json.clone()).collect();
                    prop_assert_eq!(sides, vec![a, b]);
                    prop_assert_eq!(&conflict.bases[0].json, &was);
                } else {
                    let wanted = if was == a { b } else { a };
                    prop_assert_eq!(json(&merged, n, field), wanted);
                }
            }
        }
    }

    /// A conflict that is merged on stays one, until both sides decide it alike or one decides it.
    #[test]
    fn conflicts_are_merged_like_values(
        base in state(), ours in state(), theirs in state(), third in state(),
    ) {
        let merged = merge(&base, &ours, &theirs);
        prop_assert_eq!(merge(&merged, &merged, &third), third.clone());
        let further = merge(&base, &merged, &third);
        for (entity, _, field, conflict) in merged.conflicts() {
            let kept = further.field(entity, field);
            let sides = conflict.sides.len();
            prop_assert!(
                matches!(kept, Some(FieldState::Conflict(more)) if more.sides.len() >= sides)
                    || json_of(&third, entity, field).is_some_and(|it| {
                        conflict.sides.iter().any(|side| side.json == it)
                    }),
                "{} was {:?}, is {:?}", field, conflict, kept
            );
        }
    }

    #[test]
    fn sets_are_merged_member_by_member(base in state(), ours in state(), theirs in state()) {
        let merged = merge(&base, &ours, &theirs);
        let members = |state: &FactState| match json(state, 0, "tags") {
            Some(Json::Array(members)) => members,
            _ => Vec::new(),
        };
        let (was, a, b, both) = (members(&base), members(&ours), members(&theirs), members(&merged));
        for member in (0_u64..4).map(Json::from) {
            let wanted = match (was.contains(&member), a.contains(&member), b.contains(&member)) {
                (true, a, b) => a && b,
                (false, a, b) => a || b,
            };
            prop_assert_eq!(both.contains(&member), wanted);
        }
    }

    #[test]
    fn one_base_is_itself_and_the_order_of_equal_bases_does_not_matter(base in state()) {
        prop_assert_eq!(merge_base_of(std::slice::from_ref(&base)), base.clone());
        prop_assert_eq!(merge_base_of(&[base.clone(), base.clone()]), base);
    }

    #[test]
    fn a_commit_is_read_back_as_it_was_written(base in state(), ours in state(), theirs in state()) {
        let mut merged = merge(&base, &ours, &theirs);
        merged.mark_off_path(&ours);
        let commit = Commit {
            parents: Vec::new(),
            conversation: tine_core::ConversationId::from_stored("talk"),
            root_hash: tine_core::hash::root_hash(None, &Json::Null),
            branch: tine_core::Name::main(),
            message: "a \"quoted\" message\nof two lines".to_owned(),
            window: None,
            turns: 0,
            facets: Some(Facets { state: merged, ..Facets::default() }),
            author: "tester".to_owned(),
            created_at: "2024-01-15T12:00:00Z".parse().expect("a time"),
        };
        prop_assert_eq!(Commit::from_json(&commit.to_json()), Some(commit));
    }
}

fn json_of(state: &FactState, entity: EntityId, field: &str) -> Option<Option<Json>> {
    match state.field(entity, field) {
        Some(FieldState::Value(value)) => Some(value.json.clone()),
        Some(FieldState::Conflict(_)) => None,
        None => Some(None),
    }
}
