//! What listings show of conversations: labels, times, numbers of turns, sub-agents.

use tine_core::{ConversationId, Json, Limits, Message, Name, Timestamp, json};
use tine_engine::{
    Append, ConversationPatch, ConversationView, Delete, DeleteMode, NewConversation, Overview,
    Page, RecentQuery, SplitTurn,
};

use crate::world::{World, bot, for_each_store, user};

fn listed(world: &World, query: &RecentQuery) -> Vec<ConversationView> {
    let page = Page::default();
    world.engine.recent_conversations(&world.call, query, page).expect("a list").items
}

fn overview(world: &World, talk: &ConversationId) -> Overview {
    let found = world.engine.conversation(&world.call, talk).expect("it is there");
    found.overview.expect("one conversation has an overview")
}

fn label(world: &World, talk: &ConversationId) -> Option<String> {
    overview(world, talk).label
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a sound time")
}

fn sent(message: Message, time: &str) -> Message {
    Message { created_at: Some(at(time)), ..message }
}

fn parsed(text: &str) -> Json {
    json::parse(text.as_bytes(), 16).expect("sound JSON")
}

#[test]
fn a_label_is_the_title_or_the_first_question() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        assert_eq!(label(world, &talk), None);
        let mut hidden = user("Environment of a program");
        hidden.metadata.tags.insert("hidden".to_owned());
        let messages = vec![
            hidden,
            user("<local-command>ls</local-command>"),
            bot("Hello"),
            user("<ide_selection>\nfn a() {}\n</ide_selection>\nWhat  does\nthis do?"),
            user("Second question"),
        ];
        world.append(Append::to(talk.clone(), messages));
        assert_eq!(label(world, &talk).as_deref(), Some("What does this do?"));
        let title = Some(Some("About a".to_owned()));
        let patch = ConversationPatch { title, ..ConversationPatch::default() };
        world.engine.patch_conversation(&world.call, &talk, patch).expect("a title");
        assert_eq!(label(world, &talk).as_deref(), Some("About a"));

        let only_added = world.talk("added");
        world.say(&only_added, &["<local-command>ls</local-command>"]);
        let text = Some("<local-command>ls</local-command>");
        assert_eq!(label(world, &only_added).as_deref(), text);
        let html = world.talk("html");
        world.say(&html, &["<div>a</div> is what?"]);
        assert_eq!(label(world, &html).as_deref(), Some("<div>a</div> is what?"));
    });
}

