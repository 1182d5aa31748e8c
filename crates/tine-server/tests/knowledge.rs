//! Runs, entities, relationships and schemas.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tine_core::{Limits, Timestamp};
use tine_engine::Clock;
use tine_server::{Options, TokenFile, TokenRule};

use crate::access::token;
use crate::harness::{Answer, Served, eventually};

fn text(served: &Served, text: &str, interpret: &str) -> Value {
    let body = json!({"text": text, "mime_type": "text/plain", "interpret": interpret});
    let made = served.post("/api/v1/sources", body);
    assert!(made.status < 300, "{}", made.as_text());
    made.json()
}

fn idle() -> Served {
    Served::with(Options { interprets: false, ..Options::default() })
}

fn id<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

fn store(served: &Served, entity: Value) -> Value {
    served.post("/api/v1/store", json!({"entities": [entity]})).expect(201).json()
}

#[test]
fn queued_runs_are_performed_in_the_background() {
    let served = Served::new();
    let made = text(&served, "I need to call Maria Lopez tomorrow.", "queue");
    let run = format!("/api/v1/interpretations/{}", id(&made, "/interpretation/interpretation_id"));
    eventually("the run is done", || served.get(&run).text("/status") == "completed");
    let whole = served.get(&run).expect(200).json();
    assert!(whole["observations"].as_array().is_some_and(|it| !it.is_empty()), "{whole}");
    assert_eq!(whole["interpreter"], "rules");
    assert_eq!(whole["detail"]["kind"], "rules");
    eventually("the runs are counted", || {
        let counts = served.get("/metrics").as_text();
        counts.contains("tine_interpretation_runs_total{status=\"completed\"} 1\n")
            && counts.contains("tine_interpretations_queued 0\n")
    });
    // By default, sources are queued and facts are not.
    let body = json!({"text": "Ask Ann Lee.", "mime_type": "text/plain"});
    let queued = served.post("/api/v1/sources", body).expect(201).json();
    assert!(queued.get("interpretation").is_some(), "{queued}");
}

#[test]
fn runs_queued_by_another_process_are_performed() {
    let served = Served::new();
    let engine = served.beside();
    let call = tine_engine::Call::by("elsewhere");
    let kept = engine.store_source(
        &call,
        tine_engine::NewSource {
            content: Arc::new(b"Call Ann Lee.".to_vec()),
            mime_type: "text/plain".to_owned(),
            original_filename: None,
            interpret: tine_engine::Interpret::Queue,
            interpreter: None,
        },
    );
    let run = kept.expect("a source").interpretation.expect("a run").id;
    let run = format!("/api/v1/interpretations/{run}");
    eventually("the run is done", || served.get(&run).text("/status") == "completed");
}

/// An interpreter with a defect.
struct Broken;

impl tine_analysis::Interpreter for Broken {
    fn about(&self) -> tine_analysis::InterpreterInfo {
        tine_analysis::InterpreterInfo {
            name: "broken".to_owned(),
            version: "1".to_owned(),
            kind: tine_analysis::InterpreterKind::Rules,
            provider: None,
            model: None,
            parameters: tine_core::Json::Null,
            seed: None,
        }
    }

    fn interpret(
        &self,
        _: &tine_analysis::Material<'_>,
        _: &mut tine_analysis::Account,
    ) -> Result<Vec<tine_analysis::Finding>, tine_analysis::InterpreterFailure> {
        panic!("a defect, on purpose")
    }

    fn replay(
        &self,
        _: &tine_analysis::Material<'_>,
        _: Option<&[u8]>,
    ) -> Result<Vec<tine_analysis::Finding>, tine_analysis::InterpreterFailure> {
        panic!("a defect, on purpose")
    }
}

