//! Tokens and cost by conversation, branch and model.

use tine_core::json::{self, object};
use tine_core::{ConversationId, ErrorKind, Message, TurnId};
use tine_engine::{
    Append, DeleteMode, Derive, ModelPrice, NewConversation, Prices, SplitTurn, UsageDimension,
    UsageQuery, UsageReport, UsageShare, UsageTotals,
};

use crate::world::{World, bot, for_each_store, ids, user};

/// An answer that cost this many tokens, read and written.
fn paid(text: &str, model: &str, input: u64, output: u64) -> Message {
    let usage = object([("prompt_tokens", input.into()), ("completion_tokens", output.into())]);
    let cost = json::parse(b"0.25", 4).expect("a number");
    let info = object([("model", model.into()), ("usage", usage), ("cost_usd", cost)]);
    let mut message = bot(text);
    message.metadata.source_info = Some(info);
    message
}

/// The total of one branch, or of all for `*`.
fn total(totals: &UsageTotals, name: &str) -> u64 {
    let each =
        |share: &UsageShare| (share.name.as_deref() == Some(name)).then_some(share.usage.total);
    if name == "*" {
        totals.total.total
    } else {
        totals.branches.iter().find_map(each).unwrap_or(0)
    }
}

fn of(world: &World, talk: &ConversationId) -> UsageTotals {
    world.engine.usage(&world.call, Some(talk)).expect("usage")
}

fn conversation(world: &World) -> (ConversationId, Vec<TurnId>) {
    let talk = world.talk("talk");
    let messages =
        vec![user("a"), paid("bcd", "m1", 10, 1), user("e"), paid("f", "m2", 20, 2), user("g")];
    let said = ids(&world.append(Append::to(talk.clone(), messages)));
    world.say_under(&talk, said[2], "side", paid("h", "m1", 40, 4));
    (talk, said)
}

#[test]
fn usage_is_summed_by_conversation_branch_and_model() {
    for_each_store(|world| {
        let (talk, _) = conversation(world);
        let totals = of(world, &talk);
        assert_eq!(total(&totals, "*"), 77);
        assert_eq!((totals.total.turns, totals.total.input, totals.total.output), (3, 70, 7));
        assert_eq!(totals.total.cost_usd(), Some(0.75));
        assert_eq!((total(&totals, "main"), total(&totals, "side")), (33, 55));
        let models: Vec<_> =
            totals.models.iter().map(|it| (it.name.as_deref(), it.usage.total)).collect();
        assert_eq!(models, [(Some("m1"), 55), (Some("m2"), 22)]);
        world.talk("empty");
        let all = world.engine.usage(&world.call, None).expect("usage");
        assert_eq!(all.total, totals.total);
        let share = UsageShare { name: Some(talk.to_string()), usage: totals.total };
        assert_eq!(all.conversations, [share]);
        assert_eq!(all.models, totals.models);
        let missing = ConversationId::from_stored("missing");
        world.refused(ErrorKind::NotFound, |engine, call| engine.usage(call, Some(&missing)));
    });
}

#[test]
fn halves_and_copies_do_not_count_again() {
    for_each_store(|world| {
        let (talk, said) = conversation(world);
        let before = of(world, &talk);
        let split = |turn: TurnId| {
            let request = SplitTurn { turn: world.turn(turn), offset: 1 };
            world.engine.split(&world.call, request).expect("a split")
        };
        let done = split(said[1]);
        assert_eq!(of(world, &talk), before);
        split(done.right.id);
        world.fork_at(&talk, done.left.id, "left");
        world.fork_at(&talk, said[1], "right");
        let after = of(world, &talk);
        assert_eq!(after.total, before.total);
        assert_eq!((total(&after, "main"), total(&after, "side")), (33, 55));
        assert_eq!((total(&after, "left"), total(&after, "right")), (11, 11));
        let derive = Derive {
            conversation: talk.clone(),
            system_prompt: Some("other".to_owned()),
            config: None,
            id: Some(ConversationId::from_stored("derived")),
            at: Some(crate::world::reference("main")),
        };
        let derived = world.engine.derive(&world.call, derive).expect("a derivative");
        assert_eq!(total(&of(world, &derived.conversation.id), "*"), 0);
        let all = world.engine.usage(&world.call, None).expect("usage");
        assert_eq!(all.total, before.total);
    });
}

#[test]
fn deleted_turns_count_in_total_usage_and_on_no_branch() {
    for_each_store(|world| {
        let (talk, said) = conversation(world);
        let request = tine_engine::Delete {
            turn: world.turn(said[1]),
            mode: DeleteMode::Reparent,
            force: false,
            dry_run: false,
        };
        world.engine.delete(&world.call, request).expect("a deletion");
        let totals = of(world, &talk);
        assert_eq!(total(&totals, "*"), 77);
        assert_eq!((total(&totals, "main"), total(&totals, "side")), (22, 44));
    });
}

#[test]
fn a_report_groups_usage_and_estimates_only_costs_that_have_a_price() {
    for_each_store(|world| {
        let metadata =
            json::parse(br#"{"imported":{"format":"codex"},"folder":"/home/me/app"}"#, 8);
        let new = NewConversation {
            metadata: metadata.expect("sound JSON"),
            ..NewConversation::named("talk").expect("a sound id")
        };
        let talk = world.engine.create_conversation(&world.call, new).expect("made").id;
        let free = |text: &str, model: &str, day: &str| {
            let mut message = paid(text, model, 1_000_000, 100_000);
            if let Some(json::Json::Object(info)) = &mut message.metadata.source_info {
                info.remove("cost_usd");
            }
            message.created_at = Some(day.parse().expect("a sound time"));
            message
        };
        let messages = vec![
            user("a"),
            free("b", "m1", "2024-01-01T10:00:00Z"),
            free("c", "m2", "2024-01-01T23:59:59Z"),
            free("d", "m1", "2024-01-02T00:00:00Z"),
        ];
        world.append(Append::to(talk, messages));
        let report = |query: &UsageQuery| -> UsageReport {
            world.engine.usage_report(&world.call, query).expect("a report")
        };
        let all = report(&UsageQuery::default());
        assert_eq!((all.total.turns, all.total.cost_usd()), (3, None));
        assert!(all.groups.is_empty());
        let price = ModelPrice { input: 2.0, output: 10.0, cache_read: None, cache_write: None };
        let prices = Prices([("m1".to_owned(), price)].into());
        let query =
            UsageQuery { by: UsageDimension::ALL.to_vec(), prices, ..UsageQuery::default() };
        let rows: Vec<String> = report(&query)
            .groups
            .iter()
            .map(|it| {
                let known = [&it.day, &it.program, &it.folder, &it.model];
                let known: Vec<&str> = known.map(|it| it.as_deref().unwrap_or("?")).into();
                format!("{} {} {:?}", known.join(" "), it.usage.total, it.usage.cost_usd())
            })
            .collect();
        assert_eq!(
            rows,
            [
                "2024-01-01 codex /home/me/app m1 1100000 Some(3.0)",
                "2024-01-01 codex /home/me/app m2 1100000 None",
                "2024-01-02 codex /home/me/app m1 1100000 Some(3.0)",
            ]
        );
        assert_eq!(report(&query).total.priced, 2);
        let second = UsageQuery { since: "2024-01-02T00:00:00Z".parse().ok(), ..query.clone() };
        assert_eq!(report(&second).total.turns, 1);
        let other = UsageQuery { program: Some("pi".to_owned()), ..query };
        assert_eq!(report(&other), UsageReport::default());
    });
}
