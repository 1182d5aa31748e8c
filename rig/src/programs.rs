//! The programs that the rig starts, and the folders in which it lets them work.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Fault;
use crate::shim::Shim;

/// Everything that a run needs.
#[derive(Debug)]
pub struct Programs {
    /// The file layer.
    pub shim: Shim,
    /// The workload.
    pub workload: PathBuf,
    /// The `tine` command.
    pub command: PathBuf,
    /// One process of a crowd.
    pub crowd: PathBuf,
}

impl Programs {
    /// Those that were built beside the running program.
    pub fn beside() -> Result<Self, Fault> {
        let here = std::env::current_exe()?;
        let folder = here.parent().ok_or("this program lies in no folder")?;
        let program = |name: &str| folder.join(format!("tine-rig-{name}"));
        Self::at(&program("workload"), &program("command"), &program("crowd"))
    }

    /// Given ones.
    pub fn at(workload: &Path, command: &Path, crowd: &Path) -> Result<Self, Fault> {
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

/// Returns a folder of its own for a run, removed with it.
pub fn scratch() -> Result<TempDir, Fault> {
    Ok(TempDir::with_prefix("tine-rig-")?)
}
