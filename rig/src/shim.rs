//! The file layer with faults: compiled from C when it is needed, put under a program by name.
//!
//! What it does and by which variables it is told is described in `shim/faults.c`. This process
//! itself never runs under it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::Fault;

const SOURCE: &str = include_str!("../shim/faults.c");

/// The compiled layer.
#[derive(Debug)]
pub struct Shim {
    folder: TempDir,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// It answers EIO.
    Io,
    /// It answers ENOSPC.
    Full,
    /// A write stores half; for ever: and then the disk is full.
    Short,
    /// The process ends there.
    Kill,
}

/// Which call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailAt {
    /// Counted from 1.
    pub call: usize,
    /// How.
    pub how: Failing,
    /// Whether all later calls fail too.
    pub forever: bool,
}

impl std::fmt::Display for FailAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            Failing::Io => "eio",
            Failing::Full => "full",
            Failing::Short => "short",
            Failing::Kill => "kill",
        };
        write!(f, "{}:{how}:{}", self.call, if self.forever { "forever" } else { "once" })
    }
}

/// What the layer is to do.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// The store's folder.
    pub root: PathBuf,
    /// Writes everything down here.
    pub journal: Option<PathBuf>,
    /// The file of acknowledgements.
    pub marks: Option<PathBuf>,
    /// Fails a call.
    pub fail: Option<FailAt>,
    /// Counts reads as calls, too.
    pub reads: bool,
    /// These syncs are ignored: `*`, `/` for the folder, or the end of a file's name.
    pub ignore_sync: Option<String>,
    /// Syncs are only written down: an image is built from the journal, not from the disk.
    pub free_sync: bool,
    /// Every sync takes longer by this.
    pub delay_sync: Duration,
}

impl Shim {
    /// Compiles it with the system's C compiler.
    pub fn build() -> Result<Self, Fault> {
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

    /// Puts the layer under a program that is about to start.
    pub fn under(&self, command: &mut Command, layer: &Layer) -> Result<(), Fault> {
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

/// Returns the path as the kernel names it; the last part need not be there yet.
fn canonical(path: &Path) -> Result<PathBuf, Fault> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(format!("{} has no folder", path.display()).into());
    };
    Ok(parent.canonicalize()?.join(name))
}
