//! SQLite's write-ahead log as a file: which commits SQLite recovers, and which it would drop.
//!
//! SQLite reads a log up to the first frame with a wrong checksum and silently ignores the rest,
//! because an interrupted write looks like that. A frame damaged later looks the same, and then
//! acknowledged commits silently disappear. The two cases can be distinguished: a commit is on disk
//! before the next one begins, so a commit that another one is chained to was acknowledged. If
//! SQLite does not recover it, the log is damaged.
//!
//! Not detectable: whether the last commit of a log was interrupted or damaged.
//!
//! A log is opened only under exclusive access ([`super::access_lock`]), before SQLite opens it.
//!
//! The format is SQLite's own and documented (<https://sqlite.org/walformat.html>).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::access_lock::ExclusiveAccess;

const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// The running checksum over a frame and all frames before it.
type Checksum = [u32; 2];

/// An open write-ahead log.
pub(super) struct WalFile {
    file: File,
    page_bytes: u64,
    big_endian: bool,
    salts: [u8; 8],
    seed: Checksum,
    header_valid: bool,
    frames: u64,
}

/// The header of a frame; the page follows it.
struct FrameHeader {
    page: u32,
    /// Pages of the database after this frame, if it ends a commit; 0 if it does not.
    size_after: u32,
    salts: [u8; 8],
    checksum: Checksum,
    /// The bytes of the header that the checksum covers.
    covered: [u8; 8],
}

impl FrameHeader {
    fn parse(bytes: &[u8; FRAME_HEADER_BYTES as usize]) -> FrameHeader {
        let (mut salts, mut covered) = ([0; 8], [0; 8]);
        salts.copy_from_slice(&bytes[8..16]);
        covered.copy_from_slice(&bytes[..8]);
        FrameHeader {
            page: read_u32(bytes, 0),
            size_after: read_u32(bytes, 4),
            salts,
            checksum: [read_u32(bytes, 16), read_u32(bytes, 20)],
            covered,
        }
    }

    fn is_commit(&self) -> bool {
        self.size_after != 0
    }
}

