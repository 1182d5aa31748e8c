//! Subscriptions, progress and cancellation.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientRequest, ProgressNotificationParam,
    ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, PeerRequestOptions};
use rmcp::{ClientHandler, ClientServiceExt, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tine_engine::Engine;
use tine_mcp::{McpOptions, McpServer, Toolset, serve_lines};
use tine_store::MemoryStore;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::harness::{ERAS, ProtocolEra, host, lifecycle};

const PATIENCE: Duration = Duration::from_secs(20);

fn say(engine: &Engine, conversation: &str) {
    let message = tine_core::Message::text(tine_core::Role::User, "Hello");
    let request = tine_engine::StoreTurn::new(conversation, "1", message);
    engine.store_turn(&tine_engine::Call::by("another"), request).expect("a turn");
}

#[tokio::test]
async fn stateless_hosts_listen_for_changes() {
    let host = host(ProtocolEra::Stateless).await;
    say(&host.engine, "trip");
    let filter = SubscriptionFilter::builder()
        .resource_subscription("tine://conversation/trip")
        .resource_subscription("nonsense")
        .resources_list_changed()
        .build();
    let mut heard = host.client.listen(filter).await.expect("a subscription");
    say(&host.engine, "other");
    let first = tokio::time::timeout(PATIENCE, heard.next()).await.expect("in time");
    assert!(matches!(
        first.expect("news"),
        Some(ServerNotification::ResourceListChangedNotification(_))
    ));
    say(&host.engine, "trip");
    let second = tokio::time::timeout(PATIENCE, heard.next()).await.expect("in time");
    match second.expect("news") {
        Some(ServerNotification::ResourceUpdatedNotification(update)) => {
            assert_eq!(update.params.uri, "tine://conversation/trip");
        }
        other => panic!("{other:?}"),
    }
    heard.cancel().await.expect("an end");
}

#[tokio::test]
async fn closing_the_input_ends_listening_at_once() {
    let tine = McpServer::new(Engine::new(MemoryStore::new()), McpOptions::default());
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let served = tokio::spawn(serve_lines(tine, input, output));
    let (read, mut write) = tokio::io::split(theirs);
    let mut lines = BufReader::new(read).lines();
    let listen = json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {
        "notifications": { "resourcesListChanged": true },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        },
    } });
    write.write_all(format!("{listen}\n").as_bytes()).await.expect("a line");
    let heard = lines.next_line().await.expect("a line").expect("an answer");
    assert!(heard.contains("subscriptions/acknowledged"), "{heard}");
    write.shutdown().await.expect("an end");
    let last = lines.next_line().await.expect("a line").expect("an answer");
    let last: Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(last["id"], 7, "{last}");
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    served.await.expect("a task").expect("a good end");
}

/// A client that records notifications.
#[derive(Clone)]
struct Noting {
    updated: mpsc::UnboundedSender<String>,
    progress: mpsc::UnboundedSender<f64>,
}

impl ClientHandler for Noting {
    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.updated.send(params.uri);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(params.progress);
    }
}

#[tokio::test]
#[expect(deprecated, reason = "older hosts subscribe to one resource at a time")]
async fn older_hosts_subscribe_to_changes() {
    let engine = Engine::new(MemoryStore::new());
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let tine = McpServer::new(engine.clone(), McpOptions::default());
    tokio::spawn(async move { tine.serve(ours).await.expect("a start").waiting().await });
    let (updated, mut news) = mpsc::unbounded_channel();
    let (progress, _) = mpsc::unbounded_channel();
    let client = Noting { updated, progress }
        .serve_with_lifecycle(theirs, lifecycle(ProtocolEra::Handshake))
        .await
        .expect("a client");
    say(&engine, "trip");
    let uri = "tine://conversation/trip";
    client.subscribe(SubscribeRequestParams::new(uri)).await.expect("a subscription");
    assert!(client.subscribe(SubscribeRequestParams::new("nonsense")).await.is_err());
    say(&engine, "other");
    say(&engine, "trip");
    let told = tokio::time::timeout(PATIENCE, news.recv()).await.expect("in time");
    assert_eq!(told.as_deref(), Some(uri));
}

#[tokio::test]
async fn long_calls_report_progress() {
    for era in ERAS {
        let engine = Engine::new(MemoryStore::new());
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let options = McpOptions { toolset: Toolset::All, ..McpOptions::default() };
        let tine = McpServer::new(engine.clone(), options);
        tokio::spawn(async move { tine.serve(ours).await.expect("a start").waiting().await });
        let (updated, _) = mpsc::unbounded_channel();
        let (progress, mut steps) = mpsc::unbounded_channel();
        let client = Noting { updated, progress }
            .serve_with_lifecycle(theirs, lifecycle(era))
            .await
            .expect("a client");
        for nth in 0..5 {
            let source = tine_engine::NewSource {
                content: Arc::new(format!("Ada needs to call Bob {nth}.").into_bytes()),
                mime_type: "text/plain".to_owned(),
                original_filename: None,
                interpret: tine_engine::Interpret::None,
                interpreter: None,
            };
            engine.store_source(&tine_engine::Call::by("t"), source).expect("a source");
        }
        let arguments = json!({ "mime_type": "text/plain", "wait": true });
        let request = CallToolRequestParams::new("reinterpret")
            .with_arguments(arguments.as_object().cloned().expect("an object"));
        let request = ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(request));
        let handle = client
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
            .expect("a request");
        let answer = handle.await_response().await.expect("an answer");
        let answer: Value = serde_json::to_value(&answer).expect("JSON");
        assert_eq!(answer["structuredContent"]["runs"], 5);
        let mut told = Vec::new();
        while let Ok(Some(step)) = tokio::time::timeout(Duration::from_secs(1), steps.recv()).await
        {
            told.push(step);
        }
        assert_eq!(told, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{era:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_next_one_is_served() {
    let host = host(ProtocolEra::Handshake).await;
    for nth in 0..300 {
        let source = tine_engine::NewSource {
            content: Arc::new(
                format!("Ada needs to call Bob {nth} times. ").repeat(50).into_bytes(),
            ),
            mime_type: "text/plain".to_owned(),
            original_filename: None,
            interpret: tine_engine::Interpret::None,
            interpreter: None,
        };
        host.engine.store_source(&tine_engine::Call::by("t"), source).expect("a source");
    }
    let arguments = json!({ "mime_type": "text/plain", "wait": true });
    let request = CallToolRequestParams::new("reinterpret")
        .with_arguments(arguments.as_object().cloned().expect("an object"));
    let request = ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(request));
    let handle = host
        .client
        .send_request_with_option(request, PeerRequestOptions::no_options())
        .await
        .expect("a request");
    tokio::time::sleep(Duration::from_millis(100)).await;
    handle.cancel(Some("enough".to_owned())).await.expect("a word");
    let tree = tokio::time::timeout(PATIENCE, host.call("get_tree", json!({}))).await;
    tree.expect("the next call is served");
    // Runs that did not start stay queued.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let by = tine_engine::Call::by("t");
    let waiting = host.engine.interpretation_queue(&by).expect("a queue");
    assert!(waiting.queued > 0, "it stopped before the end");
}
