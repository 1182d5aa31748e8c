//! `tine serve` and `tine server token`, as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Home;

/// Timeout of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server as a process.
struct Serving {
    process: Child,
    address: String,
}

impl Serving {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--log", "error"];
        all.extend(arguments);
        Serving::of(home.command(&all))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let said = process.stderr.take().expect("its standard error");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        let (_, address) = line.trim().rsplit_once("http://").expect("an address");
        Serving { address: address.to_owned(), process }
    }

    fn on_loopback(home: &Home) -> Self {
        Serving::start(home, &["--listen", "127.0.0.1:0"])
    }

    fn connect(&self) -> TcpStream {
        let port = self.address.rsplit_once(':').expect("a port").1;
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Asks, and answers the status and the body.
    fn ask(&self, head: &str, body: &str) -> (u16, Value) {
        let mut stream = self.connect();
        let request = format!(
            "{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn get(&self, path: &str, token: &str) -> u16 {
        self.ask(&format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}"), "").0
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn a_change_by_the_command_reaches_subscribers_of_the_server() {
    let home = Home::with_trip();
    let serving = Serving::on_loopback(&home);
    let mut stream = serving.connect();
    stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    let mut lines = BufReader::new(stream).lines();
    let mut until = |text: &str| {
        lines.by_ref().map(|line| line.expect("a line")).find(|line| line.starts_with(text))
    };
    until(": following").expect("the server follows");
    home.ok(&["append", "from another process"]);
    let committed = Instant::now();
    let data = until("data: ").expect("an event");
    // The promise is 200 ms; a busy machine gets more.
    assert!(committed.elapsed() < Duration::from_secs(2), "{:?}", committed.elapsed());
    assert!(data.contains("\"kind\":\"append\""), "{data}");
}

#[test]
fn server_and_command_see_each_others_changes() {
    let home = Home::with_trip();
    let serving = Serving::on_loopback(&home);
    let body = r#"{"role":"user","content":"over HTTP"}"#;
    let (status, _) = serving.ask("POST /api/v1/conversations/trip/turns HTTP/1.1", body);
    assert_eq!(status, 201);
    assert!(home.ok(&["path", "main"]).contains("over HTTP"));
    home.ok(&["append", "by the command"]);
    let (_, turns) = serving.ask("GET /api/v1/conversations/trip/turns HTTP/1.1", "");
    assert_eq!(turns["turns"][3]["content"][0]["text"], "by the command");
}

#[test]
fn knowledge_json_is_equal_on_the_command_line_and_over_http() {
    let home = Home::new();
    let said = "I need to book a hotel in Kyoto by 2025-03-14.";
    let stored =
        home.json(&["store", "turn", "trip", "--turn-id", "1", "--interpret", "wait", said]);
    let id = |path: &str| stored.pointer(path).and_then(Value::as_str).expect("an id").to_owned();
    let (source, run) = (id("/source_id"), id("/interpretation/interpretation_id"));
    home.ok(&["interpret", &source, "--wait"]);
    let runs = home.json(&["interpret", "--of", &source]);
    let second = runs["items"][1]["interpretation_id"].as_str().expect("a run").to_owned();
    let tasks = home.json(&["entity", "list", "--type", "task"]);
    let task = tasks["items"][0]["entity_id"].as_str().expect("a task").to_owned();
    let serving = Serving::on_loopback(&home);
    let calls: [(&[&str], String); 14] = [
        (&["source", "list"], "sources".to_owned()),
        (&["source", "show", &source], format!("sources/{source}")),
        (&["interpret", "--of", &source], format!("sources/{source}/interpretations")),
        (&["interpret", "--show", &run], format!("interpretations/{run}")),
        (&["interpret", "--show", &run, "--bytes"], format!("interpretations/{run}?include=bytes")),
        (
            &["interpret", "--compare", &run, &second],
            format!("interpretations/{run}/compare?with={second}"),
        ),
        (&["entity", "list"], "entities".to_owned()),
        (&["entity", "show", &task], format!("entities/{task}")),
        (&["entity", "provenance", &task], format!("entities/{task}/provenance")),
        (&["observations", &task], format!("entities/{task}/observations")),
        (&["timeline"], "timeline".to_owned()),
        (&["relations"], "relationships".to_owned()),
        (&["entity", "schemas"], "schemas".to_owned()),
        (&["entity", "schema", "task"], "schemas/task".to_owned()),
    ];
    for (arguments, path) in calls {
        let (status, answer) = serving.ask(&format!("GET /api/v1/{path} HTTP/1.1"), "");
        assert_eq!((status, &answer), (200, &home.json(arguments)), "{arguments:?}");
    }
}

#[test]
fn a_public_server_requires_a_token() {
    let home = Home::with_trip();
    let serving = Serving::start(&home, &["--listen", "0.0.0.0:0"]);
    let path = "/api/v1/conversations/trip";
    assert_eq!(serving.ask(&format!("GET {path} HTTP/1.1"), "").0, 401);
    let word = home.ok(&["token", "create", "phone", "--read"]).trim().to_owned();
    assert_eq!(serving.get(path, &word), 200);
    let append = format!("POST {path}/turns HTTP/1.1\r\nAuthorization: Bearer {word}");
    assert_eq!(serving.ask(&append, r#"{"role":"user","content":"x"}"#).0, 403);
    home.ok(&["token", "revoke", "phone"]);
    assert_eq!(serving.get(path, &word), 401);
    let kept = std::fs::read_to_string(home.path("store/tokens.json")).expect("the tokens' file");
    assert!(!kept.contains(&word));
}

#[test]
fn on_loopback_a_token_is_required_once_one_exists_or_the_server_is_reachable_from_elsewhere() {
    let home = Home::with_trip();
    let path = "GET /api/v1/conversations/trip HTTP/1.1";
    let status = |options: &[&str]| {
        let serving = Serving::start(&home, &[&["--listen", "127.0.0.1:0"], options].concat());
        serving.ask(path, "").0
    };
    let refused = |options: &[&str]| home.refused("invalid", &[&["serve"], options].concat());

    assert_eq!(status(&[]), 200);
    assert_eq!(status(&["--require-token"]), 401);
    // Behind a proxy every request comes from loopback.
    let why = refused(&["--listen", "127.0.0.1:0", "--host", "tine.example"]);
    assert!(why.contains("tine server token create"), "{why}");
    assert_eq!(status(&["--host", "tine.example", "--no-token"]), 200);
    let why = refused(&["--listen", "0.0.0.0:0", "--no-token"]);
    assert!(why.contains("loopback only"), "{why}");

    home.ok(&["token", "create", "phone"]);
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&["--host", "tine.example"]), 401);
    assert_eq!(status(&["--no-token"]), 200);
}

#[cfg(unix)]
#[test]
fn the_token_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::with_trip();
    home.ok(&["token", "create", "phone"]);
    let found = std::fs::metadata(home.path("store/tokens.json")).expect("the tokens' file");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_server_stops_cleanly_on_sigterm() {
    let home = Home::with_trip();
    let mut serving = Serving::on_loopback(&home);
    assert_eq!(serving.ask("GET /healthz HTTP/1.1", "").0, 200);
    let id = serving.process.id().to_string();
    let told = Command::new("kill").args(["-TERM", &id]).status().expect("kill");
    assert!(told.success());
    let ended = serving.process.wait().expect("the server ends");
    assert!(ended.success(), "{ended}");
}

#[cfg(unix)]
#[test]
fn a_server_survives_with_few_descriptors() {
    let home = Home::with_trip();
    let mut few = Command::new("sh");
    let program = home.command(&["serve", "--log", "error", "--listen", "127.0.0.1:0"]);
    few.args(["-c", "ulimit -n 300; exec \"$0\" \"$@\""]).arg(program.get_program());
    few.args(program.get_args()).env_clear();
    few.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let serving = Serving::of(few);
    // More than there are places for, and no more than the system lets wait.
    let idle: Vec<TcpStream> = (0..100).map(|_| serving.connect()).collect();
    // The store is still at hand for the others.
    home.ok(&["append", "meanwhile"]);
    drop(idle);
    let (status, turns) = serving.ask("GET /api/v1/conversations/trip/turns HTTP/1.1", "");
    assert_eq!((status, &turns["turns"][2]["content"][0]["text"]), (200, &"meanwhile".into()));
}

#[test]
fn a_server_serves_models_and_the_page() {
    let home = Home::with_trip();
    let why = home.refused("not_found", &["serve", "--model", "none"]);
    assert!(why.contains("expected one of echo"), "{why}");
    let serving = Serving::start(&home, &["--listen", "127.0.0.1:0", "--model", "echo"]);
    let (status, models) = serving.ask("GET /api/v1/models HTTP/1.1", "");
    assert_eq!((status, &models["items"][0]["name"]), (200, &Value::from("echo")));
    assert_eq!(serving.ask("GET / HTTP/1.1", "").0, 200);
}

#[test]
fn a_token_can_be_created_before_the_store() {
    let home = Home::new();
    home.ok(&["token", "create", "phone"]);
    home.ok(&["new", "trip"]);
    std::fs::create_dir(home.path("other")).unwrap();
    home.write("other/letter.txt", "Dear all");
    let ran = home.run(&["token", "create", "phone", "--store", "other"]);
    assert!(ran.code != 0 && ran.err.contains("not a Tine store"), "{ran:?}");
    assert!(!home.path("other/tokens.json").exists());
}
