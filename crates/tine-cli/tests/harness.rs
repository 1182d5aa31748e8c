//! A store in a temporary folder, and what the command says about it: directly, or through a
//! server that the harness starts over the same folder (see `remote`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Set to run every command through a server.
pub const THROUGH_SERVERS: &str = "TINE_TEST_THROUGH_SERVERS";

/// Set to keep stores in databases.
pub const IN_DATABASES: &str = "TINE_TEST_IN_DATABASES";

/// Whether this is a run of the suite within another one.
pub fn is_again() -> bool {
    [THROUGH_SERVERS, IN_DATABASES].iter().any(|name| std::env::var_os(name).is_some())
}

/// Runs the suite again with more environment variables, without the tests and groups listed with
/// a reason.
pub fn run_suite_again(settings: &[(&str, &str)], tests: &[(&str, &str)], groups: &[(&str, &str)]) {
    let suite = || {
        let mut suite = Command::new(std::env::current_exe().expect("this test has a file"));
        suite.envs(settings.iter().copied()).env("INSTA_UPDATE", "no").env_remove("TINE_STORE");
        suite
    };
    let listed = suite().args(["--list", "--format", "terse"]).output().expect("it runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut second = suite();
    second.args(["--exact", "--test-threads", "2"]);
    let mut skipped = tests.len();
    for (name, why) in tests {
        assert!(listed.contains(&format!("{name}: test")), "{name} ({why}) is gone");
        second.args(["--skip", name]);
    }
    for (group, why) in groups {
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests: Vec<&str> = tests.filter(|name| name.starts_with(group)).collect();
        assert!(!tests.is_empty(), "{group} ({why}) is gone");
        skipped += tests.len();
        second.args(tests.iter().flat_map(|name| ["--skip", name]));
    }
    let ran = second.output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let passed = |line: &&str| line.ends_with("... ok");
    let (all, passed) = (listed.lines().count(), said.lines().filter(passed).count());
    assert_eq!(passed + skipped, all, "{said}");
}

/// A home with a store in it.
pub struct Home {
    // Dropped before the folder that it serves.
    server: OnceLock<Server>,
    database: OnceLock<String>,
    folder: TempDir,
}

/// A running `tine serve`.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// Serves a store at an address.
    pub fn start(store: &Path, listen: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tine"))
            .env_clear()
            .args(["serve", "--listen", listen, "--no-pack", "--log", "error", "--grace", "1"])
            .args(more)
            .arg("--store")
            .arg(store)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the built command runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("it was piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a server says where it is");
        let url = line.trim().rsplit_once(" on ").map(|(_, url)| url.to_owned());
        let url = url.unwrap_or_else(|| panic!("the server says: {line}"));
        // Drained, so that the server never blocks on it.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Server { child, url }
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    /// Returns a home without a store.
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        Home { server: OnceLock::new(), database: OnceLock::new(), folder }
    }

    /// A store with the conversation `trip`: one question and one answer at known times, so that
    /// their hashes are those of the documentation.
    pub fn with_trip() -> Self {
        let home = Home::new();
        home.ok(&["new", "trip", "--system", "Be brief."]);
        home.ok(&[
            "append",
            "--at",
            "2024-01-15T10:30:00Z",
            "What's the best time to visit Tokyo?",
        ]);
        home.ok(&["append", "-r", "assistant", "--at", "2024-01-15T10:30:05Z", "Late March 🌸"]);
        home
    }

    /// Returns the location of the store.
    fn store(&self) -> PathBuf {
        match std::env::var_os(IN_DATABASES) {
            Some(_) => self.database.get_or_init(tine_testkit::database::new_store).into(),
            None => self.path("store"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file in a temporary folder");
        path.to_str().expect("a temporary folder has a plain name").to_owned()
    }

    /// The command, with an environment that is the same everywhere.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tine"));
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("USER", "tester")
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .current_dir(self.folder.path())
            .args(arguments);
        if std::env::var_os(THROUGH_SERVERS).is_some() {
            command.env("TINE_SERVER", &self.server().url);
        } else {
            command.env("TINE_STORE", self.store());
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        finish(&mut self.command(arguments), input)
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, b"")
    }

    pub fn ok_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let ran = self.run_with(arguments, input);
        assert_eq!(ran.code, 0, "tine {arguments:?} failed: {ran:?}");
        assert_eq!(ran.err, "", "tine {arguments:?} complained");
        ran.out
    }

    /// Fills the store with the example, and returns what is shown.
    pub fn demo(&self, more: &[&str]) -> String {
        let store = self.store();
        let place = match std::env::var_os(THROUGH_SERVERS) {
            Some(_) => ["--server".to_owned(), self.server().url.clone()],
            None => ["--store".to_owned(), store.to_str().expect("a plain name").to_owned()],
        };
        self.ok(&[&["demo", &place[0], &place[1]][..], more].concat())
    }

    fn server(&self) -> &Server {
        self.server.get_or_init(|| Server::start(&self.path("store"), "127.0.0.1:0", &[]))
    }

    /// Runs a command with `--json`, and returns the document.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let out = self.ok(&all);
        assert_eq!(out.lines().count(), 1, "not one document: {out}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Exports the whole store.
    pub fn everything(&self) -> String {
        self.ok(&["export", "--all"])
    }

    /// Runs a command that must fail with this code and not change the store; returns the message.
    pub fn refused(&self, code: &str, arguments: &[&str]) -> String {
        self.refused_with(code, arguments, b"")
    }

    pub fn refused_with(&self, code: &str, arguments: &[&str], input: &[u8]) -> String {
        let before = self.everything();
        let mut all = vec!["--json"];
        all.extend(arguments);
        let machine = self.run_with(&all, input);
        let document: serde_json::Value = serde_json::from_str(&machine.err)
            .unwrap_or_else(|error| panic!("{error}: {machine:?}"));
        assert_eq!(document["error"]["code"], code, "tine {arguments:?}: {document}");
        let person = self.run_with(arguments, input);
        let kind = tine_core::ErrorKind::ALL.into_iter().find(|kind| kind.code() == code);
        let exit = i32::from(kind.expect("a known code").exit_code());
        assert_eq!((person.code, machine.code), (exit, exit), "tine {arguments:?}: {person:?}");
        assert!(person.err.starts_with("error: "), "{}", person.err);
        assert_eq!(self.everything(), before, "tine {arguments:?} changed the store");
        person.err
    }
}

pub fn finish(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built command runs");
    let mut stdin = child.stdin.take().expect("it was piped");
    let input = input.to_vec();
    // Written beside the reading: either pipe could be full. A refused command closes it early.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("the writer ends");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Returns the hash of a turn.
pub fn hash_of(home: &Home, reference: &str) -> String {
    let turn = home.json(&["show", reference]);
    turn["turn_hash"].as_str().expect("a turn has a hash").to_owned()
}

/// Replaces ids, hashes and times by names that stay the same from run to run.
pub fn stable(text: &str, folder: &Path) -> String {
    let text = text.replace(folder.to_str().expect("a plain name"), "HOME");
    let mut names: Vec<String> = Vec::new();
    let mut out = String::new();
    let mut rest = text.as_str();
    let mut boundary = true;
    while let Some(first) = rest.chars().next() {
        let (token, length) = if boundary { token(rest) } else { (None, 0) };
        match token {
            None => {
                boundary = !first.is_ascii_alphanumeric();
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
            Some(Token::Time) => {
                out.push_str("TIME");
                rest = &rest[length..];
            }
            Some(Token::Id(prefix, key)) => {
                let place = names.iter().position(|name| *name == key).unwrap_or_else(|| {
                    names.push(key);
                    names.len() - 1
                });
                out.push_str(&format!("{prefix}{place:02}"));
                rest = &rest[length..];
            }
        }
    }
    out
}

enum Token {
    Time,
    Id(&'static str, String),
}

fn token(text: &str) -> (Option<Token>, usize) {
    let run = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    let shape = |pattern: &str| {
        text.len() >= pattern.len()
            && pattern.bytes().zip(text.bytes()).all(|(want, byte)| match want {
                b'0' => byte.is_ascii_digit(),
                b'x' => byte.is_ascii_hexdigit(),
                want => want == byte,
            })
    };
    if shape("0000-00-00T00:00:00") {
        let length = text.find('Z').map_or(19, |end| end + 1);
        return (Some(Token::Time), length);
    }
    if shape("0000-00-00 00:00:00") {
        return (Some(Token::Time), 19);
    }
    if shape("0000-00-00 00:00") {
        return (Some(Token::Time), 16);
    }
    if shape("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return (Some(Token::Id("ID", text[..36].to_owned())), 36);
    }
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let length = run(hex);
    // Ids of knowledge are 32 digits after a prefix, those of observations 16 more. Digits without a
    // letter are a number.
    let letters = hex[..length].bytes().any(|byte| byte.is_ascii_alphabetic());
    if (length == 32 || length == 16 && letters) && hex.len() == text.len() {
        return (Some(Token::Id("ID", hex[..length].to_owned())), length);
    }
    // Short and long forms of one hash get one name.
    if length == 12 || length == 64 {
        let whole = text.len() - hex.len() + length;
        return (Some(Token::Id("HASH", hex[..12].to_owned())), whole);
    }
    (None, 0)
}
