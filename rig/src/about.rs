//! Calls about one turn, as every plan draws them.

use tine_core::{Body, Json, TurnId};
use tine_engine::{Delete, DeleteMode, Edit, ForkPoint, MetadataPatch, TurnRef};

use crate::chance::Chance;
use crate::request::Request;

/// Returns where a fork begins: mostly at the turn.
pub(crate) fn fork_point(turn: TurnId, chance: &mut Chance) -> ForkPoint {
    match chance.one_in(4) {
        true => ForkPoint::Before(turn.into()),
        false => ForkPoint::At(turn.into()),
    }
}

/// Another version of a turn.
pub(crate) fn edit(turn: TurnRef, text: String, chance: &mut Chance) -> Request {
    Request::Edit(Edit {
        turn,
        body: Body::Text(text),
        branch: chance.one_in(2).then(|| "main".to_owned()),
        reuse: true,
    })
}

/// Returns a deletion: mostly of the turn alone.
pub(crate) fn delete(turn: TurnRef, chance: &mut Chance) -> Request {
    let mode = match chance.one_in(3) {
        true => DeleteMode::Cascade,
        false => DeleteMode::Reparent,
    };
    Request::Delete(Delete { turn, mode, force: false, dry_run: false })
}

/// Returns a title, a tag and a text beside a turn.
pub(crate) fn metadata(
    turn: TurnRef,
    text: impl Fn(&mut Chance) -> String,
    chance: &mut Chance,
) -> Request {
    let patch = MetadataPatch {
        title: Some(Some(format!("title {}", chance.below(100)))),
        add_tags: vec![format!("tag-{}", chance.below(10))],
        custom_data: Some(Json::from(text(chance))),
        force: chance.one_in(2),
        ..MetadataPatch::default()
    };
    Request::Metadata(turn, patch)
}
