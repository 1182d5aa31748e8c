//! Answers are bounded and say what they leave out.

use serde_json::{Value, json};

use crate::harness::{ProtocolEra, host};

#[tokio::test]
async fn a_long_path_is_paged_without_losing_turns() {
    let host = host(ProtocolEra::Stateless).await;
    let messages: Vec<Value> = (0..60)
        .map(|at| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": format!("{at}: {}", "word ".repeat(80)) })
        })
        .collect();
    host.call(
        "store_conversation_turn",
        json!({ "conversation_id": "long", "turn_id": "0", "role": "user", "content": "begin" }),
    )
    .await;
    host.call("append_turns", json!({ "conversation_id": "long", "messages": messages })).await;
    let (mut seen, mut cursor, mut pages) = (0, Value::Null, 0);
    loop {
        let page =
            host.call("get_path", json!({ "conversation_id": "long", "cursor": cursor })).await;
        let bytes = Value::Object(page.clone()).to_string().len();
        assert!(bytes < 10_000, "{bytes} bytes");
        seen += page["turns"].as_array().expect("turns").len();
        pages += 1;
        match page.get("next") {
            Some(next) => {
                cursor = next.clone();
                assert!(page["cut"].to_string().contains("cursor"));
            }
            None => break,
        }
    }
    assert_eq!(seen, 61);
    assert!(pages > 2);
    let more = host.call("get_path", json!({ "conversation_id": "long", "limit": 61 })).await;
    assert_eq!(more["turns"].as_array().expect("turns").len(), 61, "a limit asks for more");
}

#[tokio::test]
async fn a_long_text_is_truncated_and_says_where_the_full_text_is() {
    let host = host(ProtocolEra::Handshake).await;
    let said = "ä".repeat(50_000);
    let done = host
        .call(
            "store_conversation_turn",
            json!({ "conversation_id": "long", "turn_id": "1", "role": "user", "content": said }),
        )
        .await;
    let id = done["turn_id"].as_str().expect("an id");
    for (tool, arguments) in [
        ("get_path", json!({ "conversation_id": "long" })),
        ("list_observations", json!({ "entity_id": "long:1" })),
        ("retrieve_entity_snapshot", json!({ "entity_id": "long:1" })),
        ("retrieve_entities", json!({})),
        ("retrieve_field_provenance", json!({ "entity_id": "long:1" })),
        ("search_turns", json!({ "query": "ää*" })),
        ("diff_turns", json!({ "conversation_id": "long", "from": "root", "to": "main" })),
        ("commit_turns", json!({ "conversation_id": "long", "message": "all of it" })),
    ] {
        let answer = Value::Object(host.call(tool, arguments).await).to_string();
        assert!(answer.len() < 12_000, "{tool}: {} bytes", answer.len());
        if !["search_turns", "commit_turns"].contains(&tool) {
            assert!(answer.contains("tine://"), "{tool} says where the whole is");
        }
    }
    let uri = format!("tine://turn/{id}");
    let whole = host.client.read_resource(rmcp::model::ReadResourceRequestParams::new(uri)).await;
    let whole = serde_json::to_string(&whole.expect("a resource")).expect("JSON");
    assert!(whole.contains(&said));
}

#[tokio::test]
async fn answers_to_stores_do_not_grow_with_the_conversation() {
    let host = host(ProtocolEra::Stateless).await;
    let mut sizes = Vec::new();
    for at in 0..200 {
        let done = host
            .call("store_conversation_turn", json!({ "conversation_id": "c", "turn_id": at.to_string(), "role": "user", "content": format!("turn {at}") }))
            .await;
        sizes.push(Value::Object(done).to_string().len());
    }
    assert!(sizes.iter().all(|size| *size < 1_000));
    assert!(sizes[199] < sizes[1] + 20, "{} then {}", sizes[1], sizes[199]);
}
