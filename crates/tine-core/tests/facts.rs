//! Snapshots are a function of observations: of nothing else, and of their order least of all.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tine_core::facts::reduce::{schema_version, unretracted};
use tine_core::facts::{
    Field, FieldKind, Observation, ObservationOrder, ObservationOrigin, Schema, Snapshot,
    Strategy as Counts, reduce,
};
use tine_core::json::{Json, Object};
use tine_core::{EntityId, ObservationId, Timestamp};

const FIELDS: [(&str, Counts); 4] = [
    ("last", Counts::LastWrite),
    ("high", Counts::HighestPriority),
    ("close", Counts::MostSpecific),
    ("all", Counts::MergedSet),
];

fn schema() -> Schema {
    let field = |(name, strategy): (&str, Counts)| {
        (name.to_owned(), Field { kind: FieldKind::Any, strategy })
    };
    Schema {
        entity_type: "thing".to_owned(),
        version: 3,
        description: None,
        fields: FIELDS.into_iter().map(field).collect(),
        identity: vec![],
    }
}

/// What one observation says, without its place.
#[derive(Clone, Debug)]
struct Statement {
    entity: u8,
    fields: Vec<(u8, u8)>,
    observed: i64,
    priority: i64,
    specificity: i64,
    correction: bool,
    retracts: Option<Index>,
    version: u32,
}

fn statements() -> impl Strategy<Value = Statement> {
    let fields = vec((0..5u8, 0..6u8), 0..5);
    let retracts = prop::option::weighted(0.3, any::<Index>());
    let correction = prop::bool::weighted(0.2);
    (0..3u8, fields, 0..4i64, 0..3i64, 0..3i64, correction, retracts, 0..4u32).prop_map(
        |(entity, fields, observed, priority, specificity, correction, retracts, version)| {
            Statement {
                entity,
                fields,
                observed,
                priority,
                specificity,
                correction,
                retracts,
                version,
            }
        },
    )
}

fn value(n: u8) -> Json {
    match n {
        0 => Json::Null,
        1 => Json::Array(vec!["b".into(), "a".into(), Json::Null]),
        2 => "a".into(),
        3 => Json::from(7),
        4 => Json::Array(vec![Json::Array(vec![]), "b".into()]),
        _ => Json::Array(vec![]),
    }
}

/// Observations as a merge brings them together: those of several entities, each numbered along
/// its own. Only an earlier one of the same entity is retracted.
fn observations(statements: &[Statement]) -> Vec<Observation> {
    let mut made: Vec<Observation> = Vec::new();
    for one in statements {
        let entity = EntityId::from_bytes([one.entity; 16]);
        let earlier: Vec<u64> =
            made.iter().filter(|it| it.id.entity == entity).map(|it| it.id.seq).collect();
        let retracts = match &one.retracts {
            Some(index) if !earlier.is_empty() => Some(*index.get(&earlier)),
            _ => None,
        };
        let names = FIELDS.map(|(name, _)| name);
        let mut fields = Object::new();
        for (name, content) in &one.fields {
            // The fifth is none that the schema knows.
            let name = names.get(usize::from(*name)).copied().unwrap_or("other");
            fields.insert(name, value(*content));
        }
        made.push(Observation {
            id: ObservationId { entity, seq: earlier.len() as u64 + 1 },
            entity_type: "thing".to_owned(),
            fields,
            source: None,
            interpretation: None,
            turn: None,
            span: None,
            observed_at: Timestamp::from_millis(one.observed),
            stored_at: Timestamp::from_millis(made.len() as i64),
            priority: one.priority,
            specificity: one.specificity,
            origin: ObservationOrigin::Agent,
            correction: one.correction,
            retracts,
            schema_version: one.version,
        });
    }
    made
}

/// Everything of a snapshot as bytes.
fn bytes(snapshot: &Snapshot) -> String {
    let fields = Json::Object(snapshot.fields.clone()).to_canonical();
    format!(
        "{fields} {:?} {} {:?} {}",
        snapshot.provenance,
        snapshot.observations,
        snapshot.last_observed_at,
        snapshot.schema_version
    )
}

