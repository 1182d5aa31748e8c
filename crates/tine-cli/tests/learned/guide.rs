//! The guide's commands, as they stand there.

use crate::harness::{Home, run_guide};

#[test]
fn every_command_of_the_guide_works_as_shown() {
    run_guide(&Home::new(), include_str!("../../../../docs/provenance.md"), 30);
}
