//! Trees at a glance.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::Served;

const PATH: &str = "/api/v1/conversations/trip/outline";

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|it| it.as_str().expect("a text")).collect()
}

/// The tree of a page after each answer: its rows, with their parents.
#[derive(Debug, Default, PartialEq)]
struct Drawn {
    seq: u64,
    parents: BTreeMap<String, Option<String>>,
    children: BTreeMap<Option<String>, Vec<String>>,
    names: BTreeMap<String, Value>,
}

impl Drawn {
    fn take(&mut self, answer: &Value) {
        if answer["whole"] == true {
            *self = Drawn::default();
        }
        self.seq = answer["seq"].as_u64().expect("a number");
        let ids = texts(&answer["ids"]);
        for (row, id) in ids.iter().enumerate() {
            let parent = match answer["parents"][row].as_i64().expect("a number") {
                -1 => None,
                -2 => Some(answer["parent_ids"][row.to_string()].as_str().expect("an id")),
                row => Some(ids[usize::try_from(row).expect("a row")]),
            };
            let (id, parent) = ((*id).to_owned(), parent.map(str::to_owned));
            if self.parents.insert(id.clone(), parent.clone()).is_none() {
                self.children.entry(parent).or_default().push(id.clone());
            }
            self.names
                .insert(id, json!([answer["titles"][row.to_string()], answer["previews"][row]]));
        }
    }

    fn whole(served: &Served) -> Drawn {
        let mut drawn = Drawn::default();
        drawn.take(&served.get(PATH).expect(200).json());
        drawn
    }
}

#[test]
fn an_outline_has_a_row_for_every_turn() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let call = json!({"messages": [{"role": "assistant", "metadata": {"source_info":
            {"model": "m1", "usage": {"input_tokens": 5, "output_tokens": 7}}}, "content": [
        {"type": "tool-use", "id": "1", "name": "look", "parameters": {}}]},
        {"role": "tool", "tool_call_id": "1", "content": "found"}], "parent": question,
        "branch": "side"});
    served.post("/api/v1/conversations/trip/turns", call).expect(201);
    served.put("/api/v1/bookmarks/here", json!({"turn": answer})).expect(200);
    let named = json!({"title": "When to go", "tags": ["plan"]});
    served.patch(&format!("/api/v1/turns/{question}/metadata"), named).expect(200);
    let outline = served.get(PATH).expect(200).json();
    assert_eq!((&outline["whole"], &outline["total"]), (&json!(true), &json!(4)));
    assert_eq!(texts(&outline["ids"])[..2], [&question, &answer]);
    assert_eq!(outline["parents"], json!([-1, 0, 0, 2]));
    assert_eq!((&outline["roles"], &outline["kinds"]), (&json!("uaat"), &json!("ttcr")));
    assert_eq!(outline["times"][0], 1_705_314_600_000_i64);
    assert_eq!(texts(&outline["previews"]), ["When?", "Late March", "→ look", "found"]);
    assert_eq!(outline["models"], json!([null, null, 0, null]));
    assert_eq!(outline["model_names"], json!(["m1"]));
    assert_eq!(outline["tokens"], json!([null, null, 12, null]));
    assert_eq!(outline["titles"], json!({"0": "When to go"}));
    assert_eq!(outline["tags"], json!({"0": ["plan"]}));
    assert_eq!(outline["bookmarks"], json!([{"name": "here", "turn_id": answer}]));
    assert_eq!(outline["branches"][0]["name"], "main");
    assert_eq!(outline["branches"][0]["turn_id"], json!(answer));
}

#[test]
fn incremental_outlines_add_up_to_the_whole_outline() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let mut drawn = Drawn::whole(&served);
    let mut step = |whole: bool| {
        let news = served.get(&format!("{PATH}?since={}", drawn.seq)).expect(200).json();
        assert_eq!(news["whole"], whole, "{news}");
        drawn.take(&news);
        assert_eq!(drawn, Drawn::whole(&served));
        news["ids"].as_array().expect("a list").len()
    };
    assert_eq!(step(false), 0, "nothing is new");
    served.say("trip", "And where?").expect(201);
    assert_eq!(step(false), 2, "the turn, and its parent");
    let edit = json!({"content": "When exactly?", "branch": "main"});
    let edited = served.post(&format!("/api/v1/turns/{question}/edit"), edit).expect(201);
    served.say("trip", "Well?").expect(201);
    assert_eq!(step(false), 2);
    served.post(&format!("/api/v1/turns/{answer}/fork"), json!({"name": "side"})).expect(201);
    served.put("/api/v1/bookmarks/here", json!({"turn": answer})).expect(200);
    assert_eq!(step(false), 0, "names alone");
    let title = json!({"title": "The other one"});
    let edited = edited.text("/turn/turn_id");
    served.patch(&format!("/api/v1/turns/{edited}/metadata"), title).expect(200);
    assert_eq!(step(false), 1);
    served.post("/api/v1/operations/latest/undo?conversation_id=trip", json!({})).expect(200);
    assert_eq!(step(true), 5, "undoing may change anything");
    served.delete(&format!("/api/v1/turns/{edited}")).expect(200);
    assert_eq!(step(true), 3);
    let split = json!({"offset": 4});
    served.post(&format!("/api/v1/turns/{answer}/split"), split).expect(200);
    assert_eq!(step(true), 4);
    served
        .post(
            "/api/v1/conversations/trip/turns",
            json!({"branch": "side", "messages": [
        {"role": "user", "content": "below a half"}]}),
        )
        .expect(201);
    step(false);
}

#[test]
fn the_pages_of_an_outline_are_of_one_state() {
    let served = Served::new();
    served.trip();
    served.say("trip", "And where?").expect(201);
    let whole = served.get(PATH).expect(200).json();
    let first = served.get(&format!("{PATH}?rows=2")).expect(200).json();
    let cursor = first["next"].as_str().expect("more");
    let second = served.get(&format!("{PATH}?rows=2&cursor={cursor}")).expect(200).json();
    let ids = [texts(&first["ids"]), texts(&second["ids"])].concat();
    assert_eq!(ids, texts(&whole["ids"]));
    assert_eq!((&second["parents"], &second["next"]), (&json!([1]), &Value::Null));
    served.say("trip", "Then?").expect(201);
    let refused = served.get(&format!("{PATH}?cursor={cursor}"));
    assert!(refused.refused(400, "invalid")["detail"].to_string().contains("begin again"));
    for bad in ["rows=0", "cursor=x", "cursor=1.x", "since=-1"] {
        served.get(&format!("{PATH}?{bad}")).refused(400, "invalid");
    }
    served.get(&format!("{PATH}?rows=200001")).refused(413, "too_large");
    assert_eq!(served.get(&format!("{PATH}?since=99")).expect(200).json()["whole"], true);
    served.get("/api/v1/conversations/none/outline").refused(404, "not_found");
}
