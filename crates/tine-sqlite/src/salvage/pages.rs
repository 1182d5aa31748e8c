//! The pages of a damaged database, overlaid with its log, and the cells in them.
//!
//! No number that is read is trusted: every offset is checked, every chain of pages is bounded, and
//! invalid data is treated as missing, never as a panic.
//!
//! The format is SQLite's own and documented (<https://sqlite.org/fileformat2.html>).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::wal::WalFile;
use super::row_format::varint;

/// A database with its log applied.
pub(super) struct Pages {
    file: File,
    page_bytes: usize,
    count: u32,
    log: Option<(WalFile, BTreeMap<u32, u64>)>,
}

/// The contents of a B-tree page.
#[derive(Default)]
pub(super) struct PageContents {
    /// Child pages.
    pub(super) children: Vec<u32>,
    /// Row ids and records; the row id is 0 in an index tree.
    pub(super) cells: Vec<(i64, Vec<u8>)>,
    /// Inconsistencies of the page.
    pub(super) faults: Vec<String>,
}

/// The kind of a B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BTreeKind {
    /// Rows by row id.
    Table,
    /// Entries by key: an index, or a table without row ids.
    Index,
}

impl Pages {
    pub(super) fn new(
        file: File,
        page_bytes: u64,
        log: Option<(WalFile, BTreeMap<u32, u64>)>,
        size: u32,
    ) -> io::Result<Self> {
        let length = file.metadata()?.len();
        // A truncated page is read as far as it goes.
        let in_file = u32::try_from(length.div_ceil(page_bytes)).unwrap_or(u32::MAX);
        let in_log = log.as_ref().and_then(|(_, pages)| pages.keys().last().copied());
        let count = in_file.max(in_log.unwrap_or(0)).max(size);
        let page_bytes = usize::try_from(page_bytes).map_err(io::Error::other)?;
        Ok(Pages { file, page_bytes, count, log })
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Reads a page; bytes that are missing or unreadable are zero.
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

    /// Returns the pages on the free list.
    pub(super) fn free_pages(&mut self) -> BTreeSet<u32> {
        let mut free = BTreeSet::new();
        let mut trunk = read_u32(&self.page(1), 32).unwrap_or(0);
        while trunk > 1 && trunk <= self.count && free.insert(trunk) {
            let page = self.page(trunk);
            let leaves = read_u32(&page, 4).unwrap_or(0) as usize;
            let leaves =
                (0..leaves.min(self.page_bytes / 4)).filter_map(|at| read_u32(&page, 8 + 4 * at));
            free.extend(leaves);
            trunk = read_u32(&page, 0).unwrap_or(0);
        }
        free
    }

    /// Reads a page of a tree. A page of an invalid type is read as a leaf.
    pub(super) fn contents(&mut self, no: u32, tree: BTreeKind) -> PageContents {
        let page = self.page(no);
        let start = if no == 1 { 100 } else { 0 };
        let mut found = PageContents::default();
        let (inner, leaf) = match tree {
            BTreeKind::Table => (5, 13),
            BTreeKind::Index => (2, 10),
        };
        let kind = page[start];
        let is_inner = kind == inner;
        if !is_inner && kind != leaf {
            found.faults.push(format!("it has type {kind}, not {leaf} or {inner}"));
        }
        let array = start + if is_inner { 12 } else { 8 };
        let stated = usize::from(read_u16(&page, start + 3));
        let content = match usize::from(read_u16(&page, start + 5)) {
            0 => 65_536,
            content => content,
        };
        if is_inner {
            found.children.extend(read_u32(&page, start + 8));
        }
        // The array of cell pointers ends where the cells begin. Pointers after the stated count may
        // lead to cells that a damaged count hides.
        let capacity = content.min(page.len()).saturating_sub(array) / 2;
        let mut used = vec![false; page.len()];
        let mut read = |found: &mut PageContents, used: &mut [bool], at: usize| -> bool {
            let offset = usize::from(read_u16(&page, array + 2 * at));
            let Some((child, cell, end)) = self.cell(&page, offset, tree, is_inner) else {
                return false;
            };
            if used[offset..end].iter().any(|used| *used) {
                return false;
            }
            used[offset..end].fill(true);
            found.children.extend(child);
            found.cells.extend(cell);
            true
        };
        let listed = stated.min(capacity);
        let lost = (0..listed).filter(|at| !read(&mut found, &mut used, *at)).count();
        if lost > 0 || stated > capacity {
            found.faults.push("a cell cannot be read".to_owned());
        }
        let cells = content.max(array + 2 * listed).min(page.len());
        let holes = used[cells..].iter().filter(|used| !**used).count();
        if lost == 0 && holes != free_bytes(&page, start) {
            found.faults.push("its free space does not add up".to_owned());
            for at in listed..capacity {
                read(&mut found, &mut used, at);
            }
        }
        found
    }

    /// Parses a cell; returns its child page, its row id and record, and where its bytes end.
    #[allow(clippy::type_complexity)]
    fn cell(
        &mut self,
        page: &[u8],
        offset: usize,
        tree: BTreeKind,
        inner: bool,
    ) -> Option<(Option<u32>, Option<(i64, Vec<u8>)>, usize)> {
        let mut at = offset;
        let mut child = None;
        if inner {
            child = Some(read_u32(page, at)?);
            at += 4;
        }
        if tree == BTreeKind::Table && inner {
            let (_, length) = varint(page.get(at..)?)?;
            return Some((child, None, at + length));
        }
        let (size, length) = varint(page.get(at..)?)?;
        at += length;
        let mut row = 0;
        if tree == BTreeKind::Table {
            let (number, length) = varint(page.get(at..)?)?;
            row = number;
            at += length;
        }
        let size = usize::try_from(size).ok()?;
        if size > self.page_bytes * self.count as usize {
            return None;
        }
        let local = self.local_bytes(size, tree);
        let mut record = page.get(at..at + local)?.to_vec();
        at += local;
        if local < size {
            let mut next = read_u32(page, at)?;
            at += 4;
            let mut chain = BTreeSet::new();
            while record.len() < size {
                if next < 2 || next > self.count || !chain.insert(next) {
                    return None;
                }
                let overflow = self.page(next);
                let wanted = (size - record.len()).min(self.page_bytes - 4);
                record.extend_from_slice(&overflow[4..4 + wanted]);
                next = read_u32(&overflow, 0)?;
            }
        }
        // A cell occupies at least four bytes, the size of a free block.
        Some((child, Some((row, record)), at.max(offset + 4).min(page.len())))
    }

    /// Returns how many bytes of a record are stored in the page itself.
    fn local_bytes(&self, size: usize, tree: BTreeKind) -> usize {
        let usable = self.page_bytes;
        let most = match tree {
            BTreeKind::Table => usable - 35,
            BTreeKind::Index => (usable - 12) * 64 / 255 - 23,
        };
        if size <= most {
            return size;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let kept = least + (size - least) % (usable - 4);
        if kept <= most { kept } else { least }
    }
}

/// Returns the number of free bytes between the cells, according to the page header.
fn free_bytes(page: &[u8], start: usize) -> usize {
    let mut total = usize::from(page[start + 7]);
    let mut at = usize::from(read_u16(page, start + 1));
    let mut last = 0;
    while at > last && at + 4 <= page.len() {
        total += usize::from(read_u16(page, at + 2));
        last = at;
        at = usize::from(read_u16(page, at));
    }
    total
}

fn read_u16(page: &[u8], at: usize) -> u16 {
    page.get(at..at + 2).map_or(0, |bytes| u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
}

fn read_u32(page: &[u8], at: usize) -> Option<u32> {
    let bytes = page.get(at..at + 4)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}
