//! The examples of `docs/rest.md`, run in order against one server.

use serde_json::Value;

use crate::harness::Served;

/// One request of the guide and what it says comes back.
struct Example {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    status: u16,
    shown: Option<Value>,
}

/// Reads the blocks marked `http`: a request, and behind a line of dashes the status and the part
/// of the answer that the guide shows.
fn examples(page: &str) -> Vec<Example> {
    let blocks =
        page.split("```http\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.map(example).collect()
}

fn example(block: &str) -> Example {
    let (request, answer) = block.split_once("\n---\n").expect("a request and an answer");
    let (head, body) = match request.split_once("\n\n") {
        Some((head, body)) => (head, Some(body.to_owned())),
        None => (request, None),
    };
    let mut lines = head.lines();
    let (method, path) = lines.next().and_then(|line| line.split_once(' ')).expect("a request");
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let (status, shown) = match answer.trim().split_once('\n') {
        Some((status, shown)) => (status, Some(serde_json::from_str(shown).expect("JSON"))),
        None => (answer.trim(), None),
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    Example { method, path, headers, body, status: status.parse().expect("a status"), shown }
}

/// Everything that the guide shows must be in the answer; `"…"` stands for anything.
fn contains(answer: &Value, shown: &Value) -> bool {
    match (answer, shown) {
        (_, Value::String(any)) if any == "…" => true,
        (Value::Object(answer), Value::Object(shown)) => {
            shown.iter().all(|(key, value)| answer.get(key).is_some_and(|it| contains(it, value)))
        }
        (Value::Array(answer), Value::Array(shown)) => {
            answer.len() == shown.len() && answer.iter().zip(shown).all(|(a, s)| contains(a, s))
        }
        (answer, shown) => answer == shown,
    }
}

#[test]
fn the_examples_of_the_rest_guide_work() {
    let page = include_str!("../../../docs/rest.md");
    let served = Served::new();
    let examples = examples(page);
    assert!(examples.len() >= 10, "only {} examples", examples.len());
    let mut tag = String::new();
    for example in examples {
        let mut client = served.client.clone();
        for (name, value) in &example.headers {
            client = client.and(name, &value.replace("ETAG", &tag));
        }
        if example.body.is_some() && example.headers.iter().all(|(name, _)| name != "content-type")
        {
            client = client.and("content-type", "application/json");
        }
        let body = example.body.as_deref().map(str::as_bytes);
        let answer = client.send(&example.method, &example.path, body);
        let what = format!("{} {}: {}", example.method, example.path, answer.as_text());
        assert_eq!(answer.status, example.status, "{what}");
        if let Some(shown) = &example.shown {
            assert!(contains(&answer.json(), shown), "{what}\nshown: {shown}");
        }
        if let Some(found) = answer.header("etag") {
            tag = found.to_owned();
        }
    }
}
