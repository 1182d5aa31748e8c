//! Decodes lines into records. Strict: only the canonical spelling of a line is accepted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tine_core::facts::Slot;
use tine_core::hash::from_hex;
use tine_core::ids::check_key;
use tine_core::json::{self, MAX_DEPTH};
use tine_core::message::MessageError;
use tine_core::metadata::MetadataError;
use tine_core::{
    Body, ConversationId, Digest, Json, Limits, Metadata, Name, ProjectId, Role, SourceId, Status,
    TurnHash, TurnId,
};
use tine_engine::BundleRecord;
use tine_store::{
    Branch, Content, Conversation, ConversationKey, DerivedFrom, Detail, Family, HiddenBy,
    Idempotency, KEY_BYTES, Operation, PIECE_BYTES, Record, RecordKey, Root, Turn, TurnLoc,
    TurnOrigin, Visibility,
};

use super::error::Fault;
use super::fields::{Fields, name_fault, value_fault, wrong};
use super::{FORMAT, VERSION, Written, encode};

#[expect(clippy::large_enum_variant, reason = "one at a time, taken apart where it is made")]
pub(super) enum DecodedLine {
    /// A record, with the hash that it states for the record it links to.
    Record(BundleRecord, Option<Digest>),
    /// A turn that a delta refers to but does not contain.
    KnownTurn(TurnId, TurnHash),
    End(Written),
}

/// Checks the first line.
pub(super) fn header(line: &[u8]) -> Result<(), Fault> {
    let json = json::parse(line, MAX_DEPTH).map_err(|_| Fault::NotABundle)?;
    if json.get("format").and_then(Json::as_str) != Some(FORMAT) {
        return Err(Fault::NotABundle);
    }
    match json.get("version").and_then(Json::as_u64) {
        Some(VERSION) => {}
        Some(found) => return Err(Fault::Version { found }),
        None => return Err(Fault::NotABundle),
    }
    if encode::header().to_canonical().as_bytes() != line {
        return Err(Fault::NotCanonical);
    }
    Ok(())
}

/// Reads any line but the first.
pub(super) fn line(line: &[u8], limits: &Limits) -> Result<DecodedLine, Fault> {
    let json = json::parse(line, MAX_DEPTH)?;
    if json.to_canonical().as_bytes() != line {
        return Err(Fault::NotCanonical);
    }
    let Json::Object(object) = json else {
        return Err(Fault::NotAnObject { found: json.type_name() });
    };
    let kind = match object.get("record") {
        Some(Json::String(kind)) => kind.clone(),
        Some(other) => return Err(wrong("record", "a string", other)),
        None => return Err(Fault::MissingKey { record: "line", key: "record" }),
    };
    let (name, read): (&'static str, LineParser) = match kind.as_str() {
        "conversation" => ("conversation", conversation),
        "known" => ("known turn", known),
        "turn" => ("turn", turn),
        "split" => ("split", split),
        "hidden" => ("hidden", hidden),
        "branch" => ("branch", branch),
        "bookmark" => ("bookmark", bookmark),
        "operation" => ("operation", operation),
        "entry" => ("entry", entry),
        "piece" => ("piece", piece),
        "end" => ("end line", end),
        _ => return Err(Fault::UnknownRecord { record: kind }),
    };
    let mut fields = Fields::new(name, object);
    fields.any("record")?;
    let line = read(&mut fields, limits)?;
    fields.finish()?;
    Ok(line)
}

type LineParser = fn(&mut Fields, &Limits) -> Result<DecodedLine, Fault>;

fn conversation(fields: &mut Fields, limits: &Limits) -> Result<DecodedLine, Fault> {
    let record = BundleRecord::Conversation(Conversation {
        key: ConversationKey::NONE,
        project: fields.named("project_id", |id| ProjectId::new(id, limits))?,
        id: fields.named("conversation_id", |id| ConversationId::new(id, limits))?,
        root_hash: fields.parsed("root_hash")?,
        root: if fields.mark("purged")? {
            None
        } else {
            let system_prompt = fields.text_or_null("system_prompt")?;
            let config = match fields.any("config")? {
                config @ (Json::Null | Json::Object(_)) => config,
                other => return Err(wrong("config", "an object or null", &other)),
            };
            Some(Root { system_prompt, config })
        },
        title: fields.optional_text("title")?,
        metadata: fields.object("metadata")?,
        created_at: fields.parsed("created_at")?,
        derived_from: fields
            .optional_fields("derived_from")?
            .map(|from| derivation(from, limits))
            .transpose()?,
        visibility: match fields.flag("archived")? {
            true => Visibility::Archived,
            false => Visibility::Shown,
        },
    });
    Ok(DecodedLine::Record(record, None))
}

fn derivation(mut from: Fields, limits: &Limits) -> Result<DerivedFrom, Fault> {
    let conversation = from.named("conversation_id", |id| ConversationId::new(id, limits))?;
    let turn = from.parsed_or_null("turn_id")?;
    from.finish()?;
    Ok(DerivedFrom { conversation, turn })
}

