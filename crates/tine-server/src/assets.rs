//! The web page that Tine shows, as files in the binary.
//!
//! The build script takes what `web/` was built into; where that was not done, there is one page
//! that says how. Only bytes are here: how they are sent is the server's business. A crate of its
//! own, so that a change of the page compiles little.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its path below the page's address, such as `assets/index-1a2b3c.js`.
    pub name: &'static str,
    /// What it says.
    pub bytes: &'static [u8],
    /// The same compressed, where that is smaller.
    pub gzip: Option<&'static [u8]>,
    /// Another for other bytes.
    pub version: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Whether the page itself is here, and not only what stands in for it.
pub const fn is_built() -> bool {
    BUILT
}

/// All files, by name.
pub fn files() -> &'static [File] {
    FILES
}

/// A file by its name.
pub fn find(name: &str) -> Option<&'static File> {
    FILES.binary_search_by(|file| file.name.cmp(name)).ok().map(|at| &FILES[at])
}

/// What every place of the page begins with.
pub fn index() -> &'static File {
    find("index.html").expect("the build script always takes one in")
}

impl File {
    /// Whether its name changes with its bytes: then whoever has it need never ask again.
    pub fn is_immutable(&self) -> bool {
        self.name.starts_with("assets/")
    }

    /// Its type, from its name.
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