#[test]
fn a_panicking_interpreter_does_not_block_other_runs() {
    let folder = TempDir::new().expect("a folder");
    let served = Served::by(folder, Options::default(), |store| {
        let clock = Arc::new(tine_engine::SystemClock);
        let entropy = Arc::new(tine_engine::SystemEntropy);
        let engine = tine_engine::Engine::with(store, clock, entropy, Limits::default());
        engine.with_interpreters(tine_engine::Interpreters::rules().with(Arc::new(Broken)))
    });
    let broken = json!({"text": "a", "mime_type": "text/plain", "interpreter": "broken"});
    served.post("/api/v1/sources", broken).expect(201);
    let made = text(&served, "Ann Lee lives in Rome.", "queue");
    let run = format!("/api/v1/interpretations/{}", id(&made, "/interpretation/interpretation_id"));
    eventually("the other run is done", || served.get(&run).text("/status") == "completed");
    let counts = served.get("/metrics").as_text();
    assert!(counts.contains("tine_interpretation_runs_total{status=\"error\"} 1\n"), "{counts}");
}

#[test]
fn a_server_stops_while_runs_are_queued() {
    let served = Served::new();
    for n in 0..50 {
        text(&served, &format!("I need to call Maria Lopez, number {n}."), "queue");
    }
    let folder = served.stop();
    // What was not done then is done by the next.
    let served = Served::over(folder, Options::default(), Limits::default());
    eventually("all runs are done", || {
        served.get("/api/v1/interpretations/queue").json()["queued"] == 0
    });
    let runs = served.walk("/api/v1/interpretations?limit=20", "items");
    assert_eq!(runs.len(), 50);
    assert!(runs.iter().all(|run| run["status"] == "completed" || run["status"] == "running"));
}

#[test]
fn runs_are_queued_listed_and_awaited() {
    let served = idle();
    let made = text(&served, "Ann Lee lives in Paris.", "queue");
    let (run, source) =
        (id(&made, "/interpretation/interpretation_id"), id(&made, "/source_id").to_owned());
    let queue = served.get("/api/v1/interpretations/queue").expect(200).json();
    assert_eq!((&queue["queued"], &queue["default"]), (&json!(1), &json!("rules")));
    assert!(queue["interpreters"]["rules"].is_string());
    assert!(served.get("/metrics").as_text().contains("tine_interpretations_queued 1\n"));
    let open = served.get("/api/v1/interpretations?open=true").expect(200).json();
    assert_eq!(open["items"][0]["status"], "queued");
    let ended = served.get(&format!("/api/v1/interpretations/{run}?wait=true")).expect(200).json();
    assert_eq!(ended["status"], "completed");
    let open = served.get("/api/v1/interpretations?open=true").expect(200).json();
    assert_eq!(open["items"], json!([]));
    let all = served.get("/api/v1/interpretations").expect(200).json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1));
    let of_source = format!("/api/v1/sources/{source}/interpretations");
    let again = served.post(&of_source, json!({"interpreter": "rules", "wait": true})).expect(201);
    assert_eq!(again.text("/status"), "completed");
    assert_eq!(served.walk(&format!("{of_source}?limit=1"), "items").len(), 2);
    let compared =
        format!("/api/v1/interpretations/{run}/compare?with={}", again.text("/interpretation_id"));
    let compared = served.get(&compared).expect(200).json();
    assert!(compared["same"].as_u64() > Some(0), "{compared}");
    assert_eq!(compared["gained"], json!([]));
    let filtered = json!({"mime_type": "text/plain", "since": "2020-01-01", "wait": true});
    let made = served.post("/api/v1/interpretations", filtered).expect(201).json();
    assert_eq!(made["items"][0]["status"], "completed");
    let nothing = json!({"mime_type": "text/html"});
    assert_eq!(
        served.post("/api/v1/interpretations", nothing).expect(200).json()["items"],
        json!([])
    );
    let named = json!({"source_ids": [source]});
    served.post("/api/v1/interpretations", named).expect(201);

    let at = "/api/v1/interpretations";
    served.post(at, json!({})).refused(400, "invalid");
    served.post(at, json!({"source_ids": ["x"]})).refused(400, "invalid");
    served.post(at, json!({"since": "then"})).refused(400, "invalid");
    served.post(at, json!({"failed": true, "interpreter": "nobody"})).refused(400, "invalid");
    served.post(at, json!({"sources": []})).refused(400, "invalid");
    let none = "int_00000000000000000000000000000000";
    served.get(&format!("{at}/{none}")).refused(404, "not_found");
    served.get(&format!("{at}/{none}?wait=true")).refused(404, "not_found");
    served.get(&format!("{at}/nothing")).refused(400, "invalid");
    served.get(&format!("{at}/{none}?include=all")).refused(400, "invalid");
    served.get(&format!("{at}/{none}/compare?with={none}")).refused(404, "not_found");
    served.get(&format!("{at}/{none}/compare")).refused(400, "invalid");
    served.post(&format!("{at}/{none}/retry"), json!({})).refused(404, "not_found");
    served.post(&format!("{at}/{run}/retry"), json!({})).refused(400, "invalid");
    served
        .get("/api/v1/sources/src_00000000000000000000000000000000/interpretations")
        .refused(404, "not_found");
    served.get(&format!("{at}?cursor=x")).refused(400, "invalid");
    served.get(&format!("/api/v1/prompts/{}", "0".repeat(64))).refused(404, "not_found");
    served.get("/api/v1/prompts/short").refused(400, "invalid");
}

