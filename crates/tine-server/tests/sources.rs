//! Bytes in and out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use tine_core::{Digest, Limits};
use tine_server::Options;

use crate::harness::{Answer, Served, encoded};

const SOURCES: &str = "/api/v1/sources";

fn raw(served: &Served, kind: &str, query: &str, bytes: &[u8]) -> Answer {
    served.and("content-type", kind).send("POST", &format!("{SOURCES}{query}"), Some(bytes))
}

fn content(id: &str) -> String {
    format!("{SOURCES}/{id}/content")
}

#[test]
fn sources_are_stored_once_from_base64_text_or_raw_bytes() {
    let served = Served::new();
    let body = json!({"file_content": "aGVsbG8=", "mime_type": "text/plain",
        "original_filename": "a.txt", "interpret": "none"});
    let made = served.post(SOURCES, body).expect(201).json();
    assert_eq!(made["outcome"], "created");
    assert_eq!(made["source"]["size_bytes"], 5);
    assert_eq!(made["source"]["original_filename"], "a.txt");
    assert_eq!(made["source"]["content_hash"], Digest::of(b"hello").to_string());
    assert_eq!(made.get("interpretation"), None);
    let text = json!({"text": "hello", "mime_type": "text/plain", "interpret": "none"});
    let again = served.post(SOURCES, text).expect(200).json();
    assert_eq!(again["source_id"], made["source_id"]);
    let as_it_is = raw(&served, "text/plain; charset=utf-8", "?interpret=none", b"hello");
    let as_it_is = as_it_is.expect(200).json();
    assert_eq!(as_it_is["source_id"], made["source_id"]);
    assert!(as_it_is["warnings"][0].as_str().unwrap().contains("stored before"), "{as_it_is}");
    let other = raw(&served, "application/pdf", "?original_filename=%C3%A9.pdf", b"%PDF\0\xff");
    let other = other.expect(201).json();
    assert_eq!(other["source"]["mime_type"], "application/pdf");
    assert_eq!(other["source"]["original_filename"], "é.pdf");
    let octets = "?mime_type=application/json&interpret=none";
    let octets = raw(&served, "application/octet-stream", octets, b"{}").expect(201).json();
    assert_eq!(octets["source"]["mime_type"], "application/json");
    let listed = served.walk(&format!("{SOURCES}?limit=1"), "items");
    assert_eq!(listed.len(), 3);
    let id = made["source_id"].as_str().unwrap();
    let shown = served.get(&format!("{SOURCES}/{id}")).expect(200).json();
    assert_eq!(shown["source_id"], made["source_id"]);
    assert_eq!(shown["project_id"], "default");
}

#[test]
fn an_envelope_is_placed_as_a_turn() {
    let served = Served::new();
    let kind = "application/x-neotoma-conversation-turn";
    let body = br#"{"content": "I met Ann Lee.", "conversation_id": "chat", "turn_id": "t1"}"#;
    let made = raw(&served, kind, "?interpret=wait", body).expect(201).json();
    assert_eq!(made["turn"]["conversation_id"], "chat");
    assert_eq!(made["turn"].get("turn"), None);
    assert_eq!(made["interpretation"]["status"], "completed", "{made}");
    assert_eq!(made["source"]["turn_id"], made["turn"]["turn_id"]);
    let with_turn = raw(&served, kind, "?interpret=none&return_turn=true", body).expect(200).json();
    assert_eq!(with_turn["turn"]["turn"]["content"][0]["text"], "I met Ann Lee.");
    raw(&served, kind, "", b"no envelope").refused(400, "invalid");
}

