//! What a newcomer sees of their own history: lists, choices, usage and the check of the machine, on
//! planted files of Claude Code, Codex and ChatGPT.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Home, Ran, finish, is_again};

/// The session of the planted Claude Code history.
const SESSION: &str = "0199aaaa-0000-7000-8000-000000000001";

/// Writes a file below the home folder.
fn plant(home: &Home, name: &str, text: &str) {
    let path = home.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A line of a Claude Code log.
fn claude(uuid: &str, parent: Option<&str>, time: &str, message: Value) -> Value {
    json!({
        "type": message["role"], "uuid": uuid, "parentUuid": parent, "sessionId": SESSION,
        "cwd": "/home/me/parser", "timestamp": time, "message": message,
    })
}

/// Plants one history of each of three programs: said in this order, oldest first.
fn planted() -> Home {
    let home = Home::new();
    let asked = json!([
        {"type": "text", "text": "<ide_opened_file>main.rs</ide_opened_file>"},
        {"type": "text", "text": "Why does the parser loop?"},
    ]);
    let answer = json!({
        "role": "assistant", "model": "claude-sonnet-4-5", "id": "msg_1",
        "usage": {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 9000},
        "content": [{"type": "text", "text": "It never advances."}],
    });
    let mut caveat = claude(
        "u0",
        None,
        "2026-03-01T09:00:00Z",
        json!({"role": "user", "content": "Caveat: what follows was generated."}),
    );
    caveat["isMeta"] = true.into();
    let claude_code = [
        caveat,
        claude("u1", Some("u0"), "2026-03-01T09:00:01Z", json!({"role": "user", "content": asked})),
        claude("u2", Some("u1"), "2026-03-01T09:00:05Z", answer),
    ];
    let folder = ".claude/projects/-home-me-parser";
    plant(&home, &format!("{folder}/{SESSION}.jsonl"), &lines(&claude_code));
    let mut agent = claude(
        "a1",
        None,
        "2026-03-01T09:00:02Z",
        json!({"role": "user", "content": "Look around"}),
    );
    agent["isSidechain"] = true.into();
    agent["agentId"] = "x1".into();
    plant(&home, &format!("{folder}/{SESSION}/subagents/agent-x1.jsonl"), &lines(&[agent]));

    let codex = |kind: &str, payload: Value| json!({"timestamp": "2026-02-01T10:00:00Z", "type": kind, "payload": payload});
    let said = |role: &str, kind: &str, text: &str| {
        let content = json!([{"type": kind, "text": text}]);
        codex("response_item", json!({"type": "message", "role": role, "content": content}))
    };
    let id = "0199bbbb-0000-7000-8000-000000000002";
    let rollout = [
        codex(
            "session_meta",
            json!({"id": id, "timestamp": "2026-02-01T10:00:00Z", "cwd": "/home/me/site",
                   "originator": "codex_cli", "cli_version": "0.150.0", "model_provider": "openai"}),
        ),
        said("user", "input_text", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
        said("user", "input_text", "List 東京 files"),
        said("assistant", "output_text", "There are two."),
    ];
    let day = ".codex/sessions/2026/02/01";
    plant(&home, &format!("{day}/rollout-2026-02-01T10-00-00-{id}.jsonl"), &lines(&rollout));

    let node = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        json!({"id": id, "parent": parent, "children": [], "message": {
            "id": id, "author": {"role": role}, "create_time": 1_735_700_000.0,
            "content": {"content_type": "text", "parts": [text]},
        }})
    };
    let chat = json!([{
        "id": "c-1", "conversation_id": "c-1", "title": "Soup for four", "create_time": 1_735_700_000.0,
        "update_time": 1_735_700_000.0, "current_node": "m2", "mapping": {
            "m1": node("m1", None, "user", "A recipe?"),
            "m2": node("m2", Some("m1"), "assistant", "Lentils."),
        },
    }]);
    plant(&home, "conversations.json", &chat.to_string());
    home
}

/// The command as it runs without a terminal and without a width.
fn piped(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env_remove("COLUMNS");
    command
}

fn ok(mut command: Command) -> String {
    let ran: Ran = finish(&mut command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out
}

fn import_all(home: &Home) {
    for path in [".claude/projects", ".codex/sessions", "conversations.json"] {
        home.ok(&["import", path]);
    }
}

#[test]
fn imported_history_is_listed_with_labels_and_the_times_at_which_it_was_said() {
    let home = planted();
    import_all(&home);
    let out = ok(piped(&home, &["ls"]));
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    let agent = "Why does the parser loop? (+1 sub-agent)";
    assert_eq!(
        rows,
        [
            [
                &format!("claude-code:{SESSION}"),
                "2026-03-01T09:00:05Z",
                "3",
                "claude-code",
                "/home/me/parser",
                agent
            ],
            [
                "codex:0199bbbb-0000-7000-8000-000000000002",
                "2026-02-01T10:00:00Z",
                "3",
                "codex",
                "/home/me/site",
                "List 東京 files"
            ],
            ["chatgpt:c-1", "2025-01-01T02:53:20Z", "2", "chatgpt", "", "Soup for four"],
        ]
    );
    let items = home.json(&["ls"])["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 4, "with the sub-agent");
    assert!(items.as_array().unwrap().iter().all(|it| it["label"].is_string()), "{items}");
    assert_eq!(items[0]["subagents"], 1);
    assert_eq!(items[1]["started_by"], format!("claude-code:{SESSION}"));
    assert_eq!(items[3]["active_at"], "2025-01-01T02:53:20Z");
    let below = ok(piped(&home, &["ls", "--subagents", "-n", "1"]));
    let firsts: Vec<&str> = below.lines().map(|line| line.split('\t').next().unwrap()).collect();
    let whole = format!("claude-code:{SESSION}");
    assert_eq!(firsts, [whole.clone(), format!("  {whole}/agent-x1")]);
}

#[test]
fn a_list_is_filtered_by_words_program_folder_and_date() {
    let home = planted();
    import_all(&home);
    let labels = |arguments: &[&str]| -> Vec<String> {
        let mut all = vec!["ls"];
        all.extend(arguments);
        let out = ok(piped(&home, &all));
        out.lines()
            .map(|line| line.rsplit('\t').next().unwrap().chars().take(4).collect())
            .collect()
    };
    assert_eq!(labels(&["SOUP"]), ["Soup"]);
    assert_eq!(labels(&["parser", "loop"]), ["Why "]);
    assert_eq!(labels(&["--program", "codex"]), ["List"]);
    assert_eq!(labels(&["--folder", "site"]), ["List"]);
    assert_eq!(labels(&["--folder", "/home/me"]), ["Why ", "List"]);
    assert_eq!(labels(&["--folder", "/home/m"]), [""; 0]);
    assert_eq!(labels(&["--since", "2026-02-01"]), ["Why ", "List"]);
    assert_eq!(labels(&["--until", "2026-02-01"]), ["Soup"]);
    assert_eq!(labels(&["-n", "1"]), ["Why "]);
    assert_eq!(labels(&["nothing"]), [""; 0]);
}

#[test]
fn rows_fit_the_terminal() {
    let home = planted();
    import_all(&home);
    for columns in [40, 80, 200] {
        let mut command = home.command(&["ls"]);
        command.env("COLUMNS", columns.to_string());
        let out = ok(command);
        assert_eq!(out.lines().count(), 3);
        for line in out.lines() {
            let width = tine_cli_width(line);
            assert!(width <= columns, "{width} > {columns}: {line}");
        }
        assert_eq!(out.contains("claude-code"), columns >= 80, "{out}");
        assert_eq!(out.contains("  parser  "), columns == 200, "{out}");
    }
}

/// Columns of a line: CJK characters take two.
fn tine_cli_width(line: &str) -> usize {
    line.chars().map(|it| if ('\u{2e80}'..='\u{9fff}').contains(&it) { 2 } else { 1 }).sum()
}

#[test]
fn a_conversation_is_named_by_a_unique_beginning_of_its_id_or_title() {
    let home = planted();
    import_all(&home);
    for name in ["claude-code:0199aaaa", "0199aaaa", "Why does", "why does the parser"] {
        let tree = home.ok(&["tree", "-c", name]);
        assert!(tree.contains("It never advances."), "{name}: {tree}");
    }
    let refused = home.refused("ambiguous", &["tree", "-c", "0199"]);
    assert!(refused.contains("matches 2 conversations"), "{refused}");
    home.refused("not_found", &["tree", "-c", "nothing"]);
    let refused = home.refused("invalid", &["delete", "main", "-c", "0199bbbb"]);
    assert!(refused.contains("codex:0199bbbb-0000-7000-8000-000000000002"), "{refused}");
    home.refused("invalid", &["purge", "--whole", "--yes", "-c", "Soup"]);
    // An id that begins another one's is an id of its own.
    home.ok(&["new", "soup"]);
    home.ok(&["new", "soup-2"]);
    home.ok(&["append", "-c", "soup", "one"]);
    home.ok(&["append", "-c", "sou", "--create", "two"]);
    assert_eq!(home.json(&["turns", "-c", "sou"])["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn a_chosen_conversation_applies_in_its_folder_and_below() {
    let home = planted();
    import_all(&home);
    let refused = home.refused("ambiguous", &["tree"]);
    assert!(refused.contains("tine use"), "{refused}");
    assert!(home.ok(&["status"]).contains("none chosen"));
    assert!(home.ok(&["use", "Soup"]).starts_with("chatgpt:c-1  Soup for four"));
    assert!(home.ok(&["tree"]).contains("Lentils."));
    assert!(home.ok(&["show", "main"]).contains("Lentils."));
    let status = home.json(&["status"]);
    assert_eq!(status["conversation"]["conversation_id"], "chatgpt:c-1");
    assert_eq!(status["conversation"]["chosen_by"], "use");
    assert_eq!(status["conversation"]["branch"], "main");
    assert_eq!(status["conversation"]["tip"]["preview"], "Lentils.");
    assert!(status["conversation"]["last_change"]["summary"].is_string(), "{status}");
    // Hashes are found in all conversations all the same.
    let other = home.json(&["turns", "-c", "codex:0199"]);
    let hash = other["turns"][2]["turn_hash"].as_str().unwrap();
    assert!(home.ok(&["show", hash]).contains("There are two."));
    let below = home.path("below/deeper");
    fs::create_dir_all(&below).unwrap();
    let within = |arguments: &[&str], folder: &std::path::Path| {
        let mut command = home.command(arguments);
        command.current_dir(folder);
        finish(&mut command, b"")
    };
    assert_eq!(within(&["use", "0199bbbb"], &home.path("below")).code, 0);
    assert!(within(&["tree"], &below).out.contains("There are two."));
    assert!(home.ok(&["tree"]).contains("Lentils."));
    assert!(home.ok(&["tree", "-c", "codex:"]).contains("There are two."), "-c comes first");
    home.ok(&["use", "--clear"]);
    home.refused("ambiguous", &["tree"]);
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(within(&["tree"], elsewhere.path()).code, 4);
}

#[test]
fn status_tells_the_store_and_the_state_of_its_index() {
    let home = Home::with_trip();
    let status = home.json(&["status"]);
    assert_eq!(status["conversation"]["chosen_by"], "only_one");
    assert_eq!(status["turns"], 2);
    if status["search_index"].is_null() {
        assert!(status["server"].is_string(), "{status}");
        return;
    }
    assert!(status["store"].is_string(), "{status}");
    if status["search_index"] == "not_needed" {
        return;
    }
    assert_eq!(status["search_index"], "not_built");
    home.ok(&["search", "Tokyo"]);
    assert_eq!(home.json(&["status"])["search_index"], "up_to_date");
    home.ok(&["append", "More"]);
    assert_eq!(home.json(&["status"])["search_index"], "behind");
    assert!(home.ok(&["status"]).contains("behind; the next search updates it"));
}

#[test]
fn usage_is_reported_by_day_project_program_and_model_with_unknown_costs() {
    let home = planted();
    import_all(&home);
    let report = home.json(&["usage"]);
    assert_eq!(report["total"]["input_tokens"], 10_000);
    assert_eq!(report["total"]["cost_usd"], Value::Null);
    let group = &report["groups"][0];
    assert_eq!(group["model"], "claude-sonnet-4-5");
    assert_eq!(group["day"], "2026-03-01");
    assert_eq!((&group["program"], &group["project"]), (&"claude-code".into(), &"default".into()));
    assert_eq!(group["folder"], "/home/me/parser");
    let shown = home.ok(&["usage", "--by", "model"]);
    assert!(shown.contains("unknown") && !shown.contains("$0.00"), "{shown}");
    assert!(home.ok(&["usage"]).contains("claude-code"));
    assert_eq!(home.json(&["usage", "--since", "2026-03-02"])["total"]["turns"], 0);
    home.refused("invalid", &["usage", "--by", "colour"]);
}

#[test]
fn costs_are_estimated_from_the_prices_in_the_settings() {
    let home = planted();
    if is_again() {
        return;
    }
    import_all(&home);
    let prices = "[prices.\"claude-sonnet-*\"]\ninput = 3.0\noutput = 15.0\ncache_read = 0.3\n";
    let file = home.write("prices.toml", prices);
    let report = home.json(&["usage", "--by", "model", "--config", &file]);
    // 1,000 read, 9,000 from the cache, 100 written.
    let cost = report["total"]["cost_usd"].as_f64().unwrap();
    assert!((cost - (0.003 + 0.0027 + 0.0015)).abs() < 1e-9, "{report}");
    let bad = home.write("bad.toml", "[prices.m]\ninput = -1.0\noutput = 1.0\n");
    home.refused("invalid", &["usage", "--config", &bad]);
}

#[test]
fn doctor_names_agents_deadlines_and_the_command_that_fixes_each_problem() {
    let home = planted();
    if is_again() {
        return;
    }
    let log = home.path(&format!(".claude/projects/-home-me-parser/{SESSION}.jsonl"));
    let age = |days: u64| {
        let time = SystemTime::now() - Duration::from_secs(days * 86_400 + 3_600);
        fs::File::options().write(true).open(&log).unwrap().set_modified(time).unwrap();
    };
    age(25);
    let report = home.json(&["doctor"]);
    assert_eq!(report["store"]["exists"], false);
    let of = |report: &Value, program: &str| -> Value {
        let agents = report["agents"].as_array().unwrap();
        agents.iter().find(|it| it["program"] == program).unwrap().clone()
    };
    let fixes = |report: &Value| -> Vec<String> {
        let problems = report["problems"].as_array().unwrap();
        problems.iter().map(|it| it["fix"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let claude_code = of(&report, "claude-code");
    assert_eq!((&claude_code["files"], &claude_code["kept_days"]), (&2.into(), &30.into()));
    assert_eq!((&claude_code["days_left"], &claude_code["files_at_risk"]), (&4.into(), &1.into()));
    assert_eq!(of(&report, "codex")["kept_days"], Value::Null);
    let import = format!("tine import {}", home.path(".claude/projects").display());
    assert!(fixes(&report).contains(&import), "{report}");
    assert!(fixes(&report).contains(&"tine mcp install claude-code".to_owned()), "{report}");
    assert!(fixes(&report).contains(&"tine mcp install codex".to_owned()), "{report}");
    let shown = home.ok(&["doctor"]);
    assert!(shown.contains("deletes 1 file within a week"), "{shown}");

    plant(&home, ".claude/settings.json", "{\n  // forever\n  \"cleanupPeriodDays\": 365\n}\n");
    import_all(&home);
    home.ok(&["mcp", "install", "claude-code", "codex", "--yes"]);
    let report = home.json(&["doctor"]);
    let claude_code = of(&report, "claude-code");
    assert_eq!(claude_code["kept_days"], 365);
    assert_eq!(claude_code["imported_files"], 2);
    assert_eq!(claude_code["files_at_risk"], 0);
    assert_eq!(report["store"]["conversations"], 4);
    assert_eq!(report["problems"], json!([]), "everything is fixed");
    assert!(home.ok(&["doctor"]).contains("No problems found."));
}

#[test]
fn doctor_fails_only_if_the_store_is_damaged() {
    let home = Home::with_trip();
    if is_again() {
        return;
    }
    home.ok(&["doctor"]);
    fs::write(home.path("store/tine.db"), b"not a database at all").unwrap();
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 13, "{ran:?}");
    assert!(ran.out.contains("tine verify --repair"), "{ran:?}");
}

#[test]
fn completions_offer_conversations() {
    let home = Home::with_trip();
    assert_eq!(home.ok(&["ls", "--ids"]), "trip\n");
    let script = |shell: &str| {
        let mut command = home.command(&["completions", shell]);
        command.env_remove("TINE_SERVER");
        ok(command)
    };
    assert!(script("bash").contains("compgen -W \"$(_tine_conversations)\""));
    assert!(script("zsh").contains(":_tine_conversations'"));
    assert!(script("fish").contains("tine ls --ids"));
}
