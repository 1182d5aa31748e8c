//! The programs that the rig starts, and their folders.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::RigError;
use crate::shim::Shim;

/// The programs of a run.
#[derive(Debug)]
pub struct Programs {
    /// The shim.
    pub shim: Shim,
    /// The workload.
    pub workload: PathBuf,
    /// The `tine` command.
    pub command: PathBuf,
    /// A process of a crowd.
    pub crowd: PathBuf,
}

impl Programs {
    /// Finds the programs next to the running one.
    pub fn beside() -> Result<Self, RigError> {
        let here = std::env::current_exe()?;
        let folder = here.parent().ok_or("this program lies in no folder")?;
        let program = |name: &str| folder.join(format!("tine-rig-{name}"));
        Self::at(&program("workload"), &program("command"), &program("crowd"))
    }

    /// Uses the given programs.
    pub fn at(workload: &Path, command: &Path, crowd: &Path) -> Result<Self, RigError> {
        for program in [workload, command, crowd] {
            if !program.is_file() {
                let name = program.display();
                return Err(
                    format!("{name} is not there; `cargo build -p tine-rig` makes it").into()
                );
            }
        }
        Ok(Programs {
            shim: Shim::build()?,
            workload: workload.to_owned(),
            command: command.to_owned(),
            crowd: crowd.to_owned(),
        })
    }
}

/// Creates a temporary folder for a run.
pub fn scratch() -> Result<TempDir, RigError> {
    Ok(TempDir::with_prefix("tine-rig-")?)
}
