//! Tokens and cost by conversation, branch and model.

use tine_core::json::{self, object};
use tine_core::{ConversationId, ErrorKind, Message, TurnId};
use tine_engine::{Append, DeleteMode, Derive, SplitTurn, UsageShare, UsageTotals};

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
