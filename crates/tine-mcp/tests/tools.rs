//! What each tool answers, and its errors.

use serde_json::{Value, json};

use crate::harness::{ERAS, Host, ProtocolEra, host};

async fn trip(host: &Host) -> Vec<String> {
    let mut turns = Vec::new();
    for (turn, role, content) in [
        ("1", "user", "Ada asks: where to in March?"),
        ("1", "assistant", "Lisbon is mild then."),
        ("2", "user", "And what does it cost?"),
        ("2", "assistant", "About 900 euros."),
    ] {
        let done = host
            .call(
                "store_conversation_turn",
                json!({ "conversation_id": "trip", "turn_id": turn, "role": role, "content": content }),
            )
            .await;
        turns.push(done["turn_id"].as_str().expect("an id").to_owned());
    }
    turns
}

fn len(value: &Value) -> usize {
    value.as_array().expect("a list").len()
}

#[tokio::test]
async fn the_tree_tools_work_together() {
    for era in ERAS {
        let host = host(era).await;
        let turns = trip(&host).await;

        let path = host.call("get_path", json!({ "conversation_id": "trip", "last": 2 })).await;
        assert_eq!(len(&path["turns"]), 2);
        assert_eq!(path["to"], turns[3]);
        let window = host.call("get_path", json!({ "around": turns[1] })).await;
        assert_eq!(window["focus"], 1);
        let rendered = host
            .call("get_path", json!({ "conversation_id": "trip", "format": "anthropic" }))
            .await;
        assert_eq!(len(&rendered["request"]["messages"]), 4);
        let markdown =
            host.call("get_path", json!({ "conversation_id": "trip", "format": "markdown" })).await;
        assert!(markdown["text"].as_str().expect("a text").contains("Lisbon"));

        let hits = host.call("search_turns", json!({ "query": "lisbon mild" })).await;
        assert_eq!(hits["hits"][0]["turn_id"], turns[1]);
        let none = host.call("search_turns", json!({ "query": "zebra" })).await;
        assert_eq!(len(&none["hits"]), 0);

        let branch =
            host.call("fork_conversation", json!({ "at": turns[1], "name": "cheap" })).await;
        assert_eq!(branch["tip"], turns[1]);
        let before = host
            .call("fork_conversation", json!({ "conversation_id": "trip", "before": turns[2] }))
            .await;
        assert_eq!(before["name"], "fork-1");

        let edited = host
            .call(
                "edit_turn",
                json!({ "turn": turns[1], "content": "Madeira.", "branch": "cheap", "conversation_id": "trip" }),
            )
            .await;
        assert_eq!(edited["outcome"], "created");
        assert_eq!(edited["edited_from"], turns[1]);

        let back =
            host.call("revert_branch", json!({ "conversation_id": "trip", "to": turns[1] })).await;
        assert_eq!(back["tip"], turns[1]);
        let forward =
            host.call("revert_branch", json!({ "conversation_id": "trip", "to": turns[3] })).await;
        assert_eq!(forward["tip"], turns[3]);

        let appended = host
            .call(
                "append_turns",
                json!({ "conversation_id": "trip", "branch": "cheap",
                        "messages": [{ "role": "user", "content": "Why?" }],
                        "idempotency_key": "once" }),
            )
            .await;
        assert_eq!(appended["turns"][0]["outcome"], "created");
        let undone = host.call("undo_operation", json!({ "conversation_id": "trip" })).await;
        assert_eq!(undone["kind"], "append");
        let redone =
            host.call("undo_operation", json!({ "conversation_id": "trip", "redo": true })).await;
        assert_eq!(redone["undone"], undone["undone"]);

        let tree = host.call("get_tree", json!({ "conversation_id": "trip" })).await;
        assert_eq!(tree["branch_count"], 3);
        assert_eq!(tree["total"], 6);
        let all = host.call("get_tree", json!({})).await;
        assert_eq!(all["conversations"][0]["conversation_id"], "trip");
        assert!(host.engine.verify().expect("a check").problems.is_empty());
    }
}