#[test]
fn a_failed_run_has_an_error_and_can_be_retried() {
    let served = idle();
    let raw = served.and("content-type", "text/plain");
    let made = raw.send("POST", "/api/v1/sources?interpret=wait", Some(b"\xff\xfe")).expect(201);
    assert_eq!(made.text("/interpretation/status"), "failed");
    assert!(made.text("/interpretation/error").contains("UTF-8"));
    let run = made.text("/interpretation/interpretation_id");
    let again = served.post(&format!("/api/v1/interpretations/{run}/retry"), json!({})).expect(201);
    assert_eq!(again.text("/retry_of"), run);
    let ended = format!("/api/v1/interpretations/{}?wait=true", again.text("/interpretation_id"));
    assert_eq!(served.get(&ended).expect(200).text("/status"), "failed");
    let failed = json!({"failed": true});
    let found = served.post("/api/v1/interpretations", failed).expect(201).json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn requests_that_wait_for_runs_are_limited() {
    let served = Served::with(Options { waits: 0, interprets: false, ..Options::default() });
    let body = json!({"text": "a", "mime_type": "text/plain", "interpret": "wait"});
    served.post("/api/v1/sources", body).refused(503, "busy");
    assert_eq!(served.get("/api/v1/sources").expect(200).json()["items"], json!([]));
}

#[test]
fn entities_are_listed_retrieved_and_traced_to_their_bytes() {
    let served = idle();
    let source = text(&served, "Ann Lee moves to Rome on 14 March 2025.", "wait");
    let found = served.get("/api/v1/entities?entity_type=person&q=ann").expect(200).json();
    let ann = id(&found, "/items/0/entity_id").to_owned();
    assert_eq!(found["items"][0]["name"], "Ann Lee");
    let at = format!("/api/v1/entities/{ann}");
    let shown = served.get(&at).expect(200).json();
    assert_eq!(shown["fields"]["name"], "Ann Lee");
    assert!(shown["provenance"]["name"][0].as_str().is_some_and(|it| it.starts_with("obs_")));
    let seen = served.get(&format!("{at}/observations?limit=1")).expect(200).json();
    assert_eq!(seen["items"][0]["source_id"], source["source_id"]);
    assert_eq!(seen["items"][0]["origin"], "rules");
    let way = served.get(&format!("{at}/provenance?field=name")).expect(200).json();
    let step = &way["items"][0]["evidence"][0];
    assert_eq!(way["items"][0]["value"], "Ann Lee");
    assert!(
        step["observation"]["quote"].as_str().is_some_and(|it| it.contains("Ann Lee")),
        "{way}"
    );
    assert_eq!(step["source"]["source_id"], source["source_id"]);
    assert_eq!(step["interpretation"]["status"], "completed");
    served.get(&format!("{at}/provenance?field=shoe_size")).refused(404, "not_found");
    let dated = json!({"entity_type": "event", "fields": {"title": "Move", "date": "2025-03-14"}});
    store(&served, dated);
    let times = "/api/v1/timeline?from=2025-03-14&to=2025-03-15";
    let times = served.walk(&format!("{times}&limit=1"), "items");
    assert!(times.iter().any(|it| it["date"] == "2025-03-14"), "{times:?}");
    let later = served.get("/api/v1/timeline?from=2025-03-15T00:00:00Z").expect(200).json();
    assert_eq!(later["items"], json!([]));
    served.get("/api/v1/timeline?from=soon").refused(400, "invalid");
    let all = served.walk("/api/v1/entities?limit=1", "items");
    assert!(all.len() > 2, "{all:?}");
    served.get("/api/v1/entities?entity_type=Person").refused(400, "invalid");
    served.get("/api/v1/entities?cursor=zz").refused(400, "invalid");
    served.get("/api/v1/entities?kind=person").refused(400, "invalid");
    served.get("/api/v1/entities/ann").refused(400, "invalid");
    let none = "/api/v1/entities/ent_00000000000000000000000000000000";
    for rest in ["", "/observations", "/provenance"] {
        served.get(&format!("{none}{rest}")).refused(404, "not_found");
    }
    served.get(&format!("{at}?at=once")).refused(400, "invalid");
}

/// A clock that a test moves.
struct Hands(std::sync::atomic::AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }
}

