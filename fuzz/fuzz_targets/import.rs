//! See `importers::import`.

#![no_main]

#[path = "../src/importers.rs"]
mod importers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| importers::import(data));
