//! The Python script agrees with this code, and finds what was tampered with.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tine_core::Json;
use tine_core::json::{Object, object};
use tine_engine::{Append, Call, Engine, MergeBranches, NewCommit, NewConversation, Summary};
use tine_store::MemoryStore;

use super::sample::{self, change, place};

/// Runs the script over a bundle; whether it is content, and what it says.
pub fn run(bundle: &[u8]) -> (bool, String) {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/verify_bundle.py");
    let mut python = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tests need python3");
    let mut input = python.stdin.take().unwrap();
    let bytes = bundle.to_vec();
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut input, &bytes));
    let output = python.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.is_empty(), "the script failed: {error}");
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_script_recomputes_every_hash_of_every_kind_of_record() {
    let (content, said) = run(&sample::bundle());
    assert!(content, "{said}");
    assert_eq!(said, "ok: 2 conversations, 9 turns, 5 operations (1 turns purged)\n");
}

#[test]
fn the_script_formats_numbers_equally() {
    let mut maker = sample::Maker::begin("numbers", None, None);
    let mut numbers = Vec::new();
    // Powers of ten and of two around every place where the notation changes.
    for exponent in -330..=307 {
        for digits in ["1", "-1", "9.5", "1.2345678901234567"] {
            let literal = format!("{digits}e{exponent}");
            numbers.push(tine_core::json::parse(literal.as_bytes(), 1).unwrap());
        }
    }
    for power in 0..=200 {
        numbers.push(tine_core::json::Number::try_from(2_f64.powi(power)).unwrap().into());
        numbers.push(tine_core::json::Number::try_from(2_f64.powi(-power)).unwrap().into());
    }
    let block = object([("type", "numbers".into()), ("of", Json::Array(numbers))]);
    maker.turn(0, None, tine_core::Role::User, Json::Array(vec![block]));
    maker.operation("create", "{}", false).operation("append", "{}", false);
    let (content, said) = run(&sample::write(&maker.records).unwrap().0);
    assert!(content, "{said}");
}

/// The change is sealed with a fitting end line; the script names the record and nothing else.
fn found(holding: &str, edit: impl FnOnce(&mut Object), names: &[&str]) {
    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, holding);
    change(&mut lines[line], edit);
    let (content, said) = run(&sample::seal(&lines));
    assert!(!content, "{holding}: {said}");
    assert_eq!(said.lines().count(), names.len(), "{said}");
    for (said, name) in said.lines().zip(names) {
        assert!(said.contains(name), "{said}\nwanted: {name}");
    }
}

/// A conversation with two commits and a merge, as an engine made it.
fn committed() -> Vec<u8> {
    let engine = Engine::new(MemoryStore::new());
    let call = Call::by("tester");
    let talk = engine.create_conversation(&call, NewConversation::named("trip").unwrap()).unwrap();
    let say = |branch: &str, parent: Option<tine_core::TurnId>, text: &str| {
        let message = tine_core::Message::text(tine_core::Role::User, text);
        let request = Append::to(talk.id.clone(), vec![message]);
        let request = match parent {
            Some(parent) => request.under(parent.into(), branch),
            None => request,
        };
        engine.append(&call, request).unwrap().turns[0].id
    };
    let first = say("main", None, "Plan a trip to Tokyo.");
    engine.commit(&call, NewCommit::of(talk.id.clone(), "Research \"complete\"")).unwrap();
    say("side", Some(first), "Or to Kyoto?");
    let merge = MergeBranches {
        conversation: talk.id.clone(),
        from: "side".to_owned(),
        into: None,
        message: None,
        author: None,
        summary: Summary::Generated,
        dry_run: false,
    };
    engine.merge(&call, merge).unwrap();
    let mut records = Vec::new();
    let mut keep = |record| {
        records.push(record);
        Ok(())
    };
    engine.export(&call, &talk.id, &mut keep).unwrap();
    sample::write(&records).unwrap().0
}

