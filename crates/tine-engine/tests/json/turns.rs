//! The JSON of turns of every sort, in paths and windows.

use tine_core::json::{self, object};
use tine_core::{Body, Limits, Message, Reference, Role, Status};
use tine_engine::{
    Append, Call, Edit, Engine, NewConversation, PathQuery, Purge, PurgeTarget, SplitTurn, TurnRef,
    WindowQuery,
};
use tine_store::MemoryStore;

use super::check;

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

/// A conversation with one turn of every sort.
fn varied() -> (Engine, Call) {
    let engine = Engine::new(MemoryStore::new());
    let call = Call::by("somebody");
    let mut wanted = NewConversation::named("odd \"name\"").unwrap();
    wanted.system_prompt = Some("Be brief.".to_owned());
    wanted.config = json::parse(br#"{"z":12345678901234567890123,"a":[1.5,"\u0007"]}"#, 9).unwrap();
    let id = engine.create_conversation(&call, wanted).unwrap().id;
    let limits = Limits::default();
    let blocks = br#"[{"type":"text","text":"x"},{"type":"tool-use","id":"c1","name":"f","parameters":{"n":98765432109876543210}}]"#;
    let body = Body::from_content(json::parse(blocks, 9).unwrap(), Role::Assistant, &limits);
    let mut late = Message::text(Role::User, "a\u{1}b \u{1f338} \"quoted\" \\ /\r\n\t");
    late.created_at = Some("0001-02-03T04:05:06.07Z".parse().unwrap());
    late.metadata.tags.insert("tag".to_owned());
    late.metadata.custom_data = Some(object([("k", 1.into())]));
    let call_turn = Message { body: body.unwrap(), ..Message::text(Role::Assistant, "") };
    let partial = Message { status: Status::Partial, ..Message::text(Role::Assistant, "cut o") };
    let messages = vec![
        late,
        call_turn,
        Message::tool("c1", ""),
        partial,
        Message::text(Role::User, "to be split and more"),
        Message::text(Role::Assistant, "to be erased"),
        Message::text(Role::User, "to be edited"),
    ];
    engine.append(&call, Append::to(id.clone(), messages)).unwrap();
    let turn = |text: &str| TurnRef::within(id.clone(), reference(text));
    engine.split(&call, SplitTurn { turn: turn("main~2"), offset: 5 }).unwrap();
    let body = Body::Text("edited".to_owned());
    let branch = Some("main".to_owned());
    engine.edit(&call, Edit { turn: turn("main"), body, branch, reuse: true }).unwrap();
    let mut purge = Purge { target: PurgeTarget::Turn(turn("main~1")), confirm: None };
    purge.confirm = engine.purge(&call, purge.clone()).unwrap().confirm;
    engine.purge(&call, purge).unwrap();
    (engine, call)
}

#[test]
fn turns_of_every_kind_are_read_back_from_their_json() {
    let (engine, call) = varied();
    let id = tine_core::ConversationId::from_stored("odd \"name\"");
    let mut query = PathQuery::of(id.clone());
    for limit in [3, 100] {
        query.limit = Some(limit);
        check(&engine.path(&call, query.clone()).unwrap());
    }
    let turn = TurnRef::within(id, reference("main~3"));
    let around = WindowQuery { turn, branch: None, before: 2, after: 2 };
    check(&engine.window(&call, around).unwrap());
}

#[test]
fn the_json_of_a_turn_has_its_members_in_a_fixed_order() {
    let (engine, call) = varied();
    let id = tine_core::ConversationId::from_stored("odd \"name\"");
    let turn = TurnRef::within(id, reference("main~6"));
    let found = engine.turn(&call, turn).unwrap();
    let text = serde_json::to_string(&found).unwrap();
    let expected = format!(
        concat!(
            r#"{{"conversation_id":"odd \"name\"","turn_id":"{}","turn_hash":"{}","#,
            r#""parent_turn_hash":"{}","parent_id":"{}","depth":2,"role":"assistant","content":["#,
            r#"{{"text":"x","type":"text"}},{{"id":"c1","name":"f","parameters":{{"n":98765432109876543210}},"#,
            r#""type":"tool-use"}}],"created_at":"{}","status":"complete","metadata":{{}},"presence":"live"}}"#
        ),
        found.id,
        found.hash,
        found.parent_hash.unwrap(),
        found.parent.unwrap(),
        found.created_at
    );
    assert_eq!(text, expected);
}
