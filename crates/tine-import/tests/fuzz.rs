//! The readers under mutations of the fixtures. `fuzz/README.md` tells about the long form; both run
//! the same function.

#[path = "../../../fuzz/src/importers.rs"]
mod importers;
#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;

use std::path::Path;

#[test]
fn no_file_makes_an_importer_panic_and_imports_verify() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    mutations::run(&fixtures, importers::import, 4_000);
}
