//! Files that a local caller may name: only those in allowed folders.
//!
//! A path is resolved first (including `..` and links) and then compared with the resolved folders.
//! The file that is opened is the one that was compared.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tine_core::ErrorKind;
use tine_engine::SourceBytes;

use crate::mcp_error::McpError;

/// The folders whose files may be stored by path.
#[derive(Clone, Debug, Default)]
pub struct AllowedFolders {
    folders: Vec<PathBuf>,
}

/// Why a file cannot be read by path.
#[derive(Debug, thiserror::Error)]
pub enum FileAccessError {
    /// No folder is allowed.
    #[error("reading files by path is not enabled")]
    Nowhere,
    /// The path is relative.
    #[error("`file_path` must be absolute")]
    Relative,
    /// There is no such file in an allowed folder. Whether it exists elsewhere is not revealed.
    #[error("no file with this path is in an allowed folder")]
    Outside,
    /// The path does not name a regular file.
    #[error("`file_path` is not a regular file")]
    NoFile,
    /// Reading failed.
    #[error("cannot read the file: {0}")]
    UnreadableMessage(io::ErrorKind),
}

impl From<FileAccessError> for McpError {
    fn from(error: FileAccessError) -> Self {
        let kind = match error {
            FileAccessError::Nowhere | FileAccessError::Outside => ErrorKind::Forbidden,
            _ => ErrorKind::Invalid,
        };
        McpError::new(kind, error.to_string()).next(
            "send the bytes as file_content, or ask the user to start `tine mcp` with \
             --allow-path FOLDER",
        )
    }
}

impl AllowedFolders {
    /// Allows existing folders.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let folders = folders.into_iter().map(|folder| {
            let resolved = folder.canonicalize()?;
            match resolved.is_dir() {
                true => Ok(resolved),
                false => Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder")),
            }
        });
        Ok(AllowedFolders { folders: folders.collect::<io::Result<_>>()? })
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str) -> Result<AllowedFile, FileAccessError> {
        if self.folders.is_empty() {
            return Err(FileAccessError::Nowhere);
        }
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(FileAccessError::Relative);
        }
        let resolved = self.resolve(path)?;
        let mut options = File::options();
        options.read(true);
        // A link that has replaced the file is not followed, and a pipe does not block.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NOFOLLOW | libc::O_NONBLOCK,
        );
        let file = options
            .open(&resolved)
            .map_err(|error| FileAccessError::UnreadableMessage(error.kind()))?;
        let kind =
            file.metadata().map_err(|error| FileAccessError::UnreadableMessage(error.kind()))?;
        if !kind.is_file() {
            return Err(FileAccessError::NoFile);
        }
        // A folder on the path may have changed while the file was opened.
        if self.resolve(path)? != resolved {
            return Err(FileAccessError::Outside);
        }
        Ok(AllowedFile { path: resolved, file: Mutex::new(file) })
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, FileAccessError> {
        let resolved = path.canonicalize().map_err(|_| FileAccessError::Outside)?;
        match self.folders.iter().any(|folder| resolved.starts_with(folder)) {
            true => Ok(resolved),
            false => Err(FileAccessError::Outside),
        }
    }
}

/// An open file in an allowed folder.
#[derive(Debug)]
pub struct AllowedFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl AllowedFile {
    /// Returns the file name without its folders.
    pub fn name(&self) -> Option<String> {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Returns the media type that the file name suggests.
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

impl SourceBytes for AllowedFile {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(0))?;
        Ok(Box::new(file.try_clone()?))
    }
}
