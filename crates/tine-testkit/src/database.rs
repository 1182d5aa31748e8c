//! A PostgreSQL for tests: one for each test binary, and a schema for each store.
//!
//! It is started by `scripts/postgres` and goes away with the process, however that ends: the
//! script waits for the end of a pipe. `TINE_TEST_POSTGRES` names another one instead; what tests
//! make in it stays there, so it should be one that can be thrown away.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What keeps the server running: its pipe.
struct DatabaseServer {
    address: String,
    _script: Option<Child>,
}

static SERVER: OnceLock<DatabaseServer> = OnceLock::new();
static SCHEMAS: AtomicU64 = AtomicU64::new(0);

fn start() -> DatabaseServer {
    match std::env::var("TINE_TEST_POSTGRES") {
        Ok(address) => DatabaseServer { address, _script: None },
        Err(_) => start_with(&[]),
    }
}

fn start_with(arguments: &[&OsStr]) -> DatabaseServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let mut child = Command::new("bash")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("scripts/postgres can be run");
    let mut address = String::new();
    let out = child.stdout.take().expect("its output is a pipe");
    BufReader::new(out).read_line(&mut address).expect("scripts/postgres tells its address");
    assert!(address.starts_with("postgres"), "PostgreSQL did not start; see above");
    DatabaseServer { address: address.trim().to_owned(), _script: Some(child) }
}

/// A server of its own that encrypts, with a certificate for `localhost`. It goes away with this.
pub struct Encrypted(DatabaseServer);

impl Encrypted {
    /// Starts one, and writes to a file whom to trust.
    pub fn start(authority: &Path) -> Encrypted {
        Encrypted(start_with(&["--tls".as_ref(), authority.as_ref()]))
    }

    /// Its address, by its number and not by its name.
    pub fn address(&self) -> &str {
        &self.0.address
    }
}

/// Returns the address of a running server, and of a database there.
pub fn server() -> &'static str {
    &SERVER.get_or_init(start).address
}

/// Returns the address of a store that is not there yet.
pub fn new_store() -> String {
    let n = SCHEMAS.fetch_add(1, Ordering::SeqCst);
    let server = server();
    let sign = if server.contains('?') { '&' } else { '?' };
    format!("{server}{sign}tine_schema=tine_test_{}_{n}", std::process::id())
}
