//! Lines in, lines out, and nothing else on standard output.

use serde_json::{Value, json};

use crate::harness::{Home, Server};
use crate::rpc::Peer;

/// A host that started the command.
struct Host {
    peer: Peer,
    stateless: bool,
}

impl Host {
    fn start(home: &Home, more: &[&str], stateless: bool) -> Self {
        let mut host = Host { peer: Peer::start(home, "mcp", more), stateless };
        if !stateless {
            let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": { "name": "test", "version": "1" } });
            let told = host.ask("initialize", hello);
            assert_eq!(told["serverInfo"]["name"], "tine");
            assert!(told["instructions"].as_str().unwrap().contains("store_conversation_turn"));
            host.peer.line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        host
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        if self.stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        self.peer.ask(method, params)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        answer["structuredContent"].clone()
    }

    fn say(&mut self, conversation: &str, turn: usize, content: &str) -> Value {
        self.call(
            "store_conversation_turn",
            json!({ "conversation_id": conversation, "turn_id": turn.to_string(), "role": "user",
                    "content": content }),
        )
    }

    fn end(&mut self) {
        self.peer.end();
    }
}

#[test]
fn a_host_of_either_era_stores_and_reads_over_standard_input_and_output() {
    for stateless in [false, true] {
        let home = Home::new();
        let mut host = Host::start(&home, &[], stateless);
        if stateless {
            let found = host.ask("server/discover", json!({}));
            assert!(found["supportedVersions"].to_string().contains("2026-07-28"), "{found}");
        }
        let tools = host.ask("tools/list", json!({}));
        assert_eq!(tools["tools"].as_array().unwrap().len(), 12);
        host.say("trip", 1, "Where to?");
        let done = host.say("trip", 1, "Where to in March?");
        assert!(done["superseded"].is_string());
        let path = host.call("get_path", json!({ "conversation_id": "trip" }));
        assert_eq!(path["turns"][0]["text"], "Where to in March?");
        host.end();
        // What was stored is there for every other command.
        assert!(home.ok(&["log", "-c", "trip"]).contains("Where to in March?"));
    }
}

#[test]
fn the_project_and_the_tools_are_those_of_the_arguments() {
    let home = Home::new();
    let mut host =
        Host::start(&home, &["--project", "trips", "--toolset", "all", "--read-only"], false);
    let tools = host.ask("tools/list", json!({}));
    assert_eq!(tools["tools"].as_array().unwrap().len(), 11, "only those that read");
    assert_eq!(host.call("get_tree", json!({}))["project_id"], "trips");
    host.end();
    let ran = home.run(&["mcp", "--allow-path", "/nowhere/at/all"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = home.run(&["mcp", "--server", "http://127.0.0.1:1"]);
    assert!(ran.err.contains("/mcp"), "{ran:?}");
}

#[test]
fn several_hosts_a_server_and_the_command_share_one_store() {
    let home = Home::new();
    let mut hosts: Vec<Host> = (0..3).map(|nth| Host::start(&home, &[], nth % 2 == 0)).collect();
    let server = Server::start(&home.path("store"), "127.0.0.1:0", &[]);
    let turns = 20;
    std::thread::scope(|scope| {
        for (nth, host) in hosts.iter_mut().enumerate() {
            scope.spawn(move || {
                for turn in 0..turns {
                    host.say(&format!("own-{nth}"), turn, "mine");
                    host.say("shared", nth * 1_000 + turn, "ours");
                }
            });
        }
        scope.spawn(|| {
            for turn in 0..turns {
                let mut append =
                    home.command(&["append", "-c", "own-0", "--branch", "cli", "--parent", "root"]);
                append.arg(format!("from the command {turn}"));
                // Until the conversation is there, there is nothing to append to.
                let _ = append.output();
            }
        });
    });
    for host in &mut hosts {
        let all = host.call("get_tree", json!({ "conversation_id": "shared" }));
        assert_eq!(all["total"], 3 * turns, "no turn is lost");
    }
    hosts.iter_mut().for_each(Host::end);
    server.kill();
    home.ok(&["verify"]);
}

#[test]
fn a_line_of_a_hundred_megabytes_gets_an_answer() {
    let home = Home::new();
    let mut host = Host::start(&home, &[], false);
    let content = "x".repeat(100 << 20);
    let arguments = json!({ "conversation_id": "c", "role": "user", "content": content });
    let params = json!({ "name": "store_conversation_turn", "arguments": arguments });
    let answer = host.ask("tools/call", params);
    assert_eq!(answer["isError"], true);
    assert_eq!(answer["structuredContent"]["error"]["code"], "too_large");
    assert_eq!(host.call("get_tree", json!({}))["conversations"], json!([]));
    host.end();
}

#[test]
fn the_token_cost_of_tools_is_printed() {
    let home = Home::new();
    let counted = home.json(&["mcp", "--count"]);
    let total = |set: &str| {
        let all = counted.as_array().unwrap();
        all.iter().find(|it| it["toolset"] == set).unwrap()["total"].as_u64().unwrap()
    };
    assert!(total("core") < 3_000);
    assert!(total("all") < 6_000);
    assert!(home.ok(&["mcp", "--count"]).contains("o200k_base"));
}
