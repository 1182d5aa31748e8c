//! The states in which a disk may be after a power loss.
//!
//! The rules are those of POSIX, not of a particular file system. What was written to a file before
//! its last sync is there; each later write may be there, missing, or there in some of its sectors,
//! in any order. A file that was created or removed since the last sync of the folder may exist or
//! not, whether or not the file itself was synced. A sector within one write is never mixed from
//! old and new bytes, and bytes outside of a write are never damaged: no storage engine in use
//! survives a disk that breaks these two rules.

use std::collections::BTreeMap;
use std::path::Path;

use crate::RigError;
use crate::journal::{Act, JournalEntry};
use crate::seeded_rng::SeededRng;

/// The files of an image, by name; `None` if the folder does not exist.
pub type Image = Option<BTreeMap<String, Vec<u8>>>;

/// A disk on which a journal is replayed.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: Vec<File>,
    /// The folder as programs see it: names and indices in `files`.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<DirectoryChange>,
    folder_durable: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<PendingWrite>,
}

#[derive(Clone, Debug)]
enum PendingWrite {
    Write { offset: usize, data: Vec<u8> },
    Length(usize),
    AtLeast(usize),
}

#[derive(Clone, Debug)]
enum DirectoryChange {
    Put(String, usize),
    Remove(String),
}

impl Disk {
    /// Creates an empty disk, without the folder.
    pub fn new() -> Self {
        Disk::default()
    }

    /// Creates a disk with an image, all of it durable.
    pub fn holding(image: &Image) -> Self {
        let mut disk = Disk { folder_durable: image.is_some(), ..Disk::default() };
        for (name, bytes) in image.iter().flatten() {
            disk.names.insert(name.clone(), disk.files.len());
            disk.files.push(File { durable: bytes.clone(), pending: Vec::new() });
        }
        disk.durable_names = disk.names.clone();
        disk
    }

    /// Replays an entry.
    pub fn apply(&mut self, entry: &JournalEntry) -> Result<(), RigError> {
        if entry.failed {
            return Ok(());
        }
        let offset = usize::try_from(entry.offset)?;
        match entry.act {
            Act::Open | Act::Mark | Act::Read => {}
            Act::Create => self.name(DirectoryChange::Put(entry.name.clone(), self.files.len())),
            Act::Write => {
                self.change(&entry.name, PendingWrite::Write { offset, data: entry.data.clone() })?;
            }
            Act::Truncate => self.change(&entry.name, PendingWrite::Length(offset))?,
            Act::Allocate => self.change(&entry.name, PendingWrite::AtLeast(offset))?,
            Act::Unlink => self.name(DirectoryChange::Remove(entry.name.clone())),
            Act::Rename => {
                let place = self.place(&entry.name)?;
                self.name(DirectoryChange::Put(String::from_utf8(entry.data.clone())?, place));
                self.name(DirectoryChange::Remove(entry.name.clone()));
            }
            Act::Sync => {
                let place = self.place(&entry.name)?;
                let File { durable, pending } = &mut self.files[place];
                for change in pending.drain(..) {
                    change.apply(durable);
                }
            }
            Act::SyncFolder => {
                self.durable_names = self.names.clone();
                self.pending_names.clear();
            }
            Act::SyncParent => self.folder_durable = true,
        }
        Ok(())
    }

    /// Returns whether a power loss now could lose anything.
    pub fn is_settled(&self) -> bool {
        self.folder_durable
            && self.pending_names.is_empty()
            && self.files.iter().all(|file| file.pending.is_empty())
    }

    /// Returns the files after a power loss now.
    pub fn image(&self, rng: &mut SeededRng) -> Image {
        if !self.folder_durable && rng.one_in(2) {
            return None;
        }
        let names = match rng.below(4) {
            _ if self.pending_names.is_empty() => self.names.clone(),
            0 => self.durable_names.clone(),
            1 => self.names.clone(),
            way => {
                let mut names = self.durable_names.clone();
                let first = rng.below(self.pending_names.len() + 1);
                for (number, naming) in self.pending_names.iter().enumerate() {
                    if if way == 2 { number < first } else { rng.one_in(2) } {
                        naming.apply(&mut names);
                    }
                }
                names
            }
        };
        let fate = UnsyncedWrites::any(rng);
        let files = names.iter().map(|(name, place)| {
            let file = &self.files[*place];
            (name.clone(), file.after(fate, rng))
        });
        Some(files.collect())
    }

    fn name(&mut self, naming: DirectoryChange) {
        if let DirectoryChange::Put(_, place) = &naming
            && *place == self.files.len()
        {
            self.files.push(File::default());
        }
        naming.apply(&mut self.names);
        self.pending_names.push(naming);
    }

