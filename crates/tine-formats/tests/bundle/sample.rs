//! Sealed records of every kind, made by hand, and ways to spoil them.

use tine_core::hash::{OperationSeal, message_digest, operation_hash, root_hash, turn_hash};
use tine_core::json::{self, MAX_DEPTH, Object};
use tine_core::{
    Body, BranchId, ConversationId, Digest, Json, Limits, Metadata, Name, OperationHash, ProjectId,
    Role, Status, Timestamp, TurnHash, TurnId,
};
use tine_engine::BundleRecord;
use tine_formats::bundle::{BundleError, BundleReader, BundleWriter, Written, verify_bundle};
use tine_store::{
    Branch, Content, Conversation, ConversationKey, DerivedFrom, Detail, HiddenBy, Idempotency,
    Operation, Root, Turn, TurnLoc, TurnOrigin, Visibility,
};

pub const HEADER: &str = r#"{"format":"tine-bundle","version":1}"#;

pub fn turn_id(n: u8) -> TurnId {
    format!("01890a5d-ac96-774b-bcce-b302099a80{n:02x}").parse().unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn json(text: &str) -> Json {
    json::parse(text.as_bytes(), MAX_DEPTH).unwrap()
}

/// Texts and numbers that a careless writer gets wrong.
pub const AWKWARD: &str = r#"[
    {"type": "text", "text": "quote \" slash / backslash \\ nul \u0000 bell \u0007 del \u007f \b\t\n\f\r"},
    {"type": "text", "text": "née 東京の桜 👩‍👩‍👧‍👦 🇯🇵 \u2028\u2029 \ud83c\udf38 e\u0301"},
    {"type": "numbers", "of": [1.0, -0.0, 1e21, 1e20, 123e-20, 5e-324, 1e-7, 0.000001, 333333333.33333329,
        1.7976931348623157e308, 9007199254740991, 9007199254740993, 18446744073709551615,
        -9223372036854775808, 123456789012345678901234567890]},
    {"type": "keys", "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7, "": 8},
    {"type": "deep", "of": [[[[{"a": [null, true, false]}]]]]}
]"#;

/// Makes a conversation's turns and operations, each sealed with its hash.
pub struct Maker {
    pub records: Vec<BundleRecord>,
    id: ConversationId,
    hashes: Vec<(TurnId, TurnHash)>,
    previous: Option<OperationHash>,
    seq: u64,
}

impl Maker {
    pub fn begin(id: &str, root: Option<Root>, derived_from: Option<DerivedFrom>) -> Self {
        let id = ConversationId::new(id, &Limits::default()).unwrap();
        let sealed = root.clone().unwrap_or(Root { system_prompt: None, config: Json::Null });
        let archived = root.is_none();
        let record = BundleRecord::Conversation(Conversation {
            key: ConversationKey::NONE,
            project: ProjectId::default(),
            id: id.clone(),
            root_hash: root_hash(sealed.system_prompt.as_deref(), &sealed.config),
            visibility: if archived { Visibility::Archived } else { Visibility::Shown },
            title: root.as_ref().map(|_| "Tokyo 🌸".to_owned()),
            root,
            metadata: json(r#"{"team": ["a", {"b": 1.5}]}"#),
            created_at: time("2024-01-15T10:29:59.007Z"),
            derived_from,
        });
        Maker { records: vec![record], id, hashes: Vec::new(), previous: None, seq: 0 }
    }

    pub fn turn(&mut self, n: u8, parent: Option<u8>, role: Role, content: Json) -> &mut Self {
        let parent = parent.map(turn_id);
        let above = parent.map(|id| {
            self.hashes.iter().find(|(known, _)| *known == id).expect("parents come first").1
        });
        let body = Body::from_content(content, role, &Limits::default()).unwrap();
        let tool_call_id = (role == Role::Tool).then(|| "call \u{1f527} 1".to_owned());
        let created_at = time(&format!("2024-01-15T10:30:{:02}Z", u32::from(n) * 5));
        let hash = turn_hash(above.as_ref(), role, &body, tool_call_id.as_deref(), created_at);
        self.hashes.push((turn_id(n), hash));
        let turn = Turn {
            loc: TurnLoc::NONE,
            depth: 0,
            id: turn_id(n),
            hash,
            role,
            content: Content::Kept(body),
            tool_call_id,
            created_at,
            status: Status::Complete,
            metadata: Metadata::default(),
            operation: 2,
            origin: TurnOrigin::default(),
        };
        self.records.push(BundleRecord::Turn { parent, turn });
        self
    }

    /// Changes what is not hashed of the last turn.
    pub fn also(&mut self, change: impl FnOnce(&mut Status, &mut Metadata, &mut TurnOrigin)) {
        let Some(BundleRecord::Turn { turn, .. }) = self.records.last_mut() else {
            panic!("the last record is a turn");
        };
        change(&mut turn.status, &mut turn.metadata, &mut turn.origin);
    }

    /// Erases the last turn.
    pub fn purge(&mut self) {
        if let Some(BundleRecord::Turn { turn, .. }) = self.records.last_mut()
            && let Content::Kept(body) = &turn.content
        {
            let digest = message_digest(turn.role, body, turn.tool_call_id.as_deref());
            turn.content = Content::Purged(digest);
        }
    }

    pub fn operation(&mut self, kind: &str, detail: &str, purged: bool) -> &mut Self {
        self.seq += 1;
        let text = json(detail).to_canonical();
        let at = time(&format!("2024-01-15T10:31:{:02}.5Z", self.seq));
        let detail = Detail::Kept(text);
        let hash = operation_hash(&OperationSeal {
            conversation_id: self.id.as_str(),
            seq: self.seq,
            previous: self.previous.as_ref(),
            kind,
            actor: "Ana \"A\"",
            at,
            detail: &detail.digest(),
        });
        self.previous = Some(hash);
        let key = format!("conversation-trip-{}", self.seq);
        self.records.push(BundleRecord::Operation(Operation {
            conversation: ConversationKey::NONE,
            seq: self.seq,
            kind: kind.to_owned(),
            actor: "Ana \"A\"".to_owned(),
            at,
            detail: if purged { Detail::Purged(detail.digest()) } else { detail },
            hash,
            undone: self.seq == 3,
            idempotency: (self.seq == 2).then(|| Idempotency {
                key,
                fingerprint: Digest::of(b"append"),
                answer: r#"{"turns":[]}"#.to_owned(),
            }),
        }));
        self
    }
}

/// Every kind of record and every optional key, in two conversations.
pub fn records() -> Vec<BundleRecord> {
    let prompt = Some("You plan trips.\n🌏".to_owned());
    let config = json(r#"{"temperature": 1.0, "seed": 18446744073709551615}"#);
    let mut trip = Maker::begin("trip", Some(Root { system_prompt: prompt, config }), None);
    trip.turn(0, None, Role::User, "What's the best time to visit Tokyo?".into())
        .turn(1, Some(0), Role::Assistant, "Late March 🌸".into())
        .turn(2, Some(0), Role::Assistant, json(AWKWARD));
    trip.also(|status, metadata, origin| {
        *status = Status::Partial;
        origin.edited_from = Some(turn_id(1));
        *metadata = Metadata::from_json(
            &json(
                r#"{"title": "t", "auto_title": "a", "tags": ["b", "a"],
                    "source_info": {"usage": 9007199254740993}, "custom_data": [0.1]}"#,
            ),
            &Limits::default(),
        )
        .unwrap();
    });
    let call = r#"[{"type": "tool-use", "id": "call 🔧 1", "name": "look", "parameters": {}}]"#;
    trip.turn(3, Some(1), Role::Assistant, json(call)).turn(4, Some(3), Role::Tool, "".into());
    trip.turn(5, Some(4), Role::User, "gone".into()).purge();
    trip.turn(6, Some(5), Role::System, "Left and right".into());
    trip.also(|_, _, origin| origin.derived_from = Some(turn_id(0x77)));
    trip.turn(7, Some(5), Role::System, "Left".into());
    trip.also(|_, _, origin| origin.part_of = Some(turn_id(6)));
    trip.turn(8, Some(7), Role::System, " and right".into());
    trip.also(|_, _, origin| origin.part_of = Some(turn_id(6)));
    let (whole, left, right) = (turn_id(6), turn_id(7), turn_id(8));
    trip.records.push(BundleRecord::Split { whole, left, right, operation: 3 });
    for (n, by) in [(2, HiddenBy::Cascade), (3, HiddenBy::Reparent), (8, HiddenBy::Undo)] {
        trip.records.push(BundleRecord::Hidden { root: turn_id(n), by, operation: 4 });
    }
    for (n, name, tip) in [(1, "alt/2", None), (2, "main", Some(turn_id(8)))] {
        let branch = Branch {
            conversation: ConversationKey::NONE,
            id: BranchId::from_bytes([n; 16]),
            name: Name::new(name, &Limits::default()).unwrap(),
            tip: None,
            forked_from: tip.map(|_| turn_id(1)),
            created_at: time("2024-01-15T10:30:00.25Z"),
            version: u64::from(n) + 9_007_199_254_740_993,
        };
        trip.records.push(BundleRecord::Branch { branch, tip });
    }
    for name in ["best answer", "桜"] {
        trip.records.push(BundleRecord::Bookmark {
            name: Name::new(name, &Limits::default()).unwrap(),
            turn: turn_id(1),
            created_at: time("2024-01-15T10:30:07Z"),
        });
    }
    trip.operation("create", r#"{"b": 1.50, "a": [1e21, 9007199254740993]}"#, false)
        .operation("append", r#"{"turns": ["🌸", "\u0001"]}"#, false)
        .operation("split", "null", true)
        .operation("delete", r#"{"turn": 2}"#, false);
    let trip_id = ConversationId::new("trip", &Limits::default()).unwrap();
    let from = DerivedFrom { conversation: trip_id, turn: Some(turn_id(1)) };
    let mut erased = Maker::begin("erased \u{1f5d1}", None, Some(from));
    erased.operation("create", "{}", true);
    trip.records.into_iter().chain(erased.records).collect()
}

pub fn write(records: &[BundleRecord]) -> Result<(Vec<u8>, Written), BundleError> {
    let mut out = Vec::new();
    let mut writer = BundleWriter::new(&mut out, &Limits::default())?;
    for record in records {
        writer.record(record)?;
    }
    let written = writer.finish()?;
    Ok((out, written))
}

pub fn read(bytes: &[u8]) -> Result<Vec<BundleRecord>, BundleError> {
    let mut input = bytes;
    let mut reader = BundleReader::new(&mut input, &Limits::default())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}

pub fn verify(bytes: &[u8]) -> Result<Written, BundleError> {
    let mut input = bytes;
    verify_bundle(&mut input, &Limits::default())
}

/// The sample as a bundle.
pub fn bundle() -> Vec<u8> {
    write(&records()).unwrap().0
}

/// The lines of a bundle without its end line.
pub fn lines(bundle: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bundle).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.pop();
    lines
}

/// Adds an end line that fits, as somebody would who wants to hide a change.
pub fn seal(lines: &[String]) -> Vec<u8> {
    let mut text = lines.join("\n") + "\n";
    let kinds: Vec<Option<String>> = lines
        .iter()
        .map(|line| {
            let json = json::parse(line.as_bytes(), MAX_DEPTH).ok()?;
            json.get("record").and_then(Json::as_str).map(str::to_owned)
        })
        .collect();
    let count = |kind: &str| kinds.iter().filter(|found| found.as_deref() == Some(kind)).count();
    let (conversations, turns) = (count("conversation"), count("turn"));
    let (operations, sha256) = (count("operation"), Digest::of(text.as_bytes()).to_hex());
    text.push_str(&format!(
        r#"{{"conversations":{conversations},"operations":{operations},"record":"end","sha256":"{sha256}","turns":{turns}}}"#
    ));
    text.push('\n');
    text.into_bytes()
}

/// The place of the first line that holds a text.
pub fn place(lines: &[String], holding: &str) -> usize {
    lines.iter().position(|line| line.contains(holding)).unwrap_or_else(|| {
        panic!("no line holds {holding}");
    })
}

/// Changes the members of one line and writes it canonically.
pub fn change(line: &mut String, change: impl FnOnce(&mut Object)) {
    let Json::Object(mut object) = json(line) else {
        panic!("every line is an object");
    };
    change(&mut object);
    *line = Json::Object(object).to_canonical();
}