#[test]
fn corrections_apply_from_their_time_on() {
    let start: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
    let clock = Arc::new(Hands(start.as_millis().into()));
    let options = Options { interprets: false, ..Options::default() };
    let folder = TempDir::new().expect("a folder");
    let served = Served::at(folder, options, Limits::default(), Arc::clone(&clock) as _);
    let made = store(&served, json!({"entity_type": "person", "name": "Ann", "city": "Rome"}));
    let at = format!("/api/v1/entities/{}", id(&made, "/entities/0/entity_id"));
    clock.0.fetch_add(24 * 3_600_000, std::sync::atomic::Ordering::SeqCst);
    let right = json!({"fields": {"city": "Oslo"}});
    let told = served.post(&format!("{at}/corrections"), right).expect(201).json();
    assert_eq!((&told["correction"], &told["origin"]), (&json!(true), &json!("human")));
    let city = |query: &str| served.get(&format!("{at}{query}")).expect(200).text("/fields/city");
    assert_eq!(city(""), "Oslo");
    assert_eq!(city("?at=2025-01-01T12:00:00Z"), "Rome");
    assert_eq!(city("?at_stored=2025-01-01T12:00:00Z"), "Rome");
    let wrong =
        |body: Value| served.post(&format!("{at}/corrections"), body).refused(400, "invalid");
    wrong(json!({}));
    wrong(json!({"fields": {}}));
    wrong(json!({"fields": []}));
    wrong(json!({"fields": {"city": "Oslo"}, "observed_at": "then"}));
    wrong(json!({"fields": {"city": "Oslo"}, "reason": "none"}));
    let turn = json!({"conversation_id": "c", "turn_id": "1", "role": "user", "content": "x"});
    let slot = served.post("/api/v1/store/turn", turn).expect(201).text("/entity_id");
    let edit = json!({"fields": {"content": "y"}});
    served.post(&format!("/api/v1/entities/{slot}/corrections"), edit).refused(422, "unsupported");
}

