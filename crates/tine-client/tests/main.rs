//! What a client does when a server is busy, breaks off or is none, against servers that follow a
//! script. That answers are the engine's own is shown by the command's suite, which runs over
//! servers too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use tine_api::{Call, ConversationPatch, FeedFilter, Operations};
use tine_client::Client;
use tine_core::{ConversationId, ErrorKind, FeedPosition, Limits};

/// A server that gives one answer for each connection, and what it was asked.
struct Script {
    url: String,
    asked: JoinHandle<Vec<String>>,
}

impl Script {
    fn of(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it has one"));
        let asked = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (stream, _) = listener.accept().expect("a connection");
                let mut reader = BufReader::new(&stream);
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("a line of the head");
                    if line.trim().is_empty() {
                        break;
                    }
                    if let Some(size) = line.to_lowercase().strip_prefix("content-length:") {
                        length = size.trim().parse().expect("a length");
                    }
                    head.push_str(&line);
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("the body");
                head.push_str(&String::from_utf8_lossy(&body));
                asked.push(head);
                (&stream).write_all(answer.as_bytes()).expect("the answer is taken");
            }
            asked
        });
        Script { url, asked }
    }

    fn client(&self) -> Client {
        Client::new(&self.url).expect("an address")
    }

    fn asked(self) -> Vec<String> {
        self.asked.join().expect("the script was followed")
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

fn busy() -> String {
    let body =
        r#"{"type":"/docs#busy","title":"busy","status":503,"detail":"try again","code":"busy"}"#;
    answer("503 Service Unavailable", "retry-after: 0\r\n", body)
}

const CONVERSATION: &str = r#"{"project_id":"default","conversation_id":"trip","root_hash":"sha256:42197dc662664ed09bb2d842197dc662664ed09bb2d842197dc662664ed09bb2","system_prompt":null,"config":null,"title":null,"metadata":{},"created_at":"2024-01-15T10:30:00Z","changed_at":"2024-01-15T10:30:00Z","active_at":"2024-01-15T10:30:00Z","archived":false}"#;

fn conversation() -> String {
    answer("200 OK", "", CONVERSATION)
}

fn trip() -> ConversationId {
    ConversationId::new("trip", &Limits::default()).expect("an id")
}

fn hide() -> ConversationPatch {
    ConversationPatch { archived: Some(true), ..ConversationPatch::default() }
}

#[test]
fn a_read_is_retried_while_the_server_is_busy() {
    let script = Script::of(vec![busy(), String::new(), conversation()]);
    let found = script.client().conversation(&Call::by("x"), &trip()).expect("the third time");
    assert_eq!(found.id, trip());
    assert_eq!(script.asked().len(), 3);
}

#[test]
fn only_changes_with_a_key_are_retried() {
    let script = Script::of(vec![busy()]);
    let call = Call::by("x");
    let refused = script.client().patch_conversation(&call, &trip(), hide()).expect_err("once");
    assert_eq!((refused.kind(), refused.to_string().as_str()), (ErrorKind::Busy, "try again"));
    assert_eq!(script.asked().len(), 1);

    let script = Script::of(vec![String::new()]);
    let broken = script.client().patch_conversation(&call, &trip(), hide()).expect_err("once");
    assert_eq!(broken.kind(), ErrorKind::Busy);
    assert!(broken.to_string().contains("check whether the change was made"), "{broken}");
    assert_eq!(script.asked().len(), 1);

    let script = Script::of(vec![busy(), String::new(), conversation()]);
    let keyed = call.with_key(" k ");
    script.client().patch_conversation(&keyed, &trip(), hide()).expect("the third time");
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|it| it.contains(r#""idempotency_key":" k ""#)), "{asked:?}");
}

#[test]
fn a_delta_is_requested_again_while_the_server_is_busy() {
    let call = Call::by("me");
    let lines = "{\"kind\":\"delta\"}\n{\"kind\":\"end\"}\n";
    let whole = answer("200 OK", "content-type: application/x-ndjson\r\n", lines);
    let cut = whole[..whole.len() - 20].to_owned();
    let read = |input: &mut dyn Read| {
        let mut text = String::new();
        let read = input.read_to_string(&mut text);
        read.map_err(|error| tine_api::Error::new(ErrorKind::Busy, error.to_string()))?;
        Ok(text)
    };
    let script = Script::of(vec![busy(), String::new(), cut, whole]);
    let came = script.client().read_delta(&call, &trip(), None, "log", read);
    assert_eq!(came.expect("it comes in the end"), lines);
    assert_eq!(script.asked().len(), 4);
    let script = Script::of(vec![busy(), busy(), busy(), busy(), busy()]);
    let refused = script.client().read_delta(&call, &trip(), None, "log", read);
    assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::Busy));
    assert_eq!(script.asked().len(), 5);
}

#[test]
fn retries_end_while_the_server_stays_busy() {
    let script = Script::of(vec![busy(), busy(), busy(), busy(), busy()]);
    let refused = script.client().conversation(&Call::by("x"), &trip()).expect_err("five times");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert_eq!(script.asked().len(), 5);
}

