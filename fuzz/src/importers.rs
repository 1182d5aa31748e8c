//! Files of other programs, as any of the readers takes them: whatever the file, no reader panics,
//! and what has landed verifies. Given again, nothing is added.

use std::fs;
use std::sync::Arc;

use tine_core::Limits;
use tine_engine::{Call, Engine, FixedEntropy, ManualClock};
use tine_import::importer::{ImportSettings, Importer};
use tine_import::{Bounds, ImportFormat, detect};
use tine_store::MemoryStore;

/// The file is read as what it seems to be, and as one format more, which its length picks.
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

/// How many turns were new.
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
