//! `tine acp`, as an editor starts it.

use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use crate::harness::Home;
use crate::rpc::Peer;

/// An editor that started the command.
struct Editor(Peer);

impl Editor {
    fn start(home: &Home, more: &[&str]) -> Self {
        let mut editor = Editor::stranger(home, more);
        let hello = editor.ask("initialize", json!({ "protocolVersion": 1 }));
        assert_eq!(hello["agentInfo"]["name"], "tine");
        editor
    }

    fn stranger(home: &Home, more: &[&str]) -> Self {
        Editor(Peer::start(home, "acp", more))
    }

    fn session(&mut self, method: &str, params: Value) -> String {
        self.ask(method, params)["sessionId"].as_str().unwrap().to_owned()
    }

    fn new_session(&mut self) -> String {
        self.session("session/new", json!({ "cwd": "/work", "mcpServers": [] }))
    }

    /// Says something; the ids of question and answer.
    fn prompt(&mut self, session: &str, text: &str) -> [String; 2] {
        let block = json!({ "type": "text", "text": text });
        let done = self.ask("session/prompt", json!({ "sessionId": session, "prompt": [block] }));
        let said = &done["_meta"]["tine"];
        ["userMessageId", "messageId"].map(|name| said[name].as_str().unwrap().to_owned())
    }
}

impl Deref for Editor {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.0
    }
}

impl DerefMut for Editor {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.0
    }
}

#[test]
fn an_editors_session_is_an_ordinary_conversation() {
    let home = Home::new();
    let mut editor = Editor::start(&home, &["--actor", "ada"]);
    let session = editor.new_session();
    let [_, answer] = editor.prompt(&session, "Where to in March?");
    let fork = json!({ "sessionId": session, "cwd": "/work", "messageId": answer });
    let fork = editor.session("session/fork", fork);
    editor.prompt(&fork, "And in April?");
    editor.end();
    let log = home.ok(&["path", "fork-1"]);
    assert!(log.contains("Where to in March?") && log.contains("And in April?"), "{log}");
    let branches = home.json(&["branch"]);
    assert!(branches.to_string().contains(&fork), "{branches}");
    assert!(home.ok(&["ops"]).contains("ada"));
    home.ok(&["verify"]);
}

#[test]
fn acknowledged_turns_survive_a_kill() {
    let home = Home::new();
    let mut known: Vec<(String, usize)> = Vec::new();
    for round in 0..8 {
        let mut editor = Editor::start(&home, &[]);
        let session = match known.last() {
            None => editor.new_session(),
            Some((session, _)) => session.clone(),
        };
        editor.ask("session/resume", json!({ "sessionId": session, "cwd": "/work" }));
        let [question, _] = editor.prompt(&session, &format!("round {round}"));
        let turns = known.last().map_or(0, |(_, turns)| *turns) + 2;
        let fork = json!({ "sessionId": session, "cwd": "/work", "messageId": question });
        let fork = editor.session("session/fork", fork);
        editor.kill();
        known.push((session, turns));
        known.push((fork, turns - 1));
    }
    let mut editor = Editor::start(&home, &[]);
    // Later rounds went on with earlier forks, so what each holds at least is known.
    for (session, turns) in &known {
        let load = json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] });
        let id = editor.send("session/load", load);
        let mut replayed = 0;
        loop {
            let message = editor.hear();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                break;
            }
            replayed += 1;
        }
        assert!(replayed >= *turns, "{session}: {replayed} of {turns}");
    }
    editor.end();
    home.ok(&["verify"]);
}

#[test]
fn a_kill_during_a_reply_keeps_the_question() {
    let home = Home::new();
    let mut editor = Editor::start(&home, &[]);
    let session = editor.new_session();
    let block = json!({ "type": "text", "text": "word ".repeat(64) });
    editor.send("session/prompt", json!({ "sessionId": session, "prompt": [block] }));
    let question = loop {
        let update = editor.hear()["params"]["update"].take();
        if update["sessionUpdate"] == "user_message_chunk" {
            break update["messageId"].as_str().unwrap().to_owned();
        }
    };
    editor.kill();
    let mut next = Editor::start(&home, &[]);
    let fork = json!({ "sessionId": session, "cwd": "/work", "messageId": question });
    let fork = next.session("session/fork", fork);
    next.prompt(&fork, "go on");
    next.end();
    home.ok(&["verify"]);
}

