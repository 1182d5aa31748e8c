//! Answers of models.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tine_llm::reply::Responder;
use tine_llm::{Protocol, Provider, ProviderSettings};
use tine_server::Options;

use crate::harness::{Answer, Served, eventually};

const MAIN: &str = "/api/v1/conversations/trip/branches/main";

fn serving(models: &[(&str, Responder)]) -> Served {
    let models = models.iter().map(|(name, model)| ((*name).to_owned(), model.clone()));
    let served = Served::with(Options { models: models.collect(), ..Options::default() });
    served.trip();
    served
}

fn echoing() -> Served {
    serving(&[("echo", Responder::Echo)])
}

/// A model at an address where nothing listens.
fn nobody() -> Responder {
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:9".to_owned()),
        retries: Some(0),
        key_env: Some(String::new()),
        ..ProviderSettings::new(Protocol::OpenAi, "none")
    };
    let provider = Provider::new("nobody", settings).expect("a provider");
    Responder::Provider(tine_llm::Model::new(provider).expect("a model"))
}

/// The events of a stream that has ended.
fn events(answer: &Answer) -> Vec<(String, Value)> {
    let text = answer.as_text();
    let events = text.split("\n\n").filter(|event| !event.is_empty());
    events
        .map(|event| {
            let (kind, data) = event.split_once('\n').expect("two lines");
            let kind = kind.strip_prefix("event: ").expect("a kind").to_owned();
            let data = data.strip_prefix("data: ").expect("data");
            (kind, serde_json::from_str(data).expect("a document"))
        })
        .collect()
}

fn said(events: &[(String, Value)]) -> String {
    let deltas = events.iter().filter(|(kind, _)| kind == "delta");
    deltas.map(|(_, data)| data["text"].as_str().expect("a text")).collect()
}

fn tip(served: &Served) -> Value {
    served.get("/api/v1/turns/main?conversation_id=trip&rings=false").expect(200).json()
}

#[test]
fn a_message_and_its_reply_are_recorded() {
    let served = echoing();
    let answer = served.post(&format!("{MAIN}/reply"), json!({"content": "Well, when then?"}));
    let answer = answer.expect(200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events = events(&answer);
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["turn", "begin", "delta", "delta", "delta", "done"]);
    assert_eq!(said(&events), "Well, when then?");
    let (question, begin, done) = (&events[0].1, &events[1].1, &events[5].1);
    assert_eq!(question["turn"]["role"], "user");
    assert_eq!(begin["turn_id"], done["turn"]["turn_id"]);
    assert_eq!((&begin["provider"], &begin["model"]), (&json!("tine"), &json!("echo")));
    assert_eq!((&done["finish"], &done["forked"]), (&json!("stop"), &json!(false)));
    let tip = tip(&served);
    assert_eq!(tip["turn_id"], done["turn"]["turn_id"]);
    assert_eq!(tip["parent_id"], question["turn"]["turn_id"]);
    assert_eq!((&tip["role"], &tip["status"]), (&json!("assistant"), &json!("complete")));
    assert_eq!(tip["metadata"]["source_info"]["model"], "echo");
    assert_eq!(done["branch"]["tip"], tip["turn_id"]);
}

#[test]
fn a_recorded_question_gets_a_reply_without_being_appended_again() {
    let served = echoing();
    served.post(&format!("{MAIN}/reply"), json!({})).refused(400, "invalid");
    let question = served.say("trip", "And where?").expect(201).text("/turns/0/turn_id");
    let events = events(&served.send("POST", &format!("{MAIN}/reply"), None).expect(200));
    assert_eq!(events[0].1["turn"]["turn_id"], json!(question));
    assert_eq!(said(&events), "And where?");
    served.post("/api/v1/conversations", json!({"conversation_id": "new"})).expect(201);
    let empty = "/api/v1/conversations/new/branches/main/reply";
    served.post(empty, json!({})).refused(400, "invalid");
    served.post(empty, json!({"content": "First"})).expect(200);
}