    fn place(&self, name: &str) -> Result<usize, RigError> {
        let place = self.names.get(name).copied();
        place.ok_or_else(|| format!("the journal has a change of {name} and not its making").into())
    }

    fn change(&mut self, name: &str, change: PendingWrite) -> Result<(), RigError> {
        let place = self.place(name)?;
        self.files[place].pending.push(change);
        Ok(())
    }
}

impl DirectoryChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            DirectoryChange::Put(name, place) => names.insert(name.clone(), *place),
            DirectoryChange::Remove(name) => names.remove(name),
        };
    }
}

impl PendingWrite {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            PendingWrite::Write { offset, data } => put(bytes, *offset, data),
            PendingWrite::Length(length) => bytes.resize(*length, 0),
            PendingWrite::AtLeast(length) => bytes.resize(bytes.len().max(*length), 0),
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(data);
}

/// What happens to writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnsyncedWrites {
    AllLost,
    AllKept,
    /// The first ones are kept, the next one is torn.
    Prefix,
    /// The last ones are kept, the one before is torn.
    Suffix,
    Any,
    AnyOrTorn,
    AllTorn,
    OneLost,
}

impl UnsyncedWrites {
    fn any(rng: &mut SeededRng) -> Self {
        let all = [
            UnsyncedWrites::AllLost,
            UnsyncedWrites::AllKept,
            UnsyncedWrites::Prefix,
            UnsyncedWrites::Suffix,
            UnsyncedWrites::Any,
            UnsyncedWrites::AnyOrTorn,
            UnsyncedWrites::AllTorn,
            UnsyncedWrites::OneLost,
        ];
        *rng.pick(&all).unwrap_or(&UnsyncedWrites::AllLost)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptPart {
    All,
    None,
    Some,
}

impl File {
    fn after(&self, fate: UnsyncedWrites, rng: &mut SeededRng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let count = self.pending.len();
        let chosen = rng.below(count + 1);
        for (number, change) in self.pending.iter().enumerate() {
            let kept = match fate {
                UnsyncedWrites::AllLost => KeptPart::None,
                UnsyncedWrites::AllKept => KeptPart::All,
                UnsyncedWrites::AllTorn => KeptPart::Some,
                UnsyncedWrites::Prefix if number < chosen => KeptPart::All,
                UnsyncedWrites::Suffix if number > chosen => KeptPart::All,
                UnsyncedWrites::Prefix | UnsyncedWrites::Suffix if number == chosen => {
                    KeptPart::Some
                }
                UnsyncedWrites::Prefix | UnsyncedWrites::Suffix => KeptPart::None,
                UnsyncedWrites::OneLost if number == chosen => KeptPart::None,
                UnsyncedWrites::OneLost => KeptPart::All,
                UnsyncedWrites::Any => [KeptPart::All, KeptPart::None][rng.below(2)],
                UnsyncedWrites::AnyOrTorn => {
                    [KeptPart::All, KeptPart::None, KeptPart::Some][rng.below(3)]
                }
            };
            match (kept, change) {
                (KeptPart::None, _) => {}
                (KeptPart::Some, PendingWrite::Write { offset, data }) => {
                    torn(&mut bytes, *offset, data, rng);
                }
                (KeptPart::Some, _) if rng.one_in(2) => {}
                (KeptPart::All | KeptPart::Some, change) => change.apply(&mut bytes),
            }
        }
        bytes
    }
}

/// Keeps some sectors of a write. Sometimes the file has grown and the lost sectors are zeros.
fn torn(bytes: &mut Vec<u8>, offset: usize, data: &[u8], rng: &mut SeededRng) {
    let sector = if rng.one_in(4) { 4_096 } else { 512 };
    let end = offset + data.len();
    if rng.one_in(4) && bytes.len() < end {
        bytes.resize(end, 0);
    }
    let way = rng.below(3);
    let edge = offset + rng.below(data.len().max(1));
    let mut from = offset;
    while from < end {
        let to = end.min((from / sector + 1) * sector);
        let keep = match way {
            0 => from < edge,
            1 => from > edge,
            _ => rng.one_in(2),
        };
        if keep {
            put(bytes, from, &data[from - offset..to - offset]);
        }
        from = to;
    }
}

/// Writes an image into a folder that does not exist yet.
pub fn write_image(image: &Image, folder: &Path) -> Result<(), RigError> {
    if let Some(files) = image {
        std::fs::create_dir(folder)?;
        for (name, bytes) in files {
            std::fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
