//! Findings out of answers of every form, from bytes alone.

use serde_json::json;
use tine_analysis::{Account, Finding, Interpreter, Material, Subject};
use tine_core::{Json, Role};
use tine_llm::{ModelInterpreter, Protocol};

use crate::endpoint::{Endpoint, Reply, model};
use crate::protocols::{KINDS, body, structured};

/// What is found in a text when the model answers so, and the notes.
fn read(text: &str, answer: &str) -> (Vec<Finding>, Vec<String>) {
    let endpoint = Endpoint::start(vec![Reply::json(200, &body(Protocol::Ollama, answer))]);
    let interpreter = ModelInterpreter::new(model(Protocol::Ollama, &endpoint));
    let material = Material { text, subject: Subject::Turn(Role::User), authored_at: None };
    let mut account = Account::default();
    let found = interpreter.interpret(&material, &mut account).unwrap();
    (found, account.notes)
}

fn spans(text: &str, answer: &str) -> Vec<(usize, usize)> {
    let (found, _) = read(text, answer);
    found.iter().map(|it| it.span.clone().unwrap()).map(|it| (it.start, it.end)).collect()
}

fn person(quote: &str) -> serde_json::Value {
    json!({ "entity_type": "person", "fields": { "name": quote }, "quote": quote })
}

#[test]
fn fields_are_parsed_as_pairs_and_as_an_object() {
    let text = "12 apples, good ones, red and green";
    let expected =
        json!({ "value": 12, "unit": "apples", "good": true, "colours": ["red", "green"] });
    let pairs: Vec<_> = expected
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    for fields in [expected.clone(), json!(pairs)] {
        let answer = json!({ "findings": [{ "entity_type": "amount", "quote": "12 apples", "fields": fields }] });
        let (found, notes) = read(text, &answer.to_string());
        let fields = Json::Object(found[0].fields.clone()).to_canonical();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&fields).unwrap(), expected);
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn the_plain_form_with_spans_is_parsed() {
    let finding =
        |span| json!({ "entity_type": "person", "fields": { "name": "Zoë" }, "span": span });
    let text = "Hi Zoë!";
    let answer = json!([
        finding(json!([3, 7])),
        finding(json!([3, 6])),
        finding(json!([3, 99])),
        finding(json!([7, 3])),
        finding(json!([3])),
        finding(json!(["a", "b"])),
        finding(json!(null))
    ]);
    let (found, notes) = read(text, &answer.to_string());
    assert_eq!(found.len(), 1);
    assert_eq!(&text[found[0].span.clone().unwrap()], "Zoë");
    assert_eq!(notes.len(), 6, "{notes:?}");
}

#[test]
fn a_repeated_quote_has_separate_spans() {
    let text = "Bob met Bob. Anna met nobody.";
    let answer = json!({ "findings": [person("Bob"), person("Bob"), person("Bob"), person("Anna"),
        { "entity_type": "note", "fields": { "text": "x" }, "quote": "Bob" }] });
    // A third Bob is nowhere else, and another type may say the same of the first place.
    assert_eq!(spans(text, &answer.to_string()), [(0, 3), (8, 11), (0, 3), (13, 17), (0, 3)]);
}

#[test]
fn white_space_in_a_quote_may_differ_but_letters_may_not() {
    let text = "Call  Anna\n\tMüller today. Call AnnaMüller.";
    let quote = |quote: &str| json!({ "findings": [person(quote)] }).to_string();
    assert_eq!(spans(text, &quote("Anna Müller today")), [(6, 25)]);
    assert_eq!(spans(text, &quote(" Anna\n\tMüller ")), [(6, 19)]);
    for invented in
        ["anna Müller", "Anna Muller", "Anna Müller yesterday", "Anna Müller.", "", " ", "Call Bob"]
    {
        let (found, notes) = read(text, &quote(invented));
        assert_eq!((found.len(), notes.len()), (0, 1), "{invented}");
    }
}

#[test]
fn unusable_findings_are_left_out_with_a_note() {
    let answer = json!({ "findings": [
        7,
        { "fields": { "name": "Bob" }, "quote": "Bob" },
        { "entity_type": "spaceship", "fields": { "name": "Bob" }, "quote": "Bob" },
        { "entity_type": "person", "quote": "Bob" },
        { "entity_type": "person", "fields": {}, "quote": "Bob" },
        { "entity_type": "person", "fields": [{ "name": "name" }], "quote": "Bob" },
        { "entity_type": "person", "fields": { "name": "Bob" } },
        { "entity_type": " Person", "quote": "Bob", "fields": {
            "name": "Bob", "nested": { "a": 1 }, "mixed": ["a", 1], "": "x", "empty": " ",
            "nothing": null, "none": [],
        } },
    ] });
    let (found, notes) = read("Bob", &answer.to_string());
    assert_eq!((found.len(), found[0].fields.len()), (1, 1), "{found:?}");
    assert_eq!(notes.len(), 7 + 3, "{notes:#?}");
    assert!(notes.iter().any(|note| note.contains("`spaceship`")));
}

#[test]
fn fences_and_thoughts_around_an_answer_are_skipped() {
    let answer = json!({ "findings": [person("Bob")] }).to_string();
    for around in [
        format!("```json\n{answer}\n```"),
        format!("```\n{answer}```"),
        format!("<think>Is Bob a person?</think>\n\n{answer}"),
        format!("  {answer}\n"),
    ] {
        assert_eq!(spans("Bob", &around), [(0, 3)], "{around}");
    }
}

#[test]
fn findings_and_notes_are_limited() {
    let answer = json!({ "findings": vec![person("Bob"); 1_500] });
    let (found, notes) = read("Bob", &answer.to_string());
    assert_eq!((found.len(), notes.len()), (1_000, 1));
    let answer = json!({ "findings": vec![person("Zoe"); 1_500] });
    let (found, notes) = read("Bob", &answer.to_string());
    assert_eq!((found.len(), notes.len()), (0, 101));
}

#[test]
fn no_stored_bytes_make_a_replay_panic() {
    let endpoint = Endpoint::start(vec![Reply::json(200, &json!({}))]);
    let interpreter = ModelInterpreter::new(model(Protocol::OpenAi, &endpoint));
    let text = "Zoë met  Bob. Bob paid 12 €.";
    let material = Material { text, subject: Subject::Document, authored_at: None };
    let answer = json!({ "findings": [person("Zoë met Bob"), person("Bob"), person("Bob"),
        { "entity_type": "amount", "fields": [{ "name": "value", "value": 12 }], "span": [24, 30] }] });
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut whole = 0;
    for round in 0..20_000 {
        let kind = KINDS[round % KINDS.len()];
        let mut bytes = structured(kind, &answer).to_string().into_bytes();
        for _ in 0..next(4) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let found = interpreter.replay(&material, Some(&bytes)).unwrap_or_default();
        for finding in &found {
            assert!(text.get(finding.span.clone().unwrap()).is_some());
        }
        whole += usize::from(found.len() == 4);
    }
    assert!(whole > 1_000, "the unharmed ones are read: {whole}");
}
