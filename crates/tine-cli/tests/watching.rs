//! `tine watch`: what one process writes, another sees, once and in order, whatever becomes of
//! the server between them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Home, Server, finish};

/// A running `tine watch`.
struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&["watch"]);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the built command runs");
        let out = BufReader::new(child.stdout.take().expect("it was piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Watch { child, lines }
    }

    fn line(&self) -> String {
        // Far beyond what it takes: only a test that fails waits for so long.
        self.lines.recv_timeout(Duration::from_secs(60)).expect("one more line")
    }

    fn document(&self) -> Value {
        serde_json::from_str(&self.line()).expect("one document on each line")
    }

    /// Nothing comes any more.
    fn quiet(&self) -> bool {
        self.lines.recv_timeout(Duration::from_millis(300)).is_err()
    }

    /// Presses Ctrl-C and gives the exit code.
    #[cfg(unix)]
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("kill runs").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(home: &Home, place: &[&str], numbers: std::ops::Range<u32>) {
    for number in numbers {
        let text = format!("turn {number}");
        let mut arguments = vec!["append", "-c", "trip", "--key", &text, &text];
        arguments.extend(place);
        let ran = finish(&mut home.command(&arguments), b"");
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn a_server_that_is_killed_and_comes_back_costs_a_watcher_nothing() {
    let home = Home::new();
    let store = home.path("watched");
    let here = ["--store", store.to_str().expect("a plain name")];
    let server = Server::start(&store, "127.0.0.1:0", &[]);
    let url = server.url.clone();
    let there = ["--server", url.as_str()];
    let watch = Watch::start(&home, &["--json", "--after", "0", "--server", &url]);
    home.ok(&["new", "trip", there[0], there[1]]);
    say(&home, &there, 1..6);
    say(&home, &here, 6..11);
    assert_eq!(watch.document()["kind"], "create");
    server.kill();
    say(&home, &here, 11..16);
    let server = Server::start(&store, url.trim_start_matches("http://"), &[]);
    say(&home, &there, 16..21);
    server.kill();
    let _server = Server::start(&store, url.trim_start_matches("http://"), &[]);
    say(&home, &there, 21..26);
    for number in 1..26 {
        let document = watch.document();
        assert_eq!(document["seq"], number + 1, "{document}");
        assert_eq!(document["kind"], "append", "{document}");
        assert_eq!(document["conversation_id"], "trip");
    }
    assert!(watch.quiet(), "nothing comes twice");
    #[cfg(unix)]
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn a_watcher_of_a_store_sees_what_other_processes_write() {
    let home = Home::with_trip();
    let watch = Watch::start(&home, &["--after", "0", "--json", "-c", "trip"]);
    let first: Vec<Value> = (0..3).map(|_| watch.document()).collect();
    let kinds: Vec<&str> = first.iter().filter_map(|it| it["kind"].as_str()).collect();
    assert_eq!(kinds, ["create", "append", "append"]);
    home.ok(&["new", "other"]);
    home.ok(&["append", "-c", "trip", "And in autumn?"]);
    home.ok(&["undo", "-c", "trip"]);
    let next = watch.document();
    assert_eq!((&next["kind"], &next["actor"]), (&"append".into(), &"tester".into()));
    assert!(next["position"].as_u64() > first[2]["position"].as_u64());
    assert_eq!(watch.document()["kind"], "undo");
    // Going on behind a position gives what came after it.
    let position = next["position"].to_string();
    let later = Watch::start(&home, &["--after", &position]);
    let line = later.line();
    assert!(line.contains("other") || line.contains("undo"), "{line}");
    #[cfg(unix)]
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn people_read_time_conversation_kind_summary_and_actor_on_one_line() {
    let home = Home::with_trip();
    let watch = Watch::start(&home, &["--after", "1"]);
    let line = crate::harness::stable(&watch.line(), &home.path(""));
    assert!(line.starts_with("TIME"), "{line}");
    for word in ["trip", "append: ", "tester"] {
        assert!(line.contains(word), "{line}");
    }
}
