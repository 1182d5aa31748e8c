//! Branches, their tags, and races for them.

use std::sync::Barrier;

use serde_json::json;

use crate::harness::Served;

const MAIN: &str = "/api/v1/conversations/trip/branches/main";

#[test]
fn branches_are_created_renamed_moved_and_deleted() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let all = "/api/v1/conversations/trip/branches";
    let made = served.post(all, json!({"name": "side", "at": question})).expect(201);
    let id = made.text("/branch_id");
    served.post(all, json!({"name": "side"})).refused(409, "conflict");
    let renamed = served.patch(&format!("{all}/side"), json!({"name": "aside"})).expect(200);
    assert_eq!(renamed.text("/branch_id"), id);
    served.post(&format!("{MAIN}/revert"), json!({"to": question})).expect(200);
    let restored = served.post(&format!("{MAIN}/restore"), json!({})).expect(200);
    assert_eq!(restored.text("/tip"), answer);
    assert_eq!(served.get(&format!("{all}/{id}")).expect(200).text("/name"), "aside");
    let names = served.get(all).expect(200).json();
    assert_eq!(names["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(served.delete(&format!("{all}/aside")).expect(200).text("/branch_id"), id);
    served.delete(&format!("{all}/aside")).refused(404, "not_found");
}

#[test]
fn the_etag_of_a_branch_changes_with_every_update() {
    let served = Served::new();
    served.trip();
    let tag =
        |served: &Served| served.get(MAIN).expect(200).header("etag").expect("an ETag").to_owned();
    let first = tag(&served);
    assert_eq!(tag(&served), first);
    let said = served.say("trip", "more").expect(201);
    assert_ne!(tag(&served), first);
    assert_eq!(said.header("etag"), Some(tag(&served).as_str()));
}

#[test]
fn a_stale_etag_is_refused_with_the_actual_tip() {
    let served = Served::new();
    let (question, _) = served.trip();
    let seen = served.get(MAIN).expect(200).header("etag").expect("an ETag").to_owned();
    let conditional = served.and("if-match", &seen);
    let tip = conditional.say("trip", "first").expect(201).text("/tip");
    let refusals = [
        conditional.say("trip", "second"),
        conditional.patch(MAIN, json!({"name": "other"})),
        conditional.post(&format!("{MAIN}/revert"), json!({"to": question})),
        conditional.post(&format!("{MAIN}/restore"), json!({})),
        conditional.delete(MAIN),
    ];
    for refusal in refusals {
        let problem = refusal.refused(412, "conflict");
        assert_eq!(problem["actual_tip"]["turn_id"], tip, "{problem}");
    }
    served.and("if-match", "*").say("trip", "any").expect(201);
    for odd in ["\"x\"", "x", "W/\"x\"", "\"\""] {
        served.and("if-match", odd).say("trip", "odd").refused(400, "invalid");
    }
}

#[test]
fn a_wrong_expected_tip_is_refused_or_forked() {
    let served = Served::new();
    let (question, _) = served.trip();
    let at = "/api/v1/conversations/trip/turns";
    let stale = json!({"role": "user", "content": "late", "expected_tip": question});
    let problem = served.post(at, stale.clone()).refused(409, "conflict");
    assert!(problem["actual_tip"]["turn_id"].is_string());
    let mut forking = stale;
    forking["on_conflict"] = "fork".into();
    let forked = served.post(at, forking).expect(201).json();
    assert_eq!((&forked["forked"], &forked["branch"]["name"]), (&json!(true), &json!("main-1")));
}

#[test]
fn of_eight_racing_conditional_calls_exactly_one_wins() {
    const ROUNDS: usize = 12;
    let served = Served::new();
    served.trip();
    for round in 0..ROUNDS {
        let seen = served.get(MAIN).expect(200).header("etag").expect("an ETag").to_owned();
        let start = Barrier::new(8);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8)
                .map(|racer| {
                    let (client, start) = (served.and("if-match", &seen), &start);
                    scope.spawn(move || {
                        start.wait();
                        client.say("trip", &format!("round {round}, racer {racer}")).status
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().expect("a racer")).collect()
        });
        let won = statuses.iter().filter(|status| **status == 201).count();
        let lost = statuses.iter().filter(|status| **status == 412).count();
        assert_eq!((won, lost), (1, 7), "{statuses:?}");
    }
    let all = served.get("/api/v1/conversations/trip/turns").expect(200).json();
    assert_eq!(all["turns"].as_array().map(Vec::len), Some(2 + ROUNDS));
}
