//! Importers: no file makes a reader panic, and what was imported passes verification. A second import
//! adds nothing.

use std::fs;
use std::sync::Arc;

use tine_core::Limits;
use tine_engine::{Call, Engine, FixedEntropy, ManualClock};
use tine_import::importer::{ImportSettings, Importer};
use tine_import::{Bounds, ImportFormat, detect};
use tine_store::MemoryStore;

/// Imports a file in its detected format, and in a second one that depends on its length.
pub fn import(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input");
    fs::write(&file, data).expect("a file");
    let formats: Vec<ImportFormat> = ImportFormat::all().collect();
    let one = formats[data.len() % formats.len()];
    for format in [None, Some(one)] {
        let now = "2026-06-01T00:00:00Z".parse().expect("a time");
        let (clock, entropy) = (ManualClock::new(now, 0), FixedEntropy::new(1));
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::with(store, Arc::new(clock), Arc::new(entropy), Limits::default());
        land(&engine, &file, format);
        let found = engine.verify().expect("a store in memory can be read");
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        let again = land(&engine, &file, format);
        assert_eq!(again, 0, "turns that were there came again");
    }
}

/// Imports a file; returns the number of new turns.
fn land(engine: &Engine, file: &std::path::Path, format: Option<ImportFormat>) -> u64 {
    let Ok(plan) = detect::plan(&[file.to_owned()], format) else { return 0 };
    let bounds = Bounds { unpacked_bytes: 1 << 20, unpacked_ratio: 10, ..Bounds::default() };
    let settings = ImportSettings { bounds, ..ImportSettings::default() };
    let mut importer = Importer::begin(engine, &Call::by("fuzz"), settings).expect("a beginning");
    for job in &plan.jobs {
        importer.run(job).expect("a bad file is noted, not an error");
    }
    importer.finish().expect("an end");
    importer.summary.turns
}