#[test]
fn entities_are_merged_separated_deleted_and_restored() {
    let served = idle();
    let one = store(&served, json!({"entity_type": "person", "name": "Ann Lee"}));
    let two = store(&served, json!({"entity_type": "person", "name": "A. Lee"}));
    let task = store(&served, json!({"entity_type": "task", "title": "Call"}));
    let (one, two) = (id(&one, "/entities/0/entity_id"), id(&two, "/entities/0/entity_id"));
    let task = id(&task, "/entities/0/entity_id");
    let at = |entity: &str, verb: &str| format!("/api/v1/entities/{entity}{verb}");
    served.post(&at(two, "/merge"), json!({"into": task})).refused(400, "invalid");
    served.post(&at(two, "/merge"), json!({"into": two})).refused(400, "invalid");
    served.post(&at(two, "/merge"), json!({})).refused(400, "invalid");
    let merged = served.post(&at(two, "/merge"), json!({"into": one})).expect(200).json();
    assert_eq!((id(&merged, "/entity_id"), &merged["observations"]), (one, &json!(2)));
    assert_eq!(served.get(&at(two, "")).expect(200).text("/merged_from"), two);
    let seen = served.get(&at(one, "/observations")).expect(200).json();
    let other = seen["items"].as_array().unwrap().iter();
    let other: Vec<_> = other.filter(|it| it["fields"]["name"] == "A. Lee").collect();
    let apart = json!({"observations": [other[0]["observation_id"]]});
    let apart = served.post(&at(one, "/separate"), apart).expect(200).json();
    assert_ne!(id(&apart, "/entity_id"), one);
    served.post(&at(one, "/separate"), json!({"observations": []})).refused(400, "invalid");
    served.post(&at(one, "/separate"), json!({"observations": ["x"]})).refused(400, "invalid");
    let gone = served.delete(&at(one, "")).expect(200).json();
    assert!(gone["deleted_at"].is_string());
    let listed = |query: &str| {
        let found = served.get(&format!("/api/v1/entities?entity_type=person{query}")).expect(200);
        let found = found.json();
        found["items"].as_array().unwrap().iter().any(|it| it["entity_id"] == one)
    };
    assert!(!listed("") && listed("&deleted=true"));
    served.post(&at(one, "/restore"), json!({})).expect(200);
    assert!(listed(""));
    let none = "ent_00000000000000000000000000000000";
    served.delete(&at(none, "")).refused(404, "not_found");
    served.post(&at(none, "/restore"), json!({})).refused(404, "not_found");
    served.post(&at(none, "/merge"), json!({"into": one})).refused(404, "not_found");
}

#[test]
fn relationships_are_created_listed_and_deleted() {
    let served = idle();
    let (question, _) = served.trip();
    let one = store(&served, json!({"entity_type": "person", "name": "Ann"}));
    let two = store(&served, json!({"entity_type": "task", "title": "Call"}));
    let (one, two) = (id(&one, "/entities/0/entity_id"), id(&two, "/entities/0/entity_id"));
    let at = "/api/v1/relationships";
    let wanted = json!({"type": "REFERS_TO", "source_entity_id": two, "target_entity_id": one,
        "metadata": {"weight": 0.5}});
    let made = served.post(at, wanted.clone()).expect(201).json();
    assert_eq!((&made["outcome"], &made["label"]), (&json!("created"), &json!("refers to")));
    assert_eq!((&made["source_type"], &made["target_type"]), (&json!("task"), &json!("person")));
    assert_eq!(served.post(at, wanted).expect(200).text("/outcome"), "reused");
    let of_turn = json!({"type": "REFERS_TO", "source_turn_id": question, "target_entity_id": one});
    assert_eq!(served.post(at, of_turn).expect(201).text("/source_turn_id"), question);
    let found = |query: &str| served.walk(&format!("{at}?limit=1{query}"), "items").len();
    assert_eq!(found(""), 2);
    assert_eq!(found(&format!("&entity_id={one}")), 2);
    assert_eq!(found(&format!("&entity_id={one}&direction=outgoing")), 0);
    assert_eq!(found(&format!("&entity_id={one}&direction=incoming&type=REFERS_TO")), 2);
    assert_eq!(found(&format!("&turn_id={question}")), 1);
    assert_eq!(found("&type=EMBEDS"), 0);
    let refused = |body: Value| served.post(at, body).refused(400, "invalid");
    let why = refused(json!({"type": "LIKES", "source_entity_id": two, "target_entity_id": one}));
    assert!(why["detail"].as_str().unwrap().contains("DUPLICATE_OF"), "{why}");
    refused(json!({"type": "EMBEDS", "source_entity_id": two}));
    refused(json!({"type": "EMBEDS", "source_entity_id": two, "target_entity_id": two}));
    refused(json!({"type": "EMBEDS", "source_entity_id": two, "source_turn_id": question,
        "target_entity_id": one}));
    refused(json!({"type": "EMBEDS", "source_index": 0, "target_entity_id": one}));
    refused(json!({"source_entity_id": two, "target_entity_id": one}));
    served.get(&format!("{at}?entity_id={one}&turn_id={question}")).refused(400, "invalid");
    served.get(&format!("{at}?direction=sideways")).refused(400, "invalid");
    served.get(&format!("{at}?type=LIKES")).refused(400, "invalid");
    served.get(&format!("{at}?conversation_id=none")).refused(404, "not_found");
    let parting = format!("{at}?type=REFERS_TO&source_entity_id={two}&target_entity_id={one}");
    assert_eq!(served.delete(&parting).expect(200).json()["deleted"], true);
    served.delete(&parting).refused(404, "not_found");
    served.delete(&format!("{at}?type=REFERS_TO")).refused(400, "invalid");
    assert_eq!(found(""), 1);
    // What Tine itself relates stays.
    let turn = json!({"conversation_id": "c", "turn_id": "1", "role": "user", "content": "x"});
    let slot = served.post("/api/v1/store/turn", turn).expect(201).text("/entity_id");
    assert_eq!(found("&conversation_id=c"), 1);
    let part = format!("{at}?type=PART_OF&source_entity_id={slot}&target_conversation_id=c");
    served.delete(&part).refused(422, "unsupported");
}