#[test]
fn an_invalid_source_is_refused_and_nothing_is_stored() {
    let served = Served::with_limits(Limits { source_bytes: 1_000, ..Limits::default() });
    let refused = |body| served.post(SOURCES, body).refused(400, "invalid");
    refused(json!({"mime_type": "text/plain"}));
    refused(json!({"text": "a"}));
    refused(json!({"text": "a", "file_content": "YQ==", "mime_type": "text/plain"}));
    refused(json!({"file_content": "a b", "mime_type": "text/plain"}));
    refused(json!({"text": "a", "mime_type": ""}));
    refused(json!({"text": "a", "mime_type": "text/plain", "name": "a.txt"}));
    refused(json!({"text": "a", "mime_type": "text/plain", "interpreter": "nobody"}));
    let inside = format!("{SOURCES}?original_filename=a");
    let whole = json!({"text": "a", "mime_type": "text/plain"});
    served.post(&inside, whole).refused(400, "invalid");
    raw(&served, "text/plain", "?interpret=perhaps", b"a").refused(400, "invalid");
    raw(&served, "text/plain", "?unknown=1", b"a").refused(400, "invalid");
    raw(&served, "text/plain", "", &[b'a'; 1_001]).refused(413, "too_large");
    let large = json!({"text": "a".repeat(1_001), "mime_type": "text/plain"});
    served.post(SOURCES, large).refused(413, "too_large");
    served.send("POST", SOURCES, Some(b"a")).refused(415, "invalid");
    let packed = served.and("content-encoding", "gzip").and("content-type", "text/plain");
    packed.send("POST", SOURCES, Some(b"a")).refused(415, "invalid");
    served.get(&format!("{SOURCES}/nothing")).refused(400, "invalid");
    let none = "src_00000000000000000000000000000000";
    served.get(&format!("{SOURCES}/{none}")).refused(404, "not_found");
    served.get(&content(none)).refused(404, "not_found");
    served.get(&format!("{SOURCES}?cursor=nonsense")).refused(400, "invalid");
    assert_eq!(served.get(SOURCES).expect(200).json()["items"], json!([]));
    // Without Content-Length, the bytes are counted as they arrive.
    let mut stream = served.connect();
    let head = format!(
        "POST {SOURCES} HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the head");
    let piece = [b"1f4\r\n".as_slice(), &[b'x'; 500], b"\r\n"].concat();
    for _ in 0..3 {
        stream.write_all(&piece).expect("a piece");
    }
    stream.write_all(b"0\r\n\r\n").expect("the end");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[test]
fn an_upload_that_stalls_times_out() {
    let options = Options { body_timeout: Duration::from_millis(200), ..Options::default() };
    let served = Served::with(options);
    let mut stream = served.connect();
    let head = format!(
        "POST {SOURCES} HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc"
    );
    stream.write_all(head.as_bytes()).expect("the head");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert_eq!(served.get(SOURCES).expect(200).json()["items"], json!([]));
}

#[test]
fn concurrent_uploads_are_limited() {
    let served = Served::with(Options { transfers: 1, ..Options::default() });
    let mut held = served.connect();
    let head = format!(
        "POST {SOURCES} HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc"
    );
    held.write_all(head.as_bytes()).expect("half a source");
    served.await_in_work(1);
    raw(&served, "text/plain", "", b"a").refused(503, "busy");
    held.write_all(b"defghij").expect("the rest");
    let mut answer = [0; 12];
    held.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 201");
}

#[test]
fn a_range_request_returns_part_of_the_bytes() {
    let served = Served::new();
    let bytes: Vec<u8> = (0..700_000_u32).flat_map(|n| (n % 251).to_le_bytes()).collect();
    let made = raw(&served, "application/octet-stream", "?interpret=none", &bytes).expect(201);
    let path = content(&made.text("/source_id"));
    let tag = format!("\"{}\"", Digest::of(&bytes));
    let whole = served.get(&path).expect(200);
    assert!(whole.body == bytes, "every byte comes back");
    assert_eq!(whole.header("etag"), Some(tag.as_str()));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let size = bytes.len();
    for (from, to) in [(0, 1), (0, 262_144), (262_143, 262_145), (5, size), (size - 1, size)] {
        let part = served.and("range", &format!("bytes={from}-{}", to - 1)).get(&path).expect(206);
        assert!(part.body == bytes[from..to], "{from}..{to}");
        let told = format!("bytes {from}-{}/{size}", to - 1);
        assert_eq!(part.header("content-range"), Some(told.as_str()));
        assert_eq!(part.header("content-length"), Some((to - from).to_string().as_str()));
    }
    let tail = served.and("range", "bytes=-3").get(&path).expect(206);
    assert!(tail.body == bytes[size - 3..]);
    let behind = served.and("range", &format!("bytes={size}-")).get(&path);
    behind.refused(416, "invalid");
    assert_eq!(behind.header("content-range"), Some(format!("bytes */{size}").as_str()));
    assert_eq!(served.and("range", "bytes=0-1,4-5").get(&path).expect(200).body.len(), size);
    let known = served.and("if-none-match", &tag).get(&path).expect(304);
    assert!(known.body.is_empty());
    let changed = served.and("range", "bytes=0-0").and("if-range", "\"other\"").get(&path);
    assert_eq!(changed.expect(200).body.len(), size);
    // Who takes compressed answers gets these bytes even so.
    let packed = served.and("accept-encoding", "gzip").get(&path).expect(200);
    assert_eq!(packed.header("content-encoding"), None);
    assert!(packed.body == bytes);
    let empty = raw(&served, "text/plain", "?interpret=none", b"").expect(201);
    let empty = content(&empty.text("/source_id"));
    assert_eq!(served.get(&empty).expect(200).body, b"");
    served.and("range", "bytes=0-").get(&empty).refused(416, "invalid");
}

#[test]
fn a_stored_web_page_runs_no_script() {
    let served = Served::new();
    let page = b"<script>alert(document.domain)</script>";
    let name = encoded("a\"b\r\nX: y.html");
    let query = format!("?interpret=none&original_filename={}", encoded("evil\" name é.html"));
    let made = raw(&served, "text/html", &query, page).expect(201);
    let shown = served.get(&content(&made.text("/source_id"))).expect(200);
    assert_eq!(shown.body, page);
    assert_eq!(shown.header("content-type"), Some("text/html"));
    assert_eq!(shown.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(shown.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    assert_eq!(shown.header("cross-origin-resource-policy"), Some("same-origin"));
    let saved = shown.header("content-disposition").expect("it is to be saved");
    assert_eq!(saved, "attachment; filename*=UTF-8''evil%22%20name%20%C3%A9.html");
    raw(&served, "text/html", &format!("?original_filename={name}"), b"x").refused(400, "invalid");
    // A media type that is not a valid header value is sent as bytes.
    let odd = format!("?interpret=none&mime_type={}", encoded("tëxt/html"));
    let made = raw(&served, "application/octet-stream", &odd, b"y").expect(201);
    let shown = served.get(&content(&made.text("/source_id"))).expect(200);
    assert!(shown.header("content-disposition").is_some());
    let part = served.and("range", "bytes=0-0").get(&content(&made.text("/source_id")));
    assert!(part.expect(206).header("content-security-policy").is_some());
}

#[test]
fn a_purged_source_has_no_bytes() {
    let served = Served::new();
    let made = raw(&served, "text/plain", "?interpret=wait", b"Ann Lee lives in Rome.");
    let id = made.expect(201).text("/source_id");
    let at = format!("{SOURCES}/{id}/purge");
    let plan = served.post(&at, json!({})).expect(200).json();
    assert!(plan["observations"].as_u64() > Some(0), "{plan}");
    assert_eq!(served.get(&content(&id)).expect(200).body, b"Ann Lee lives in Rome.");
    let done = served.post(&at, json!({"confirm": plan["confirm"]})).expect(200).json();
    assert_eq!(done["sources"], json!([id]));
    served.get(&content(&id)).refused(422, "unsupported");
    assert_eq!(served.get(&format!("{SOURCES}/{id}")).expect(200).json()["purged"], true);
    raw(&served, "text/plain", "", b"Ann Lee lives in Rome.").refused(422, "unsupported");
    let none = "src_00000000000000000000000000000000";
    served.post(&format!("{SOURCES}/{none}/purge"), json!({})).refused(404, "not_found");
}

/// Memory that this process holds now, and the most it ever held, in bytes.
#[cfg(target_os = "linux")]
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a state");
    let found = status.lines().find_map(|it| it.strip_prefix(line)).expect("a line");
    let number = found.trim().trim_end_matches(" kB").trim();
    number.parse::<u64>().expect("a number") * 1024
}

/// Sends so many bytes that are made on the way, and answers their digest and the source's id.
#[cfg(target_os = "linux")]
fn send_generated(stream: &mut TcpStream, size: usize) -> (Digest, String) {
    let head = format!(
        "POST {SOURCES}?interpret=none HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the head");
    let (mut hash, mut state, mut left) = (tine_core::hash::Hasher::default(), 1_u64, size);
    let mut piece = vec![0_u8; 1 << 16];
    while left > 0 {
        for byte in &mut piece {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        let count = left.min(piece.len());
        hash.update(&piece[..count]);
        stream.write_all(&piece[..count]).expect("a piece");
        left -= count;
    }
    let mut reader = BufReader::new(stream);
    let length = head_of(&mut reader, "HTTP/1.1 201");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("an answer");
    let told: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    (hash.finish(), told["source_id"].as_str().expect("an id").to_owned())
}

/// Reads a head and answers the length of the body.
#[cfg(target_os = "linux")]
fn head_of(reader: &mut impl BufRead, status: &str) -> usize {
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).expect("a status");
    assert!(line.starts_with(status), "{line}");
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line).expect("a line");
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().expect("a length");
        }
    }
    length
}

