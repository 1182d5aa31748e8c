//! `tine.toml`: settings, precedence, and errors.

use serde_json::Value;

use crate::harness::{Home, Ran, finish, stable};

/// The command without the variables that the harness sets.
fn run(home: &Home, arguments: &[&str]) -> Ran {
    let mut command = home.command(arguments);
    finish(command.env_remove("TINE_STORE").env_remove("TINE_SERVER"), b"")
}

fn ok(home: &Home, arguments: &[&str]) -> String {
    let ran = run(home, arguments);
    assert_eq!(ran.code, 0, "tine {arguments:?}: {ran:?}");
    ran.out
}

/// A home with a user's file.
fn home_with(settings: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/tine")).unwrap();
    home.write(".config/tine/tine.toml", settings);
    home
}

fn setting(home: &Home, more: &[&str], name: &str) -> (String, String) {
    let document: Value =
        serde_json::from_str(&ok(home, &[&["--json", "config"], more].concat())).unwrap();
    let all = document["settings"].as_array().unwrap();
    let found = all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let text = |name: &str| found[name].as_str().unwrap_or("null").to_owned();
    (text("value"), text("from"))
}

const ALL: &str = r#"
store = "kept"
project = "work"
actor = "ada"
listen = "127.0.0.1:0"

[interpret]
default = "local"

[models.local]
kind = "ollama"
model = "llama3.2"

[models.big]
kind = "openai"
model = "gpt"
"#;

#[test]
fn settings_are_shown_with_their_origin_and_without_keys() {
    let home = home_with(ALL);
    let shown = ok(&home, &["config"]);
    insta::assert_snapshot!("config", stable(&shown, &home.path("")).replace("HOME/", "HOME"));
    let mut command = home.command(&["config", "--json"]);
    let ran = finish(command.env_remove("TINE_STORE").env("OPENAI_API_KEY", "sk-secret"), b"");
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["models"][0]["key_is_set"], true);
    assert_eq!(document["models"][1]["key_env"], Value::Null);
    assert!(!ran.out.contains("sk-secret"), "{}", ran.out);
    insta::assert_snapshot!("config_none", {
        let none = Home::new();
        stable(&ok(&none, &["config"]), &none.path("")).replace("HOME/", "HOME")
    });
}

#[test]
fn settings_of_a_file_are_used() {
    let home = home_with(ALL);
    ok(&home, &["new", "trip"]);
    assert!(
        home.path(".config/tine/kept/tine.db").exists(),
        "a path is read from the file's place"
    );
    let shown: Value = serde_json::from_str(&ok(&home, &["--json", "ops"])).unwrap();
    assert_eq!(shown["project_id"], "work");
    assert_eq!(shown["items"][0]["actor"], "ada");
}

#[test]
fn options_override_the_environment_which_overrides_files() {
    let home = home_with(ALL);
    let with = |name: &str, value: &str, arguments: &[&str]| {
        let mut command = home.command(arguments);
        finish(command.env_remove("TINE_STORE").env(name, value), b"").out
    };
    assert!(setting(&home, &[], "actor").1.ends_with("tine.toml"));
    assert!(with("TINE_ACTOR", "bob", &["config"]).contains("bob  (TINE_ACTOR)"));
    assert_eq!(setting(&home, &["--actor", "eve"], "actor"), ("eve".into(), "--actor".into()));
    let both = with("TINE_PROJECT", "env", &["config", "--project", "flag"]);
    assert!(both.contains("flag  (--project)"), "{both}");
    assert!(with("TINE_STORE", "/there", &["config"]).contains("/there  (TINE_STORE)"));
    assert!(with("TINE_LISTEN", "0.0.0.0:1", &["config"]).contains("0.0.0.0:1  (TINE_LISTEN)"));
    let server = with("TINE_SERVER", "http://127.0.0.1:1", &["config"]);
    assert!(server.contains("server") && server.contains("(TINE_SERVER)"), "{server}");
    assert!(setting(&home, &["--store", "x"], "store").1 == "--store");
    assert!(with("TINE_ACTOR", "", &["config"]).contains("ada"), "an empty variable is none");
}