#[test]
fn a_conversation_is_as_recent_as_its_last_message() {
    for_each_store(|world| {
        let (old, new) = (world.talk("old"), world.talk("new"));
        world.append(Append::to(new.clone(), vec![sent(user("n"), "2024-03-01T00:00:00Z")]));
        world.append(Append::to(
            old.clone(),
            vec![sent(user("o"), "2024-01-01T00:00:00Z"), sent(bot("p"), "2024-01-02T00:00:00Z")],
        ));
        let order = |query: &RecentQuery| -> Vec<String> {
            listed(world, query).iter().map(|it| format!("{} {}", it.id, it.active_at)).collect()
        };
        let all = RecentQuery::default();
        let both = ["new 2024-03-01T00:00:00Z", "old 2024-01-02T00:00:00Z"];
        assert_eq!(order(&all), both);
        let name = Name::new("mark", &Limits::default()).expect("a sound name");
        let tip = world.engine.branch(&world.call, &old, "main").expect("main").tip.expect("a tip");
        world.engine.set_bookmark(&world.call, name, world.turn(tip)).expect("a bookmark");
        let metadata = Some(parsed(r#"{"folder":"/home/me/app"}"#));
        let patch = ConversationPatch { metadata, ..ConversationPatch::default() };
        world.engine.patch_conversation(&world.call, &old, patch).expect("metadata");
        assert_eq!(order(&all), both, "changes that say nothing move nothing");
        let since = RecentQuery { since: Some(at("2024-02-01T00:00:00Z")), ..all.clone() };
        assert_eq!(order(&since), both[..1]);
        let until = RecentQuery { until: Some(at("2024-03-01T00:00:00Z")), ..all.clone() };
        assert_eq!(order(&until), both[1..]);
        for (folder, fits) in [("app", true), ("/home/me", true), ("/home/m", false), ("me", false)]
        {
            let query = RecentQuery { folder: Some(folder.to_owned()), ..all.clone() };
            assert_eq!(order(&query).len(), usize::from(fits), "{folder}");
        }
        let words = RecentQuery { words: Some("N".to_owned()), ..all };
        assert_eq!(order(&words), both[..1], "the first question counts as a title");
    });
}

#[test]
fn the_number_of_turns_is_that_of_the_shown_tree() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let check = || {
            let stats = world.engine.stats(&world.call, Some(&talk)).expect("figures");
            let turns = stats.conversation.expect("of the conversation").turns;
            assert_eq!(overview(world, &talk).turns, turns);
            turns
        };
        let said = world.say(&talk, &["a", "bcde", "f", "gh", "i", "j"]);
        let side = world.say_under(&talk, said[0], "side", bot("zz"));
        assert_eq!(check(), 7);
        let split = |turn, offset| {
            let request = SplitTurn { turn: world.turn(turn), offset };
            world.engine.split(&world.call, request).expect("two halves")
        };
        let halves = split(said[1], 2);
        split(halves.left.id, 1);
        assert_eq!(check(), 9);
        let delete = |turn, mode| {
            let request = Delete { turn: world.turn(turn), mode, force: false, dry_run: false };
            world.engine.delete(&world.call, request).expect("a turn that can go");
        };
        delete(said[2], DeleteMode::Reparent);
        assert_eq!(check(), 8);
        delete(said[4], DeleteMode::Cascade);
        assert_eq!(check(), 6);
        split(side, 1);
        delete(said[3], DeleteMode::Cascade);
        check();
        delete(halves.right.id, DeleteMode::Reparent);
        check();
        for _ in 0..8 {
            if world.engine.undo(&world.call, &talk, None).is_err() {
                break;
            }
            check();
        }
    });
}

#[test]
fn sub_agents_follow_the_conversation_that_started_them() {
    for_each_store(|world| {
        let make = |id: &str, metadata: &str| {
            let metadata = parsed(metadata);
            let new = NewConversation { metadata, ..NewConversation::named(id).expect("an id") };
            let made = world.engine.create_conversation(&world.call, new).expect("made");
            world.say(&made.id, &["x"]);
        };
        make("a", r#"{"imported":{"format":"opencode","started":["b"]}}"#);
        make("b", "{}");
        make("a/agent-1", "{}");
        make("lost/agent", "{}");
        let all = listed(world, &RecentQuery::default());
        let of = |id: &str| {
            let found = all.iter().find(|it| it.id.as_str() == id).expect("it is listed");
            found.overview.clone().expect("listings have overviews")
        };
        assert_eq!(all.len(), 4);
        assert_eq!(of("a").subagents, 2);
        assert_eq!(of("a").program.as_deref(), Some("opencode"));
        assert_eq!(of("b").started_by.as_ref().map(ConversationId::as_str), Some("a"));
        assert_eq!(of("a/agent-1").started_by.as_ref().map(ConversationId::as_str), Some("a"));
        assert_eq!(of("lost/agent").started_by, None);
        let top = RecentQuery { top_level: true, ..RecentQuery::default() };
        let ids: Vec<String> = listed(world, &top).iter().map(|it| it.id.to_string()).collect();
        assert_eq!(ids, ["lost/agent", "a"]);
        let only = RecentQuery { words: Some("agent-1".to_owned()), ..top };
        assert_eq!(listed(world, &only).len(), 1, "one whose parent is not listed stands alone");
    });
}