/// The same rules in another way: retractions by recursion, each field by comparing all pairs.
fn by_hand(
    schema: &Schema,
    order: ObservationOrder,
    all: &[Observation],
) -> BTreeMap<String, Json> {
    fn is_gone(all: &[Observation], one: &Observation) -> bool {
        all.iter().any(|other| {
            other.id.entity == one.id.entity
                && other.retracts == Some(one.id.seq)
                && !is_gone(all, other)
        })
    }
    let later = |a: &Observation, b: &Observation| match order {
        ObservationOrder::Sequence => (a.id.seq, a.id.entity) > (b.id.seq, b.id.entity),
        ObservationOrder::ObservedTime => {
            (a.observed_at, a.id.seq, a.id.entity) > (b.observed_at, b.id.seq, b.id.entity)
        }
    };
    let counts: Vec<&Observation> =
        all.iter().filter(|one| one.retracts.is_none() && !is_gone(all, one)).collect();
    let names: BTreeSet<&str> = counts.iter().flat_map(|one| one.fields.keys()).collect();
    let mut found = BTreeMap::new();
    for name in names {
        let said: Vec<&Observation> =
            counts.iter().filter(|one| one.fields.contains_key(name)).copied().collect();
        let corrections: Vec<&Observation> =
            said.iter().filter(|one| one.correction).copied().collect();
        let strategy = schema.strategy(name);
        let beats = |a: &Observation, b: &Observation| match strategy {
            _ if !corrections.is_empty() => later(a, b),
            Counts::HighestPriority if a.priority != b.priority => a.priority > b.priority,
            Counts::MostSpecific if a.specificity != b.specificity => a.specificity > b.specificity,
            _ => later(a, b),
        };
        let among = if corrections.is_empty() { &said } else { &corrections };
        let value = if corrections.is_empty() && strategy == Counts::MergedSet {
            let mut members = BTreeMap::new();
            for one in among {
                let cleared = |other: &&Observation| {
                    other.fields.get(name) == Some(&Json::Null) && !later(one, other)
                };
                let value = one.fields.get(name).cloned().unwrap_or(Json::Null);
                let values = match value {
                    Json::Array(values) => values,
                    single => vec![single],
                };
                if !among.iter().any(cleared) {
                    let values = values.into_iter().filter(|it| !it.is_null());
                    members.extend(values.map(|it| (it.to_canonical(), it)));
                }
            }
            if members.is_empty() {
                Json::Null
            } else {
                members.into_values().collect::<Vec<_>>().into()
            }
        } else {
            let best = among
                .iter()
                .find(|a| among.iter().all(|b| a.id == b.id || beats(a, b)))
                .expect("one of them is the last");
            best.fields.get(name).cloned().unwrap_or(Json::Null)
        };
        if !value.is_null() {
            found.insert(name.to_owned(), value);
        }
    }
    found
}

fn orders() -> impl Strategy<Value = ObservationOrder> {
    prop_oneof![Just(ObservationOrder::Sequence), Just(ObservationOrder::ObservedTime)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_the_same_observations_gives_the_same_bytes(
        statements in vec(statements(), 0..16),
        order in orders(),
        keys in vec(any::<u32>(), 16),
    ) {
        let first = observations(&statements);
        let mut keyed: Vec<_> = keys.iter().zip(first.clone()).collect();
        keyed.sort_by_key(|(key, _)| **key);
        let second: Vec<Observation> = keyed.into_iter().map(|(_, one)| one).collect();
        let (a, b) = (reduce(&schema(), order, &first), reduce(&schema(), order, &second));
        prop_assert_eq!(bytes(&a), bytes(&b));
        prop_assert_eq!(schema_version(&first), schema_version(&second));
    }

    #[test]
    fn a_snapshot_is_what_the_rules_say(statements in vec(statements(), 0..14), order in orders()) {
        let all = observations(&statements);
        let snapshot = reduce(&schema(), order, &all);
        let fields: BTreeMap<String, Json> =
            snapshot.fields.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        prop_assert_eq!(fields, by_hand(&schema(), order, &all));
        // Every value leads to observations that stand and speak of it.
        let stands: Vec<ObservationId> = unretracted(&all).iter().map(|one| one.id).collect();
        prop_assert_eq!(snapshot.observations, stands.len());
        for (name, from) in &snapshot.provenance {
            prop_assert!(!from.is_empty());
            for id in from {
                prop_assert!(stands.contains(id));
                let one = all.iter().find(|one| one.id == *id).expect("it is among them");
                prop_assert!(one.fields.contains_key(name));
            }
        }
    }

    #[test]
    fn an_observation_is_read_back_whole(statements in vec(statements(), 1..8)) {
        for one in observations(&statements) {
            let kept = one.to_json().to_canonical();
            let json = tine_core::json::parse(kept.as_bytes(), 16).expect("canonical JSON");
            prop_assert_eq!(Observation::from_json(one.id, &json), Some(one));
        }
    }
}