#[test]
fn several_editors_work_on_one_store_at_once() {
    let home = Home::new();
    let mut editors: Vec<Editor> = (0..3).map(|_| Editor::start(&home, &[])).collect();
    let session = editors[0].new_session();
    let [_, answer] = editors[0].prompt(&session, "shared");
    let forks: Vec<String> = editors
        .iter_mut()
        .map(|editor| {
            let fork = json!({ "sessionId": session, "cwd": "/work", "messageId": answer });
            editor.session("session/fork", fork)
        })
        .collect();
    std::thread::scope(|scope| {
        for (editor, fork) in editors.iter_mut().zip(&forks) {
            scope.spawn(move || {
                for round in 0..5 {
                    editor.prompt(fork, &format!("round {round}"));
                }
            });
        }
    });
    let mut listed = editors[1].ask("session/list", json!({ "cwd": "/work" }))["sessions"].take();
    assert_eq!(listed.as_array_mut().unwrap().len(), 4);
    for mut editor in editors {
        editor.end();
    }
    assert_eq!(home.json(&["stats"])["store"]["turns"], 2 + 3 * 5 * 2);
    home.ok(&["verify"]);
}

#[test]
fn a_model_is_one_of_the_settings_or_the_one_that_is_built_in() {
    let home = Home::with_trip();
    let told = home.refused("not_found", &["acp", "--model", "nobody"]);
    assert!(told.contains("nobody") && told.contains("echo"), "{told}");
    let taken = "[models.echo]\nkind = \"ollama\"\nmodel = \"x\"\n";
    let file = home.write("taken.toml", taken);
    let told = home.refused("invalid", &["acp", "--config", &file]);
    assert!(told.contains("models.echo"), "{told}");
}

#[test]
fn it_requires_a_local_store() {
    let home = Home::with_trip();
    let told = home.refused("unsupported", &["acp", "--server", "http://127.0.0.1:1"]);
    assert!(told.contains("tine acp"), "{told}");
}

/// Starts a recorder in front of another `tine acp`, which has a store of its own.
fn recorded(home: &Home, more: &[&str]) -> Editor {
    let own = home.path("own");
    let program = env!("CARGO_BIN_EXE_tine");
    let mut arguments = more.to_vec();
    arguments.extend(["--", program, "acp", "--store", own.to_str().unwrap()]);
    Editor::start(home, &arguments)
}

fn context(editor: &mut Editor, method: &str, session: &str) -> Value {
    let params = json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] });
    editor.ask(method, params)["_meta"]["tine"]["context"]["kind"].take()
}

#[test]
fn an_agent_that_forks_at_messages_itself_is_let_do_so_and_taken_up_again() {
    let home = Home::new();
    let mut editor = recorded(&home, &["--actor", "ada"]);
    let session = editor.new_session();
    let [_, answer] = editor.prompt(&session, "Where to in March?");
    let [question, _] = editor.prompt(&session, "And in April?");
    let mut fork_at = |message: &str| {
        let fork = json!({ "sessionId": session, "cwd": "/work", "messageId": message });
        let forked = editor.ask("session/fork", fork);
        assert_eq!(forked["_meta"]["tine"]["context"]["kind"], "native", "{forked}");
        forked["sessionId"].as_str().unwrap().to_owned()
    };
    let (fork, open) = (fork_at(&answer), fork_at(&question));
    editor.prompt(&open, "I mean the second half.");
    let said = home.ok(&["path", &open]);
    assert!(said.contains("in April") && said.contains("second half"), "{said}");
    assert_eq!(said.matches("And in April?").count(), 1, "the answer is not in the fork: {said}");
    editor.prompt(&fork, "And in May?");
    editor.end();
    let said = home.ok(&["path", &fork]);
    assert!(said.contains("in March") && said.contains("in May"), "{said}");
    assert!(!said.contains("in April"), "{said}");

    let mut editor = recorded(&home, &[]);
    assert_eq!(context(&mut editor, "session/load", &session), "native");
    assert_eq!(context(&mut editor, "session/resume", &fork), "native");
    assert_eq!(context(&mut editor, "session/load", &session), "open");
    // What others write to the branch the agent knows nothing of: it gets the record of it all.
    home.ok(&["append", "--role", "user", "Aside."]);
    assert_eq!(context(&mut editor, "session/load", &session), "seed");
    editor.end();
    home.ok(&["verify"]);
}

/// Lists all sessions, page by page.
fn listed(editor: &mut Editor, mut params: Value) -> Vec<Value> {
    let mut found = Vec::new();
    for _ in 0..100 {
        let mut page = editor.ask("session/list", params.clone());
        found.append(page["sessions"].as_array_mut().unwrap());
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => return found,
        }
    }
    panic!("a list without an end")
}