#[tokio::test]
async fn turns_are_committed_and_compared() {
    for era in ERAS {
        let host = host(era).await;
        let turns = trip(&host).await;
        let of = |more: Value| {
            let mut all = json!({ "conversation_id": "trip" });
            for (name, value) in more.as_object().expect("an object") {
                all[name] = value.clone();
            }
            all
        };
        let first = host
            .call(
                "commit_turns",
                of(json!({ "message": "where", "start": turns[0], "end": turns[1] })),
            )
            .await;
        assert_eq!((&first["turn_count"], &first["branch"]), (&json!(2), &json!("main")));
        assert!(first["entities"].as_array().expect("names").contains(&json!("Lisbon")));
        let keyed = of(json!({ "message": "cost", "idempotency_key": "once" }));
        let second = host.call("commit_turns", keyed.clone()).await;
        assert_eq!(second["parent_hashes"], json!([first["commit_hash"]]));
        assert_eq!(host.call("commit_turns", keyed).await["commit_hash"], second["commit_hash"]);
        let (code, _) = host.refused("commit_turns", of(json!({ "message": "again" }))).await;
        assert_eq!(code, "invalid");
        let half = of(json!({ "message": "half", "start": turns[0] }));
        assert_eq!(host.refused("commit_turns", half).await.0, "invalid");

        let edit = json!({ "turn": turns[3], "content": "About 700 euros.", "branch": "side" });
        let fork = of(json!({ "at": turns[2], "name": "side" }));
        host.call("fork_conversation", fork).await;
        host.call("edit_turn", of(edit)).await;
        let diff = host.call("diff_turns", of(json!({ "from": "main", "to": "side" }))).await;
        assert_eq!(diff["changes"][0]["change"], "changed");
        assert_eq!(diff["changes"][0]["words"], "About [-900-]{+700+} euros.");
        let commits = json!({ "from": first["commit_hash"], "to": second["commit_hash"] });
        let diff = host.call("diff_turns", commits).await;
        assert_eq!(diff["to"]["commit_hash"], second["commit_hash"]);
        assert!(diff["keywords"]["lost"].is_array(), "{diff:?}");
        let (code, _) =
            host.refused("diff_turns", of(json!({ "from": "main", "to": "none" }))).await;
        assert_eq!(code, "not_found");
    }
}

