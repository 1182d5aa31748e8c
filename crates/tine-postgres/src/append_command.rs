//! The call of the database function `append_all`: appends as arrays of columns.

use tine_store::{Branch, ConversationKey, Operation, Segment, Turn};

use crate::connection::{SqlCommand, values};
use crate::conversation_cache::PendingAppend;
use crate::rows;
use crate::txn::{TurnColumns, detail_columns};

const APPEND: &str = "SELECT append_all($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
    $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, \
    $33, $34, $35, $36, $37, $38, $39, $40, $41)";

type Bytea = Vec<u8>;

fn map_column<R, T>(records: &[R], column: impl FnMut(&R) -> T) -> Vec<T> {
    records.iter().map(column).collect()
}

fn encode_turn_runs(turns: &[Turn]) -> Option<Bytea> {
    let mut runs = Vec::new();
    turns.iter().for_each(|turn| rows::add_to_runs(&mut runs, turn.loc));
    rows::encode_runs(&runs)
}

/// Builds one command for appends to different conversations of one project.
pub(crate) fn build(project: i32, appends: &[&PendingAppend]) -> SqlCommand {
    let complete = || appends.iter().filter_map(|it| Some((it.operation.as_ref()?, *it)));
    let operations: Vec<&Operation> = complete().map(|(operation, _)| operation).collect();
    let segments: Vec<&Segment> = complete().flat_map(|(_, it)| &it.segments).collect();
    let branches: Vec<&Branch> = complete().flat_map(|(_, it)| &it.branches).collect();
    let turns: Vec<(ConversationKey, &Turn, TurnColumns)> = complete()
        .flat_map(|(operation, it)| it.turns.iter().map(|turn| (operation.conversation, turn)))
        .map(|(conversation, turn)| (conversation, turn, TurnColumns::of(turn)))
        .collect();
    let large = || turns.iter().filter(|(_, _, columns)| columns.large.is_some());
    let (parents, parent_indices): (Vec<i64>, Vec<i32>) =
        segments.iter().map(|it| rows::loc_columns(it.parent)).unzip();
    let (places, indices): (Vec<i64>, Vec<i32>) =
        turns.iter().map(|(_, turn, _)| rows::loc_columns(Some(turn.loc))).unzip();
    let (tips, tip_indices): (Vec<i64>, Vec<i32>) =
        branches.iter().map(|branch| rows::loc_columns(branch.tip)).unzip();
    SqlCommand::new(
        APPEND,
        values![
            project,
            map_column(&operations, |it| it.conversation.0),
            map_column(&operations, |it| rows::to_i64(it.seq)),
            map_column(&operations, |it| it.kind.clone()),
            map_column(&operations, |it| it.actor.clone()),
            map_column(&operations, |it| it.at.as_millis()),
            map_column(&operations, |it| detail_columns(&it.detail).0),
            map_column(&operations, |it| it.hash.0.0.to_vec()),
            map_column(&operations, |it| it.idempotency.as_ref().map(|first| first.key.clone())),
            map_column(&operations, |it| it
                .idempotency
                .as_ref()
                .map(|first| first.fingerprint.0.to_vec())),
            map_column(&operations, |it| it
                .idempotency
                .as_ref()
                .map(|first| first.answer.clone().into_bytes())),
            complete().map(|(_, it)| encode_turn_runs(&it.turns)).collect::<Vec<Option<Bytea>>>(),
            map_column(&segments, |it| it.conversation.0),
            map_column(&segments, |it| it.no.0),
            parents,
            parent_indices,
            map_column(&segments, |it| rows::to_i32(it.base_depth)),
            large().map(|(_, _, it)| it.shared.clone()).collect::<Vec<Option<Bytea>>>(),
            large().map(|(_, _, it)| it.large.clone()).collect::<Vec<Option<Bytea>>>(),
            map_column(&turns, |(conversation, _, _)| conversation.0),
            map_column(&turns, |(_, turn, _)| rows::to_i64(turn.operation)),
            places,
            indices,
            map_column(&turns, |(_, turn, _)| turn.id.as_bytes().to_vec()),
            map_column(&turns, |(_, turn, _)| turn.hash.0.0.to_vec()),
            map_column(&turns, |(_, turn, _)| rows::to_i32(turn.depth)),
            map_column(&turns, |(_, turn, _)| turn.created_at.as_millis()),
            map_column(&turns, |(_, _, columns)| columns.form),
            map_column(&turns, |(_, _, columns)| columns.body.clone()),
            map_column(&turns, |(_, _, columns)| columns.shared.clone()),
            map_column(&turns, |(_, turn, _)| turn
                .tool_call_id
                .as_ref()
                .map(|it| it.as_bytes().to_vec())),
            map_column(&turns, |(_, turn, _)| rows::encode_metadata(&turn.metadata)),
            map_column(&turns, |(_, turn, _)| turn.origin.to_bytes()),
            map_column(&branches, |it| it.conversation.0),
            map_column(&branches, |it| it.id.as_bytes().to_vec()),
            map_column(&branches, |it| it.name.as_str().to_owned()),
            tips,
            tip_indices,
            map_column(&branches, |it| it.forked_from.map(|turn| turn.as_bytes().to_vec())),
            map_column(&branches, |it| it.created_at.as_millis()),
            map_column(&branches, |it| rows::to_i64(it.version)),
        ],
    )
}