impl WalFile {
    /// Opens a log; `None` if it is missing or has no frames. `page_bytes` is the page size of the
    /// database, used if the log's own header is damaged.
    pub(super) fn open(
        path: &Path,
        page_bytes: u64,
        _exclusive: &ExclusiveAccess<'_>,
    ) -> io::Result<Option<WalFile>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let mut header = [0; HEADER_BYTES as usize];
        if length < HEADER_BYTES + FRAME_HEADER_BYTES + 512 {
            return Ok(None);
        }
        file.read_exact(&mut header)?;
        let magic = read_u32(&header, 0);
        let big_endian = match magic {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => cfg!(target_endian = "big"),
        };
        let seed = checksum(big_endian, [0, 0], &header[..24]);
        let header_valid = magic & !1 == 0x377f_0682
            && read_u32(&header, 4) == 3_007_000
            && seed == [read_u32(&header, 24), read_u32(&header, 28)];
        let page_bytes = if header_valid { u64::from(read_u32(&header, 8)) } else { page_bytes };
        let frames = (length - HEADER_BYTES) / (FRAME_HEADER_BYTES + page_bytes);
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        let mut log = WalFile { file, page_bytes, big_endian, salts, seed, header_valid, frames };
        if !header_valid && frames > 0 {
            // The salts in the header may be damaged; every frame repeats them.
            log.salts = log.frame(1)?.salts;
        }
        Ok((frames > 0).then_some(log))
    }

    fn frame(&mut self, no: u64) -> io::Result<FrameHeader> {
        let mut bytes = [0; FRAME_HEADER_BYTES as usize];
        self.file.seek(SeekFrom::Start(self.offset(no)))?;
        self.file.read_exact(&mut bytes)?;
        Ok(FrameHeader::parse(&bytes))
    }

    fn offset(&self, no: u64) -> u64 {
        HEADER_BYTES + (no - 1) * (FRAME_HEADER_BYTES + self.page_bytes)
    }

    /// Reads the page in a frame.
    pub(super) fn image(&mut self, no: u64) -> io::Result<Vec<u8>> {
        let mut page = vec![0; usize::try_from(self.page_bytes).unwrap_or(0)];
        self.file.seek(SeekFrom::Start(self.offset(no) + FRAME_HEADER_BYTES))?;
        self.file.read_exact(&mut page)?;
        Ok(page)
    }

    /// Reads a frame and returns whether its checksum continues the one before it.
    fn frame_is_valid(&mut self, before: Checksum, no: u64) -> io::Result<bool> {
        let frame = self.frame(no)?;
        let image = self.image(no)?;
        Ok(self.checksum_matches(before, &frame, &image))
    }

    fn checksum_matches(&self, before: Checksum, frame: &FrameHeader, image: &[u8]) -> bool {
        if frame.salts != self.salts || frame.page == 0 {
            return false;
        }
        let header = checksum(self.big_endian, before, &frame.covered);
        checksum(self.big_endian, header, image) == frame.checksum
    }

    /// Returns the last frame that SQLite recovers: the last commit before the first invalid frame.
    pub(super) fn last_commit(&mut self) -> io::Result<u64> {
        let (mut running, mut last) = (self.seed, 0);
        if self.header_valid {
            // Opening a store after a crash waits for this, so each frame is read once.
            let page_bytes = usize::try_from(self.page_bytes).unwrap_or(0);
            let mut bytes = vec![0; FRAME_HEADER_BYTES as usize + page_bytes];
            self.file.seek(SeekFrom::Start(self.offset(1)))?;
            for no in 1..=self.frames {
                self.file.read_exact(&mut bytes)?;
                let Some((header, image)) = bytes.split_first_chunk() else {
                    break;
                };
                let frame = FrameHeader::parse(header);
                if !self.checksum_matches(running, &frame, image) {
                    break;
                }
                running = frame.checksum;
                if frame.is_commit() {
                    last = no;
                }
            }
        }
        Ok(last)
    }

    /// Describes the damage if SQLite, recovering up to `last_commit`, drops acknowledged commits.
    pub(super) fn lost_commits(
        &mut self,
        last_commit: u64,
        database: &mut File,
    ) -> io::Result<Option<String>> {
        if !self.header_valid {
            return Ok(self.unsaved_pages(database)?.map(|pages| {
                format!(
                    "its header does not fit its checksum, and {pages} changed pages are nowhere \
                     else"
                )
            }));
        }
        let mut lost = 0_u64;
        for no in last_commit + 1..self.frames {
            let frame = self.frame(no)?;
            if frame.salts != self.salts || !frame.is_commit() {
                continue;
            }
            // SQLite may repeat a commit frame to fill a sector. The next commit often writes the
            // same page, but with other content.
            let next = self.frame(no + 1)?;
            let repeated = next.page == frame.page
                && next.is_commit()
                && self.image(no)? == self.image(no + 1)?;
            if !repeated && self.frame_is_valid(frame.checksum, no + 1)? {
                lost += 1;
            }
        }
        let frames = self.frames;
        Ok((lost > 0).then(|| {
            let commits = if lost == 1 { "commit" } else { "commits" };
            format!(
                "frame {} of {frames} does not fit its checksum, and at least {lost} acknowledged \
                 {commits} at or behind it would be lost",
                last_commit + 1
            )
        }))
    }

    /// Counts pages whose last committed image in the log differs from the database. An interrupted
    /// restart of the log leaves none: all pages were copied to the database before.
    fn unsaved_pages(&mut self, database: &mut File) -> io::Result<Option<usize>> {
        let pages = self.images(u64::MAX)?.pages;
        let mut count = 0;
        for (page, frame) in pages {
            let image = self.image(frame)?;
            let mut stored = vec![0; image.len()];
            database.seek(SeekFrom::Start(u64::from(page - 1) * self.page_bytes))?;
            if database.read_exact(&mut stored).is_err() || stored != image {
                count += 1;
            }
        }
        Ok((count > 0).then_some(count))
    }

    /// Returns the last committed image of each page, from the valid frames up to the given one.
    pub(super) fn images(&mut self, up_to: u64) -> io::Result<WalImages> {
        let mut images = WalImages::default();
        let mut open = BTreeMap::new();
        let mut running = self.seed;
        for no in 1..=self.frames.min(up_to) {
            let frame = self.frame(no)?;
            if frame.salts != self.salts {
                // An earlier generation of the log, or a damaged frame.
                running = frame.checksum;
                continue;
            }
            // Without a valid header, the first frame cannot be checked.
            let unchecked = no == 1 && !self.header_valid && frame.page != 0;
            if unchecked || self.frame_is_valid(running, no)? {
                open.insert(frame.page, no);
            } else {
                images.damaged.push((no, frame.page));
            }
            running = frame.checksum;
            if frame.is_commit() {
                images.pages.append(&mut open);
                images.size = frame.size_after;
            }
        }
        Ok(images)
    }
}

/// The pages in a log.
#[derive(Default)]
pub(super) struct WalImages {
    /// The frame with the last image of each page.
    pub pages: BTreeMap<u32, u64>,
    /// Invalid frames, and the pages that they name.
    pub damaged: Vec<(u64, u32)>,
    /// Pages of the database after the last commit; 0 if there is none.
    pub size: u32,
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

fn checksum(big_endian: bool, before: Checksum, bytes: &[u8]) -> Checksum {
    match big_endian {
        true => checksum_with(u32::from_be_bytes, before, bytes),
        false => checksum_with(u32::from_le_bytes, before, bytes),
    }
}

fn checksum_with(
    read: impl Fn([u8; 4]) -> u32,
    [mut first, mut second]: Checksum,
    bytes: &[u8],
) -> Checksum {
    for &[a, b, c, d, e, f, g, h] in bytes.as_chunks::<8>().0 {
        // The input is added first, so that only the sums depend on each other.
        first = first.wrapping_add(read([a, b, c, d])).wrapping_add(second);
        second = second.wrapping_add(read([e, f, g, h])).wrapping_add(first);
    }
    [first, second]
}
