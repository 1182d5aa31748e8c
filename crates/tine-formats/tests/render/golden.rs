//! One rich conversation in every form: a change of any of them shows up in review.

use std::sync::Arc;

use tine_core::json::{self, MAX_DEPTH};
use tine_core::{ConversationId, Json, Limits, Role, TurnId};
use tine_engine::{
    Append, Call, Engine, FixedEntropy, ManualClock, NewConversation, PathPage, PathQuery,
    SplitTurn, TurnRef,
};
use tine_formats::render::{Format, Note, Options, Rendered, render, whole_path};
use tine_store::MemoryStore;

use super::valid;

/// Parallel calls, thinking, images, a system turn in the middle, a summary, a broken stream.
const STORY: &str = r#"[
  {"role": "user", "content": [
    {"type": "text", "text": "Where was this taken?"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]},
  {"role": "assistant", "content": [
    {"type": "thinking", "text": "A tower. Two look-ups.", "signature": "c2lnbmF0dXJl"},
    {"type": "text", "text": "Let me look."},
    {"type": "tool-use", "id": "toolu_1", "name": "find_place", "parameters": {"query": "red tower", "limit": 9007199254740993}},
    {"type": "tool-use", "id": "call|2", "name": "weather", "parameters": {}}],
   "metadata": {"source_info": {"provider": "anthropic", "model": "claude-x"}}},
  {"role": "tool", "tool_call_id": "call|2", "content": "sunny"},
  {"role": "tool", "tool_call_id": "toolu_1", "content": [
    {"type": "text", "text": "{\"place\":\"Tokyo Tower\"}"},
    {"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"}]},
  {"role": "assistant", "content": [
    {"type": "thinking", "text": "Sure of it."},
    {"type": "text", "text": "Tokyo Tower, on a sunny day."}]},
  {"role": "system", "content": "Answer in one sentence from now on."},
  {"role": "user", "content": "How tall is it? And how old?"},
  {"role": "user", "content": "In metres, please."},
  {"role": "assistant", "content": "It is 333 m ta", "status": "partial"},
  {"role": "user", "content": [
    {"type": "summary", "text": "They found Tokyo Tower in a picture.", "turns": []},
    {"type": "resource", "resource": {"uri": "file:///notes.txt", "mimeType": "text/plain", "text": "Open until ten."}},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "hologram", "of": "the tower"}]},
  {"role": "assistant", "content": [
    {"type": "tool-use", "id": "toolu_3", "name": "book", "parameters": {"seats": 2}}]}
]"#;

fn story() -> PathPage {
    let Json::Array(messages) = json::parse(STORY.as_bytes(), MAX_DEPTH).unwrap() else { panic!() };
    let (engine, said) = told(Some("You know every building."), messages);
    let question = said[6];
    // Between the two sentences: rendered as if it had never been split.
    let split = SplitTurn { turn: TurnRef::of(question), offset: 15 };
    engine.split(&Call::by("tester"), split).unwrap();
    path(&engine)
}

fn path(engine: &Engine) -> PathPage {
    let talk = ConversationId::from_stored("tower");
    whole_path(engine, &Call::by("tester"), PathQuery::of(talk)).unwrap()
}

/// A conversation of messages as a caller sends them.
fn told(prompt: Option<&str>, messages: Vec<Json>) -> (Engine, Vec<TurnId>) {
    let clock = Arc::new(ManualClock::new("2024-01-15T10:30:00Z".parse().unwrap(), 1_000));
    let entropy = Arc::new(FixedEntropy::new(7));
    let engine = Engine::with(Arc::new(MemoryStore::new()), clock, entropy, Limits::default());
    let call = Call::by("tester");
    let talk = ConversationId::from_stored("tower");
    let new = NewConversation {
        system_prompt: prompt.map(str::to_owned),
        ..NewConversation::named("tower").unwrap()
    };
    engine.create_conversation(&call, new).unwrap();
    let messages = tine_api::bodies::messages(messages, &Limits::default()).unwrap();
    let said = engine.append(&call, Append::to(talk, messages)).unwrap();
    (engine, said.turns.into_iter().map(|turn| turn.id).collect())
}

fn golden(format: Format) -> String {
    let rendering = render(&story(), &Options::of(format)).unwrap();
    let body = match &rendering.rendered {
        Rendered::Text(text) => text.clone(),
        Rendered::Request(request) => {
            valid::check(format, request);
            let value: serde_json::Value = serde_json::from_str(&request.to_canonical()).unwrap();
            serde_json::to_string_pretty(&value).unwrap()
        }
    };
    let line = |note: &Note| {
        let block = note.block.map_or(String::new(), |block| format!(" block {block}"));
        let turn = note.turn.map_or_else(|| "-".to_owned(), |turn| turn.to_string());
        format!("{}: {} ({turn}{block}): {}", note.kind.as_str(), note.what, note.why)
    };
    let notes: Vec<String> = rendering.notes.iter().map(line).collect();
    format!("{body}\n\n{}\n", notes.join("\n"))
}

#[test]
fn a_rich_conversation_for_openai() {
    insta::assert_snapshot!("openai", golden(Format::OpenAi));
}

#[test]
fn a_rich_conversation_for_anthropic() {
    insta::assert_snapshot!("anthropic", golden(Format::Anthropic));
}

#[test]
fn a_rich_conversation_for_gemini() {
    insta::assert_snapshot!("gemini", golden(Format::Gemini));
}

#[test]
fn a_rich_conversation_as_markdown() {
    insta::assert_snapshot!("markdown", golden(Format::Markdown));
}

#[test]
fn a_rich_conversation_in_tines_own_form() {
    insta::assert_snapshot!("tine", golden(Format::Tine));
}

/// A path as the request of a provider.
fn request(path: &PathPage, format: Format) -> Json {
    match render(path, &Options::of(format)).unwrap().rendered {
        Rendered::Request(request) => request,
        Rendered::Text(text) => panic!("{text}"),
    }
}

/// A rendering, appended to a new conversation as it is, renders as the same again.
fn check_round_trip(path: &PathPage, format: Format) {
    let sent = request(path, format);
    let prompt = sent.get("system").and_then(Json::as_str);
    let messages = sent.get("messages").and_then(Json::as_array).unwrap();
    let (engine, _) = told(prompt, messages.to_vec());
    assert_eq!(request(&self::path(&engine), format).to_canonical(), sent.to_canonical());
}

#[test]
fn a_request_that_is_appended_renders_as_the_same_request_again() {
    let mut story = story();
    check_round_trip(&story, Format::OpenAi);
    // These are several texts of one message there; the texts of one turn are joined.
    story.turns.retain(|turn| {
        let content = format!("{:?}", turn.content);
        turn.role != Role::System && !content.contains("summary")
    });
    check_round_trip(&story, Format::Anthropic);
    let failed = r#"[
      {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "No such file.", "is_error": true},
        {"type": "tool_result", "tool_use_id": "b", "content": "Done."},
        {"type": "text", "text": "Try again."}]}]"#;
    let Json::Array(failed) = json::parse(failed.as_bytes(), MAX_DEPTH).unwrap() else { panic!() };
    let (engine, _) = told(None, failed.clone());
    let sent = request(&path(&engine), Format::Anthropic);
    assert_eq!(sent.get("messages").unwrap().to_canonical(), Json::Array(failed).to_canonical());
    check_round_trip(&path(&engine), Format::Anthropic);
    check_round_trip(&path(&engine), Format::OpenAi);
}
