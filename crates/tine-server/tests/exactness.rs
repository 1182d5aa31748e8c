//! What comes back is what was sent, to the digit.

use std::io::{Read, Write};

use serde_json::json;

use crate::harness::Served;

#[test]
fn integers_of_any_length_come_back_digit_for_digit() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    for digits in [
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "1234567890123456789012345678901234567890",
    ] {
        let body = format!(
            r#"{{"role":"user","content":[{{"type":"data","n":{digits}}}],"metadata":{{"custom_data":{{"n":{digits}}}}}}}"#
        );
        let made = served.post_text("/api/v1/conversations/c/turns", &body).expect(201);
        let turn = made.text("/turns/0/turn_id");
        for answer in [
            made,
            served.get(&format!("/api/v1/turns/{turn}")).expect(200),
            served.get(&format!("/api/v1/turns/{turn}/path?last=1")).expect(200),
            served.get(&format!("/api/v1/turns/{turn}/path?window=1")).expect(200),
            served.get("/api/v1/export").expect(200),
        ] {
            let found = answer.as_text().matches(&format!("\"n\":{digits}")).count();
            assert!(found >= 2, "{digits}: {}", answer.as_text());
        }
    }
    let body = r#"{"conversation_id":"d","config":{"n":18446744073709551615}}"#;
    let made = served.post_text("/api/v1/conversations", body).expect(201);
    assert!(made.as_text().contains("18446744073709551615"));
}

#[test]
fn a_duplicate_key_is_refused_at_any_depth() {
    let served = Served::new();
    served.trip();
    let twice = r#"{"a":1,"a":2}"#;
    for (path, body) in [
        ("/api/v1/conversations", format!(r#"{{"config":{twice}}}"#)),
        ("/api/v1/conversations", format!(r#"{{"metadata":{twice}}}"#)),
        ("/api/v1/conversations", r#"{"title":"a","title":"b"}"#.to_owned()),
        (
            "/api/v1/conversations/trip/turns",
            format!(
                r#"{{"messages":[{{"role":"user","content":"x","metadata":{{"custom_data":{twice}}}}}]}}"#
            ),
        ),
        (
            "/api/v1/conversations/trip/turns",
            r#"{"messages":[{"role":"user","role":"user","content":"x"}]}"#.to_owned(),
        ),
        (
            "/api/v1/conversations/trip/turns",
            format!(r#"{{"role":"user","content":[{{"type":"x","v":{twice}}}]}}"#),
        ),
    ] {
        served.post_text(path, &body).refused(400, "invalid");
    }
    let import = served.and("content-type", "application/x-ndjson");
    import
        .send("POST", "/api/v1/import", Some(format!("{twice}\n").as_bytes()))
        .refused(400, "invalid");
}

#[test]
fn text_of_every_script_and_control_characters_are_preserved() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    for text in
        ["日本語 🌸👩‍👩‍👧", "\u{0}\u{1}\u{1f}\"\\/\u{7f}", "\u{feff}x", "e\u{301} é", "a\r\nb\tc"]
    {
        let made = served.say("c", text).expect(201);
        assert_eq!(made.text("/turns/0/content/0/text"), text);
    }
}

/// The head and the body of an answer as they come over the wire: a client library would undo
/// what is looked at here.
fn on_the_wire(served: &Served, path: &str, encoding: &str) -> (String, Vec<u8>) {
    let mut stream = served.connect();
    let encoding = match encoding {
        "" => String::new(),
        encoding => format!("Accept-Encoding: {encoding}\r\n"),
    };
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{encoding}\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    let body = answer.split_off(end + 4);
    (String::from_utf8_lossy(&answer).to_ascii_lowercase(), body)
}

#[test]
fn answers_are_compressed_as_the_client_accepts() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    for number in 0..50 {
        served.say("c", &format!("message {number} {}", "words ".repeat(50))).expect(201);
    }
    let ask = |encoding: &str| on_the_wire(&served, "/api/v1/conversations/c/turns", encoding);
    let (head, plain) = ask("");
    assert!(head.contains(" 200 ") && !head.contains("content-encoding"), "{head}");
    let (head, gzip) = ask("gzip");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut text).expect("gzip");
    assert!(text == plain && gzip.len() * 2 < plain.len());
    let (head, zstd) = ask("zstd, gzip;q=0.5");
    assert!(head.contains("content-encoding: zstd") && head.contains("vary: "), "{head}");
    assert!(zstd::decode_all(&zstd[..]).expect("zstd") == plain);
    let (head, _) = ask("br, identity");
    assert!(!head.contains("content-encoding"), "{head}");
}