#[tokio::test]
async fn the_memory_tools_work_together() {
    for era in ERAS {
        let host = host(era).await;
        let kept = host
            .call(
                "store_unstructured",
                json!({ "text": "Ada Lovelace lives in London. She needs to call Bob by Friday.",
                        "interpret": "wait" }),
            )
            .await;
        let source = kept["source_id"].as_str().expect("a source").to_owned();
        assert_eq!(kept["interpretations"][0]["status"], "completed");
        let again = host
            .call(
                "store_unstructured",
                json!({ "text": "Ada Lovelace lives in London. She needs to call Bob by Friday.", "interpret": "none" }),
            )
            .await;
        assert_eq!(again["outcome"], "reused");

        let read = host.call("retrieve_source", json!({ "source_id": source })).await;
        assert!(read["text"].as_str().expect("a text").starts_with("Ada"));
        let part = host
            .call("retrieve_source", json!({ "source_id": source, "offset": 4, "length": 8 }))
            .await;
        assert_eq!(part["text"], "Lovelace");
        assert_eq!(part["next_offset"], 12);

        let facts = host
            .call(
                "store_structured",
                json!({ "entities": [
                            { "entity_type": "person", "fields": { "name": "Ada" } },
                            { "entity_type": "task", "fields": { "title": "call Bob" } }],
                        "relationships": [{ "type": "REFERS_TO", "source": 1, "target": 0 }],
                        "source_id": source, "agent": { "name": "tester" } }),
            )
            .await;
        let ada = facts["entities"][0]["entity_id"].as_str().expect("an id").to_owned();
        let task = facts["entities"][1]["entity_id"].as_str().expect("an id").to_owned();
        assert_eq!(facts["source_id"], source);

        let found = host
            .call("retrieve_entities", json!({ "entity_type": "person", "query": "ada" }))
            .await;
        assert!(
            found["entities"].as_array().expect("a list").iter().any(|it| it["entity_id"] == ada)
        );
        let fixed = host
            .call("correct", json!({ "entity_id": ada, "fields": { "email": "ada@example.org" } }))
            .await;
        assert_eq!(fixed["entity_id"], ada);
        let now = host.call("retrieve_entity_snapshot", json!({ "entity_id": ada })).await;
        assert_eq!(now["fields"]["email"], "ada@example.org");
        let then = host
            .call(
                "retrieve_entity_snapshot",
                json!({ "entity_id": ada, "at": "2000-01-01T00:00:00Z" }),
            )
            .await;
        assert_eq!(then["observations"], 0);
        let from = host
            .call("retrieve_field_provenance", json!({ "entity_id": ada, "field": "name" }))
            .await;
        assert_eq!(from["fields"][0]["evidence"][0]["source"]["source_id"], source);
        let all = host.call("list_observations", json!({ "entity_id": ada })).await;
        assert_eq!(len(&all["observations"]), 2);

        let related = host
            .call(
                "create_relationship",
                json!({ "type": "DEPENDS_ON", "source": task, "target": ada }),
            )
            .await;
        assert_eq!(related["outcome"], "created");
        let edges =
            host.call("list_relationships", json!({ "of": task, "direction": "outgoing" })).await;
        assert_eq!(len(&edges["relationships"]), 2);

        let read_again =
            host.call("reinterpret", json!({ "source_ids": [source], "wait": true })).await;
        assert_eq!(read_again["interpretations"][0]["status"], "completed");
        let runs = host.call("list_interpretations", json!({ "source_id": source })).await;
        assert_eq!(len(&runs["interpretations"]), 3);
    }
}

#[tokio::test]
async fn store_commits_everything_in_one_transaction_or_does_a_dry_run() {
    for era in ERAS {
        let host = host(era).await;
        let everything = json!({
            "turn": { "conversation_id": "trip", "turn_number": 1, "role": "user", "content": "Ada flies on Friday" },
            "file_content": "RmxpZ2h0IEFCIDEyMw==", "mime_type": "text/plain", "original_filename": "ticket.txt",
            "entities": [{ "entity_type": "person", "fields": { "name": "Ada" } }],
            "relationships": [{ "type": "REFERS_TO", "source": "0", "target": "0" }],
            "interpret": "none",
        });
        let (code, _) = host.refused("store", everything.clone()).await;
        assert_eq!(code, "invalid", "nothing is related to itself");
        let mut everything = everything;
        everything.as_object_mut().expect("an object").remove("relationships");

        let mut tried = everything.clone();
        tried["commit"] = false.into();
        let told = host.call("store", tried).await;
        assert_eq!(told["committed"], false);
        assert_eq!(len(&told["entities"]), 1);
        let empty = host.call("get_tree", json!({})).await;
        assert_eq!(len(&empty["conversations"]), 0, "nothing was stored");

        everything["idempotency_key"] = "once".into();
        let done = host.call("store", everything.clone()).await;
        assert_eq!(done["committed"], true);
        assert_eq!(done["conversation_id"], "trip");
        let again = host.call("store", everything).await;
        assert_eq!(again["replayed"], true);
        assert_eq!(again["entities"], done["entities"]);

        let alone = host
            .call("store", json!({ "turn": { "conversation_id": "trip", "turn_id": "2", "role": "user", "content": "Hm" } }))
            .await;
        assert_eq!(alone["committed"], true);
        let fact =
            json!({ "entities": [{ "entity_type": "place", "fields": { "name": "Lisbon" } }] });
        assert_eq!(host.call("store", fact).await["committed"], true);
        let text = json!({ "text": "A note.", "interpret": "none" });
        assert_eq!(host.call("store", text).await["committed"], true);
        let (code, _) = host.refused("store", json!({})).await;
        assert_eq!(code, "invalid");
        assert!(host.engine.verify().expect("a check").problems.is_empty());
    }
}

