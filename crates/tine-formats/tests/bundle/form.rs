//! What a bundle looks like, and that reading is the inverse of writing.

use tine_core::{Digest, ErrorKind, Limits};
use tine_engine::BundleRecord;
use tine_formats::bundle::{BundleReader, BundleWriter, Fault};
use tine_store::{Content, Conversation, Detail, Operation, Turn};

use super::sample::{self, HEADER};

#[test]
fn every_record_reads_back_as_it_was_written() {
    let records = sample::records();
    let (bytes, written) = sample::write(&records).unwrap();
    assert_eq!(sample::read(&bytes).unwrap(), records);
    assert_eq!(sample::verify(&bytes).unwrap(), written);
    assert_eq!((written.conversations, written.turns, written.operations), (2, 9, 5));
}

#[test]
fn writing_again_gives_the_same_bytes() {
    let bytes = sample::bundle();
    let again = sample::write(&sample::read(&bytes).unwrap()).unwrap().0;
    assert_eq!(bytes, again);
}

#[test]
fn the_end_line_covers_every_byte_before_it() {
    let (bytes, written) = sample::write(&sample::records()).unwrap();
    let lines = sample::lines(&bytes);
    let before = lines.join("\n") + "\n";
    assert_eq!(written.digest, Digest::of(before.as_bytes()));
    assert_eq!(sample::seal(&lines), bytes);
}

#[test]
fn lines_are_canonical_objects_of_the_documented_keys() {
    let bytes = sample::bundle();
    let lines = sample::lines(&bytes);
    assert_eq!(lines[0], HEADER);
    let turn = &lines[sample::place(&lines, "Late March")];
    assert_eq!(
        *turn,
        concat!(
            r#"{"content":[{"text":"Late March 🌸","type":"text"}],"#,
            r#""created_at":"2024-01-15T10:30:05Z","metadata":{},"operation":2,"#,
            r#""parent_id":"01890a5d-ac96-774b-bcce-b302099a8000","#,
            r#""parent_turn_hash":"#,
            r#""sha256:a9d2e63be84cb3d0dbeec588566ebea44c8e01ac5e2b3431ab5a59e41750f7a3","#,
            r#""record":"turn","role":"assistant","status":"complete","#,
            r#""turn_hash":"#,
            r#""sha256:e38bb1328f493d3701c7848d3afcf32be8a008ecee50490cd5e2e68d18d1ae92","#,
            r#""turn_id":"01890a5d-ac96-774b-bcce-b302099a8001"}"#,
        )
    );
}

#[test]
fn an_empty_bundle_is_two_lines() {
    let (bytes, written) = sample::write(&[]).unwrap();
    assert_eq!((written.conversations, written.turns, written.operations), (0, 0, 0));
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 2);
    assert_eq!(sample::read(&bytes).unwrap(), []);
}

/// What could not be imported again is not written in the first place.
#[test]
fn a_damaged_store_fails_on_export_and_the_record_is_named() {
    let check = |spoil: &dyn Fn(&mut BundleRecord) -> bool, named: &str| {
        let mut records = sample::records();
        assert!(records.iter_mut().any(spoil), "nothing was spoilt for {named}");
        let error = sample::write(&records).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    };
    check(
        &|record| match record {
            BundleRecord::Turn { turn: Turn { content: Content::Kept(body), .. }, .. } => {
                *body = tine_core::Body::Text("something else".to_owned());
                true
            }
            _ => false,
        },
        "turn 01890a5d-ac96-774b-bcce-b302099a8000",
    );
    check(
        &|record| match record {
            BundleRecord::Operation(Operation { seq: 2, detail, .. }) => {
                *detail = Detail::Kept(r#"{"turns":[]}"#.to_owned());
                true
            }
            _ => false,
        },
        "operation 2",
    );
    check(
        &|record| match record {
            BundleRecord::Conversation(Conversation { root: Some(root), .. }) => {
                root.system_prompt = None;
                true
            }
            _ => false,
        },
        "conversation `trip`",
    );
}

#[test]
fn a_line_over_the_limit_is_neither_written_nor_read() {
    let small = Limits { body_bytes: 64, ..Limits::default() };
    let mut out = Vec::new();
    let mut writer = BundleWriter::new(&mut out, &small).unwrap();
    let error = writer.record(&sample::records()[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

    let bytes = sample::bundle();
    let mut input = bytes.as_slice();
    let mut reader = BundleReader::new(&mut input, &small).unwrap();
    let error = reader.next_record().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().starts_with("line 2 of the bundle"), "{error}");
    assert!(matches!(
        error,
        tine_formats::bundle::BundleError::Line { fault: Fault::TooLong { limit: 256 }, .. }
    ));
}

/// A block is measured as it was sent; escaped it may be six times as long and still comes back.
#[test]
fn a_text_that_grows_when_escaped_round_trips() {
    let limits = Limits { body_bytes: 4 << 10, block_bytes: 2 << 10, ..Limits::default() };
    let mut maker = sample::Maker::begin("c", None, None);
    let text = "\u{1}".repeat(limits.block_bytes);
    maker.turn(0, None, tine_core::Role::User, text.into());
    maker.operation("create", "{}", false).operation("append", "{}", false);
    let mut out = Vec::new();
    let mut writer = BundleWriter::new(&mut out, &limits).unwrap();
    for record in &maker.records {
        writer.record(record).unwrap();
    }
    writer.finish().unwrap();
    let mut input = out.as_slice();
    tine_formats::bundle::verify_bundle(&mut input, &limits).unwrap();
}