/// Loads a session; returns what is replayed, and the context.
fn loaded(editor: &mut Editor, session: &str) -> (Vec<Value>, Value) {
    let params = json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] });
    let id = editor.send("session/load", params);
    let mut replayed = Vec::new();
    loop {
        let mut message = editor.hear();
        if message["id"] == id {
            assert!(message["error"].is_null(), "{message}");
            return (replayed, message["result"]["_meta"]["tine"]["context"].take());
        }
        assert_eq!(message["params"]["sessionId"], session, "{message}");
        replayed.push(message["params"]["update"].take());
    }
}

#[test]
fn sessions_that_an_agent_had_before_are_listed_once_and_taken_in_with_their_history() {
    let home = Home::new();
    let own = home.path("own");
    let mut alone = Editor::start(&home, &["--store", own.to_str().unwrap()]);
    let [early, other] = [alone.new_session(), alone.new_session()];
    alone.prompt(&early, "Where to in March?");
    alone.prompt(&other, "Something else.");
    let elsewhere = json!({ "cwd": "/elsewhere", "mcpServers": [] });
    let elsewhere = alone.session("session/new", elsewhere);
    alone.end();

    let mut editor = recorded(&home, &[]);
    let ours = editor.new_session();
    editor.prompt(&ours, "Said here.");
    let ids = |sessions: &[Value]| {
        let ids = sessions.iter().map(|it| it["sessionId"].as_str().unwrap().to_owned());
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    let everything = listed(&mut editor, json!({}));
    assert_eq!(everything.len(), 4, "the agent's own copy of ours is not shown: {everything:?}");
    assert_eq!(ids(&everything), [&early, &other, &elsewhere, &ours].map(String::clone).into());
    assert_eq!(everything[0]["sessionId"], ours, "the last changed is first");
    let here = listed(&mut editor, json!({ "cwd": "/work" }));
    assert_eq!(ids(&here), [&early, &other, &ours].map(String::clone).into());
    assert!(here[1]["_meta"]["tine"]["recorded"] == false, "{here:?}");

    let (replayed, context) = loaded(&mut editor, &early);
    let texts: Vec<_> = replayed.iter().map(|it| it["content"]["text"].clone()).collect();
    assert_eq!(texts, ["Where to in March?", "Where to in March?"]);
    assert_eq!((&context["kind"], &context["history"]["turns"]), (&json!("native"), &json!(2)));
    let fork = json!({ "sessionId": early, "cwd": "/work", "messageId": replayed[0]["messageId"] });
    let fork = editor.ask("session/fork", fork);
    assert_eq!(fork["_meta"]["tine"]["context"]["kind"], "native", "its ids are known: {fork}");
    editor.prompt(&early, "And in April?");
    // A resume shows nothing; what was said is known all the same.
    let resume = json!({ "sessionId": other, "cwd": "/work" });
    let resumed = editor.ask("session/resume", resume);
    assert_eq!(resumed["_meta"]["tine"]["context"]["history"]["turns"], 2, "{resumed}");
    let all = listed(&mut editor, json!({ "cwd": "/work" }));
    assert_eq!(all.len(), 4, "each once, and the fork: {all:?}");
    assert!(all.iter().all(|it| it["sessionId"] != early && it["sessionId"] != other), "{all:?}");
    editor.end();

    let branch = all.iter().find(|it| it["title"] == "Where to in March?").unwrap();
    let turns = home.json(&["path", branch["sessionId"].as_str().unwrap()])["turns"].take();
    let labels = turns.as_array().unwrap().iter();
    let labels = labels.map(|turn| turn["metadata"]["source_info"]["acp"]["history"].clone());
    let [history, said] = [json!(true), Value::Null];
    assert_eq!(labels.collect::<Vec<_>>(), [&history, &history, &said, &said].map(Value::clone));
    let mut editor = recorded(&home, &[]);
    let (replayed, context) = loaded(&mut editor, &early);
    assert_eq!((replayed.len(), &context["kind"]), (4, &json!("native")), "by the agent's id too");
    let unknown = json!({ "sessionId": "nowhere", "cwd": "/work", "mcpServers": [] });
    let error = editor.refused("session/load", unknown);
    assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!("nowhere")));
    let error = editor.refused("session/list", json!({ "cursor": "nonsense" }));
    assert_eq!(error["code"], -32602, "{error}");
    editor.end();
    let turns = home.json(&["search", "March"]);
    assert!(turns.to_string().contains("Where to in March?"), "{turns}");
    home.ok(&["verify"]);
}

