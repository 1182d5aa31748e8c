//! How fast sessions of Claude Code come in: generates them, imports them twice, and says how long
//! it took and how much memory.
//!
//! ```sh
//! cargo run --release -p tine-import --example throughput -- 1000   # megabytes
//! ```
//!
//! Sessions look like real ones: an answer is several lines, results of tools are written twice
//! (`content` and `toolUseResult`), every line repeats folder, version and branch.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use tine_engine::{Call, Engine};
use tine_import::detect;
use tine_import::importer::{ImportSettings, Importer};
use tine_sqlite::SqliteStore;

/// Bytes of one session, about.
const SESSION_BYTES: usize = 1_000_000;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let megabytes: usize = std::env::args().nth(1).map_or(Ok(100), |it| it.parse())?;
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("projects");
    generate(&logs, megabytes * 1_000_000)?;
    let store = folder.path().join("store");
    let (first, turns, bytes) = import(&logs, &store)?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = bytes as f64 / 1e6 / first;
    println!("first import: {bytes} bytes, {turns} turns, {first:.2} s, {rate:.1} MB/s");
    let (second, turns, _) = import(&logs, &store)?;
    println!("second import: {turns} turns, {second:.3} s, {:.4} of the first", second / first);
    println!("peak memory: {}", peak_memory());
    Ok(())
}

fn import(logs: &Path, store: &Path) -> Result<(f64, u64, u64), Failed> {
    let start = Instant::now();
    let engine = Engine::new(SqliteStore::open(store)?);
    let plan = detect::plan(&[logs.to_owned()], None)?;
    let mut importer = Importer::begin(&engine, &Call::by("bench"), ImportSettings::default())?;
    for job in &plan.jobs {
        importer.run(job)?;
    }
    importer.finish()?;
    assert!(importer.notes.is_empty(), "{:?}", importer.notes.first());
    Ok((start.elapsed().as_secs_f64(), importer.summary.turns, plan.bytes()))
}

fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "not known here".to_owned(), |it| it.trim().to_owned())
}

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    fn words(&mut self, bytes: usize) -> String {
        const WORDS: &[&str] = &[
            "the",
            "function",
            "returns",
            "an",
            "error",
            "when",
            "file",
            "is",
            "missing",
            "so",
            "we",
            "check",
            "`path.exists()`",
            "first",
            "and",
            "let",
            "mut",
            "=",
            "Vec::new();",
            "for",
            "line",
            "in",
            "reader.lines()",
            "{",
            "}",
            "test",
            "result:",
            "ok.",
            "3",
            "passed;",
            "src/main.rs:42",
        ];
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(WORDS[self.below(WORDS.len())]);
            text.push_str(if self.below(12) == 0 { "\\n" } else { " " });
        }
        text
    }
}

fn generate(folder: &Path, bytes: usize) -> Result<(), Failed> {
    let mut chance = Chance(7);
    let mut written = 0;
    let mut session = 0;
    while written < bytes {
        let project = folder.join(format!("-home-ana-project-{}", session % 20));
        fs::create_dir_all(&project)?;
        let id = format!("5e55{session:04x}-0000-4000-8000-000000000000");
        let text = generated(&mut chance, &id, SESSION_BYTES.min(bytes - written));
        written += text.len();
        fs::write(project.join(format!("{id}.jsonl")), text)?;
        session += 1;
    }
    Ok(())
}

fn generated(chance: &mut Chance, session: &str, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 20_000);
    let mut parent = "null".to_owned();
    let mut nth = 0_u32;
    let mut line = |out: &mut String, kind: &str, message: &str, more: &str| {
        let (minute, second) = (nth / 60 % 60, nth % 60);
        // No two sessions share an id: those that do are taken for forks of one another.
        let uuid = format!("{nth:08x}-0000-4000-8000-0000{}", &session[..8]);
        let _ = writeln!(
            out,
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\
             \"cwd\":\"/home/ana/project\",\"sessionId\":\"{session}\",\"version\":\"2.1.4\",\
             \"gitBranch\":\"main\",\"type\":\"{kind}\",\"message\":{message},{more}\
             \"uuid\":\"{uuid}\",\"timestamp\":\"2026-01-05T{:02}:{minute:02}:{second:02}.000Z\"}}",
            nth / 3600 % 24,
        );
        parent = format!("\"{uuid}\"");
        nth += 1;
    };
    let mut exchange = 0;
    while out.len() < bytes {
        exchange += 1;
        let asked = chance.words(200);
        line(&mut out, "user", &format!("{{\"role\":\"user\",\"content\":\"{asked}\"}}"), "");
        for step in 0..4 {
            let id = format!("msg_{session}_{exchange}_{step}");
            let usage = "\"usage\":{\"input_tokens\":4,\"cache_creation_input_tokens\":1200,\
                         \"cache_read_input_tokens\":45000,\"output_tokens\":310}";
            let answer = |block: String| {
                format!(
                    "{{\"id\":\"{id}\",\"type\":\"message\",\"role\":\"assistant\",\
                     \"model\":\"claude-opus-4-6\",\"content\":[{block}],\"stop_reason\":null,{usage}}}"
                )
            };
            let request = format!("\"requestId\":\"req_{id}\",");
            let said = chance.words(600);
            line(
                &mut out,
                "assistant",
                &answer(format!("{{\"type\":\"text\",\"text\":\"{said}\"}}")),
                &request,
            );
            let command = chance.words(80);
            let call = format!(
                "{{\"type\":\"tool_use\",\"id\":\"toolu_{id}\",\"name\":\"Bash\",\
                 \"input\":{{\"command\":\"{command}\"}}}}"
            );
            line(&mut out, "assistant", &answer(call), &request);
            let size = 500 + chance.below(6_000);
            let printed = chance.words(size);
            let result = format!(
                "{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{id}\",\
                 \"type\":\"tool_result\",\"content\":\"{printed}\",\"is_error\":false}}]}}"
            );
            let beside = format!(
                "\"toolUseResult\":{{\"stdout\":\"{printed}\",\"stderr\":\"\",\"interrupted\":false}},"
            );
            line(&mut out, "user", &result, &beside);
        }
    }
    out
}
