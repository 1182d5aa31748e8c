//! The list of tools, in a form that every host accepts.

use serde_json::Value;
use tine_engine::Engine;
use tine_mcp::{McpOptions, Toolset};
use tine_store::MemoryStore;

use crate::harness::{ProtocolEra, host, host_of};

/// Rejects what some hosts refuse in a schema or warn about.
fn scan(path: &str, schema: &Value) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                let at = format!("{path}/{name}");
                let is_name = path.ends_with("/properties");
                assert!(
                    is_name
                        || !matches!(
                            name.as_str(),
                            "format" | "$ref" | "$defs" | "oneOf" | "anyOf" | "allOf"
                        ),
                    "{at}"
                );
                assert!(is_name || !(name == "type" && value.is_array()), "{at}: {value}");
                assert!(!value.is_null(), "{at}");
                scan(&at, value);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| scan(path, item)),
        _ => {}
    }
}

#[tokio::test]
async fn every_schema_is_portable_and_every_hint_is_set() {
    let host = host(ProtocolEra::Stateless).await;
    for tool in host.tools().await {
        let name = tool.name.as_ref();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let input = Value::Object(tool.input_schema.as_ref().clone());
        scan(name, &input);
        assert_eq!(input["additionalProperties"], false, "{name}");
        assert_eq!(input["type"], "object", "{name}");
        assert!(input["properties"]["project_id"].is_object(), "{name}");
        let output = Value::Object(tool.output_schema.expect("an output schema").as_ref().clone());
        scan(name, &output);
        assert_eq!(output["type"], "object", "{name}");
        assert_eq!(output.get("required"), None, "{name}: a refusal has other fields");
        let hints = tool.annotations.expect("hints");
        assert_eq!(hints.destructive_hint, Some(false), "{name}: nothing is ever lost");
        assert_eq!(hints.open_world_hint, Some(false), "{name}");
        let reads = hints.read_only_hint.expect("a hint");
        assert!(hints.idempotent_hint.is_some());
        let keyed = input["properties"]["idempotency_key"].is_object();
        assert_eq!(keyed, !reads, "{name}: whatever changes something takes a key");
        let about = tool.description.expect("a description");
        assert!((15..400).contains(&about.len()), "{name}: {about}");
    }
}

#[tokio::test]
async fn toolsets_have_the_documented_tools() {
    let names = async |toolset, read_only| {
        let options = McpOptions { toolset, read_only, ..McpOptions::default() };
        let host = host_of(Engine::new(MemoryStore::new()), options, ProtocolEra::Handshake).await;
        let tools = host.tools().await;
        tools.into_iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    let core = names(Toolset::Core, false).await;
    assert_eq!(core.len(), 12);
    let all = names(Toolset::All, false).await;
    for set in [Toolset::Memory, Toolset::Tree] {
        assert!(names(set, false).await.iter().all(|name| all.contains(name)));
    }
    assert!(core.iter().all(|name| all.contains(name)));
    assert!(all.iter().all(|name| !name.starts_with("test_")), "no tools of the suite");
    let reading = names(Toolset::All, true).await;
    assert!(reading.iter().all(|name| {
        ["get_", "list_", "retrieve_", "search_", "diff_"].iter().any(|it| name.starts_with(it))
    }));
}

#[tokio::test]
async fn the_tool_list_matches_its_snapshot() {
    let host = host(ProtocolEra::Stateless).await;
    let tools = host.tools().await;
    let list: Vec<Value> =
        tools.iter().map(|tool| serde_json::to_value(tool).expect("JSON")).collect();
    insta::assert_snapshot!("tools", serde_json::to_string_pretty(&list).expect("JSON"));
    insta::assert_snapshot!("instructions", tine_mcp::INSTRUCTIONS);
}