#[test]
fn regenerating_creates_a_sibling_and_moves_the_given_branch() {
    let served = echoing();
    let old = tip(&served);
    let id = old["turn_id"].as_str().expect("an id");
    let again = format!("/api/v1/turns/{id}/regenerate");
    let events = events(&served.post(&again, json!({"branch": "main"})).expect(200));
    let done = &events.last().expect("an end").1;
    assert_eq!(said(&events), "When?");
    assert_eq!(done["turn"]["edited_from"], old["turn_id"]);
    assert_eq!(done["turn"]["parent_id"], old["parent_id"]);
    assert_eq!(tip(&served)["turn_id"], done["turn"]["turn_id"]);
    // Without a branch none moves.
    served.post(&again, json!({})).expect(200);
    assert_eq!(tip(&served)["turn_id"], done["turn"]["turn_id"]);
    let siblings = served.get(&format!("/api/v1/turns/{id}/siblings")).expect(200).json();
    assert_eq!(siblings["items"].as_array().expect("a list").len(), 3);
    let question = old["parent_id"].as_str().expect("an id");
    let refused = served.post(&format!("/api/v1/turns/{question}/regenerate"), json!({}));
    refused.refused(400, "invalid");
    served
        .post("/api/v1/conversations/trip/branches/none/reply", json!({"content": "x"}))
        .refused(404, "not_found");
}

/// A stream that is read as it comes.
struct Streaming(BufReader<TcpStream>);

impl Streaming {
    fn begin(served: &Served, path: &str, body: &Value) -> Self {
        let mut stream = served.connect();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("a request");
        Streaming(BufReader::new(stream))
    }

    /// Waits for an event and tells what it says.
    fn until(&mut self, kind: &str) -> Value {
        let mut wanted = false;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("a line") > 0, "no event `{kind}` came");
            match line.trim_end().split_once(": ") {
                Some(("event", found)) => wanted = found == kind,
                Some(("data", data)) if wanted => {
                    return serde_json::from_str(data).expect("a document");
                }
                _ => {}
            }
        }
    }
}

fn long() -> Value {
    json!({"content": "word ".repeat(250)})
}

#[test]
fn a_stopped_reply_is_recorded_as_partial() {
    let served = echoing();
    let mut stream = Streaming::begin(&served, &format!("{MAIN}/reply"), &long());
    let answer = stream.until("begin")["turn_id"].clone();
    stream.until("delta");
    let running = served.get("/api/v1/replies").expect(200).json();
    assert_eq!(running["items"][0]["turn_id"], answer);
    assert_eq!(running["items"][0]["model"], "echo");
    let other = served
        .delete(&format!("/api/v1/replies/{}?project_id=other", answer.as_str().expect("an id")));
    other.refused(404, "not_found");
    served.delete(&format!("/api/v1/replies/{}", answer.as_str().expect("an id"))).expect(200);
    let done = stream.until("done");
    assert_eq!((&done["finish"], &done["turn"]["status"]), (&json!("stopped"), &json!("partial")));
    let tip = tip(&served);
    assert_eq!((&tip["turn_id"], &tip["status"]), (&answer, &json!("partial")));
    let kept = tip["content"][0]["text"].as_str().expect("a text");
    assert!(!kept.is_empty() && "word ".repeat(250).starts_with(kept));
    let running = served.get("/api/v1/replies").expect(200).json();
    assert_eq!(running["items"], json!([]));
}

#[test]
fn a_reply_is_recorded_as_partial_if_its_client_disconnects() {
    let served = echoing();
    let mut stream = Streaming::begin(&served, &format!("{MAIN}/reply"), &long());
    let answer = stream.until("begin")["turn_id"].clone();
    stream.until("delta");
    drop(stream);
    eventually("the answer is recorded", || tip(&served)["turn_id"] == answer);
    assert_eq!(tip(&served)["status"], "partial");
}

#[test]
fn a_stopping_server_ends_replies_and_records_them() {
    let served = echoing();
    let mut stream = Streaming::begin(&served, &format!("{MAIN}/reply"), &long());
    stream.until("delta");
    served.tell_to_stop();
    assert_eq!(stream.until("done")["turn"]["status"], "partial");
}

