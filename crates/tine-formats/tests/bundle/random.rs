//! Random stories: whatever was done to a conversation, its bundle carries it.

use proptest::prelude::*;
use tine_core::{Body, ErrorKind, Json, Message, Reference, Role, TurnId};
use tine_engine::{
    Append, ConversationPatch, Delete, DeleteMode, Edit, Engine, Error, Fork, ForkPoint,
    MetadataPatch, MoveBranch, Purge, PurgeTarget, SplitTurn, TurnRef,
};

use super::sample;
use super::stories::{Folder, call, create, export, id, import, import_file, memory, name};

/// One act: what, on which of the turns there are, and how.
type Act = (u8, u8, u8);

const BRANCHES: [&str; 3] = ["main", "alt", "西"];
const TEXTS: [&str; 4] = ["Yes.", "No, 東京!", "👩‍👩‍👧‍👦 or\n\u{1}", "A long answer about trains."];

/// Does it, or is refused; nothing else may happen.
fn act(engine: &Engine, turns: &mut Vec<TurnId>, (what, which, how): Act) {
    let call = call();
    let turn = (!turns.is_empty()).then(|| turns[usize::from(which) % turns.len()]);
    let text = TEXTS[usize::from(how) % TEXTS.len()];
    let branch = BRANCHES[usize::from(how / 4) % BRANCHES.len()];
    let there = |turn: TurnId| TurnRef::within(id("trip"), turn);
    let outcome: Result<(), Error> = match (what % 18, turn) {
        (0..=3, _) | (_, None) => {
            let roles = [Role::User, Role::Assistant];
            let role = roles[usize::from(which) % 2];
            let messages = vec![Message::text(role, text), Message::text(Role::User, "Go on")];
            let mut request = Append::to(id("trip"), messages);
            request.reuse = how % 3 != 0;
            if let Some(turn) = turn
                && what % 2 == 1
            {
                request = request.under(turn.into(), branch);
            }
            let keyed = match how % 5 {
                0 => call.with_key(format!("key {which} {how}")),
                _ => call,
            };
            engine.append(&keyed, request).map(|done| {
                turns.extend(done.turns.iter().map(|turn| turn.id));
            })
        }
        (4 | 5, Some(turn)) => {
            let body = Body::Text(text.to_owned());
            let branch = (how % 2 == 0).then(|| branch.to_owned());
            let request = Edit { turn: there(turn), body, branch, reuse: how % 3 != 0 };
            engine.edit(&call, request).map(|done| turns.push(done.turn.id))
        }
        (6 | 7, Some(turn)) => {
            let request = SplitTurn { turn: there(turn), offset: usize::from(how % 9) };
            engine.split(&call, request).map(|done| turns.extend([done.left.id, done.right.id]))
        }
        (8 | 9, Some(turn)) => {
            let mode = if how % 2 == 0 { DeleteMode::Cascade } else { DeleteMode::Reparent };
            let request = Delete { turn: there(turn), mode, force: false, dry_run: false };
            engine.delete(&call, request).map(drop)
        }
        (10, Some(turn)) => {
            let turn: Reference = turn.into();
            let point = if how % 2 == 0 { ForkPoint::At(turn) } else { ForkPoint::Before(turn) };
            let request = Fork { conversation: Some(id("trip")), point, name: Some(name(branch)) };
            engine.fork(&call, request).map(drop)
        }
        (11, Some(turn)) => {
            let label = if how % 2 == 0 { "here" } else { "there" };
            engine.set_bookmark(&call, name(label), there(turn)).map(drop)
        }
        (12, Some(turn)) => {
            let patch = MetadataPatch {
                title: (how % 3 == 0).then(|| Some(text.to_owned())),
                add_tags: vec![format!("tag {}", how % 5)],
                custom_data: (how % 4 == 0).then(|| Json::from(u64::from(how))),
                force: how % 2 == 0,
                ..MetadataPatch::default()
            };
            engine.patch_metadata(&call, there(turn), patch).map(drop)
        }
        (13, Some(turn)) => {
            let request = MoveBranch {
                conversation: id("trip"),
                branch: branch.to_owned(),
                to: Some(turn.into()),
                expected_tip: None,
            };
            let moved = match how % 2 {
                0 => engine.revert(&call, request),
                _ => engine.restore(&call, request),
            };
            moved.map(drop)
        }
        (14, _) => {
            let patch = ConversationPatch {
                title: Some((how % 2 == 0).then(|| text.to_owned())),
                archived: Some(how % 3 == 0),
                force: true,
                ..ConversationPatch::default()
            };
            engine.patch_conversation(&call, &id("trip"), patch).map(drop)
        }
        (15 | 16, _) => {
            let done = match how % 3 {
                0 => engine.redo(&call, &id("trip"), None),
                // Not the first, which made the conversation: nothing would be left to export.
                _ => engine.undo(&call, &id("trip"), Some(2 + u64::from(which % 32))),
            };
            done.map(drop)
        }
        (_, Some(turn)) => {
            let target = PurgeTarget::Turn(there(turn));
            let ask = Purge { target: target.clone(), confirm: None };
            engine.purge(&call, ask).and_then(|asked| {
                engine.purge(&call, Purge { target, confirm: asked.confirm }).map(drop)
            })
        }
    };
    if let Err(error) = outcome {
        let refused = !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Internal);
        assert!(refused, "{what} {which} {how}: {error}");
    }
}

fn story(acts: &[Act], half: usize) {
    let source = memory(1);
    create(&source, "trip");
    let mut turns = Vec::new();
    for step in &acts[..half] {
        act(&source, &mut turns, *step);
    }
    let early = export(&source, &["trip"]);
    for step in &acts[half..] {
        act(&source, &mut turns, *step);
    }
    let late = export(&source, &["trip"]);
    assert_eq!(source.verify().unwrap().problems, []);
    sample::verify(&late).unwrap();

    let folder = Folder::new();
    for (target, kind) in [(memory(2), "memory"), (folder.embedded(2), "embedded")] {
        import_file(&target, &early).unwrap();
        assert_eq!(differ(&export(&target, &["trip"]), &early), None, "{kind}, first half");
        import(&target, &late).unwrap();
        assert_eq!(differ(&export(&target, &["trip"]), &late), None, "{kind}, second half");
        assert_eq!(target.verify().unwrap().problems, [], "{kind}");
    }
    let fresh = memory(3);
    import(&fresh, &late).unwrap();
    assert_eq!(differ(&export(&fresh, &["trip"]), &late), None, "at once");
}

/// The first lines that differ.
fn differ(found: &[u8], wanted: &[u8]) -> Option<(String, String)> {
    if found == wanted {
        return None;
    }
    let (found, wanted) = (String::from_utf8_lossy(found), String::from_utf8_lossy(wanted));
    let mut pairs = found.lines().zip(wanted.lines());
    let (found, wanted) = pairs.find(|(found, wanted)| found != wanted)?;
    Some((format!("found  {found}"), format!("wanted {wanted}")))
}

/// `TINE_CASES=5000` runs more of them.
fn cases() -> u32 {
    std::env::var("TINE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_story_survives_a_round_trip(
        acts in prop::collection::vec(any::<Act>(), 1..40),
        half in any::<prop::sample::Index>(),
    ) {
        let half = half.index(acts.len());
        story(&acts, half);
    }
}
