//! Embeds the built web page in the library, each file as it is and compressed, or a page with build
//! instructions if it was not built. In the repository the page is in `web/dist`. A published crate
//! contains a copy in `page`, which `scripts/package crates` makes.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Shown in place of the page.
const UNBUILT: &str = "unbuilt.html";

/// Files smaller than this are sent as they are.
const COMPRESSED_FROM: usize = 512;

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where it is"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to write"));
    let web = here.join("../../web");
    let built = if web.join("package.json").exists() {
        let built = web.join("dist");
        // A missing path would run this again in every build; an empty folder does not. A read-only
        // source tree only costs these runs.
        fs::create_dir_all(&built).ok();
        built
    } else {
        here.join("page")
    };
    println!("cargo:rerun-if-changed={}", built.display());
    println!("cargo:rerun-if-changed={UNBUILT}");
    println!("cargo:rerun-if-changed=build.rs");

    let mut files = BTreeMap::new();
    gather(&built, "", &mut files)?;
    let is_built = files.contains_key("index.html");
    if !is_built {
        files = BTreeMap::from([("index.html".to_owned(), here.join(UNBUILT))]);
    }
    let mut list = format!("const BUILT: bool = {is_built};\nstatic FILES: &[File] = &[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        let bytes = fs::read(path)?;
        let small = compressed(&bytes)?.filter(|small| small.len() < bytes.len());
        let gzip = match small {
            Some(small) => {
                let file = out.join(format!("{number}.gz"));
                fs::write(&file, small)?;
                format!("Some(include_bytes!({file:?}))")
            }
            None => "None".to_owned(),
        };
        let mut digest = DefaultHasher::new();
        bytes.hash(&mut digest);
        // Writing to a string cannot fail.
        let _ = writeln!(
            list,
            "File {{ name: {name:?}, bytes: include_bytes!({:?}), gzip: {gzip}, version: \"{:016x}\" }},",
            fs::canonicalize(path)?,
            digest.finish()
        );
    }
    list.push_str("];\n");
    fs::write(out.join("files.rs"), list)
}

/// All files of a folder, by their names below it.
fn gather(folder: &Path, above: &str, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let name = format!("{above}{name}");
        match entry.file_type()?.is_dir() {
            true => gather(&entry.path(), &format!("{name}/"), files)?,
            false => {
                files.insert(name, entry.path());
            }
        }
    }
    Ok(())
}

fn compressed(bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    if bytes.len() < COMPRESSED_FROM {
        return Ok(None);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish().map(Some)
}
