//! SQLite's write-ahead log as a file: what SQLite takes from it, and what it would pass over.
//!
//! SQLite reads a log up to the first frame whose checksum does not fit and says nothing about
//! the rest: a cut-off write looks just like that. It also looks like that when a frame in the
//! middle rots, and then commits that were acknowledged vanish without a word. The difference
//! can be seen. A commit is on disk before the next one begins, so a commit with another one
//! chained behind it was acknowledged; if SQLite did not take it, the log is damaged.
//!
//! What cannot be seen: whether the very last commit of a log was cut off or has rotted.
//!
//! Only who is alone opens a log ([`super::users`]): what SQLite takes is computed from the log
//! itself, before SQLite sees it.
//!
//! The format is SQLite's own and documented (<https://sqlite.org/walformat.html>).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::users::Alone;

const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Two numbers that sum up a frame and all before it.
type Sums = [u32; 2];

/// An open log.
pub(super) struct Log {
    file: File,
    page_bytes: u64,
    big_endian: bool,
    salts: [u8; 8],
    seed: Sums,
    header_fits: bool,
    frames: u64,
}

/// What stands before each page in the log.
struct Frame {
    page: u32,
    /// Pages of the database after this frame, if it ends a commit; 0 if it does not.
    size_after: u32,
    salts: [u8; 8],
    sums: Sums,
    covered: [u8; 8],
}

impl Frame {
    fn of(bytes: &[u8; FRAME_HEADER_BYTES as usize]) -> Frame {
        let (mut salts, mut covered) = ([0; 8], [0; 8]);
        salts.copy_from_slice(&bytes[8..16]);
        covered.copy_from_slice(&bytes[..8]);
        Frame {
            page: number(bytes, 0),
            size_after: number(bytes, 4),
            salts,
            sums: [number(bytes, 16), number(bytes, 20)],
            covered,
        }
    }

    fn commits(&self) -> bool {
        self.size_after != 0
    }
}

impl Log {
    /// Opens a log; `None` when there is none, or no frame in it. `page_bytes` is what the
    /// database says, for a log whose own header cannot be read.
    pub(super) fn open(
        path: &Path,
        page_bytes: u64,
        _alone: &Alone<'_>,
    ) -> io::Result<Option<Log>> {
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
        let magic = number(&header, 0);
        let big_endian = match magic {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => cfg!(target_endian = "big"),
        };
        let seed = sum(big_endian, [0, 0], &header[..24]);
        let header_fits = magic & !1 == 0x377f_0682
            && number(&header, 4) == 3_007_000
            && seed == [number(&header, 24), number(&header, 28)];
        let page_bytes = if header_fits { u64::from(number(&header, 8)) } else { page_bytes };
        let frames = (length - HEADER_BYTES) / (FRAME_HEADER_BYTES + page_bytes);
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        let mut log = Log { file, page_bytes, big_endian, salts, seed, header_fits, frames };
        if !header_fits && frames > 0 {
            // The header's own salts may be what is damaged; every frame repeats them.
            log.salts = log.frame(1)?.salts;
        }
        Ok((frames > 0).then_some(log))
    }

    fn frame(&mut self, no: u64) -> io::Result<Frame> {
        let mut bytes = [0; FRAME_HEADER_BYTES as usize];
        self.file.seek(SeekFrom::Start(self.offset(no)))?;
        self.file.read_exact(&mut bytes)?;
        Ok(Frame::of(&bytes))
    }

    fn offset(&self, no: u64) -> u64 {
        HEADER_BYTES + (no - 1) * (FRAME_HEADER_BYTES + self.page_bytes)
    }

    /// The page that a frame holds.
    pub(super) fn image(&mut self, no: u64) -> io::Result<Vec<u8>> {
        let mut page = vec![0; usize::try_from(self.page_bytes).unwrap_or(0)];
        self.file.seek(SeekFrom::Start(self.offset(no) + FRAME_HEADER_BYTES))?;
        self.file.read_exact(&mut page)?;
        Ok(page)
    }

    /// Whether a frame of this log has the sums that follow from the ones before it.
    fn follows(&mut self, before: Sums, no: u64) -> io::Result<bool> {
        let frame = self.frame(no)?;
        let image = self.image(no)?;
        Ok(self.fits(before, &frame, &image))
    }

    fn fits(&self, before: Sums, frame: &Frame, image: &[u8]) -> bool {
        if frame.salts != self.salts || frame.page == 0 {
            return false;
        }
        let sums = sum(self.big_endian, before, &frame.covered);
        sum(self.big_endian, sums, image) == frame.sums
    }

