//! The command over a database. The whole suite runs once more with every store in PostgreSQL, but
//! for what is about files; and what only a database has is shown here.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use tine_testkit::database;

use crate::harness::{Home, IN_DATABASES, Server, is_again, run_suite_again};

/// Tests that are about the files of a store, and why.
const ABOUT_FILES: [(&str, &str); 4] = [
    (
        "transfer::a_backup_is_a_store_and_can_be_replaced",
        "a database is backed up with its own tools",
    ),
    ("importing::two_stores_exchange_missing_turns_and_keep_both_lines", "they are in folders"),
    ("importing::a_dry_run_counts_what_a_sync_transfers", "the other store is in a folder"),
    ("importing::a_store_and_a_server_exchange_missing_turns", "the server's is in a folder"),
];

/// Whole groups of tests that are about something else than the store's records, and why.
const GROUPS_ELSEWHERE: [(&str, &str); 25] = [
    ("guides::", "they name their stores and servers themselves"),
    ("reference::", "it is about what the command understands"),
    ("acp::", "they look for the store in a folder"),
    ("bad_input::", "it is refused before a store is asked"),
    ("commits::", "their records are entries, which the contract and a copy below check"),
    ("damage::", "they alter the store's files"),
    ("demo::", "they look for the store in a folder"),
    ("documents::", "they read documents"),
    ("drawing::", "they draw rows that are made up"),
    ("exit_codes::", "they are about errors"),
    ("formats::", "they begin with the file of an older store"),
    ("graph::", "they draw rows that are made up"),
    ("help::", "they are about spellings"),
    ("learned::", "their records are entries, which the contract and a copy below check"),
    ("mcp::", "they look for the store in a folder"),
    ("output::", "they are about terminals and help"),
    ("redaction::", "it happens before anything is stored"),
    ("remote::", "they are about servers"),
    ("rendering::", "they are about what is made of a path that was read"),
    ("repl::", "it runs the commands that the rest tests"),
    ("serving::", "they start servers over a folder"),
    ("strict_edge::", "it is refused before a store is asked"),
    ("syncing::", "the server's store is in a folder"),
    ("settings::", "they are about where a store is named"),
    ("watching::", "they start servers over a folder"),
];

#[test]
fn the_suite_passes_over_databases_as_it_does_over_folders() {
    if is_again() {
        return;
    }
    let settings = [(IN_DATABASES, "1"), ("TINE_TEST_POSTGRES", database::server())];
    run_suite_again(&settings, &ABOUT_FILES, &GROUPS_ELSEWHERE);
}

#[test]
fn a_store_goes_to_a_database_and_back_byte_for_byte() {
    if is_again() {
        return;
    }
    let home = Home::with_trip();
    home.ok(&["fork", "main~1", "--name", "side"]);
    home.ok(&["append", "--branch", "side", "--key", "k", "another answer"]);
    home.ok(&[
        "store",
        "turn",
        "trip",
        "--turn-id",
        "1",
        "--interpret",
        "wait",
        "I need to book it",
    ]);
    home.ok(&["commit", "--msg", "so far"]);
    let (folder, there) = (home.path("store"), database::new_store());
    let folder = folder.to_str().unwrap();
    let told = home.ok(&["migrate", folder, &there]);
    assert!(told.contains("compared and verified"), "{told}");
    // A second time there is nothing left to do.
    let again = home.json(&["migrate", folder, &there]);
    assert_eq!((&again["found"], &again["turns"]), (&again["operations"], &0.into()));
    let back = home.path("back");
    let back = back.to_str().unwrap();
    home.ok(&["migrate", &there, back]);
    let seen = |store: &str, arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--store", store]);
        home.ok(&all)
    };
    for arguments in [
        &["export", "--all"][..],
        &["tree"],
        &["ops", "--json"],
        &["entity", "list", "--json"],
        &["timeline", "--json"],
        &["source", "list", "--json"],
        &["commits", "--json"],
        &["search", "answer", "--json"],
        &["verify"],
    ] {
        let own = seen(folder, arguments);
        assert_eq!(own, seen(&there, arguments), "{arguments:?}");
        assert_eq!(own, seen(back, arguments), "{arguments:?}");
    }
    // The key is known there as well.
    let replayed = seen(&there, &["append", "--branch", "side", "--key", "k", "another answer"]);
    assert!(replayed.contains("earlier call"), "{replayed}");
    // Something else is not copied over it.
    let other = Home::with_trip();
    other.ok(&["append", "not the same"]);
    let other = other.path("store");
    home.refused("unsupported", &["migrate", other.to_str().unwrap(), &there]);
}

#[test]
fn what_one_server_takes_the_followers_of_another_see() {
    if is_again() {
        return;
    }
    let home = Home::new();
    let store = database::new_store();
    home.ok(&["new", "trip", "--store", &store]);
    let start = || Server::start(store.as_ref(), "127.0.0.1:0", &[]);
    let (one, other) = (start(), start());
    let address = one.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut until = |text: &str| {
        lines.by_ref().map(|line| line.unwrap()).find(|line| line.starts_with(text)).unwrap()
    };
    until(": following");
    home.ok(&["append", "-c", "trip", "--server", &other.url, "through the other"]);
    assert!(until("data: ").contains("\"kind\":\"append\""));
    let seen = home.ok(&["path", "-c", "trip", "--server", &one.url, "main"]);
    assert!(seen.contains("through the other"), "{seen}");
}

#[test]
fn bad_addresses_say_what_is_wrong_with_them() {
    let home = Home::new();
    for (address, told) in [
        ("postgres://", "names no host"),
        ("postgres://host/db?tine_schema=Robert'); DROP", "small letters"),
        ("postgres://host/db?tine_partitions=many", "a number from 0"),
        ("postgres://host/db?sslmode=always", "`verify-full`"),
        ("postgres://host/db?sslrootcert=nowhere.pem", "nowhere.pem"),
        ("postgres://host:port/db", "invalid"),
    ] {
        let ran = home.run(&["ls", "--store", address]);
        assert!(ran.code == 2 && ran.err.contains(told), "{address}: {} {}", ran.code, ran.err);
    }
    let ran = home.run(&["ls", "--store", "postgres://127.0.0.1:1/nowhere"]);
    assert!(ran.err.contains("cannot be reached") && ran.err.contains("try again"), "{}", ran.err);
    let ran = home.run(&["backup", "copy", "--store", &database::new_store()]);
    assert_ne!(ran.code, 0, "there is no store yet, and none is made: {}", ran.out);
}