#[test]
fn a_reply_gets_a_new_branch_if_its_branch_moved_meanwhile() {
    let served = echoing();
    let old = tip(&served)["turn_id"].as_str().expect("an id").to_owned();
    let mut stream = Streaming::begin(&served, &format!("{MAIN}/reply"), &long());
    let question = stream.until("turn")["turn"]["turn_id"].clone();
    let again = format!("/api/v1/turns/{old}/regenerate");
    served.say("trip", "Never mind").expect(201);
    let done = stream.until("done");
    assert_eq!((&done["forked"], &done["turn"]["parent_id"]), (&json!(true), &question));
    assert_ne!(done["branch"]["name"], "main");
    assert_eq!(tip(&served)["content"][0]["text"], "Never mind");
    // The same for a regenerated reply.
    served.say("trip", &"word ".repeat(250)).expect(201);
    let last = served
        .post("/api/v1/conversations/trip/turns", json!({"role": "assistant", "content": "Hm"}));
    let last = last.expect(201).text("/turns/0/turn_id");
    let again_last = format!("/api/v1/turns/{last}/regenerate");
    let mut stream = Streaming::begin(&served, &again_last, &json!({"branch": "main"}));
    stream.until("delta");
    served.say("trip", "Wait").expect(201);
    let done = stream.until("done");
    assert_eq!((&done["forked"], &done["branch"]["tip"]), (&json!(true), &done["turn"]["turn_id"]));
    assert_eq!(tip(&served)["content"][0]["text"], "Wait");
    served.post(&again, json!({})).expect(200);
}

#[test]
fn a_failed_reply_is_reported_and_the_question_is_kept() {
    let served = serving(&[("nobody", nobody()), ("echo", Responder::Echo)]);
    let events =
        events(&served.post(&format!("{MAIN}/reply"), json!({"content": "Hm?"})).expect(200));
    let (kind, data) = events.last().expect("an end");
    assert_eq!((kind.as_str(), &data["turn"]), ("error", &Value::Null));
    assert_eq!(data["problem"]["status"], 500);
    assert_eq!(tip(&served)["content"][0]["text"], "Hm?");
    let body = json!({"model": "echo"});
    served.post(&format!("{MAIN}/reply"), body).expect(200);
    assert_eq!(tip(&served)["role"], "assistant");
    let body = json!({"content": "x", "model": "unknown"});
    let refused = served.post(&format!("{MAIN}/reply"), body).refused(404, "not_found");
    assert!(refused["detail"].as_str().is_some_and(|it| it.contains("nobody, echo")));
}

#[test]
fn the_configured_models_are_listed() {
    let none = Served::new();
    none.trip();
    assert_eq!(none.get("/api/v1/models").expect(200).json()["items"], json!([]));
    let refused = none.post(&format!("{MAIN}/reply"), json!({"content": "x"}));
    assert!(refused.refused(422, "unsupported")["detail"].to_string().contains("--model"));
    assert_eq!(tip(&none)["role"], "assistant", "nothing was recorded");
    let served = serving(&[("echo", Responder::Echo), ("other", nobody())]);
    let models = served.get("/api/v1/models").expect(200).json();
    assert_eq!(
        models["items"][0],
        json!({"name": "echo", "provider": "tine", "model": "echo", "default": true})
    );
    assert_eq!(models["items"][1]["default"], false);
}

#[test]
fn a_question_with_a_key_is_appended_once() {
    let served = echoing();
    let keyed = served.and("idempotency-key", "k1");
    keyed.post(&format!("{MAIN}/reply"), json!({"content": "Once"})).expect(200);
    let again = keyed.post(&format!("{MAIN}/reply"), json!({"content": "Once"}));
    again.refused(409, "conflict");
}

#[test]
fn concurrent_replies_are_limited() {
    let models = vec![("echo".to_owned(), Responder::Echo)];
    let served = Served::with(Options { models, replies: 1, ..Options::default() });
    served.trip();
    let mut stream = Streaming::begin(&served, &format!("{MAIN}/reply"), &long());
    stream.until("delta");
    served.post(&format!("{MAIN}/reply"), json!({"content": "More"})).refused(503, "busy");
    stream.until("done");
}