    /// The last frame that SQLite takes: the last commit before anything does not fit.
    pub(super) fn taken(&mut self) -> io::Result<u64> {
        let (mut sums, mut last) = (self.seed, 0);
        if self.header_fits {
            // Whoever opens a store after a crash waits for this: one read for each frame.
            let page_bytes = usize::try_from(self.page_bytes).unwrap_or(0);
            let mut bytes = vec![0; FRAME_HEADER_BYTES as usize + page_bytes];
            self.file.seek(SeekFrom::Start(self.offset(1)))?;
            for no in 1..=self.frames {
                self.file.read_exact(&mut bytes)?;
                let Some((header, image)) = bytes.split_first_chunk() else {
                    break;
                };
                let frame = Frame::of(header);
                if !self.fits(sums, &frame, image) {
                    break;
                }
                sums = frame.sums;
                if frame.commits() {
                    last = no;
                }
            }
        }
        Ok(last)
    }

    /// Why the log is damaged, if SQLite took it up to this frame and should have gone on.
    pub(super) fn passed_over(
        &mut self,
        taken: u64,
        database: &mut File,
    ) -> io::Result<Option<String>> {
        if !self.header_fits {
            return Ok(self.unsaved(database)?.map(|pages| {
                format!(
                    "its header does not fit its checksum, and {pages} changed pages are nowhere \
                     else"
                )
            }));
        }
        let mut lost = 0_u64;
        for no in taken + 1..self.frames {
            let frame = self.frame(no)?;
            if frame.salts != self.salts || !frame.commits() {
                continue;
            }
            // A commit may be written several times over, to fill a sector. The next commit is
            // often one of the same page, too, but then the page is not the same.
            let next = self.frame(no + 1)?;
            let repeated = next.page == frame.page
                && next.commits()
                && self.image(no)? == self.image(no + 1)?;
            if !repeated && self.follows(frame.sums, no + 1)? {
                lost += 1;
            }
        }
        let frames = self.frames;
        Ok((lost > 0).then(|| {
            let commits = if lost == 1 { "commit" } else { "commits" };
            format!(
                "frame {} of {frames} does not fit its checksum, and at least {lost} acknowledged \
                 {commits} at or behind it would be lost",
                taken + 1
            )
        }))
    }

    /// Pages whose last committed image in the log is not what the database holds. The log of a
    /// torn restart has none: it was copied into the database before it was begun anew.
    fn unsaved(&mut self, database: &mut File) -> io::Result<Option<usize>> {
        let pages = self.images(u64::MAX)?.pages;
        let mut unsaved = 0;
        for (page, frame) in pages {
            let image = self.image(frame)?;
            let mut stored = vec![0; image.len()];
            database.seek(SeekFrom::Start(u64::from(page - 1) * self.page_bytes))?;
            if database.read_exact(&mut stored).is_err() || stored != image {
                unsaved += 1;
            }
        }
        Ok((unsaved > 0).then_some(unsaved))
    }

    /// The last committed image of each page, by every frame that fits up to the given one.
    pub(super) fn images(&mut self, up_to: u64) -> io::Result<Images> {
        let mut images = Images::default();
        let mut open = BTreeMap::new();
        let mut sums = self.seed;
        for no in 1..=self.frames.min(up_to) {
            let frame = self.frame(no)?;
            if frame.salts != self.salts {
                // An older run of the log, or a damaged frame; the next one tells.
                sums = frame.sums;
                continue;
            }
            // Without a header that fits, the first frame has nothing to be checked against.
            let unchecked = no == 1 && !self.header_fits && frame.page != 0;
            if unchecked || self.follows(sums, no)? {
                open.insert(frame.page, no);
            } else {
                images.damaged.push((no, frame.page));
            }
            sums = frame.sums;
            if frame.commits() {
                images.pages.append(&mut open);
                images.size = frame.size_after;
            }
        }
        Ok(images)
    }
}

/// What a log holds, page by page.
#[derive(Default)]
pub(super) struct Images {
    /// The frame with the last image of each page.
    pub pages: BTreeMap<u32, u64>,
    /// Frames that do not fit, and the pages that they name.
    pub damaged: Vec<(u64, u32)>,
    /// Pages of the database after the last commit; 0 if there is none.
    pub size: u32,
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

fn sum(big_endian: bool, sums: Sums, bytes: &[u8]) -> Sums {
    match big_endian {
        true => sum_by(u32::from_be_bytes, sums, bytes),
        false => sum_by(u32::from_le_bytes, sums, bytes),
    }
}

fn sum_by(read: impl Fn([u8; 4]) -> u32, [mut first, mut second]: Sums, bytes: &[u8]) -> Sums {
    for &[a, b, c, d, e, f, g, h] in bytes.as_chunks::<8>().0 {
        // What comes from the bytes is added first: only the sums have to wait for each other.
        first = first.wrapping_add(read([a, b, c, d])).wrapping_add(second);
        second = second.wrapping_add(read([e, f, g, h])).wrapping_add(first);
    }
    [first, second]
}
