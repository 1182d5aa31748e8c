//! The command over a server. The whole suite runs a second time with every store behind a
//! `tine serve`; commands that need a local store say so.

use std::process::Command;

use tine_core::ErrorKind;

use crate::harness::{Home, Ran, Server, THROUGH_SERVERS, finish, is_again, run_suite_again};

/// Tests that make no sense over a server, and why.
const ONLY_HERE: [(&str, &str); 13] = [
    (
        "bad_input::an_invalid_call_creates_no_store",
        "a server has made its store before the first call",
    ),
    (
        "bad_input::a_store_of_a_newer_format_is_refused_and_left_alone",
        "it alters the store's file, which a server holds open",
    ),
    (
        "exit_codes::a_damaged_store_is_corrupt",
        "it alters the store's file, which a server holds open",
    ),
    (
        "demo::the_demo_shows_a_tree_and_next_steps",
        "it names the store's folder; a test below shows the same over a server",
    ),
    ("demo::without_an_option_the_demo_has_its_own_store", "it is about a store in a folder"),
    ("demo::fresh_deletes_only_a_demo_store", "no file is deleted over a server"),
    (
        "transfer::a_backup_is_a_store_and_can_be_replaced",
        "a folder cannot be copied over a server; a test below shows the refusal",
    ),
    (
        "search::killing_an_indexing_process_leaves_a_usable_index",
        "it kills the process that indexes, which would be the server",
    ),
    ("exit_codes::an_empty_variable_counts_as_unset", "it is about TINE_STORE"),
    (
        "learned::storing::an_invalid_turn_creates_no_store",
        "a server has made its store before the first call",
    ),
    (
        "learned::runs::queued_runs_are_listed_executed_and_kept",
        "a server does what is queued before it is seen; a test below shows the refusal",
    ),
    (
        "learned::runs::runs_of_other_projects_are_executed_too",
        "a server does what is queued by itself",
    ),
    ("learned::runs::a_run_that_fails_is_counted", "a server does what is queued by itself"),
];

/// Whole groups of tests that make no sense over a server, and why.
const GROUPS_ONLY_HERE: [(&str, &str); 14] = [
    ("help::", "it is about spellings"),
    ("guides::", "they name their stores and servers themselves"),
    ("reference::", "it is about what the command understands"),
    ("acp::", "an editor starts the command beside the store"),
    ("formats::", "they begin with the file of an older store, and pack it"),
    ("damage::", "they alter the store's files, which a server holds open"),
    ("importing::", "files of other programs are imported, and stores synced, beside the store"),
    ("listing::", "the listed history is imported beside the store"),
    ("mcp::", "a host starts the command beside the store, or connects to /mcp itself"),
    ("serving::", "they start and end servers of their own"),
    ("settings::", "they are about where a store or a server is named"),
    ("strict_edge::", "it drives every surface, a server of its own included"),
    ("syncing::", "a store here is one of the two sides"),
    ("learned::models::", "they are about models of the tine.toml here, or start a server"),
];

#[test]
fn the_suite_passes_over_servers() {
    if is_again() {
        return;
    }
    run_suite_again(&[(THROUGH_SERVERS, "1")], &ONLY_HERE, &GROUPS_ONLY_HERE);
}

/// A home whose commands go to its server, whatever the rest of the suite does.
pub struct Remote {
    pub home: Home,
    pub server: Server,
}

impl Remote {
    pub fn new(more: &[&str]) -> Self {
        let home = Home::new();
        let server = Server::start(&home.path("store"), "127.0.0.1:0", more);
        Remote { home, server }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command.env_remove("TINE_STORE").env("TINE_SERVER", &self.server.url);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        finish(&mut self.command(arguments), b"")
    }
}

fn check_refused(ran: &Ran, kind: ErrorKind, word: &str) {
    assert_eq!(ran.code, i32::from(kind.exit_code()), "{ran:?}");
    assert!(ran.err.starts_with("error: ") && ran.err.contains(word), "{}", ran.err);
}

#[test]
fn local_commands_name_an_alternative() {
    let remote = Remote::new(&[]);
    let run = "int_00000000000000000000000000000000";
    let calls: [(&[&str], &str); 8] = [
        (&["backup", "copy"], "tine export --all"),
        (&["run", "work"], "itself"),
        (&["run", "replay", run], "show RUN --bytes"),
        (&["store", "pack"], "in the background"),
        (&["token", "list"], "--store PATH"),
        (&["serve"], "--store PATH"),
        (&["demo", "--fresh", "--server", &remote.server.url], "tine store purge"),
        (&["completions", "bash", "--server", &remote.server.url], "leave --server out"),
    ];
    for (arguments, instead) in calls {
        let ran = remote.run(arguments);
        check_refused(&ran, ErrorKind::Unsupported, instead);
        assert!(ran.err.contains(&remote.server.url), "{}", ran.err);
    }
    assert_eq!(remote.run(&["completions", "bash"]).code, 0, "the environment is no reason");
}