#[tokio::test]
async fn an_error_says_what_is_wrong_and_what_to_send_instead() {
    let host = host(ProtocolEra::Stateless).await;
    let turns = trip(&host).await;
    for role in ["assistant", "system"] {
        host.call(
            "store_conversation_turn",
            json!({ "conversation_id": "two", "turn_id": "7", "role": role, "content": "x" }),
        )
        .await;
    }
    let other = "0190a5c8-0000-7000-8000-000000000000";
    for (tool, arguments, code, words) in [
        ("store_conversation_turn", json!({ "role": "user" }), "invalid", "`content`"),
        ("store_conversation_turn", json!({ "content": "x" }), "invalid", "`role` is missing"),
        (
            "store_conversation_turn",
            json!({ "role": "robot", "content": "x" }),
            "invalid",
            "\"assistant\"",
        ),
        (
            "store_conversation_turn",
            json!({ "role": "tool", "content": "x" }),
            "invalid",
            "tool_call_id",
        ),
        (
            "store_conversation_turn",
            json!({ "role": "user", "content": 5 }),
            "invalid",
            "`content` must be a string",
        ),
        (
            "store_conversation_turn",
            json!({ "role": "user", "contents": "x" }),
            "invalid",
            "did you mean `content`?",
        ),
        (
            "store_conversation_turn",
            json!({ "role": "user", "content": "x", "content_blocks": [] }),
            "invalid",
            "one of them",
        ),
        (
            "store_conversation_turn",
            json!({ "role": "user", "content": "x", "created_at": "yesterday" }),
            "invalid",
            "RFC 3339",
        ),
        ("store", json!({ "entities": [{ "fields": {} }] }), "invalid", "entities[0]"),
        ("store", json!({ "entities": ["Ada"] }), "invalid", "`entities[0]` must be an object"),
        ("store", json!({ "file_content": "%%%", "mime_type": "x/y" }), "invalid", "base64"),
        ("store", json!({ "file_content": "AA==" }), "invalid", "mime_type"),
        (
            "store",
            json!({ "text": "a", "file_content": "AA==", "mime_type": "x/y" }),
            "invalid",
            "more than one of `text`",
        ),
        ("store_structured", json!({}), "invalid", "nothing to store"),
        (
            "store_structured",
            json!({ "entities": [{ "entity_type": "task", "fields": { "title": "x", "due": "soon" } }] }),
            "invalid",
            "date",
        ),
        ("store_unstructured", json!({}), "invalid", "file_path"),
        ("store_unstructured", json!({ "text": "x", "interpreter": "oracle" }), "invalid", "rules"),
        ("list_observations", json!({ "entity_id": "trip:9" }), "not_found", "turn_key"),
        ("list_observations", json!({ "entity_id": "two:7" }), "ambiguous", "two:7:assistant"),
        ("list_observations", json!({ "entity_id": "ent_zz" }), "invalid", "32 hex"),
        ("retrieve_entities", json!({ "limit": 0 }), "invalid", "limit"),
        ("retrieve_entities", json!({ "cursor": "nonsense" }), "invalid", "cursor"),
        (
            "retrieve_entity_snapshot",
            json!({ "entity_id": "trip:1:assistant", "at": "then" }),
            "invalid",
            "2026-03-01T09:30:00Z",
        ),
        (
            "retrieve_field_provenance",
            json!({ "entity_id": "trip:2:assistant", "field": "colour" }),
            "not_found",
            "colour",
        ),
        (
            "create_relationship",
            json!({ "type": "LIKES", "source": "a", "target": "b" }),
            "invalid",
            "SUPERSEDES",
        ),
        (
            "create_relationship",
            json!({ "type": "PART_OF", "source": "a", "target": "b" }),
            "not_found",
            "ent_",
        ),
        ("list_relationships", json!({ "type": "LIKES" }), "invalid", "PART_OF"),
        (
            "correct",
            json!({ "entity_id": "trip:1:assistant", "fields": { "content": "x" } }),
            "unsupported",
            "edit",
        ),
        ("correct", json!({ "entity_id": "trip:1:assistant", "fields": {} }), "invalid", "field"),
        ("list_interpretations", json!({ "source_id": "src_1" }), "invalid", "src_"),
        ("reinterpret", json!({}), "invalid", "sources"),
        (
            "retrieve_source",
            json!({ "source_id": "src_00000000000000000000000000000000" }),
            "not_found",
            "source",
        ),
        (
            "append_turns",
            json!({ "conversation_id": "none", "messages": [{ "role": "user", "content": "x" }] }),
            "not_found",
            "none",
        ),
        (
            "append_turns",
            json!({ "conversation_id": "trip", "messages": [{ "role": "user" }] }),
            "invalid",
            "message 0",
        ),
        (
            "append_turns",
            json!({ "conversation_id": "trip", "messages": [{ "role": "user", "content": "x" }], "expected_tip": turns[0] }),
            "conflict",
            "expected_tip",
        ),
        ("get_path", json!({}), "invalid", "conversation_id"),
        ("get_path", json!({ "to": other }), "not_found", "other projects"),
        ("get_tree", json!({ "conversation_id": "none" }), "not_found", "none"),
        ("fork_conversation", json!({ "conversation_id": "trip" }), "invalid", "before"),
        ("fork_conversation", json!({ "at": turns[0], "name": "main" }), "conflict", "main"),
        ("edit_turn", json!({ "turn": turns[0] }), "invalid", "content_blocks"),
        (
            "edit_turn",
            json!({ "turn": "root", "content": "x", "conversation_id": "trip" }),
            "protected",
            "root",
        ),
        ("revert_branch", json!({ "conversation_id": "trip", "to": other }), "not_found", "turn"),
        (
            "revert_branch",
            json!({ "conversation_id": "trip", "to": turns[0], "expected_tip": turns[1] }),
            "conflict",
            &turns[3],
        ),
        ("search_turns", json!({ "query": "" }), "invalid", "search for"),
        (
            "undo_operation",
            json!({ "conversation_id": "trip", "operation": 99 }),
            "not_found",
            "99",
        ),
        (
            "undo_operation",
            json!({ "conversation_id": "trip", "operation": 1 }),
            "protected",
            "undo_operation(operation",
        ),
        (
            "get_tree",
            json!({ "conversation_id": "trip", "project_id": "elsewhere" }),
            "not_found",
            "trip",
        ),
    ] {
        let (found, text) = host.refused(tool, arguments.clone()).await;
        assert_eq!(found, code, "{tool} {arguments}: {text}");
        assert!(text.contains(words), "{tool} {arguments}: {text}");
    }
}