#[test]
fn every_recorded_turn_names_the_lines_that_it_was_made_of() {
    let home = Home::new();
    let mut editor = recorded(&home, &[]);
    let session = editor.new_session();
    editor.prompt(&session, "My token is ghp_0123456789abcdefghijABCDEFGHIJ012345, keep it.");
    editor.end();
    let turns = home.json(&["path", &session])["turns"].take();
    assert_eq!(turns.as_array().unwrap().len(), 2, "{turns}");
    for turn in turns.as_array().unwrap() {
        let source = turn["metadata"]["source_info"]["events"]["source_id"].as_str().unwrap();
        let lines = home.ok(&["source", "cat", source]);
        let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert!(first["message"].is_object() && first["at"].is_string(), "{first}");
        assert!(!lines.contains("ghp_0123"), "{lines}");
        assert!(turn["content"].to_string().contains("[redacted:github]"), "{turn}");
    }
}

#[test]
fn another_agent_can_continue_from_any_turn() {
    let home = Home::new();
    home.ok(&["new", "talk"]);
    home.ok(&["append", "--role", "user", "The word is heron."]);
    home.ok(&["append", "--role", "assistant", "Noted."]);
    home.ok(&["append", "--role", "user", "Forget it."]);
    let turn = home.json(&["path"])["turns"][1]["turn_id"].as_str().unwrap().to_owned();
    let mut editor = recorded(&home, &["--from", &turn]);
    let session = editor.new_session();
    editor.prompt(&session, "Which word?");
    editor.end();
    let said = home.ok(&["path", &session]);
    assert!(said.contains("heron") && said.contains("Which word?"), "{said}");
    assert!(!said.contains("Forget it"), "{said}");
    // What the agent itself was given, in its own store.
    let own = home.path("own");
    let given = home.ok(&["path", "--store", own.to_str().unwrap()]);
    assert!(given.contains("heron") && !given.contains("Forget it"), "{given}");
    home.refused("not_found", &["acp", "--from", "nowhere", "--", "true"]);
}

#[test]
fn an_agent_that_cannot_start_is_named() {
    let home = Home::new();
    let mut editor = Editor::stranger(&home, &["--", "/nowhere/agent"]);
    let error = editor.refused("session/new", json!({ "cwd": "/work", "mcpServers": [] }));
    assert_eq!(error["code"], -32600, "{error}");
    let error = editor.refused("initialize", json!({ "protocolVersion": 1 }));
    assert!(error["message"].as_str().unwrap().contains("/nowhere/agent"), "{error}");
    editor.end();
    let mut editor = Editor::stranger(&home, &["--", "true"]);
    let error = editor.refused("initialize", json!({ "protocolVersion": 1 }));
    assert!(error["message"].as_str().unwrap().contains("ended"), "{error}");
    editor.end();
}

#[test]
#[cfg(target_os = "linux")]
fn editors_get_an_entry_that_starts_this_store() {
    let home = Home::new();
    let store = home.path("store");
    let store = store.to_str().unwrap();
    let zed = home.path(".config/zed/settings.json");
    std::fs::create_dir_all(zed.parent().unwrap()).unwrap();
    std::fs::write(&zed, "// mine\n{ \"vim_mode\": true }\n").unwrap();
    let shown = home.ok(&["acp", "install", "zed", "--dry-run", "--", "codex-acp", "-x"]);
    assert!(shown.contains("+ ") && shown.contains("tine-codex-acp"), "{shown}");
    assert!(!std::fs::read_to_string(&zed).unwrap().contains("codex"));
    home.ok(&["acp", "install", "zed", "jetbrains", "--yes", "--", "codex-acp", "-x"]);
    let written = std::fs::read_to_string(&zed).unwrap();
    assert!(
        written.starts_with("// mine\n") && written.contains("\"vim_mode\": true"),
        "{written}"
    );
    assert!(written.contains("\"type\": \"custom\""), "{written}");
    assert!(home.path(".config/zed/settings.json.before-tine").exists());
    let written = std::fs::read_to_string(home.path(".jetbrains/acp.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let entry = &written["agent_servers"]["tine-codex-acp"];
    assert_eq!(entry["args"], json!(["acp", "--store", store, "--", "codex-acp", "-x"]));
    for (plugin, telling) in [("codecompanion", "adapters = {"), ("agentic", "acp_providers = {")] {
        let printed = home.ok(&["acp", "install", plugin]);
        assert!(printed.contains(telling) && printed.contains("\"acp\""), "{printed}");
    }
}
