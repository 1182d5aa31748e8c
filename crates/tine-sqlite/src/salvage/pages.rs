//! The pages of a damaged database, with the log over them, and the cells in them.
//!
//! Nothing here trusts a number that it has read: every offset is checked, every chain of pages
//! is bounded, and what does not fit is an absence, never a panic.
//!
//! The format is SQLite's own and documented (<https://sqlite.org/fileformat2.html>).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::wal::Log;
use super::record::varint;

/// A database as it is once the log is taken in.
pub(super) struct Pages {
    file: File,
    page_bytes: usize,
    count: u32,
    log: Option<(Log, BTreeMap<u32, u64>)>,
}

/// What a page of a tree holds.
#[derive(Default)]
pub(super) struct Contents {
    /// Pages below this one.
    pub(super) children: Vec<u32>,
    /// Numbers and records; the number is 0 in a tree of keys.
    pub(super) cells: Vec<(i64, Vec<u8>)>,
    /// What is wrong with the page.
    pub(super) faults: Vec<String>,
}

/// What sort of tree a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Rows by number.
    Rows,
    /// Entries by key.
    Keys,
}

impl Pages {
    pub(super) fn new(
        file: File,
        page_bytes: u64,
        log: Option<(Log, BTreeMap<u32, u64>)>,
        size: u32,
    ) -> io::Result<Self> {
        let length = file.metadata()?.len();
        // A page that is there in part is read as far as it goes.
        let in_file = u32::try_from(length.div_ceil(page_bytes)).unwrap_or(u32::MAX);
        let in_log = log.as_ref().and_then(|(_, pages)| pages.keys().last().copied());
        let count = in_file.max(in_log.unwrap_or(0)).max(size);
        let page_bytes = usize::try_from(page_bytes).map_err(io::Error::other)?;
        Ok(Pages { file, page_bytes, count, log })
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// A page, filled up with zeros where the file ends or cannot be read.
    pub(super) fn page(&mut self, no: u32) -> Vec<u8> {
        if let Some((log, pages)) = &mut self.log
            && let Some(frame) = pages.get(&no)
            && let Ok(image) = log.image(*frame)
        {
            return image;
        }
        let mut page = vec![0; self.page_bytes];
        let start = u64::from(no.saturating_sub(1)) * self.page_bytes as u64;
        if self.file.seek(SeekFrom::Start(start)).is_ok() {
            let mut filled = 0;
            while let Ok(read @ 1..) = self.file.read(&mut page[filled..]) {
                filled += read;
            }
        }
        page
    }

    /// The pages that hold nothing, as the chain of free pages says.
    pub(super) fn free(&mut self) -> BTreeSet<u32> {
        let mut free = BTreeSet::new();
        let mut trunk = number(&self.page(1), 32).unwrap_or(0);
        while trunk > 1 && trunk <= self.count && free.insert(trunk) {
            let page = self.page(trunk);
            let leaves = number(&page, 4).unwrap_or(0) as usize;
            let leaves =
                (0..leaves.min(self.page_bytes / 4)).filter_map(|at| number(&page, 8 + 4 * at));
            free.extend(leaves);
            trunk = number(&page, 0).unwrap_or(0);
        }
        free
    }

    /// Reads a page of a tree. A page whose type is none is read as a leaf.
    pub(super) fn contents(&mut self, no: u32, tree: Tree) -> Contents {
        let page = self.page(no);
        let start = if no == 1 { 100 } else { 0 };
        let mut found = Contents::default();
        let (inner, leaf) = match tree {
            Tree::Rows => (5, 13),
            Tree::Keys => (2, 10),
        };
        let kind = page[start];
        let is_inner = kind == inner;
        if !is_inner && kind != leaf {
            found.faults.push(format!("it has type {kind}, not {leaf} or {inner}"));
        }
        let array = start + if is_inner { 12 } else { 8 };
        let stated = usize::from(short(&page, start + 3));
        let content = match usize::from(short(&page, start + 5)) {
            0 => 65_536,
            content => content,
        };
        if is_inner {
            found.children.extend(number(&page, start + 8));
        }
        // The array of places ends where the cells begin; what is behind the stated count may
        // hold cells that a damaged count has hidden.
        let room = content.min(page.len()).saturating_sub(array) / 2;
        let mut used = vec![false; page.len()];
        let mut read = |found: &mut Contents, used: &mut [bool], at: usize| -> bool {
            let place = usize::from(short(&page, array + 2 * at));
            let Some((child, cell, end)) = self.cell(&page, place, tree, is_inner) else {
                return false;
            };
            if used[place..end].iter().any(|used| *used) {
                return false;
            }
            used[place..end].fill(true);
            found.children.extend(child);
            found.cells.extend(cell);
            true
        };
        let listed = stated.min(room);
        let lost = (0..listed).filter(|at| !read(&mut found, &mut used, *at)).count();
        if lost > 0 || stated > room {
            found.faults.push("a cell cannot be read".to_owned());
        }
        let cells = content.max(array + 2 * listed).min(page.len());
        let holes = used[cells..].iter().filter(|used| !**used).count();
        if lost == 0 && holes != free_bytes(&page, start) {
            found.faults.push("its free space does not add up".to_owned());
            for at in listed..room {
                read(&mut found, &mut used, at);
            }
        }
        found
    }

    /// A cell: the page below it, its number and record, and where its own bytes end.
    #[allow(clippy::type_complexity)]
    fn cell(
        &mut self,
        page: &[u8],
        place: usize,
        tree: Tree,
        inner: bool,
    ) -> Option<(Option<u32>, Option<(i64, Vec<u8>)>, usize)> {
        let mut at = place;
        let mut child = None;
        if inner {
            child = Some(number(page, at)?);
            at += 4;
        }
        if tree == Tree::Rows && inner {
            let (_, length) = varint(page.get(at..)?)?;
            return Some((child, None, at + length));
        }
        let (size, length) = varint(page.get(at..)?)?;
        at += length;
        let mut row = 0;
        if tree == Tree::Rows {
            let (number, length) = varint(page.get(at..)?)?;
            row = number;
            at += length;
        }
        let size = usize::try_from(size).ok()?;
        if size > self.page_bytes * self.count as usize {
            return None;
        }
        let local = self.local(size, tree);
        let mut record = page.get(at..at + local)?.to_vec();
        at += local;
        if local < size {
            let mut next = number(page, at)?;
            at += 4;
            let mut chain = BTreeSet::new();
            while record.len() < size {
                if next < 2 || next > self.count || !chain.insert(next) {
                    return None;
                }
                let overflow = self.page(next);
                let wanted = (size - record.len()).min(self.page_bytes - 4);
                record.extend_from_slice(&overflow[4..4 + wanted]);
                next = number(&overflow, 0)?;
            }
        }
        // A cell is never shorter than what a free block needs.
        Some((child, Some((row, record)), at.max(place + 4).min(page.len())))
    }

    /// How much of a record of this size lies in the page itself.
    fn local(&self, size: usize, tree: Tree) -> usize {
        let usable = self.page_bytes;
        let most = match tree {
            Tree::Rows => usable - 35,
            Tree::Keys => (usable - 12) * 64 / 255 - 23,
        };
        if size <= most {
            return size;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let kept = least + (size - least) % (usable - 4);
        if kept <= most { kept } else { least }
    }
}

/// Bytes between the cells, as the page's own header says.
fn free_bytes(page: &[u8], start: usize) -> usize {
    let mut total = usize::from(page[start + 7]);
    let mut at = usize::from(short(page, start + 1));
    let mut last = 0;
    while at > last && at + 4 <= page.len() {
        total += usize::from(short(page, at + 2));
        last = at;
        at = usize::from(short(page, at));
    }
    total
}

fn short(page: &[u8], at: usize) -> u16 {
    page.get(at..at + 2).map_or(0, |bytes| u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
}

fn number(page: &[u8], at: usize) -> Option<u32> {
    let bytes = page.get(at..at + 4)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}
