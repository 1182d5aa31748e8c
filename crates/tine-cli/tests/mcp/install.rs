//! Entries in the files of hosts.

use std::fs;

use serde_json::Value;

use crate::harness::Home;

const HOSTS: [(&str, &str, &str); 5] = [
    ("claude-code", ".claude.json", "/mcpServers/tine"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "/mcpServers/tine"),
    ("cursor", ".cursor/mcp.json", "/mcpServers/tine"),
    ("vscode", ".config/Code/User/mcp.json", "/servers/tine"),
    ("zed", ".config/zed/settings.json", "/context_servers/tine"),
];

fn put(home: &Home, name: &str, text: &str) {
    let path = home.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn get(home: &Home, name: &str) -> String {
    fs::read_to_string(home.path(name)).unwrap_or_default()
}

#[test]
#[cfg(target_os = "linux")]
fn every_host_gets_an_entry_that_starts_this_store() {
    for (host, file, place) in HOSTS {
        let home = Home::new();
        let out =
            home.ok(&["mcp", "install", host, "--yes", "--toolset", "all", "--project", "trips"]);
        assert!(out.contains("+ ") && out.contains("written"), "{out}");
        let written: Value = serde_json::from_str(&get(&home, file)).unwrap();
        let entry = written.pointer(place).unwrap_or_else(|| panic!("{host}: {written}"));
        assert!(entry["command"].as_str().unwrap().ends_with("tine"), "{entry}");
        let arguments: Vec<&str> =
            entry["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let store = home.path("store");
        let store = store.to_str().unwrap();
        assert_eq!(arguments, ["mcp", "--store", store, "--project", "trips", "--toolset", "all"]);
        let again =
            home.ok(&["mcp", "install", host, "--yes", "--toolset", "all", "--project", "trips"]);
        assert!(again.contains("up to date"), "{again}");
    }
    let home = Home::new();
    home.ok(&["mcp", "install", "codex", "--yes"]);
    let written = get(&home, ".codex/config.toml");
    assert!(written.starts_with("[mcp_servers.tine]\ncommand = \""), "{written}");
}

#[test]
#[cfg(target_os = "linux")]
fn everything_else_in_a_file_stays_as_it_is() {
    let home = Home::new();
    let before = "// Zed settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\n    /* mine */\n    \"other\": { \"command\": \"x\" },\n  },\n  \"vim_mode\": true,\n}\n";
    put(&home, ".config/zed/settings.json", before);
    home.ok(&["mcp", "install", "zed", "--yes"]);
    let after = get(&home, ".config/zed/settings.json");
    for line in before.lines() {
        assert!(after.contains(line), "{line} is gone: {after}");
    }
    assert!(after.contains("\"tine\": {"), "{after}");
    assert_eq!(get(&home, ".config/zed/settings.json.before-tine"), before);
    // Another store replaces the entry and nothing else; the first copy is kept.
    home.ok(&["mcp", "install", "zed", "--yes", "--read-only"]);
    let replaced = get(&home, ".config/zed/settings.json");
    assert_eq!(replaced.matches("\"tine\"").count(), 1, "{replaced}");
    assert!(replaced.contains("--read-only"));
    assert_eq!(get(&home, ".config/zed/settings.json.before-tine-1"), after);

    let toml = "model = \"o\"\n\n[mcp_servers.tine]\ncommand = \"old\"\n\n[mcp_servers.tine.env]\nA = \"b\"\n\n# Kept.\n[mcp_servers.other]\ncommand = \"x\"\n";
    put(&home, ".codex/config.toml", toml);
    home.ok(&["mcp", "install", "codex", "--yes"]);
    let after = get(&home, ".codex/config.toml");
    assert!(after.contains("model = \"o\"") && after.contains("[mcp_servers.other]"), "{after}");
    assert!(!after.contains("\"old\"") && after.contains("\n\n# Kept.\n[mcp"), "{after}");
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_written_without_confirmation() {
    let home = Home::new();
    put(&home, ".cursor/mcp.json", "{}\n");
    let out = home.ok(&["mcp", "install", "cursor", "--dry-run"]);
    assert!(out.contains("+ ") && out.contains("mcpServers"), "{out}");
    let ran = home.run(&["mcp", "install", "cursor"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("--yes"), "{ran:?}");
    assert_eq!(get(&home, ".cursor/mcp.json"), "{}\n");
    let told = home.json(&["mcp", "install", "cursor", "--dry-run"]);
    assert_eq!(told[0]["written"], false);
    assert_eq!(told[0]["changed"], true);
    // Only hosts that are there, where all are asked for.
    let all = home.ok(&["mcp", "install", "--all", "--dry-run"]);
    assert!(all.contains("Cursor") && !all.contains("Zed"), "{all}");
    let none = Home::new().run(&["mcp", "install", "--all", "--yes"]);
    assert_eq!(none.code, 3, "{none:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_parsed_is_not_changed() {
    for (host, file, text) in [
        ("cursor", ".cursor/mcp.json", "{ not json"),
        ("cursor", ".cursor/mcp.json", "[]"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": []}"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {}} trailing"),
        ("cursor", ".cursor/mcp.json", "{\"a\": \"no end}"),
        ("zed", ".config/zed/settings.json", "/* no end"),
        ("codex", ".codex/config.toml", "a = [\n"),
        ("codex", ".codex/config.toml", "mcp_servers = { tine = { command = \"x\" } }\n"),
    ] {
        let home = Home::new();
        put(&home, file, text);
        let ran = home.run(&["mcp", "install", host, "--yes"]);
        assert_eq!(ran.code, 2, "{text}: {ran:?}");
        assert!(ran.err.contains("was not changed"), "{text}: {ran:?}");
        assert_eq!(get(&home, file), text);
    }
}
