//! Reads files, archives and compressed logs, within size limits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tine_core::json::{BytePart, Scanner};

use crate::{Error, Note};

/// Size limits of input, plain and decompressed.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum length of a line of a log.
    pub line_bytes: usize,
    /// The maximum size of a document, or of a conversation in a list.
    pub document_bytes: usize,
    /// Decompressed bytes that any compressed file may have.
    pub unpacked_bytes: u64,
    /// Additional decompressed bytes per compressed byte.
    pub unpacked_ratio: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            line_bytes: 64 << 20,
            document_bytes: 256 << 20,
            unpacked_bytes: 64 << 20,
            unpacked_ratio: 200,
        }
    }
}

impl Bounds {
    fn unpacked(&self, packed: u64) -> u64 {
        self.unpacked_bytes.saturating_add(packed.saturating_mul(self.unpacked_ratio))
    }
}

/// Counts the bytes read from files, for progress display.
#[derive(Clone, Debug, Default)]
pub struct ByteCounter(Arc<AtomicU64>);

impl ByteCounter {
    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes that need not be read.
    pub fn skip(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

struct CountingFile {
    file: File,
    counter: ByteCounter,
}

impl Read for CountingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.counter.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl io::Seek for CountingFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Opens files within limits and counts bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub bounds: Bounds,
    pub counter: ByteCounter,
    /// Whether the file is still being written, so that its last answer may be incomplete.
    pub growing: bool,
}

const BUFFER: usize = 256 << 10;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Input {
    fn file(&self, path: &Path) -> Result<CountingFile, Error> {
        let failed = |source| Error::Read { file: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        Ok(CountingFile { file, counter: self.counter.clone() })
    }

    /// Returns the bytes of a file, unpacked if it is compressed.
    pub(crate) fn open(&self, path: &Path) -> Result<Box<dyn BufRead>, Error> {
        let failed = |source| Error::Read { file: path.to_owned(), source };
        let mut file = BufReader::with_capacity(BUFFER, self.file(path)?);
        if !file.fill_buf().map_err(failed)?.starts_with(&ZSTD_MAGIC) {
            return Ok(Box::new(file));
        }
        let packed = std::fs::metadata(path).map_err(failed)?.len();
        let unpacked = zstd::stream::read::Decoder::with_buffer(file).map_err(failed)?;
        let limit = self.bounds.unpacked(packed);
        Ok(Box::new(BufReader::with_capacity(
            BUFFER,
            Bounded { inner: unpacked, limit, left: limit },
        )))
    }

    /// Reads a whole file.
    pub(crate) fn document(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let mut reader = self.open(path)?;
        self.whole(path, &mut reader)
    }

    fn whole(&self, path: &Path, reader: &mut dyn Read) -> Result<Vec<u8>, Error> {
        let limit = self.bounds.document_bytes;
        let mut bytes = Vec::new();
        let read = reader.take(limit as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(path, error))?;
        if bytes.len() > limit {
            return Err(Error::TooLarge { file: path.to_owned(), limit: limit as u64 });
        }
        Ok(bytes)
    }

    /// Converts the error of a reader, which may be an exceeded limit.
    pub(crate) fn failed(&self, path: &Path, source: io::Error) -> Error {
        match source.get_ref().and_then(|inner| inner.downcast_ref::<Overflow>()) {
            Some(Overflow(limit)) => Error::TooLarge { file: path.to_owned(), limit: *limit },
            None => Error::Read { file: path.to_owned(), source },
        }
    }

    pub(crate) fn archive(&self, path: &Path) -> Result<Archive, Error> {
        let file = BufReader::with_capacity(BUFFER, self.file(path)?);
        let zip = zip::ZipArchive::new(file).map_err(|error| Error::Malformed {
            file: path.to_owned(),
            what: format!("not a complete ZIP archive: {error}"),
        })?;
        Ok(Archive { path: path.to_owned(), zip, input: self.clone() })
    }
}

/// Fails a reader after a number of bytes.
struct Bounded<R> {
    inner: R,
    limit: u64,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("more than {0} decompressed bytes")]
struct Overflow(u64);

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other(Overflow(self.limit)))?;
        Ok(read)
    }
}

