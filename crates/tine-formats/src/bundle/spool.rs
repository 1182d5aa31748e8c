//! A private temporary file that is removed when it is closed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of names that are tried: only a leftover or an attacker can have taken one.
const ATTEMPTS: u32 = 100;

/// Returns an empty file, open for reading and writing.
pub(crate) fn create() -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = std::env::temp_dir();
    for _ in 0..ATTEMPTS {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (process, count) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("tine-import-{process}-{count}-{}", since.subsec_nanos());
        match open(&folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("no free name for a temporary file in {}", folder.display()),
    ))
}

/// Creates a file that only its owner can access, and unlinks it once it is open.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Creates a file that the system removes when its last handle is closed.
#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(DELETE_ON_CLOSE).open(path)
}
