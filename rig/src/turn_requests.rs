//! Random requests about one turn, for all plans.

use tine_core::{Body, Json, TurnId};
use tine_engine::{Delete, DeleteMode, Edit, ForkPoint, MetadataPatch, TurnRef};

use crate::request::Request;
use crate::seeded_rng::SeededRng;

/// Returns a fork point, usually at the turn.
pub(crate) fn fork_point(turn: TurnId, rng: &mut SeededRng) -> ForkPoint {
    match rng.one_in(4) {
        true => ForkPoint::Before(turn.into()),
        false => ForkPoint::At(turn.into()),
    }
}

/// Returns an edit of a turn.
pub(crate) fn edit(turn: TurnRef, text: String, rng: &mut SeededRng) -> Request {
    Request::Edit(Edit {
        turn,
        body: Body::Text(text),
        branch: rng.one_in(2).then(|| "main".to_owned()),
        reuse: true,
    })
}

/// Returns a deletion, usually of the turn alone.
pub(crate) fn delete(turn: TurnRef, rng: &mut SeededRng) -> Request {
    let mode = match rng.one_in(3) {
        true => DeleteMode::Cascade,
        false => DeleteMode::Reparent,
    };
    Request::Delete(Delete { turn, mode, force: false, dry_run: false })
}

/// Returns a title, a tag and custom data of a turn.
pub(crate) fn metadata(
    turn: TurnRef,
    text: impl Fn(&mut SeededRng) -> String,
    rng: &mut SeededRng,
) -> Request {
    let patch = MetadataPatch {
        title: Some(Some(format!("title {}", rng.below(100)))),
        add_tags: vec![format!("tag-{}", rng.below(10))],
        custom_data: Some(Json::from(text(rng))),
        force: rng.one_in(2),
        ..MetadataPatch::default()
    };
    Request::Metadata(turn, patch)
}