#[test]
fn an_error_keeps_its_message_and_its_details() {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let body = format!(
        r#"{{"type":"/docs#conflict","title":"conflict","status":409,"detail":"somebody was first","code":"conflict","actual_tip":{{"branch":"main","turn_id":"{id}","turn_hash":null}},"deleted_by":7}}"#
    );
    let script = Script::of(vec![answer("409 Conflict", "", &body)]);
    let refused = script.client().conversation(&Call::by("x"), &trip()).expect_err("refused");
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (ErrorKind::Conflict, "somebody was first")
    );
    let tip = refused.details.actual_tip.as_ref().expect("the tip of the branch");
    assert_eq!(tip.turn.map(|turn| turn.to_string()).as_deref(), Some(id));
    assert_eq!(refused.details.deleted_by, Some(7));
}

#[test]
fn an_answer_of_another_server_is_not_accepted() {
    let page = answer("404 Not Found", "content-type: text/html\r\n", "<h1>nginx</h1>");
    let refused = Script::of(vec![page]).client().conversation(&Call::by("x"), &trip());
    let refused = refused.expect_err("no conversation");
    assert_eq!(refused.kind(), ErrorKind::Internal);
    assert!(refused.to_string().contains("without an error of Tine"), "{refused}");
    let other = Script::of(vec![answer("200 OK", "", "{\"hello\":1}")]);
    let refused = other.client().conversation(&Call::by("x"), &trip()).expect_err("unreadable");
    assert_eq!(refused.kind(), ErrorKind::Internal);
}

#[test]
fn a_token_is_sent_with_every_request_and_never_shown() {
    let script = Script::of(vec![conversation()]);
    let client = script.client().with_token("tine_secret\n").expect("a token");
    assert!(!format!("{client:?}").contains("secret"));
    client.conversation(&Call::by("Zoë"), &trip()).expect("an answer");
    let asked = script.asked().remove(0);
    assert!(asked.contains("authorization: Bearer tine_secret\r\n"), "{asked}");
    assert!(asked.contains("x-tine-actor: Zo\u{eb}\r\n"), "{asked}");
}

fn event(position: u64) -> String {
    let hash = format!("sha256:{}", "0".repeat(64));
    format!(
        "id: {position}\nevent: append\ndata: {{\"position\":{position},\"project_id\":\"default\",\
         \"conversation_id\":\"trip\",\"seq\":{position},\"kind\":\"append\",\"actor\":\"x\",\
         \"at\":\"2024-01-15T10:30:00Z\",\"summary\":\"\",\"detail\":{{\"n\":1.0}},\
         \"hash\":\"{hash}\",\"undone\":false}}\n\n"
    )
}

fn stream(events: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n{events}"
    )
}

#[test]
fn a_follower_resumes_after_a_disconnect_without_duplicates() {
    let whole = event(6);
    let script = Script::of(vec![
        stream(": following\nid: 4\n\n"),
        stream(&format!(": following\nid: 4\n\n{}{}", event(5), &whole[..whole.len() / 2])),
        busy(),
        // A server that forgot where it was: what was given before comes again.
        stream(&format!("{}: \n\n{}", event(5), event(6))),
        stream(&event(9)),
    ]);
    let client = script.client();
    let mut follower = client.follow(FeedFilter::default(), None).expect("it is there");
    let positions: Vec<u64> =
        (0..3).map(|_| follower.wait().expect("an operation").position.0).collect();
    assert_eq!(positions, [5, 6, 9]);
    let asked = script.asked();
    let behind = |asked: &String| {
        let line = asked.lines().find_map(|line| line.strip_prefix("last-event-id: "));
        line.map(str::to_owned)
    };
    let behind: Vec<_> = asked.iter().map(behind).collect();
    let known = |at: &str| Some(at.to_owned());
    assert_eq!(behind, [None, known("4"), known("5"), known("5"), known("6")]);
}

#[test]
fn a_follower_can_start_anywhere_and_keeps_details_byte_for_byte() {
    let script = Script::of(vec![stream(&event(1))]);
    let client = script.client();
    let after = Some(FeedPosition(0));
    let mut follower = client.follow(FeedFilter::default(), after).expect("it is there");
    let entry = follower.wait().expect("an operation");
    assert_eq!(entry.operation.detail.as_deref(), Some(r#"{"n":1.0}"#));
    assert!(script.asked()[0].contains("last-event-id: 0\r\n"));
}

#[test]
fn an_untrusted_server_is_not_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}", listener.local_addr().expect("it has one"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it is taken");
        // A retry would be waiting now.
        std::thread::sleep(std::time::Duration::from_millis(300));
        listener.set_nonblocking(true).expect("it can be asked");
        listener.accept().is_err()
    });
    let client = Client::new(&url).expect("this machine knows authorities");
    let refused = client.conversation(&Call::by("x"), &trip()).expect_err("no TLS there");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("is not trusted"), "{refused}");
    assert!(server.join().expect("it ends"), "it was asked again");
}