/// Runs in a process of its own, so that no other memory is counted.
#[test]
#[cfg(target_os = "linux")]
fn sixty_four_mebibytes_alone() {
    if std::env::var_os("TINE_TEST_ALONE").is_none() {
        return;
    }
    const SIZE: usize = 64 << 20;
    let served = Served::new();
    send_generated(&mut served.connect(), 1 << 20);
    let before = memory("VmRSS:");
    let (sent, id) = send_generated(&mut served.connect(), SIZE);
    let mut stream = served.connect();
    let head = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", content(&id));
    stream.write_all(head.as_bytes()).expect("the head");
    let mut reader = BufReader::new(stream);
    assert_eq!(head_of(&mut reader, "HTTP/1.1 200"), SIZE);
    let (mut hash, mut piece, mut left) =
        (tine_core::hash::Hasher::default(), vec![0; 1 << 16], SIZE);
    while left > 0 {
        let count = reader.read(&mut piece).expect("a piece");
        assert!(count > 0, "it ends too early");
        hash.update(&piece[..count]);
        left -= count;
    }
    assert_eq!(hash.finish(), sent);
    let grown = memory("VmHWM:").saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
    println!("grown by {grown}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_source_of_sixty_four_mebibytes_goes_in_and_out_in_little_memory() {
    let alone = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "sources::sixty_four_mebibytes_alone", "--nocapture"])
        .env("TINE_TEST_ALONE", "1")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&alone.stdout);
    let told = String::from_utf8_lossy(&alone.stderr);
    assert!(alone.status.success() && text.contains("grown by"), "{text}\n{told}");
}
