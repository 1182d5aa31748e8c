//! The properties that hold for every input, with a function for each decoder. A function that panics
//! has found a bug.
//!
//! This file is compiled by the long form (libFuzzer, in this folder) and by the short one
//! (`crates/tine-formats/tests/fuzz`).

use sha2::{Digest as _, Sha256};
use tine_core::json::{self, Json, JsonErrorKind};
use tine_core::{Limits, Message, Reference, Timestamp};
use tine_engine::{Call, Engine, Page};
use tine_formats::bundle::{read_bundle, verify_bundle};
use tine_store::MemoryStore;

/// The nesting that both readers allow.
const DEPTH: usize = 100;

/// Larger integers are exact here and rounded to doubles by the other reader.
const EXACT_IN_A_DOUBLE: f64 = 9_007_199_254_740_991.0;

/// The reader and the canonical form: a value that is written and read again is the same, with the
/// same bytes; another implementation agrees.
pub fn json(data: &[u8]) {
    let theirs = serde_json::from_slice::<serde_json::Value>(data);
    match json::parse(data, DEPTH) {
        Ok(value) => {
            let written = value.to_canonical();
            let again = json::parse(written.as_bytes(), DEPTH).expect("what was written is read");
            assert_eq!(again, value, "{written}");
            assert_eq!(again.to_canonical(), written);
            let theirs = theirs.expect("what is accepted here is JSON");
            if !has_large_number(&value) {
                let judged = serde_json_canonicalizer::to_string(&theirs).expect("it is finite");
                assert_eq!(written, judged);
            }
        }
        Err(error) => {
            assert!(error.offset <= data.len());
            // The two places in which this reader is stricter than its judge.
            let stricter = matches!(
                error.kind,
                JsonErrorKind::DuplicateKey { .. } | JsonErrorKind::TooDeep { .. }
            );
            assert!(stricter || theirs.is_err(), "refused: {error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

fn has_large_number(value: &Json) -> bool {
    match value {
        Json::Number(number) => {
            number.to_string().parse().is_ok_and(|double: f64| double.abs() > EXACT_IN_A_DOUBLE)
        }
        Json::Array(items) => items.iter().any(has_large_number),
        Json::Object(fields) => fields.iter().any(|(_, value)| has_large_number(value)),
        _ => false,
    }
}

/// Messages as every surface takes them, one or a list: rejected with an error, or kept in a form that
/// reads back as the same.
pub fn message(data: &[u8]) {
    let limits = Limits::default();
    let Ok(value) = json::parse(data, limits.json_depth) else {
        return;
    };
    let values = match value {
        Json::Array(values) => values,
        value => vec![value],
    };
    for value in values {
        match Message::from_json(value, &limits) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(message) => {
                assert!(message.check(&limits).is_ok());
                let blocks = message.body.to_blocks_string();
                let content = json::parse(blocks.as_bytes(), json::MAX_DEPTH).expect("blocks");
                assert_eq!(content.to_canonical(), blocks, "blocks are canonical");
                let body = tine_core::Body::from_content(content, message.role, &limits);
                let body = body.expect("what was kept is accepted");
                let again = Message { body, ..message.clone() };
                assert_eq!(again.digest(), message.digest());
                let metadata = tine_core::Metadata::from_json(&message.metadata.to_json(), &limits);
                assert_eq!(metadata.expect("what was kept is accepted"), message.metadata);
            }
        }
    }
}

/// Turn references: a valid one keeps its spelling.
pub fn reference(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Reference::parse(text) {
        Ok(found) => {
            let again = Reference::parse(found.as_str()).expect("its own spelling is understood");
            assert_eq!(again, found);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Timestamps: each has one spelling.
pub fn timestamp(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        let spelled = at.to_string();
        let again: Timestamp = spelled.parse().expect("its own spelling is understood");
        assert_eq!(again, at, "{spelled}");
        assert_eq!(again.to_string(), spelled);
        let _ = at.next();
    }
}

/// Bundles: rejected with nothing stored, or stored so that verification passes.
pub fn bundle(data: &[u8]) {
    let engine = Engine::new(MemoryStore::new());
    let call = Call::by("fuzz");
    let checked = verify_bundle(&mut &data[..], engine.limits());
    let read = read_bundle(&engine, None, &mut &data[..]);
    match read {
        Ok(_) => {
            assert!(checked.is_ok(), "what is imported is whole");
            let found = engine.verify().expect("a store in memory is readable");
            assert_eq!(found.problems, [], "what is imported verifies");
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if checked.is_err() {
                let page = Page::default();
                let listed = engine.conversations(&call, true, page).expect("it is readable");
                assert!(listed.items.is_empty(), "something of a refused bundle is stored");
            }
        }
    }
}

/// Bundles whose end line is always correct, so that mutations reach the hashes, the links and the
/// engine.
pub fn sealed_bundle(data: &[u8]) {
    bundle(&sealed(data));
}

/// Returns the lines of a bundle with a correct end line.
pub fn sealed(data: &[u8]) -> Vec<u8> {
    let mut lines = data.to_vec();
    if !lines.ends_with(b"\n") {
        lines.push(b'\n');
    }
    let records: Vec<serde_json::Value> = lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let count = |kind: &str| records.iter().filter(|record| record["record"] == kind).count();
    let [conversations, turns, operations] = ["conversation", "turn", "operation"].map(count);
    let digest: String = Sha256::digest(&lines).iter().map(|byte| format!("{byte:02x}")).collect();
    let end = format!(
        "{{\"conversations\":{conversations},\"operations\":{operations},\"record\":\"end\",\
         \"sha256\":\"{digest}\",\"turns\":{turns}}}\n"
    );
    lines.extend_from_slice(end.as_bytes());
    lines
}