fn known(fields: &mut Fields, _: &Limits) -> Result<DecodedLine, Fault> {
    Ok(DecodedLine::KnownTurn(fields.parsed("turn_id")?, fields.parsed("turn_hash")?))
}

fn turn(fields: &mut Fields, limits: &Limits) -> Result<DecodedLine, Fault> {
    let link = fields.parsed_or_null::<Digest>("parent_turn_hash")?;
    let role: Role = {
        let text = fields.text("role")?;
        text.parse().map_err(|error: MessageError| value_fault("role", false, error))?
    };
    let tool_call_id = tool_call(fields.optional_text("tool_call_id")?, role, limits)?;
    let slot = match fields.optional_fields("slot")? {
        None => None,
        Some(mut slot) => {
            let turn_id = slot.text("turn_id")?;
            check_key("turn id", &turn_id, limits)
                .map_err(|error| value_fault("turn_id", error.is_too_long(), error))?;
            let part = slot.number("part")?;
            let part = u32::try_from(part)
                .map_err(|_| wrong("part", "a small whole number", &part.into()))?;
            slot.finish()?;
            Some(Slot { turn_id, role, tool_call_id: tool_call_id.clone(), part })
        }
    };
    let parent = fields.parsed_or_null("parent_id")?;
    let turn = Turn {
        loc: TurnLoc::NONE,
        depth: 0,
        id: fields.parsed("turn_id")?,
        hash: fields.parsed("turn_hash")?,
        role,
        content: if fields.mark("purged")? {
            Content::Purged(fields.parsed("message_digest")?)
        } else {
            Content::Kept(body(fields.any("content")?, role, limits)?)
        },
        tool_call_id,
        created_at: fields.parsed("created_at")?,
        status: status(&fields.text("status")?)?,
        metadata: metadata(fields.object("metadata")?, limits)?,
        operation: fields.number("operation")?,
        origin: TurnOrigin {
            edited_from: fields.optional("edited_from")?,
            derived_from: fields.optional("derived_from")?,
            part_of: fields.optional("part_of")?,
            slot,
        },
    };
    Ok(DecodedLine::Record(BundleRecord::Turn { parent, turn }, link))
}

fn body(content: Json, role: Role, limits: &Limits) -> Result<Body, Fault> {
    if content.as_array().is_none() {
        return Err(wrong("content", "an array of blocks", &content));
    }
    // The size of a block was limited when it was sent. Its canonical form may be larger, and is
    // limited by the line.
    let limits = Limits { block_bytes: usize::MAX, ..*limits };
    Body::from_content(content, role, &limits)
        .map_err(|error| value_fault("content", error.is_too_large(), error))
}

fn tool_call(call: Option<String>, role: Role, limits: &Limits) -> Result<Option<String>, Fault> {
    let key = "tool_call_id";
    match (role, &call) {
        (Role::Tool, None) => {
            return Err(value_fault(key, false, MessageError::ToolCallIdMissing));
        }
        (Role::Tool, Some(call)) => {
            check_key(key, call, limits).map_err(|error| name_fault(key, error))?;
        }
        (_, None) => {}
        (role, Some(_)) => {
            let error = MessageError::ToolCallIdRole { role: role.as_str() };
            return Err(value_fault(key, false, error));
        }
    }
    Ok(call)
}

fn status(text: &str) -> Result<Status, Fault> {
    let known = [Status::Complete, Status::Partial];
    known.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
        value_fault("status", false, MessageError::UnknownStatus { status: text.to_owned() })
    })
}

fn metadata(json: Json, limits: &Limits) -> Result<Metadata, Fault> {
    let metadata = Metadata::from_json(&json, limits).map_err(|error| {
        let too_large = matches!(&error, MetadataError::Name(name) if name.is_too_long());
        value_fault("metadata", too_large, error)
    })?;
    // A null or a repeated tag reads as if it were not there.
    let canonical = metadata.to_json();
    if canonical != json {
        let (given, canonical) = (json.to_canonical(), canonical.to_canonical());
        return Err(Fault::Spelling { key: "metadata", given, canonical });
    }
    Ok(metadata)
}

fn split(fields: &mut Fields, _: &Limits) -> Result<DecodedLine, Fault> {
    let record = BundleRecord::Split {
        whole: fields.parsed("turn_id")?,
        left: fields.parsed("left_id")?,
        right: fields.parsed("right_id")?,
        operation: fields.number("operation")?,
    };
    Ok(DecodedLine::Record(record, None))
}

fn hidden(fields: &mut Fields, _: &Limits) -> Result<DecodedLine, Fault> {
    let root: TurnId = fields.parsed("turn_id")?;
    let text = fields.text("by")?;
    let known = [HiddenBy::Cascade, HiddenBy::Reparent, HiddenBy::Undo];
    let by = known.into_iter().find(|by| encode::hidden_by(*by) == text).ok_or_else(|| {
        let why = format!("`{text}` is not cascade, reparent or undo");
        Fault::Value { key: "by", too_large: false, source: why.into() }
    })?;
    let record = BundleRecord::Hidden { root, by, operation: fields.number("operation")? };
    Ok(DecodedLine::Record(record, None))
}

