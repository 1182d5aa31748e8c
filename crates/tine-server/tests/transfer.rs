//! Bundles over HTTP.

use serde_json::json;

use crate::harness::{Client, Served};

fn import(client: &Client, path: &str, bundle: &[u8]) -> crate::harness::Answer {
    client.and("content-type", "application/x-ndjson").send("POST", path, Some(bundle))
}

#[test]
fn an_export_imports_elsewhere_and_exports_again_byte_for_byte() {
    let (one, other) = (Served::new(), Served::new());
    let (question, answer) = one.trip();
    one.post(&format!("/api/v1/turns/{answer}/edit"), json!({"content": "April"})).expect(201);
    one.put("/api/v1/bookmarks/here", json!({"turn": question})).expect(200);
    one.post("/api/v1/conversations", json!({"conversation_id": "b"})).expect(201);
    one.say("b", "日本語 18446744073709551615").expect(201);
    let bundle = one.get("/api/v1/export").expect(200);
    assert_eq!(bundle.header("content-type"), Some("application/x-ndjson"));
    // Compressed, it is the same bundle, whole.
    let zipped = one.and("accept-encoding", "zstd").get("/api/v1/export").expect(200);
    assert!(zstd::decode_all(&zipped.body[..]).expect("zstd") == bundle.body);
    let done = import(&other, "/api/v1/import", &bundle.body).expect(200).json();
    assert_eq!(done["conversations"], 2);
    assert!(other.get("/api/v1/export").expect(200).body == bundle.body);
    let again = import(&other, "/api/v1/import", &bundle.body).expect(200).json();
    assert_eq!(again["unchanged"], 2);
    let single = one.get("/api/v1/export?conversation_id=b").expect(200);
    assert!(single.body.len() < bundle.body.len());
    import(&other, "/api/v1/import?project_id=copy", &single.body).expect(200);
    other.get("/api/v1/conversations/b?project_id=copy").expect(200);
}

#[test]
fn an_altered_or_truncated_bundle_is_refused_and_leaves_nothing() {
    let (one, other) = (Served::new(), Served::new());
    one.trip();
    let bundle = one.get("/api/v1/export").expect(200).body;
    let text = String::from_utf8(bundle.clone()).expect("lines of JSON");
    let changed = text.replace("Late March", "Late Marsh");
    let cut = &bundle[..bundle.len() / 2];
    for bad in [changed.as_bytes(), cut, b"", b"\n", b"{}", b"\xff\xfe", b"[1,2,3]\n"] {
        let refused = import(&other, "/api/v1/import", bad);
        assert!((400..500).contains(&refused.status), "{}", refused.as_text());
        refused.refused(refused.status, &refused.text("/code"));
    }
    let stats = other.get("/api/v1/stats").expect(200).json();
    assert_eq!(stats["store"]["turns"], 0);
}
