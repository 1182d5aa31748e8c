//! Files that are damaged, contradict themselves or mean harm: a clear report, no crash, and no
//! part of a conversation.

use std::fs;
use std::io::Write;
use std::path::Path;

use tempfile::TempDir;
use tine_engine::{Call, Page};
use tine_import::importer::{ImportSettings, Importer};
use tine_import::{Bounds, Error, ImportFormat, detect};

use crate::drawing::{draw, engine, import};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    path
}

fn claude(uuid: &str, parent: Option<&str>, said: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\
         \"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"{said}\"}}}}\n"
    )
}

#[test]
fn a_log_truncated_at_any_byte_keeps_its_complete_lines() {
    let folder = folder();
    let whole = [claude("a", None, "one"), claude("b", Some("a"), "two")].concat();
    let first = claude("a", None, "one").len();
    for end in 0..=whole.len() {
        let path = write(&folder, "s.jsonl", &whole.as_bytes()[..end]);
        let engine = engine();
        let plan = detect::plan(&[path], None);
        let Ok(plan) = plan else {
            assert!(end + 1 < first, "cut at {end}");
            continue;
        };
        let mut importer = Importer::begin(&engine, &Call::by("t"), ImportSettings::default())
            .expect("a beginning");
        plan.jobs.iter().for_each(|job| importer.run(job).expect("no crash"));
        let expected = u64::from(end + 1 >= first) + u64::from(end + 1 >= whole.len());
        assert_eq!(importer.summary.turns, expected, "cut at {end}");
    }
}

#[test]
fn reordered_and_repeated_lines_give_the_same_tree() {
    let folder = folder();
    let lines =
        [claude("a", None, "one"), claude("b", Some("a"), "two"), claude("c", Some("b"), "three")];
    let drawn = |order: &[usize]| {
        let text: String = order.iter().map(|line| lines[*line].as_str()).collect();
        write(&folder, "s.jsonl", text.as_bytes());
        let engine = engine();
        import(&engine, folder.path(), ImportSettings::default());
        draw(&engine)
    };
    let straight = drawn(&[0, 1, 2]);
    for order in [&[2, 1, 0][..], &[1, 0, 2], &[0, 0, 1, 1, 2, 2], &[2, 0, 2, 1, 0]] {
        let found = drawn(order);
        let tree = |text: &str| {
            text.lines()
                .filter(|line| line.starts_with("user"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(tree(&found), tree(&straight), "{order:?}");
    }
}

#[test]
fn cycles_are_cut_and_nothing_is_lost() {
    let folder = folder();
    let text = [
        claude("a", Some("c"), "one"),
        claude("b", Some("a"), "two"),
        claude("c", Some("b"), "three"),
        claude("d", Some("d"), "four"),
    ]
    .concat();
    write(&folder, "s.jsonl", text.as_bytes());
    let engine = engine();
    let importer = import(&engine, folder.path(), ImportSettings::default());
    assert_eq!(importer.summary.turns, 4);
    assert_eq!(importer.notes.iter().filter(|note| note.what.contains("cycle")).count(), 2);
    assert!(importer.notes.iter().all(|note| note.line.is_some()));
}

#[test]
fn invalid_utf_8_is_replaced_and_noted() {
    let folder = folder();
    let mut text = claude("a", None, "one XX two").into_bytes();
    let at = text.windows(2).position(|pair| pair == b"XX").expect("the mark");
    text[at] = 0xff;
    text[at + 1] = 0xfe;
    write(&folder, "s.jsonl", &text);
    let engine = engine();
    let importer = import(&engine, folder.path(), ImportSettings::default());
    assert!(draw(&engine).contains("one \u{fffd}\u{fffd} two"));
    assert!(importer.notes[0].what.contains("UTF-8"), "{:?}", importer.notes);
}

fn zip(path: &Path, members: &[(&str, &[u8])]) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).expect("a file"));
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a member");
        zip.write_all(bytes).expect("bytes");
    }
    zip.finish().expect("an archive");
}

const CHAT: &str = r#"[{"id":"c","mapping":{"a":{"id":"a","parent":null,"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Hi"]}}}}}]"#;

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused() {
    let folder = folder();
    let mut bomb = CHAT.as_bytes().to_vec();
    bomb.pop();
    bomb.extend(vec![b' '; 8 << 20]);
    bomb.push(b']');
    let path = folder.path().join("export.zip");
    zip(&path, &[("conversations.json", &bomb)]);
    let bounds = Bounds { unpacked_bytes: 1 << 20, unpacked_ratio: 10, ..Bounds::default() };
    let engine = engine();
    let importer = import(&engine, &path, ImportSettings { bounds, ..ImportSettings::default() });
    assert!(importer.notes[0].what.contains("larger than the limit"), "{:?}", importer.notes);
    let listing = engine.conversations(&Call::by("t"), true, Page::default()).expect("a listing");
    assert!(listing.items.len() <= 1, "whole conversations that came before may stay");
}

#[test]
fn a_compressed_log_that_unpacks_to_too_much_is_refused() {
    let folder = folder();
    let line = "{\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n";
    let bomb = format!("{line}{}", " ".repeat(8 << 20));
    let packed = zstd::encode_all(bomb.as_bytes(), 3).expect("packed");
    write(&folder, "rollout-x.jsonl.zst", &packed);
    let bounds = Bounds { unpacked_bytes: 1 << 20, unpacked_ratio: 10, ..Bounds::default() };
    let engine = engine();
    let importer =
        import(&engine, folder.path(), ImportSettings { bounds, ..ImportSettings::default() });
    assert!(importer.notes[0].what.contains("larger than the limit"), "{:?}", importer.notes);
    assert_eq!(importer.summary.turns, 0);
}