#[test]
fn schemas_are_registered_version_by_version() {
    let served = idle();
    let at = "/api/v1/schemas";
    let builtin = served.get(at).expect(200).json();
    let names: Vec<&str> =
        builtin["items"].as_array().unwrap().iter().map(|it| id(it, "/entity_type")).collect();
    assert!(names.contains(&"person") && names.contains(&"task"), "{names:?}");
    let recipe = json!({"entity_type": "recipe", "fields": {"name": "name", "parts": "list"},
        "identity": ["name"]});
    let made = served.post(at, recipe.clone()).expect(201).json();
    assert_eq!(made["version"], 1);
    assert_eq!(made["fields"]["parts"], json!({"kind": "list", "strategy": "merged_set"}));
    assert_eq!(served.post(at, recipe).expect(201).json()["version"], 1);
    let more = json!({"entity_type": "recipe", "description": "A dish.", "identity": ["name"],
        "fields": {"name": "name", "serves": {"kind": "number", "strategy": "highest_priority"}}});
    assert_eq!(served.post(at, more).expect(201).json()["version"], 2);
    assert_eq!(served.get(&format!("{at}/recipe")).expect(200).json()["version"], 2);
    let first = served.get(&format!("{at}/recipe?version=1")).expect(200).json();
    assert_eq!(first["description"], Value::Null);
    served.get(&format!("{at}/recipe?version=3")).refused(404, "not_found");
    served.get(&format!("{at}/unheard_of")).refused(404, "not_found");
    served.get(&format!("{at}/recipe?version=x")).refused(400, "invalid");
    let refused = |body: Value| served.post(at, body).refused(400, "invalid");
    refused(json!({"entity_type": "recipe"}));
    refused(json!({"entity_type": "Recipe", "fields": {}}));
    refused(json!({"entity_type": "recipe", "fields": {"a": "colour"}}));
    refused(json!({"entity_type": "recipe", "fields": {"a": "text"}, "identity": ["b"]}));
    refused(json!({"entity_type": "conversation", "fields": {"a": "text"}}));
    refused(json!({"entity_type": "recipe", "fields": {}, "strict": true}));
    let misfit = json!({"entities": [{"entity_type": "recipe", "serves": "many"}]});
    served.post("/api/v1/store", misfit).refused(400, "invalid");
}