#[test]
fn the_demo_has_the_same_hashes_over_a_server() {
    let (here, there) = (Home::new(), Remote::new(&[]));
    let here = finish(here.command(&["demo"]).args(["--store", "demo"]), b"");
    let demo = ["demo", "--server", &there.server.url];
    let first = there.run(&demo);
    let tree = |out: &str| out.split("Try next").next().unwrap_or_default().to_owned();
    assert_eq!(tree(&first.out), tree(&here.out), "{first:?}");
    assert!(first.out.contains(&format!("export TINE_SERVER={} ", there.server.url)));
    assert_eq!(there.run(&demo).out, first.out, "running it again just shows it");
    assert!(there.run(&["verify"]).out.contains("all is well"));
}

#[test]
fn options_override_the_environment_and_exclude_each_other() {
    let remote = Remote::new(&[]);
    assert_eq!(remote.run(&["new", "there"]).code, 0);
    assert_eq!(remote.run(&["new", "here", "--store", "other"]).code, 0);
    assert!(remote.run(&["ls"]).out.contains("there"));
    assert!(remote.run(&["ls", "--store", "other"]).out.contains("here"));
    let url = remote.server.url.as_str();
    let both = remote.run(&["ls", "--store", "other", "--server", url]);
    check_refused(&both, ErrorKind::Invalid, "cannot be used with");
    let both = finish(remote.command(&["ls"]).env("TINE_STORE", "other"), b"");
    check_refused(&both, ErrorKind::Invalid, "both set");
    let argument = finish(remote.command(&["ls", "--server", url]).env("TINE_STORE", "other"), b"");
    assert!(argument.out.contains("there"));
    let empty =
        finish(remote.command(&["ls"]).env("TINE_SERVER", "").env("TINE_STORE", "other"), b"");
    assert!(empty.out.contains("here"), "an empty name is none: {empty:?}");
}

#[test]
fn an_unreachable_server_is_busy_and_a_bad_address_invalid() {
    let remote = Remote::new(&[]);
    let listen = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let free = format!("http://{}", listen.local_addr().expect("it has one"));
    drop(listen);
    check_refused(&remote.run(&["ls", "--server", &free]), ErrorKind::Busy, "is it running?");
    for address in ["127.0.0.1:8000", "ftp://localhost", "http://"] {
        let ran = remote.run(&["ls", "--server", address]);
        check_refused(&ran, ErrorKind::Invalid, "http://127.0.0.1:8000");
    }
}

#[test]
fn a_token_comes_from_a_file_or_the_environment() {
    let remote = Remote::new(&[]);
    let here = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--store", "store"]);
        let ran = remote.run(&all);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out.trim().to_owned()
    };
    let writes = here(&["token", "create", "phone"]);
    let reads = here(&["token", "create", "reader", "--read"]);
    let with = |token: &str, arguments: &[&str]| {
        finish(remote.command(arguments).env("TINE_TOKEN", token), b"")
    };
    assert_eq!(with(&writes, &["new", "trip"]).code, 0);
    assert_eq!(with(&reads, &["ls"]).code, 0);
    check_refused(&with(&reads, &["new", "other"]), ErrorKind::Forbidden, "read-only");
    check_refused(&with("tine_guessed", &["ls"]), ErrorKind::Unauthorized, "not valid");
    check_refused(
        &with(&writes, &["ls", "--project", "p"]),
        ErrorKind::Forbidden,
        "gives no access",
    );
    let file = remote.home.write("token.txt", format!("{reads}\n"));
    let ran = with("tine_guessed", &["ls", "--token-file", &file]);
    assert!(ran.out.contains("trip"), "a file counts more than the environment: {ran:?}");
}

#[test]
fn large_numbers_survive_a_round_trip() {
    let remote = Remote::new(&[]);
    let message = r#"{"role":"user","content":[{"big":12345678901234567890123,"type":"x"}],
        "metadata":{"custom_data":{"id":9007199254740993}}}"#;
    let file = remote.home.write("message.json", message);
    let config = r#"{"seed":18446744073709551617}"#;
    assert_eq!(remote.run(&["new", "exact", "--config", config]).code, 0);
    assert_eq!(remote.run(&["append", "-m", &file]).code, 0);
    let shown = remote.run(&["show", "main", "--json"]).out;
    assert!(shown.contains("12345678901234567890123"), "{shown}");
    assert!(shown.contains("9007199254740993"), "{shown}");
    assert!(remote.run(&["show", "root", "--json"]).out.contains("18446744073709551617"));
    let log = remote.run(&["ops", "--json"]);
    assert_eq!(log.code, 0, "{log:?}");
}