#[tokio::test]
async fn a_repeated_key_replays_the_answer_and_a_reused_key_is_refused() {
    let host = host(ProtocolEra::Handshake).await;
    let say = |content: &str| {
        json!({ "conversation_id": "trip", "turn_id": "1", "role": "user", "content": content,
                "idempotency_key": "conversation-trip-1-1700000000000" })
    };
    let first = host.call("store_conversation_turn", say("Hello")).await;
    let again = host.call("store_conversation_turn", say("Hello")).await;
    assert_eq!(again["replayed"], true);
    assert_eq!(again["observation_id"], first["observation_id"]);
    let (code, text) = host.refused("store_conversation_turn", say("Good bye")).await;
    assert_eq!(code, "idempotency_mismatch");
    assert!(text.contains("new idempotency_key"), "{text}");
}

#[tokio::test]
async fn arguments_have_synonyms() {
    let host = host(ProtocolEra::Stateless).await;
    let done = host
        .call(
            "store_conversation_turn",
            json!({ "session_id": "s-1", "thread_id": "side", "turn_number": 3, "role": "user",
                    "content": "Hi", "title": null }),
        )
        .await;
    assert_eq!(done["conversation_id"], "s-1");
    assert_eq!(done["branch"], "side");
    assert_eq!(done["turn_key"], "s-1:3");
    let say = |turn_id: Value, number: u64| {
        json!({ "conversation_id": "s-1", "turn_id": turn_id, "turn_number": number,
                "role": "user", "content": "Hi again" })
    };
    let again = host.call("store_conversation_turn", say(json!("3"), 3)).await;
    assert_eq!(again["turn_key"], "s-1:3");
    let (code, text) = host.refused("store_conversation_turn", say(json!("3"), 4)).await;
    assert_eq!(code, "invalid");
    assert!(text.contains("`turn_id` and `turn_number` differ"), "{text}");
}