/// A ZIP archive whose members are read by name and never unpacked to a path.
pub(crate) struct Archive {
    path: PathBuf,
    zip: zip::ZipArchive<BufReader<CountingFile>>,
    input: Input,
}

impl Archive {
    /// Returns the names of the members, sorted; those that are not text are skipped.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(Result::ok);
        let mut names: Vec<String> = names.map(std::borrow::Cow::into_owned).collect();
        names.sort();
        names
    }

    /// Returns the path of a member in notes.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        // A name such as `../../etc/passwd` is only shown.
        PathBuf::from(format!("{}!{name}", self.path.display()))
    }

    pub(crate) fn open(&mut self, name: &str) -> Result<Box<dyn BufRead + '_>, Error> {
        let place = self.place(name);
        let bounds = self.input.bounds;
        let member = self.zip.by_name(name).map_err(|error| Error::Malformed {
            file: place,
            what: format!("cannot be unpacked: {error}"),
        })?;
        let limit = bounds.unpacked(member.compressed_size());
        Ok(Box::new(BufReader::with_capacity(
            BUFFER,
            Bounded { inner: member, limit, left: limit },
        )))
    }

    /// Reads a whole member.
    pub(crate) fn document(&mut self, name: &str) -> Result<Vec<u8>, Error> {
        let (input, place) = (self.input.clone(), self.place(name));
        let mut member = self.open(name)?;
        input.whole(&place, &mut member)
    }
}

/// A line of a log, without its newline.
pub(crate) struct LogLine {
    pub number: u64,
    pub bytes: Vec<u8>,
    /// Whether a newline ended it.
    pub ended: bool,
}

/// Processes a line and adds notes about it.
pub(crate) type EachLine<'e> = dyn FnMut(LogLine, &mut Vec<Note>) -> Result<(), Error> + 'e;

/// Passes the lines of a log that are not blank to `each`; a line that is too long is noted.
pub(crate) fn lines(
    input: &Input,
    path: &Path,
    reader: &mut dyn BufRead,
    notes: &mut Vec<Note>,
    each: &mut EachLine<'_>,
) -> Result<(), Error> {
    let limit = input.bounds.line_bytes;
    let mut number = 0;
    loop {
        let mut bytes = Vec::new();
        let read = (&mut *reader).take(limit as u64 + 1).read_until(b'\n', &mut bytes);
        if read.map_err(|error| input.failed(path, error))? == 0 {
            return Ok(());
        }
        number += 1;
        let ended = bytes.last() == Some(&b'\n');
        if ended {
            bytes.pop();
        } else if bytes.len() > limit {
            let what = format!("a line of more than {limit} bytes; left out");
            notes.push(Note::new(path, Some(number), what));
            skip_line(reader).map_err(|error| input.failed(path, error))?;
            continue;
        }
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            each(LogLine { number, bytes, ended }, notes)?;
        }
    }
}

fn skip_line(reader: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (used, found) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        reader.consume(used);
        if found {
            return Ok(());
        }
    }
}

/// An item of a JSON list, or a document that is not a list.
pub(crate) struct ListItem {
    /// The number, from 1.
    pub number: u64,
    pub bytes: Vec<u8>,
    /// Whether the end of the file cuts it off.
    pub cut: bool,
}

