//! What a program did to the store's files, in order, as the shim wrote it down.

use std::path::Path;

use crate::Fault;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A file was opened that was there.
    Open,
    /// A file was made.
    Create,
    /// Bytes were written at an offset.
    Write,
    /// A file was cut or grown to a length (the offset).
    Truncate,
    /// A file was removed.
    Unlink,
    /// A file got another name (the data).
    Rename,
    /// A file was synced.
    Sync,
    /// The folder was synced.
    SyncFolder,
    /// The folder's own entry was synced.
    SyncParent,
    /// The program acknowledged something (the data).
    Mark,
    /// A file was grown to a length (the offset) ahead of time.
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

/// One entry.
#[derive(Clone, Debug)]
pub struct JournalEntry {
    /// What was done.
    pub act: Act,
    /// Whether it failed, or was ignored.
    pub failed: bool,
    /// The file's name within the folder.
    pub name: String,
    /// Where in the file.
    pub offset: u64,
    /// What was written.
    pub data: Vec<u8>,
}

const HEAD: usize = 16;

/// Reads a journal; an entry that broke off at the end, with the process, is left out.
pub fn read(path: &Path) -> Result<Vec<JournalEntry>, Fault> {
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

/// Returns the calls among the entries: what the n-th fault counts.
pub fn calls(entries: &[JournalEntry]) -> impl Iterator<Item = &JournalEntry> {
    entries.iter().filter(|entry| entry.act != Act::Mark)
}
