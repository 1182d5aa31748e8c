//! Resources, prompts and completions.

use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompletionContext, GetPromptRequestParams,
    ReadResourceRequestParams, Reference, ResourceContents,
};
use serde_json::{Value, json};

use crate::harness::{ERAS, Host, ProtocolEra, host};

async fn read(host: &Host, uri: &str) -> Value {
    let found = host.client.read_resource(ReadResourceRequestParams::new(uri)).await;
    let found = found.unwrap_or_else(|error| panic!("{uri}: {error}"));
    match &found.contents[0] {
        ResourceContents::TextResourceContents { text, mime_type, .. } => {
            if mime_type.as_deref() == Some("application/json") {
                return serde_json::from_str(text).expect("JSON");
            }
            json!({ "text": text, "mime_type": mime_type })
        }
        other => serde_json::to_value(other).expect("JSON"),
    }
}

#[tokio::test]
async fn every_kind_of_record_is_a_resource() {
    for era in ERAS {
        let host = host(era).await;
        let exact = "123456789012345678";
        let done = host
            .call(
                "store_conversation_turn",
                json!({ "conversation_id": "a trip/1", "turn_id": "1", "role": "assistant",
                "content_blocks": [{ "type": "odd", "number": 123456789012345678_u64 }] }),
            )
            .await;
        let kept =
            host.call("store_unstructured", json!({ "text": "Ada", "interpret": "none" })).await;
        let bytes = host
            .call(
                "store_unstructured",
                json!({ "file_content": "/wD/", "mime_type": "x/y", "interpret": "none" }),
            )
            .await;
        let list = host.client.list_all_resources().await.expect("resources");
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].uri, "tine://conversation/a%20trip%2F1");
        let templates = host.client.list_all_resource_templates().await.expect("templates");
        assert_eq!(templates.len(), 4);

        let conversation = read(&host, &list[0].uri).await;
        assert_eq!(conversation["conversation_id"], "a trip/1");
        assert_eq!(conversation["turns"].as_array().expect("turns").len(), 1);
        let turn =
            read(&host, &format!("tine://turn/{}", done["turn_id"].as_str().expect("an id"))).await;
        assert!(turn["content"].to_string().contains(exact));
        let entity =
            read(&host, &format!("tine://entity/{}", done["entity_id"].as_str().expect("an id")))
                .await;
        assert_eq!(entity["entity_type"], "agent_message");
        let source =
            read(&host, &format!("tine://source/{}", kept["source_id"].as_str().expect("an id")))
                .await;
        assert_eq!(source["text"], "Ada");
        let blob =
            read(&host, &format!("tine://source/{}", bytes["source_id"].as_str().expect("an id")))
                .await;
        assert_eq!(blob["blob"], "/wD/");
        for bad in [
            "tine://turn/0190a5c8-0000-7000-8000-000000000000",
            "tine://entity/ent_00000000000000000000000000000000",
            "tine://conversation/none",
            "tine://conversation/a%20trip%2F1?project_id=other",
            "tine://conversation/%zz",
            "tine://nothing/1",
            "tine://",
            "file:///etc/passwd",
            "",
        ] {
            let error = host.client.read_resource(ReadResourceRequestParams::new(bad)).await;
            let error = error.expect_err(bad).to_string();
            assert!(!error.contains("panic"), "{bad}: {error}");
        }
    }
}

#[tokio::test]
async fn prompts_embed_transcripts_as_resources_not_as_text() {
    for era in ERAS {
        let host = host(era).await;
        for (turn, role, content) in [("1", "user", "Where to?"), ("1", "assistant", "Lisbon.")] {
            host.call("store_conversation_turn", json!({ "conversation_id": "trip", "turn_id": turn, "role": role, "content": content }))
                .await;
        }
        host.call(
            "fork_conversation",
            json!({ "conversation_id": "trip", "at": "main~1", "name": "other" }),
        )
        .await;
        assert_eq!(host.client.list_all_prompts().await.expect("prompts").len(), 3);
        let get = async |name: &str, arguments: Value| {
            let mut request = GetPromptRequestParams::new(name);
            request.arguments = arguments.as_object().cloned();
            host.client.get_prompt(request).await
        };
        for (name, arguments, lines) in [
            ("restore_conversation", json!({ "conversation_id": "trip" }), 1),
            ("summarise_branch", json!({ "conversation_id": "trip", "branch": "other" }), 1),
            (
                "compare_branches",
                json!({ "conversation_id": "trip", "branch_a": "main", "branch_b": "other" }),
                2,
            ),
        ] {
            let made = get(name, arguments).await.expect(name);
            assert_eq!(made.messages.len(), lines + 1, "{name}");
            let order = made.messages[0].content.as_text().expect("a text");
            assert!(!order.text.contains("Where to?"), "{name}");
            let record = made.messages[1].content.as_resource().expect("a resource").get_text();
            assert!(record.contains("Where to?"), "{name}");
        }
        assert!(get("restore_conversation", json!({})).await.is_err());
        assert!(get("restore_conversation", json!({ "conversation_id": "none" })).await.is_err());
        assert!(get("nothing", json!({})).await.is_err());
    }
}

#[tokio::test]
async fn ids_and_names_are_completed() {
    let host = host(ProtocolEra::Stateless).await;
    for id in ["trip", "trial", "other"] {
        host.call(
            "store_conversation_turn",
            json!({ "conversation_id": id, "turn_id": "1", "role": "user", "content": "x" }),
        )
        .await;
    }
    let fact = host
        .call(
            "store_structured",
            json!({ "entities": [{ "entity_type": "person", "fields": { "name": "Ada Zoe" } }] }),
        )
        .await;
    let complete = async |reference: Reference, name: &str, value: &str, chosen: Option<&str>| {
        let mut request = CompleteRequestParams::new(reference, ArgumentInfo::new(name, value));
        if let Some(id) = chosen {
            let arguments = [("conversation_id".to_owned(), id.to_owned())].into_iter().collect();
            request = request.with_context(CompletionContext::with_arguments(arguments));
        }
        host.client.complete(request).await.expect("values").completion.values
    };
    let template = |uri: &str| Reference::for_resource(uri);
    assert_eq!(
        complete(template("tine://conversation/{id}"), "id", "tri", None).await,
        ["trip", "trial"]
    );
    assert_eq!(
        complete(Reference::for_prompt("restore_conversation"), "conversation_id", "o", None).await,
        ["other"]
    );
    assert_eq!(
        complete(Reference::for_prompt("restore_conversation"), "branch", "m", Some("trip")).await,
        ["main"]
    );
    let ada = fact["entities"][0]["entity_id"].as_str().expect("an id");
    assert_eq!(complete(template("tine://entity/{id}"), "id", "ada z", None).await, [ada]);
    assert_eq!(complete(template("tine://turn/{id}"), "id", "", None).await.len(), 3);
    assert_eq!(complete(template("tine://source/{id}"), "id", "src_", None).await.len(), 1);
    assert!(complete(template("tine://nothing/{id}"), "id", "", None).await.is_empty());
}