/// Passes the items of a JSON list to `each` one by one, as bytes, or the whole document if it is not
/// a list. Items are not parsed, so that a malformed item does not affect the others.
pub(crate) fn items(
    input: &Input,
    path: &Path,
    reader: &mut dyn BufRead,
    each: &mut dyn FnMut(ListItem) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut splitter = Splitter::default();
    let limit = input.bounds.document_bytes;
    loop {
        let buffer = reader.fill_buf().map_err(|error| input.failed(path, error))?;
        if buffer.is_empty() {
            break;
        }
        let used = buffer.len();
        let mut rest = buffer;
        let mut done = Vec::new();
        while !rest.is_empty() {
            let (consumed, whole) = splitter.feed(rest);
            rest = &rest[consumed..];
            if whole {
                done.push(splitter.take());
            }
            if splitter.bytes.len() > limit {
                return Err(Error::TooLarge { file: path.to_owned(), limit: limit as u64 });
            }
        }
        reader.consume(used);
        for item in done {
            each(item)?;
        }
    }
    if !splitter.bytes.iter().all(u8::is_ascii_whitespace) {
        let mut item = splitter.take();
        item.cut = splitter.list || splitter.depth > 0 || splitter.scanner.is_in_text();
        each(item)?;
    } else if splitter.list && !splitter.closed {
        let bytes = Vec::new();
        each(ListItem { number: splitter.number + 1, bytes, cut: true })?;
    }
    Ok(())
}

#[derive(Default)]
struct Splitter {
    begun: bool,
    list: bool,
    closed: bool,
    depth: usize,
    scanner: Scanner,
    number: u64,
    bytes: Vec<u8>,
}

impl Splitter {
    /// Takes bytes up to the end of an item; returns how many, and whether an item ended.
    fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.scanner.step(*byte) != BytePart::Outside {
                continue;
            }
            match byte {
                b'[' if !self.begun => {
                    (self.begun, self.list) = (true, true);
                    from = at + 1;
                }
                b'[' | b'{' => (self.begun, self.depth) = (true, self.depth + 1),
                b']' if self.list && self.depth == 0 => {
                    self.bytes.extend_from_slice(&bytes[from..at]);
                    let whole = !self.bytes.iter().all(u8::is_ascii_whitespace);
                    (self.closed, self.list) = (true, false);
                    return (at + 1, whole);
                }
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                b',' if self.list && self.depth == 0 => {
                    self.bytes.extend_from_slice(&bytes[from..at]);
                    return (at + 1, true);
                }
                _ => {}
            }
        }
        self.bytes.extend_from_slice(&bytes[from..]);
        (bytes.len(), false)
    }

    fn take(&mut self) -> ListItem {
        self.number += 1;
        ListItem { number: self.number, bytes: std::mem::take(&mut self.bytes), cut: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, chunk: usize) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        let mut reader = BufReader::with_capacity(chunk, text.as_bytes());
        items(&Input::default(), Path::new("f"), &mut reader, &mut |item| {
            found.push((String::from_utf8_lossy(&item.bytes).trim().to_owned(), item.cut));
            Ok(())
        })
        .expect("nothing fails");
        found
    }

    #[test]
    fn a_list_is_split_however_its_bytes_arrive() {
        for chunk in 1..20 {
            let found = split(r#" [ {"a":"],}\"["} , [1,[2]] , 3 ] "#, chunk);
            let found: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
            assert_eq!(found, [r#"{"a":"],}\"["}"#, "[1,[2]]", "3"], "chunks of {chunk}");
            assert_eq!(split(" [ ] ", chunk), []);
            assert_eq!(
                split(r#" {"a": [1, 2]} "#, chunk),
                [(r#"{"a": [1, 2]}"#.to_owned(), false)]
            );
        }
    }

    #[test]
    fn a_truncated_list_is_reported() {
        assert_eq!(
            split("[1, {\"a\": ", 4),
            [("1".to_owned(), false), ("{\"a\":".to_owned(), true)]
        );
        assert_eq!(split("[1,", 4), [("1".to_owned(), false), (String::new(), true)]);
        assert_eq!(split("{\"a\": \"b", 4), [("{\"a\": \"b".to_owned(), true)]);
    }
}
