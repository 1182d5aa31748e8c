//! The file layer with faults: compiled from C when it is needed, put under a program by name.
//!
//! What it does and by which variables it is told is described in `shim/faults.c`. This process
//! itself never runs under it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::RigError;

const SOURCE: &str = include_str!("../shim/faults.c");

/// The compiled shim.
#[derive(Debug)]
pub struct Shim {
    folder: TempDir,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureMode {
    /// With EIO.
    Io,
    /// With ENOSPC.
    Full,
    /// A write stores half of its bytes; permanently: the disk is full afterwards.
    Short,
    /// The process ends.
    Kill,
}

/// The call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailAt {
    /// The number of the call, from 1.
    pub call: usize,
    pub how: FailureMode,
    /// Whether all later calls fail too.
    pub forever: bool,
}

impl std::fmt::Display for FailAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            FailureMode::Io => "eio",
            FailureMode::Full => "full",
            FailureMode::Short => "short",
            FailureMode::Kill => "kill",
        };
        write!(f, "{}:{how}:{}", self.call, if self.forever { "forever" } else { "once" })
    }
}

/// The configuration of the shim.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// The store's folder.
    pub root: PathBuf,
    /// The journal.
    pub journal: Option<PathBuf>,
    /// The file of acknowledgements.
    pub marks: Option<PathBuf>,
    /// The call that fails.
    pub fail: Option<FailAt>,
    /// Whether reads count as calls.
    pub reads: bool,
    /// The syncs that are ignored: `*`, `/` for the folder, or the end of a file name.
    pub ignore_sync: Option<String>,
    /// Whether syncs are only recorded: images are built from the journal, not from the disk.
    pub free_sync: bool,
    /// The delay of every sync.
    pub delay_sync: Duration,
}

impl Shim {
    /// Compiles the shim with the system's C compiler.
    pub fn build() -> Result<Self, RigError> {
        let folder = TempDir::with_prefix("tine-rig-shim-")?;
        let source = folder.path().join("faults.c");
        std::fs::write(&source, SOURCE)?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(folder.path().join("faults.so"))
            .arg(&source)
            .args(["-ldl", "-lpthread"])
            .output()?;
        if !built.status.success() {
            return Err(String::from_utf8_lossy(&built.stderr).into_owned().into());
        }
        Ok(Shim { folder })
    }

    /// Loads the shim into a command that is about to start.
    pub fn under(&self, command: &mut Command, layer: &Layer) -> Result<(), RigError> {
        command.env("LD_PRELOAD", self.folder.path().join("faults.so"));
        command.env("TINE_RIG_ROOT", canonical(&layer.root)?);
        if let Some(journal) = &layer.journal {
            command.env("TINE_RIG_JOURNAL", canonical(journal)?);
        }
        if let Some(marks) = &layer.marks {
            command.env("TINE_RIG_MARKS", canonical(marks)?);
        }
        if let Some(fail) = &layer.fail {
            command.env("TINE_RIG_FAULT", fail.to_string());
        }
        if let Some(which) = &layer.ignore_sync {
            command.env("TINE_RIG_SYNC_IGNORE", which);
        }
        if layer.reads {
            command.env("TINE_RIG_READS", "1");
        }
        if !layer.delay_sync.is_zero() {
            command.env("TINE_RIG_SYNC_DELAY", layer.delay_sync.as_micros().to_string());
        }
        if layer.free_sync {
            command.env("TINE_RIG_SYNC_FREE", "1");
        }
        Ok(())
    }
}

/// Returns a path as the kernel names it; its last part need not exist.
fn canonical(path: &Path) -> Result<PathBuf, RigError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(format!("{} has no folder", path.display()).into());
    };
    Ok(parent.canonicalize()?.join(name))
}