#[test]
fn a_line_or_document_over_the_bound_is_left_out_and_the_rest_comes_in() {
    let folder = folder();
    let long = "x".repeat(4000);
    let text =
        [claude("a", None, "one"), claude("b", Some("a"), &long), claude("c", Some("b"), "three")]
            .concat();
    write(&folder, "s.jsonl", text.as_bytes());
    let engine = engine();
    let bounds = Bounds { line_bytes: 1000, ..Bounds::default() };
    let importer =
        import(&engine, folder.path(), ImportSettings { bounds, ..ImportSettings::default() });
    assert_eq!(importer.summary.turns, 2);
    assert!(
        importer
            .notes
            .iter()
            .any(|note| note.line == Some(2) && note.what.contains("more than 1000 bytes"))
    );
}

#[test]
fn names_that_escape_the_folder_are_never_opened() {
    let folder = folder();
    let secret = write(&folder, "secret.txt", b"top secret");
    let path = folder.path().join("export.zip");
    let pointer = CHAT.replace("\"Hi\"", "\"Hi\",{\"content_type\":\"image_asset_pointer\",\"asset_pointer\":\"file-service://../../secret.txt\"},{\"content_type\":\"image_asset_pointer\",\"asset_pointer\":\"SECRET\"}")
        .replace("SECRET", &secret.display().to_string())
        .replace("\"text\"", "\"multimodal_text\"");
    zip(
        &path,
        &[("../../conversations.json", pointer.as_bytes()), ("../../secret.txt-not", b"inside")],
    );
    let engine = engine();
    let importer = import(&engine, &path, ImportSettings::default());
    assert_eq!(importer.summary.turns, 1);
    assert!(!draw(&engine).contains("top secret"));
    let sources = engine.sources(&Call::by("t"), Page::default()).expect("sources").items;
    assert!(sources.iter().all(|source| source.size_bytes == 6), "{sources:?}");
}

#[test]
fn damaged_archives_and_databases_are_noted() {
    let folder = folder();
    for (name, format) in [
        ("a.zip", ImportFormat::ChatGpt),
        ("b.zip", ImportFormat::ClaudeAi),
        ("opencode.db", ImportFormat::OpenCode),
    ] {
        let path = write(&folder, name, b"PK\x03\x04 not much of an archive");
        let plan = detect::plan(&[path], Some(format)).expect("a plan");
        let engine = engine();
        let mut importer = Importer::begin(&engine, &Call::by("t"), ImportSettings::default())
            .expect("a beginning");
        plan.jobs.iter().for_each(|job| importer.run(job).expect("no crash"));
        assert_eq!(importer.notes.len(), 1, "{name}: {:?}", importer.notes);
    }
}

#[test]
fn unknown_files_are_rejected_by_name() {
    let folder = folder();
    let path = write(&folder, "letter.json", b"{\"dear\": \"sir\"}");
    assert!(matches!(detect::plan(&[path], None), Err(Error::Unknown { .. })));
    let absent = folder.path().join("absent");
    assert!(matches!(detect::plan(&[absent], None), Err(Error::Read { .. })));
    let plan = detect::plan(&[folder.path().to_owned()], None).expect("a plan");
    assert_eq!((plan.jobs.len(), plan.unknown), (0, 1));
}

#[test]
fn arbitrary_bytes_in_any_format_do_not_panic() {
    let folder = folder();
    let seeds: &[&[u8]] = &[
        b"", b"[", b"{", b"[[[[", b"null", b"[null]", b"[1,2]", b"{\"mapping\":[]}", b"{\"mapping\":{\"a\":1}}",
        b"[{\"chat_messages\":[1,{\"content\":[1,{\"type\":1}]}]}]",
        b"[{\"chat\":{\"history\":{\"messages\":{\"a\":null,\"b\":{\"parentId\":\"b\",\"output\":[1]}}}}}]",
        b"{\"messages\":[{\"children\":[{\"children\":1}]},5]}",
        b"{\"type\":\"session\"}\n{\"type\":\"message\"}\n{\"type\":\"message\",\"id\":\"a\",\"parentId\":\"a\",\"message\":{\"role\":7}}",
        b"{\"type\":\"session_meta\",\"payload\":{\"history_base\":{\"thread_id\":\"x\",\"end_ordinal_exclusive\":1}}}\n{\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":18446744073709551615}}",
        b"{\"type\":\"user\",\"uuid\":\"a\"}\n{\"type\":\"assistant\",\"uuid\":\"a\",\"message\":{\"content\":[{}]}}",
        b"{\"$rewindTo\":\"x\"}\n{\"$set\":{\"messages\":[{},{\"id\":\"a\",\"type\":\"gemini\",\"toolCalls\":[{}]}]}}",
        b"{\"role\":\"assistant\",\"tool_calls\":[{},5]}",
        &[0xff, 0xfe, 0x00, 0x22],
    ];
    for (nth, seed) in seeds.iter().enumerate() {
        for format in ImportFormat::all() {
            for name in ["x.jsonl", "x.json", "roots.json"] {
                let path = write(&folder, name, seed);
                let plan = detect::plan(&[path], Some(format)).expect("a plan");
                let engine = engine();
                let mut importer =
                    Importer::begin(&engine, &Call::by("t"), ImportSettings::default())
                        .expect("a beginning");
                let done = plan.jobs.iter().try_for_each(|job| importer.run(job));
                assert!(done.is_ok(), "seed {nth} as {}: {done:?}", format.name());
                assert!(engine.verify().expect("a check").problems.is_empty());
            }
        }
    }
}
