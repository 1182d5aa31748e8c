//! The files of the web page, embedded in the binary.
//!
//! The build script embeds the build of `web/`; if there is none, a single page that explains how to
//! build it. How files are sent is up to the server.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its path, such as `assets/index-1a2b3c.js`.
    pub name: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Its content compressed by gzip, if that is smaller.
    pub gzip: Option<&'static [u8]>,
    /// Changes with the content.
    pub version: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Returns whether the page itself is embedded, and not its substitute.
pub const fn is_built() -> bool {
    BUILT
}

/// Returns all files, by name.
pub fn files() -> &'static [File] {
    FILES
}

/// Returns a file by its name.
pub fn find(name: &str) -> Option<&'static File> {
    FILES.binary_search_by(|file| file.name.cmp(name)).ok().map(|at| &FILES[at])
}

/// Returns the start page.
pub fn index() -> &'static File {
    find("index.html").expect("the build script always embeds one")
}

impl File {
    /// Returns whether its name changes with its content, so that clients can cache it for ever.
    pub fn is_immutable(&self) -> bool {
        self.name.starts_with("assets/")
    }

    /// Returns its media type, from its name.
    pub fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "json" | "map" => "application/json",
            "webmanifest" => "application/manifest+json",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "ico" => "image/x-icon",
            "webp" => "image/webp",
            "woff2" => "font/woff2",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }
}