#[test]
fn the_file_is_found_by_option_variable_and_folder() {
    let home = home_with("actor = \"folder\"\n");
    let named = home.write("named.toml", "actor = \"named\"\n");
    assert_eq!(setting(&home, &[], "actor").0, "folder");
    assert_eq!(setting(&home, &["--config", &named], "actor").0, "named");
    let before = ok(&home, &["--config", &named, "config"]);
    assert!(before.contains("named"), "{before}");
    let nested = ok(&home, &["config", "path", "--config", &named]);
    assert_eq!(nested.trim(), named);
    // A conversation's own configuration has the name there; the file goes before it.
    ok(&home, &["--config", &named, "new", "trip", "--config", r#"{"n":1}"#, "--store", "kept"]);
    let made = ok(&home, &["ops", "--store", "kept"]);
    assert!(made.contains("named"), "{made}");
    let by = |name: &str, value: &str, arguments: &[&str]| {
        finish(home.command(arguments).env_remove("TINE_STORE").env(name, value), b"")
    };
    assert!(by("TINE_CONFIG", &named, &["config"]).out.contains("named"));
    let place = by("TINE_CONFIG", &named, &["config", "path"]).out;
    assert_eq!(place.trim(), named);
    let folder = home.path("settings");
    std::fs::create_dir_all(folder.join("tine")).unwrap();
    home.write("settings/tine/tine.toml", "actor = \"xdg\"\n");
    assert!(by("XDG_CONFIG_HOME", folder.to_str().unwrap(), &["config"]).out.contains("xdg"));
    assert!(ok(&home, &["config", "path"]).trim().ends_with("/.config/tine/tine.toml"));
    let missing = by("TINE_CONFIG", "/nowhere.toml", &["config"]);
    assert_eq!(missing.code, 3, "a file that is named must be there: {missing:?}");
    assert_eq!(by("TINE_CONFIG", "/nowhere.toml", &["config", "path"]).code, 0);
}

#[test]
fn the_file_of_the_store_adds_to_the_users_file() {
    let home = home_with("actor = \"ada\"\n");
    ok(&home, &["new", "first", "--store", "kept"]);
    home.write("kept/tine.toml", "actor = \"store\"\nproject = \"of-store\"\n");
    let here = ["--store", "kept"];
    assert_eq!(setting(&home, &here, "actor").0, "ada");
    assert_eq!(setting(&home, &here, "project").0, "of-store");
    ok(&home, &["new", "trip", "--store", "kept"]);
    assert!(ok(&home, &["ls", "--store", "kept", "--project", "of-store"]).contains("trip"));
    home.write("kept/tine.toml", "server = \"http://127.0.0.1:1\"\n");
    let refused = run(&home, &["ls", "--store", "kept"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("`server` selects a store"), "{}", refused.err);
}

#[test]
fn a_server_in_the_file_is_used_unless_a_store_is_named() {
    let home = home_with("server = \"http://127.0.0.1:1\"\n");
    assert_eq!(run(&home, &["ls"]).code, 12, "no server is running");
    assert_eq!(run(&home, &["new", "trip", "--store", "kept"]).code, 0);
    assert_eq!(home.run(&["ls", "--server", ""]).code, 3, "TINE_STORE names a store");
}

#[test]
fn unknown_settings_are_refused_with_file_and_line() {
    for (settings, line, word) in [
        ("actor = \"a\"\nacter = \"b\"\n", "line 2", "unknown field `acter`"),
        ("[interpret]\ndefalt = \"rules\"\n", "line 2", "unknown field `defalt`"),
        (
            "\n[models.a]\nkind = \"openai\"\nmodel = \"m\"\ntimeuot_ms = 1\n",
            "line 5",
            "timeuot_ms",
        ),
        ("[modles.a]\n", "line 1", "unknown field `modles`"),
        ("actor = \n", "line 1", "actor"),
        ("actor = \"a\"\nactor = \"b\"\n", "line 2", "duplicate"),
    ] {
        let home = home_with(settings);
        let ran = run(&home, &["ls"]);
        assert_eq!(ran.code, 2, "{settings}: {ran:?}");
        for part in [".config/tine/tine.toml, ", line, word] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
    }
}

#[test]
fn a_bad_value_is_refused_by_its_key() {
    for (settings, word) in [
        ("actor = 7\n", "`actor`"),
        ("actor = \"\"\n", "`actor`"),
        ("store = \"a\"\nserver = \"http://x\"\n", "`server` and `store`"),
        ("[interpret]\ndefault = \"nobody\"\n", "`interpret.default`"),
        ("[models.a]\nkind = \"openai\"\nmodel = \"m\"\nretries = \"3\"\n", "`models.a.retries`"),
        ("[models.a]\nkind = \"openai\"\nmodel = \"m\"\nretries = 99\n", "`models.a.retries`"),
        ("[models.a]\nkind = \"parrot\"\nmodel = \"m\"\n", "`models.a.kind`"),
        ("[models.rules]\nkind = \"openai\"\nmodel = \"m\"\n", "`models.rules`"),
    ] {
        let home = home_with(settings);
        let ran = run(&home, &["config"]);
        assert_eq!(ran.code, 2, "{settings}: {ran:?}");
        assert!(ran.err.contains(word) && ran.err.contains("tine.toml"), "{word}: {}", ran.err);
    }
}

#[test]
fn a_key_in_the_file_is_refused_and_not_repeated() {
    for member in ["api_key", "key", "apikey", "key_env"] {
        let settings =
            format!("[models.a]\nkind = \"openai\"\nmodel = \"m\"\n{member} = \"sk-secret 1\"\n");
        let ran = run(&home_with(&settings), &["config"]);
        assert_eq!(ran.code, 2, "{member}: {ran:?}");
        assert!(!ran.err.contains("sk-secret"), "{}", ran.err);
    }
}

#[test]
fn an_unusable_model_fails_only_its_runs() {
    let home = home_with("[models.far]\nkind = \"openai\"\nmodel = \"m\"\n");
    let empty = home.write("none.pem", "");
    let with = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("SSL_CERT_FILE", &empty).env("SSL_CERT_DIR", home.path("nowhere"));
        finish(&mut command, b"")
    };
    assert_eq!(with(&["new", "trip"]).code, 0);
    let asked = ["store", "turn", "trip", "--interpret", "wait", "--interpreter", "far", "Hello"];
    let ran = with(&asked);
    assert_eq!(ran.code, 0, "the turn is kept: {ran:?}");
    assert!(ran.out.contains("failed  far  `models.far.base_url`"), "{}", ran.out);
}

#[test]
fn settings_are_read_and_written_one_by_one() {
    let home = home_with("# mine\nactor = \"ada\"  # me\n");
    assert_eq!(ok(&home, &["config", "get", "actor"]), "ada\n");
    ok(&home, &["config", "set", "actor", "eve"]);
    ok(&home, &["config", "set", "interpret.default", "rules"]);
    let file = || std::fs::read_to_string(home.path(".config/tine/tine.toml")).unwrap();
    assert_eq!(file(), "# mine\nactor = \"eve\"  # me\n\n[interpret]\ndefault = \"rules\"\n");
    assert_eq!(ok(&home, &["config", "get", "interpret.default"]), "rules\n");
    assert_eq!(ok(&home, &["--json", "config", "get", "actor"]).matches("eve").count(), 1);
    ok(&home, &["config", "unset", "actor"]);
    assert!(!file().contains("eve"), "{}", file());
    ok(&home, &["config", "set", "store", "kept"]);
    let before = file();
    let refused: [(&[&str], &str); 5] = [
        (&["set", "server", "http://127.0.0.1:1"], "both set"),
        (&["set", "colour", "red"], "expected one of"),
        (&["set", "models.local.kind", "ollama"], "tine config path"),
        (&["set", "actor", ""], "empty"),
        (&["get", "server"], "not set"),
    ];
    for (wrong, says) in refused {
        let ran = run(&home, &[&["config"][..], wrong].concat());
        assert!(ran.code != 0 && ran.err.contains(says), "{wrong:?}: {ran:?}");
        assert_eq!(file(), before);
    }
    let none = Home::new();
    ok(&none, &["config", "set", "actor", "ada"]);
    assert_eq!(ok(&none, &["config", "get", "actor"]), "ada\n");
}
