//! The REPL on a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::pty::{Winsize, openpty};

use crate::commits::with_osaka;
use crate::harness::{Home, hash_of};

/// Idle timeout.
const PATIENCE: Duration = Duration::from_secs(60);

struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    /// What was shown and not yet expected.
    text: String,
    /// Everything that was shown.
    all: String,
}

impl Terminal {
    fn open(home: &Home, arguments: &[&str]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).expect("a pseudo-terminal");
        let end = || Stdio::from(pair.slave.try_clone().expect("a copy of it"));
        let mut command = home.command(arguments);
        command.env("TERM", "xterm").env("TINE_PAGER", "cat").env("NO_COLOR", "1");
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("the built command runs");
        drop(command);
        drop(pair.slave);
        let mut screen = File::from(pair.master.try_clone().expect("a copy of it"));
        let (send, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails or ends once the terminal is closed.
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                if send.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal {
            child,
            keys: File::from(pair.master),
            shown,
            text: String::new(),
            all: String::new(),
        }
    }

    fn press(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).expect("a terminal takes keys");
        self
    }

    /// Waits for a text, and discards everything up to its end.
    fn expect(&mut self, wanted: &str) -> &mut Self {
        loop {
            if let Some(at) = self.text.find(wanted) {
                self.text.drain(..at + wanted.len());
                return self;
            }
            match self.shown.recv_timeout(PATIENCE) {
                Ok(bytes) => {
                    let shown = String::from_utf8_lossy(&bytes);
                    self.text.push_str(&shown);
                    self.all.push_str(&shown);
                }
                Err(_) => panic!("`{wanted}` never came; {:?}", self.text),
            }
        }
    }

    /// Waits for the end, and checks that a text was never shown.
    fn ends_without(mut self, text: &str) {
        assert!(self.child.wait().expect("it ends").success());
        while let Ok(bytes) = self.shown.recv() {
            self.all.push_str(&String::from_utf8_lossy(&bytes));
        }
        assert!(!self.all.contains(text), "{}", self.all);
    }

    fn stop(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    }

    fn ends(mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {:?}", self.text);
    }
}

const TAB: &str = "\t";
const UP: &str = "\u{1b}[A";
const ENTER: &str = "\r";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn commands_branches_hashes_and_conversations_are_completed() {
    let home = with_osaka();
    let osaka = hash_of(&home, "osaka");
    let mut terminal = Terminal::open(&home, &["repl"]);
    terminal.expect("conversation trip [main]").expect("/help").expect("tine> ");
    terminal.press("/chec").press(TAB).expect("/checkout ");
    terminal.press("os").press(TAB).expect("osaka ").press(ENTER).expect("[osaka] ends on");
    terminal.expect("tine> ").press("/show ").press(&osaka[7..11]).press(TAB);
    terminal.expect(&osaka[11..19]).press(ENTER).expect("Osaka is cheaper");
    terminal.expect("tine> ").press("/turns --ro").press(TAB).expect("--role ").press("user");
    terminal.press(ENTER).expect("What about Osaka instead?");
    terminal.expect("tine> ").press("/conversation tr").press(TAB).expect("trip ");
    terminal.press(ENTER).expect("conversation trip [main]");
    terminal.expect("tine> ").press(CTRL_D);
    terminal.ends();
}

#[test]
fn a_server_on_a_terminal_shows_one_line_for_people() {
    let home = Home::with_trip();
    let store = home.path("store");
    let store = store.to_str().unwrap();
    let serve = ["serve", "--store", store, "--listen", "127.0.0.1:0"];
    let mut terminal = Terminal::open(&home, &serve);
    terminal.expect("tine serves ").expect(" on http://127.0.0.1:");
    terminal.stop();
    terminal.expect("stopping");
    terminal.ends_without("{\"");
}

#[test]
fn history_is_kept_between_sessions() {
    let home = with_osaka();
    let mut first = Terminal::open(&home, &["repl", "-c", "trip"]);
    first.expect("tine> ").press("/turns --n 1").press(ENTER).expect("Rather Kyoto");
    first.expect("tine> ").press(" /branch kept-out").press(ENTER).expect("[kept-out] ends on");
    first.expect("tine> ").press(UP).expect("/turns --n 1").press(ENTER).expect("Rather Kyoto");
    first.expect("tine> ").press("half a line").press(CTRL_C);
    first.expect("tine> ").press("/quit").press(ENTER);
    first.ends();
    let mut second = Terminal::open(&home, &["repl", "-c", "trip"]);
    second.expect("tine> ").press(UP).expect("/quit").press(UP).expect("/turns --n 1");
    second.press(ENTER).expect("Rather Kyoto").expect("tine> ").press(CTRL_D);
    second.ends();
    let history = std::fs::read_to_string(home.path(".local/state/tine/history")).unwrap();
    assert!(history.contains("/turns --n 1") && !history.contains("kept-out"), "{history}");
    assert!(!history.contains("half a line"), "{history}");
}