#[test]
fn the_script_recomputes_commits_and_names_those_that_were_changed() {
    let bundle = committed();
    let (content, said) = run(&bundle);
    assert!(content, "{said}");
    assert!(said.contains("3 commits"), "{said}");
    let lines = sample::lines(&bundle);
    let commits: Vec<usize> = (0..lines.len())
        .filter(|at| {
            lines[*at].starts_with("{\"key\":") && lines[*at].contains("\"kind\":\"commit\"")
        })
        .collect();
    assert_eq!(commits.len(), 3);
    // Any letter of any commit that is changed, in a bundle that is sealed anew.
    for line in commits {
        let letters = lines[line].char_indices().filter(|(_, letter)| letter.is_alphanumeric());
        let value = lines[line].find("\"value\":").unwrap() + 8;
        let places: Vec<usize> = letters.map(|(at, _)| at).filter(|at| *at > value).collect();
        for at in places.into_iter().step_by(97) {
            let mut changed = lines.clone();
            let letter = if changed[line][at..].starts_with('1') { "2" } else { "1" };
            changed[line].replace_range(at..=at, letter);
            let (content, said) = run(&sample::seal(&changed));
            assert!(!content, "{at}: {said}");
            assert!(said.contains(&format!("line {}: ", line + 1)), "{said}");
        }
    }
}

#[test]
fn the_script_names_the_record_that_was_tampered_with() {
    let late = "turn 01890a5d-ac96-774b-bcce-b302099a8001: turn_hash";
    let block = object([("type", "text".into()), ("text", "Late April 🌸".into())]);
    found("Late March", |line| drop(line.insert("content", vec![block].into())), &[late]);
    found("Late March", |line| drop(line.insert("role", "system".into())), &[late]);
    let time = "2024-01-15T10:30:06Z";
    found("Late March", |line| drop(line.insert("created_at", time.into())), &[late]);
    let answer = "turn 01890a5d-ac96-774b-bcce-b302099a8004: turn_hash";
    found(r#""role":"tool""#, |line| drop(line.insert("tool_call_id", "x".into())), &[answer]);
    let append = "operation 2 of trip: hash";
    found(r#""seq":2"#, |line| drop(line.insert("detail", Json::Null)), &[append]);
    found(r#""seq":2"#, |line| drop(line.insert("actor", "Eve".into())), &[append]);
    found(r#""seq":2"#, |line| drop(line.insert("at", time.into())), &[append]);
    let prompt = "conversation trip: root_hash";
    found(
        r#""record":"conversation""#,
        |line| drop(line.insert("system_prompt", "Lie.".into())),
        &[prompt],
    );

    // A hash that was recomputed to fit breaks the link to everything behind it.
    let zeros = Json::from(format!("sha256:{}", "0".repeat(64)));
    let split = "turn 01890a5d-ac96-774b-bcce-b302099a8006: parent_turn_hash";
    let half = "turn 01890a5d-ac96-774b-bcce-b302099a8007: parent_turn_hash";
    found("message_digest", |line| drop(line.insert("turn_hash", zeros.clone())), &[split, half]);
    let links = ["operation 3 of trip: hash", "operation 4 of trip: previous"];
    found(r#""seq":3"#, |line| drop(line.insert("hash", zeros)), &links);
}

#[test]
fn the_script_detects_any_changed_byte_and_truncation() {
    let bytes = sample::bundle();
    for (byte, what) in [("Late", "line 4"), ("10:30:05Z", "line 4"), ("best answer", "end")] {
        let at = bytes.windows(byte.len()).position(|window| window == byte.as_bytes()).unwrap();
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let (content, said) = run(&changed);
        assert!(!content && said.contains(what) && said.contains("end: sha256"), "{said}");
    }
    let end = bytes.len();
    let last = bytes[..end - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [0, 20, last / 2, last, end - 1] {
        let (content, said) = run(&bytes[..cut]);
        assert!(!content && said.contains("cut off"), "{said}");
    }
    for longer in
        [[&bytes[..], b"\n"].concat(), [&bytes[..last], &bytes[last..], &bytes[last..]].concat()]
    {
        let (content, said) = run(&longer);
        assert!(!content && said.contains("follows the end line"), "{said}");
    }
}
