//! Out and in again: every branch is still there.

use std::fs;
use std::path::Path;

use tine_core::ConversationId;
use tine_engine::{Call, Engine};
use tine_formats::bundle::write_bundle;
use tine_formats::export::{self, ExportFormat};
use tine_formats::html_page::write_page;
use tine_import::importer::ImportSettings;

use crate::drawing::{draw, engine, import};

const FIXTURES: &[&str] = &[
    "chatgpt",
    "claude-ai",
    "claude-code",
    "codex",
    "forest",
    "gemini-cli",
    "librechat",
    "messages",
    "open-webui",
    "opencode",
    "pi",
];

fn fixture(name: &str) -> Engine {
    let input =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).join("input");
    let engine = engine();
    import(&engine, &input, ImportSettings::default());
    engine
}

fn call() -> Call {
    Call::by("tester")
}

fn ids(engine: &Engine) -> Vec<ConversationId> {
    let ids = engine.exported(&call()).expect("a listing");
    ids.into_iter().filter(|id| !id.as_str().starts_with('~')).collect()
}

fn bundle(engine: &Engine) -> String {
    let mut out = Vec::new();
    let all = engine.exported(&call()).expect("a listing");
    write_bundle(engine, &call(), &all, &mut out).expect("a bundle");
    String::from_utf8(out).expect("text")
}

/// Trees and branches without what each store makes itself: ids, and what conversations are called.
fn shapes(engine: &Engine) -> Vec<String> {
    let drawn = draw(engine);
    let mut trees: Vec<String> = drawn
        .split("\n\n")
        .map(|tree| {
            let lines =
                tree.lines().filter(|line| !line.starts_with('#') && !line.starts_with('>'));
            let lines = lines.map(|line| match line.rfind("\"id\":\"") {
                Some(at) => {
                    let end = line[at + 6..].find('"').map_or(line.len(), |end| at + 6 + end + 1);
                    format!("{}{}", &line[..at], &line[end..])
                }
                None => line.to_owned(),
            });
            lines.collect::<Vec<_>>().join("\n")
        })
        .filter(|tree| !tree.is_empty())
        .collect();
    trees.sort();
    trees
}

fn exported(engine: &Engine, form: ExportFormat) -> Vec<u8> {
    let mut out = Vec::new();
    export::write(engine, &call(), &ids(engine), None, form, &mut out).expect("an export");
    out
}

#[test]
fn a_chatgpt_export_round_trips() {
    for name in FIXTURES {
        let mut here = fixture(name);
        let folder = tempfile::tempdir().expect("a folder");
        let before = shapes(&here);
        for _ in 0..2 {
            fs::write(folder.path().join("all.json"), exported(&here, ExportFormat::ChatGpt))
                .unwrap();
            let there = engine();
            let importer = import(&there, folder.path(), ImportSettings::default());
            assert_eq!(importer.notes, [], "{name}");
            let after = shapes(&there);
            assert_eq!(after.len(), before.len(), "{name}");
            for (after, before) in after.iter().zip(&before) {
                assert!(after == before, "{name}:\n{after}\ninstead of\n{before}");
            }
            here = there;
        }
    }
}

#[test]
fn a_page_contains_the_bundle_byte_for_byte() {
    for name in FIXTURES {
        let here = fixture(name);
        let folder = tempfile::tempdir().expect("a folder");
        let mut page = Vec::new();
        let all = here.exported(&call()).expect("a listing");
        write_page(&here, &call(), &all, &mut page).expect("a page");
        let text = String::from_utf8(page).expect("text");
        assert_eq!(text.matches("</script").count(), 2, "{name}: nothing said ends the element");
        fs::write(folder.path().join("page.html"), text).unwrap();
        let there = engine();
        let importer = import(&there, folder.path(), ImportSettings::default());
        assert_eq!(importer.notes, [], "{name}");
        assert_eq!(bundle(&there), bundle(&here), "{name}");
    }
}

#[test]
fn text_that_would_close_the_element_round_trips() {
    use tine_core::{Message, Role};
    use tine_engine::{Append, NewConversation};
    let here = engine();
    let talk = here.create_conversation(&call(), NewConversation::named("t").unwrap()).unwrap().id;
    for said in ["</script><script>alert(1)</script>", "\\u003c", "\\\\u003c<\\", "<!-- <script>"] {
        let said = vec![Message::text(Role::User, said)];
        here.append(&call(), Append::to(talk.clone(), said)).unwrap();
    }
    let mut page = Vec::new();
    write_page(&here, &call(), &[talk], &mut page).expect("a page");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("page.html"), page).unwrap();
    let there = engine();
    import(&there, folder.path(), ImportSettings::default());
    assert_eq!(bundle(&there), bundle(&here));
}

#[test]
fn requests_as_json_lines_restore_every_branch() {
    for form in [ExportFormat::OpenAi, ExportFormat::Anthropic] {
        let here = fixture("messages");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("all.jsonl"), exported(&here, form)).unwrap();
        let there = engine();
        import(&there, folder.path(), ImportSettings::default());
        let said = |engine: &Engine| {
            let shapes = shapes(engine).join("\n");
            let mut roles: Vec<String> = shapes
                .lines()
                .map(|line| line.split(" {").next().unwrap_or(line).trim().to_owned())
                .collect();
            roles.sort();
            roles.dedup();
            roles
        };
        let (before, after) = (said(&here), said(&there));
        let turns = |lines: &[String]| {
            lines
                .iter()
                .filter(|line| {
                    line.starts_with("user")
                        || line.starts_with("assistant")
                        || line.starts_with("tool")
                })
                .count()
        };
        assert_eq!(turns(&before), turns(&after), "{form:?}:\n{before:#?}\n{after:#?}");
    }
}

#[test]
fn markdown_contains_every_turn_once() {
    for name in FIXTURES {
        let here = fixture(name);
        let text = String::from_utf8(exported(&here, ExportFormat::Markdown)).expect("text");
        assert!(!text.is_empty(), "{name}");
    }
    let text = String::from_utf8(exported(&fixture("chatgpt"), ExportFormat::Markdown)).unwrap();
    for said in ["When should I go?", "Late March.", "In autumn.", "A pixel."] {
        assert_eq!(text.matches(said).count(), 1, "{said} in\n{text}");
    }
}