fn branch(fields: &mut Fields, limits: &Limits) -> Result<DecodedLine, Fault> {
    let tip = fields.parsed_or_null("tip")?;
    let branch = Branch {
        conversation: ConversationKey::NONE,
        id: fields.parsed("branch_id")?,
        name: fields.named("name", |name| Name::new(name, limits))?,
        tip: None,
        forked_from: fields.optional("forked_from")?,
        created_at: fields.parsed("created_at")?,
        version: fields.number("version")?,
    };
    Ok(DecodedLine::Record(BundleRecord::Branch { branch, tip }, None))
}

fn bookmark(fields: &mut Fields, limits: &Limits) -> Result<DecodedLine, Fault> {
    let record = BundleRecord::Bookmark {
        name: fields.named("name", |name| Name::new(name, limits))?,
        turn: fields.parsed("turn_id")?,
        created_at: fields.parsed("created_at")?,
    };
    Ok(DecodedLine::Record(record, None))
}

fn operation(fields: &mut Fields, limits: &Limits) -> Result<DecodedLine, Fault> {
    let link = fields.parsed_or_null::<Digest>("previous")?;
    let record = BundleRecord::Operation(Operation {
        conversation: ConversationKey::NONE,
        seq: fields.number("seq")?,
        kind: fields.text("kind")?,
        actor: fields.text("actor")?,
        at: fields.parsed("at")?,
        detail: if fields.mark("purged")? {
            Detail::Purged(fields.parsed("detail_digest")?)
        } else {
            Detail::Kept(fields.any("detail")?.to_canonical())
        },
        hash: fields.parsed("hash")?,
        undone: fields.flag("undone")?,
        idempotency: fields
            .optional_fields("idempotency")?
            .map(|used| used_key(used, limits))
            .transpose()?,
    });
    Ok(DecodedLine::Record(record, link))
}

fn used_key(mut used: Fields, limits: &Limits) -> Result<Idempotency, Fault> {
    let key = used.text("key")?;
    check_key("key", &key, limits).map_err(|error| name_fault("key", error))?;
    let fingerprint = used.parsed("fingerprint")?;
    let answer = used.text("answer")?;
    used.finish()?;
    Ok(Idempotency { key, fingerprint, answer })
}

fn entry(fields: &mut Fields, _: &Limits) -> Result<DecodedLine, Fault> {
    let fault = |key, why: String| Fault::Value { key, too_large: false, source: why.into() };
    let name = fields.text("kind")?;
    let family = Family::parse(&name)
        .ok_or_else(|| fault("kind", format!("`{name}` is no kind of entry")))?;
    let given = fields.text("key")?;
    let lower = !given.bytes().any(|byte| byte.is_ascii_uppercase());
    let key = from_hex(&given).filter(|key| lower && (1..=KEY_BYTES).contains(&key.len()));
    let Some(key) = key else {
        return Err(fault("key", "it is not pairs of lower-case hexadecimal digits".to_owned()));
    };
    let key = RecordKey::from_bytes(family, &key);
    let text = match (family, fields.any("value")?) {
        (Family::Prompt, Json::String(prompt)) => prompt,
        (Family::Prompt, other) => return Err(wrong("value", "a string", &other)),
        (_, value) => value.to_canonical(),
    };
    Ok(DecodedLine::Record(BundleRecord::Record(Record::verbatim(key, text)), None))
}

fn piece(fields: &mut Fields, _: &Limits) -> Result<DecodedLine, Fault> {
    let source: SourceId = fields.parsed("source_id")?;
    let nth = fields.number("nth")?;
    let nth = u32::try_from(nth).map_err(|_| wrong("nth", "a small number", &nth.into()))?;
    let bytes =
        BASE64.decode(fields.text("bytes")?).map_err(|error| value_fault("bytes", false, error))?;
    if bytes.is_empty() || bytes.len() > PIECE_BYTES {
        let why = format!("a piece has 1 to {PIECE_BYTES} bytes, not {}", bytes.len());
        return Err(Fault::Value { key: "bytes", too_large: false, source: why.into() });
    }
    Ok(DecodedLine::Record(BundleRecord::Piece { source, nth, bytes }, None))
}

fn end(fields: &mut Fields, _: &Limits) -> Result<DecodedLine, Fault> {
    let given = fields.text("sha256")?;
    let digest: Digest = given.parse().map_err(|error| value_fault("sha256", false, error))?;
    let canonical = digest.to_hex();
    if given != canonical {
        return Err(Fault::Spelling { key: "sha256", given, canonical });
    }
    Ok(DecodedLine::End(Written {
        conversations: fields.number("conversations")?,
        turns: fields.number("turns")?,
        operations: fields.number("operations")?,
        digest,
    }))
}