/// Every request of these routes that changes something, and some that read.
fn requests() -> (Vec<(&'static str, String, Value)>, Vec<String>) {
    let (entity, run) =
        ("ent_00000000000000000000000000000000", "int_00000000000000000000000000000000");
    let source = "src_00000000000000000000000000000000";
    let turn = json!({"role": "user", "content": "x"});
    let relate = json!({"type": "EMBEDS", "source_entity_id": entity, "target_turn_id": "main"});
    let at = |path: String| format!("/api/v1/{path}");
    let writes = vec![
        ("POST", at("store/turn".into()), turn),
        ("POST", at("store".into()), json!({"entities": [{"entity_type": "note", "a": 1}]})),
        ("POST", at("sources".into()), json!({"text": "a", "mime_type": "text/plain"})),
        ("POST", at(format!("sources/{source}/interpretations")), json!({})),
        ("POST", at(format!("sources/{source}/purge")), json!({})),
        ("POST", at("interpretations".into()), json!({"failed": true})),
        ("POST", at(format!("interpretations/{run}/retry")), json!({})),
        ("POST", at(format!("entities/{entity}/corrections")), json!({"fields": {"a": 1}})),
        ("POST", at(format!("entities/{entity}/merge")), json!({"into": entity})),
        ("POST", at(format!("entities/{entity}/separate")), json!({"observations": []})),
        ("POST", at(format!("entities/{entity}/restore")), json!({})),
        ("DELETE", at(format!("entities/{entity}")), Value::Null),
        ("POST", at("relationships".into()), relate),
        ("DELETE", at("relationships?type=EMBEDS".into()), Value::Null),
        ("POST", at("schemas".into()), json!({"entity_type": "recipe", "fields": {}})),
    ];
    let reads = [
        "sources",
        "interpretations",
        "interpretations/queue",
        "entities",
        "timeline",
        "relationships",
        "schemas",
        "schemas/person",
    ];
    (writes, reads.iter().map(|path| format!("/api/v1/{path}")).collect())
}

#[test]
fn tokens_limit_access_to_knowledge_as_to_turns() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("tokens.json");
    let tokens = vec![token("reader", None, false), token("tripper", Some("trips"), true)];
    TokenFile { tokens }.write(&file).expect("written");
    let options = Options {
        tokens: Some(file),
        token_rule: TokenRule::Always,
        interprets: false,
        ..Options::default()
    };
    let served = Served::with(options);
    let send = |word: &str, method: &str, path: &str, body: &Value| -> Answer {
        let client = served.bearing(word);
        match body {
            Value::Null => client.send(method, path, None),
            body => client.post(path, body.clone()),
        }
    };
    let (writes, reads) = requests();
    let (reader, tripper) = ("reader", "tripper");
    for (method, path, body) in &writes {
        send(reader, method, path, body).refused(403, "forbidden");
        send(tripper, method, path, body).refused(403, "forbidden");
        served.send(method, path, None).refused(401, "unauthorized");
    }
    let raw = served.bearing(reader).and("content-type", "text/plain");
    raw.send("POST", "/api/v1/sources", Some(b"a")).refused(403, "forbidden");
    for path in &reads {
        served.bearing(reader).get(path).expect(200);
        served.bearing(tripper).get(path).refused(403, "forbidden");
        served.bearing(tripper).get(&format!("{path}?project_id=trips")).expect(200);
    }
    let there = json!({"text": "Ann Lee", "mime_type": "text/plain", "project_id": "trips"});
    let kept = served.bearing(tripper).post("/api/v1/sources", there).expect(201);
    let content = format!("/api/v1/sources/{}/content", kept.text("/source_id"));
    served.bearing(tripper).get(&content).refused(403, "forbidden");
    served.bearing(reader).get(&content).refused(404, "not_found");
    let in_trips = format!("{content}?project_id=trips");
    assert_eq!(served.bearing(tripper).get(&in_trips).expect(200).body, b"Ann Lee");
    let run = kept.text("/interpretation/interpretation_id");
    // A read-only caller waits for others to perform the run.
    let waiting = format!("/api/v1/interpretations/{run}?project_id=trips&wait=true");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| served.bearing(reader).get(&waiting));
        eventually("somebody waits", || {
            let counts = served.bearing(reader).get("/metrics").as_text();
            counts.contains("tine_http_requests_in_work 2\n")
        });
        let done = served.bearing(tripper).get(&waiting).expect(200);
        assert_eq!(done.text("/status"), "completed");
        let waited = waiter.join().expect("an answer").expect(200);
        assert_eq!(waited.text("/status"), "completed");
    });
}
