//! The journal: what a program did to the store's files, in order, as recorded by the shim.

use std::path::Path;

use crate::RigError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// An existing file was opened.
    Open,
    /// A file was created.
    Create,
    /// Bytes were written at an offset.
    Write,
    /// A file was truncated or extended to a length (the offset).
    Truncate,
    /// A file was removed.
    Unlink,
    /// A file was renamed (to the data).
    Rename,
    /// A file was synced.
    Sync,
    /// The folder was synced.
    SyncFolder,
    /// The parent of the folder was synced.
    SyncParent,
    /// The program acknowledged something (the data).
    Mark,
    /// A file was preallocated to a length (the offset).
    Allocate,
    /// Bytes were read.
    Read,
}

impl Act {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Act::Open,
            2 => Act::Create,
            3 => Act::Write,
            4 => Act::Truncate,
            5 => Act::Unlink,
            6 => Act::Rename,
            7 => Act::Sync,
            8 => Act::SyncFolder,
            9 => Act::SyncParent,
            10 => Act::Mark,
            11 => Act::Allocate,
            12 => Act::Read,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug)]
pub struct JournalEntry {
    pub act: Act,
    /// Whether it failed, or was ignored.
    pub failed: bool,
    /// The file's name within the folder.
    pub name: String,
    pub offset: u64,
    pub data: Vec<u8>,
}

const HEAD: usize = 16;

/// Reads a journal; an incomplete entry at the end is left out.
pub fn read(path: &Path) -> Result<Vec<JournalEntry>, RigError> {
    let bytes = std::fs::read(path)?;
    let mut entries = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((head, tail)) = rest.split_at_checked(HEAD) {
        let name_length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let data_length =
            usize::try_from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]))?;
        let Some((name, tail)) = tail.split_at_checked(name_length) else {
            break;
        };
        let Some((data, tail)) = tail.split_at_checked(data_length) else {
            break;
        };
        let mut offset = [0; 8];
        offset.copy_from_slice(&head[8..]);
        entries.push(JournalEntry {
            act: Act::from_byte(head[0]).ok_or("the journal is damaged")?,
            failed: head[1] != 0,
            name: String::from_utf8(name.to_vec())?,
            offset: u64::from_le_bytes(offset),
            data: data.to_vec(),
        });
        rest = tail;
    }
    Ok(entries)
}

/// Returns the entries that are calls: the ones that the n-th fault counts.
pub fn calls(entries: &[JournalEntry]) -> impl Iterator<Item = &JournalEntry> {
    entries.iter().filter(|entry| entry.act != Act::Mark)
}