#[tokio::test]
async fn the_turn_id_of_an_answer_names_that_turn() {
    let host = host(ProtocolEra::Stateless).await;
    let say = |turn_id: &Value, role: &str, content: &str| json!({ "conversation_id": "c", "turn_id": turn_id, "role": role, "content": content });
    let first = host.call("store_conversation_turn", say(&json!("7"), "user", "Hi")).await;
    let edit = say(&first["turn_id"], "user", "Hello");
    let edited = host.call("store_conversation_turn", edit).await;
    assert_eq!((&edited["turn_key"], &edited["superseded"]), (&json!("c:7"), &first["turn_id"]));
    let reply = say(&edited["turn_id"], "assistant", "Hi!");
    let (code, text) = host.refused("store_conversation_turn", reply).await;
    assert_eq!(code, "invalid");
    assert!(text.contains("give `7` as `turn_id`"), "{text}");
}

#[tokio::test]
async fn messages_in_anthropic_form_become_turns() {
    let host = host(ProtocolEra::Stateless).await;
    let call = json!({ "type": "tool_use", "id": "c1", "name": "f", "input": { "x": 1 } });
    let result = json!({ "type": "tool_result", "tool_use_id": "c1", "content": "Done." });
    let more = json!({ "type": "text", "text": "Go on." });
    let asked = host
        .call("store_conversation_turn", json!({ "conversation_id": "c", "turn_id": "1", "role": "assistant", "content_blocks": [call] }))
        .await;
    let several = json!({ "conversation_id": "c", "turn_id": "2", "role": "user",
        "content_blocks": [result, more] });
    let (code, text) = host.refused("store_conversation_turn", several).await;
    assert_eq!(code, "invalid");
    assert!(text.contains("send it in a list of `messages`"), "{text}");
    let messages = json!([{ "role": "user", "content": [result, more] }]);
    let done =
        host.call("append_turns", json!({ "conversation_id": "c", "messages": messages })).await;
    assert_eq!(done["turns"].as_array().expect("turns").len(), 2);
    let path =
        host.call("get_path", json!({ "conversation_id": "c", "format": "anthropic" })).await;
    let sent = Value::Object(path).to_string();
    assert!(sent.contains("\"tool_use\"") && sent.contains("\"tool_result\""), "{sent}");
    let edit = json!({ "turn": asked["turn_id"], "content_blocks": [
        { "type": "thinking", "thinking": "Hm.", "signature": "c2ln" }, call] });
    let edited = host.call("edit_turn", edit).await;
    assert_eq!(edited["outcome"], "created");
}
