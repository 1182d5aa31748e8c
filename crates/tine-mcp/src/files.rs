//! Files that a caller on this machine may name: those in folders that were allowed, and no
//! others.
//!
//! A path is resolved first (`..`, links and all) and compared with the resolved folders then; the
//! file that is read is the one that was compared.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tine_core::ErrorKind;
use tine_engine::SourceBytes;

use crate::refusal::Refusal;

/// The folders whose files may be stored by path.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    folders: Vec<PathBuf>,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum NotAllowed {
    /// Files are not read here at all.
    #[error("files are not read by path here")]
    Nowhere,
    /// A path from the root of the file system is needed.
    #[error("`file_path` must be absolute")]
    Relative,
    /// It lies elsewhere, or is not there. Which of the two is not told.
    #[error("there is no file of that path in an allowed folder")]
    Outside,
    /// It is no ordinary file.
    #[error("`file_path` names no ordinary file")]
    NoFile,
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(io::ErrorKind),
}

impl From<NotAllowed> for Refusal {
    fn from(error: NotAllowed) -> Self {
        let kind = match error {
            NotAllowed::Nowhere | NotAllowed::Outside => ErrorKind::Forbidden,
            _ => ErrorKind::Invalid,
        };
        Refusal::new(kind, error.to_string()).next(
            "send the bytes as file_content, or ask the user to start `tine mcp` with \
             --allow-path FOLDER",
        )
    }
}

impl Allowed {
    /// These folders, which must be there.
    pub fn folders(folders: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let folders = folders.into_iter().map(|folder| {
            let resolved = folder.canonicalize()?;
            match resolved.is_dir() {
                true => Ok(resolved),
                false => Err(io::Error::new(io::ErrorKind::NotADirectory, "no folder")),
            }
        });
        Ok(Allowed { folders: folders.collect::<io::Result<_>>()? })
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str) -> Result<Opened, NotAllowed> {
        if self.folders.is_empty() {
            return Err(NotAllowed::Nowhere);
        }
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(NotAllowed::Relative);
        }
        let resolved = self.resolve(path)?;
        let mut options = File::options();
        options.read(true);
        // A link that took the file's place since is not followed, and a pipe is not waited for.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NOFOLLOW | libc::O_NONBLOCK,
        );
        let file = options.open(&resolved).map_err(|error| NotAllowed::Unreadable(error.kind()))?;
        let kind = file.metadata().map_err(|error| NotAllowed::Unreadable(error.kind()))?;
        if !kind.is_file() {
            return Err(NotAllowed::NoFile);
        }
        // A folder on the way may have been changed while it was opened.
        if self.resolve(path)? != resolved {
            return Err(NotAllowed::Outside);
        }
        Ok(Opened { path: resolved, file: Mutex::new(file) })
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, NotAllowed> {
        let resolved = path.canonicalize().map_err(|_| NotAllowed::Outside)?;
        match self.folders.iter().any(|folder| resolved.starts_with(folder)) {
            true => Ok(resolved),
            false => Err(NotAllowed::Outside),
        }
    }
}

/// A file that may be read.
#[derive(Debug)]
pub struct Opened {
    path: PathBuf,
    file: Mutex<File>,
}

impl Opened {
    /// Its name without folders.
    pub fn name(&self) -> Option<String> {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// What it is, by its name.
    pub fn mime_type(&self) -> &'static str {
        let ending = self.path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "txt" | "log" => "text/plain",
            "md" | "markdown" => "text/markdown",
            "csv" => "text/csv",
            "html" | "htm" => "text/html",
            "json" => "application/json",
            "xml" => "application/xml",
            "yaml" | "yml" => "application/yaml",
            "toml" => "application/toml",
            "pdf" => "application/pdf",
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            "wav" => "audio/wav",
            "mp3" => "audio/mpeg",
            _ => "application/octet-stream",
        }
    }
}

impl SourceBytes for Opened {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(0))?;
        Ok(Box::new(file.try_clone()?))
    }
}
