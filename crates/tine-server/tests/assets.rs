//! The page's files, whichever were taken in.

use std::io::Read;

use tine_server::assets::{files, find, index};

#[test]
fn every_file_is_found_by_its_name_and_compressed_is_the_same() {
    assert!(!files().is_empty());
    for file in files() {
        assert_eq!(find(file.name).map(|found| found.bytes), Some(file.bytes), "{}", file.name);
        if let Some(gzip) = file.gzip {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(gzip).read_to_end(&mut bytes).expect("gzip");
            assert_eq!(bytes, file.bytes, "{}", file.name);
            assert!(gzip.len() < bytes.len());
        }
    }
    assert!(find("").is_none() && find("index").is_none() && find("../Cargo.toml").is_none());
}

#[test]
fn the_index_is_a_page() {
    assert_eq!(index().media_type(), "text/html; charset=utf-8");
    assert!(!index().is_immutable());
    let text = std::str::from_utf8(index().bytes).expect("UTF-8");
    assert!(text.to_ascii_lowercase().starts_with("<!doctype html>"));
    assert!(tine_server::assets::is_built() || text.contains("scripts/serve"));
}
