//! How often which step comes, and with which numbers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Pick, Start, TestStep, TinyMessage};

fn pick() -> impl Strategy<Value = Pick> {
    let gone = prop::bool::weighted(0.12);
    (0..2u8, any::<u8>(), any::<u8>(), gone).prop_map(|(conversation, nth, form, also_gone)| Pick {
        conversation,
        nth,
        form,
        also_gone,
    })
}

fn read_result() -> impl Strategy<Value = TinyMessage> {
    let roles = prop_oneof![4 => Just(0u8), 4 => Just(1u8), 2 => Just(2u8), 1 => Just(3u8)];
    let texts = prop_oneof![4 => 0..4u8, 2 => 0..10u8];
    let shape = prop_oneof![12 => 0..13u8, 1 => 13..16u8];
    (roles, texts, shape, any::<u8>(), any::<u8>())
        .prop_map(|(role, text, shape, time, extra)| TinyMessage { role, text, shape, time, extra })
}

fn append() -> impl Strategy<Value = TestStep> {
    let start = prop_oneof![
        6 => Just(Start::Tip),
        2 => Just(Start::Root),
        3 => pick().prop_map(Start::At),
    ];
    let expect = prop::option::weighted(0.2, pick());
    let reuse = prop::bool::weighted(0.85);
    let branch = prop::option::weighted(0.6, any::<u8>());
    (0..2u8, start, branch, expect, any::<bool>(), reuse, vec(read_result(), 1..4)).prop_map(
        |(to, start, branch, expect, fork, reuse, messages)| TestStep::Append {
            to,
            start,
            branch,
            expect,
            fork,
            reuse,
            messages,
        },
    )
}

fn plain_step() -> impl Strategy<Value = TestStep> {
    let of = || 0..2u8;
    let n = any::<u8>;
    let back = || prop::option::weighted(0.5, any::<u8>());
    prop_oneof![
        1 => n().prop_map(|prompt| TestStep::Create { prompt }),
        1 => (of(), n(), prop::option::of(pick()))
            .prop_map(|(of, prompt, at)| TestStep::Derive { of, prompt, at }),
        14 => append(),
        4 => (of(), n(), n(), vec(read_result(), 0..3))
            .prop_map(|(to, branch, cut, more)| TestStep::Resend { to, branch, cut, more }),
        5 => (pick(), any::<bool>(), prop::option::of(n()))
            .prop_map(|(at, before, name)| TestStep::Fork { at, before, name }),
        1 => (of(), n(), n()).prop_map(|(of, branch, name)| TestStep::Rename { of, branch, name }),
        1 => (of(), n()).prop_map(|(of, branch)| TestStep::DropBranch { of, branch }),
        3 => (of(), n(), n()).prop_map(|(of, branch, back)| TestStep::Revert { of, branch, back }),
        1 => (pick(), n()).prop_map(|(to, branch)| TestStep::RevertTo { to, branch }),
        2 => (of(), n()).prop_map(|(of, branch)| TestStep::Restore { of, branch }),
        1 => (pick(), n()).prop_map(|(to, branch)| TestStep::RestoreTo { to, branch }),
        4 => (pick(), read_result(), prop::option::of(n()), prop::bool::weighted(0.8))
            .prop_map(|(turn, said, branch, reuse)| TestStep::Edit { turn, said, branch, reuse }),
        5 => (pick(), n()).prop_map(|(turn, offset)| TestStep::Split { turn, offset }),
        4 => (pick(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(turn, cascade, dry_run)| TestStep::Delete { turn, cascade, dry_run }),
        3 => (n(), pick()).prop_map(|(name, turn)| TestStep::Bookmark { name, turn }),
        1 => n().prop_map(|name| TestStep::DropBookmark { name }),
        3 => (pick(), n(), n(), any::<bool>())
            .prop_map(|(turn, what, value, force)| TestStep::Patch { turn, what, value, force }),
        1 => (of(), n(), n(), any::<bool>()).prop_map(|(of, what, value, force)| {
            TestStep::PatchConversation { of, what, value, force }
        }),
        6 => (of(), back()).prop_map(|(of, back)| TestStep::Undo { of, back }),
        4 => (of(), back()).prop_map(|(of, back)| TestStep::Redo { of, back }),
        2 => of().prop_map(|of| TestStep::UndoRedo { of }),
        1 => n().prop_map(|nth| TestStep::Replay { nth }),
        1 => pick().prop_map(|turn| TestStep::Purge { turn }),
    ]
}

/// Sequences of up to this many steps.
pub fn script(longest: usize) -> impl Strategy<Value = Vec<TestStep>> {
    let keyed = (0..6u8, plain_step()).prop_map(|(key, step)| match step {
        step @ (TestStep::Replay { .. } | TestStep::UndoRedo { .. } | TestStep::Purge { .. }) => {
            step
        }
        step => TestStep::Keyed { key, step: Box::new(step) },
    });
    let step = prop_oneof![9 => plain_step(), 1 => keyed];
    (append(), vec(step, 1..longest)).prop_map(|(first, mut steps)| {
        steps.insert(0, first);
        steps
    })
}
