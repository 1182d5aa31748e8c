//! Appends as the columns that the database's function for them takes.

use tine_store::{Branch, ConversationKey, Operation, Segment, Turn};

use crate::conversation_cache::Added;
use crate::link::{Command, values};
use crate::rows;
use crate::txn::{TurnColumns, detail_columns};

const APPEND: &str = "SELECT append_all($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
    $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, \
    $33, $34, $35, $36, $37, $38, $39, $40, $41)";

type Bytes = Vec<u8>;

fn each<R, T>(records: &[R], column: impl FnMut(&R) -> T) -> Vec<T> {
    records.iter().map(column).collect()
}

fn runs(turns: &[Turn]) -> Option<Bytes> {
    let mut runs = Vec::new();
    turns.iter().for_each(|turn| rows::add_to_runs(&mut runs, turn.loc));
    rows::runs_bytes(&runs)
}

/// Appends to different conversations of one project, as one command.
pub(crate) fn command(project: i32, appends: &[&Added]) -> Command {
    let whole = || appends.iter().filter_map(|it| Some((it.operation.as_ref()?, *it)));
    let operations: Vec<&Operation> = whole().map(|(operation, _)| operation).collect();
    let segments: Vec<&Segment> = whole().flat_map(|(_, it)| &it.segments).collect();
    let branches: Vec<&Branch> = whole().flat_map(|(_, it)| &it.branches).collect();
    let turns: Vec<(ConversationKey, &Turn, TurnColumns)> = whole()
        .flat_map(|(operation, it)| it.turns.iter().map(|turn| (operation.conversation, turn)))
        .map(|(conversation, turn)| (conversation, turn, TurnColumns::of(turn)))
        .collect();
    let large = || turns.iter().filter(|(_, _, columns)| columns.large.is_some());
    let (parents, parent_indices): (Vec<i64>, Vec<i32>) =
        segments.iter().map(|it| rows::place(it.parent)).unzip();
    let (places, indices): (Vec<i64>, Vec<i32>) =
        turns.iter().map(|(_, turn, _)| rows::place(Some(turn.loc))).unzip();
    let (tips, tip_indices): (Vec<i64>, Vec<i32>) =
        branches.iter().map(|branch| rows::place(branch.tip)).unzip();
    Command::new(
        APPEND,
        values![
            project,
            each(&operations, |it| it.conversation.0),
            each(&operations, |it| rows::number(it.seq)),
            each(&operations, |it| it.kind.clone()),
            each(&operations, |it| it.actor.clone()),
            each(&operations, |it| it.at.as_millis()),
            each(&operations, |it| detail_columns(&it.detail).0),
            each(&operations, |it| it.hash.0.0.to_vec()),
            each(&operations, |it| it.idempotency.as_ref().map(|first| first.key.clone())),
            each(&operations, |it| it
                .idempotency
                .as_ref()
                .map(|first| first.fingerprint.0.to_vec())),
            each(&operations, |it| it
                .idempotency
                .as_ref()
                .map(|first| first.answer.clone().into_bytes())),
            whole().map(|(_, it)| runs(&it.turns)).collect::<Vec<Option<Bytes>>>(),
            each(&segments, |it| it.conversation.0),
            each(&segments, |it| it.no.0),
            parents,
            parent_indices,
            each(&segments, |it| rows::small(it.base_depth)),
            large().map(|(_, _, it)| it.shared.clone()).collect::<Vec<Option<Bytes>>>(),
            large().map(|(_, _, it)| it.large.clone()).collect::<Vec<Option<Bytes>>>(),
            each(&turns, |(conversation, _, _)| conversation.0),
            each(&turns, |(_, turn, _)| rows::number(turn.operation)),
            places,
            indices,
            each(&turns, |(_, turn, _)| turn.id.as_bytes().to_vec()),
            each(&turns, |(_, turn, _)| turn.hash.0.0.to_vec()),
            each(&turns, |(_, turn, _)| rows::small(turn.depth)),
            each(&turns, |(_, turn, _)| turn.created_at.as_millis()),
            each(&turns, |(_, _, columns)| columns.form),
            each(&turns, |(_, _, columns)| columns.body.clone()),
            each(&turns, |(_, _, columns)| columns.shared.clone()),
            each(&turns, |(_, turn, _)| turn
                .tool_call_id
                .as_ref()
                .map(|it| it.as_bytes().to_vec())),
            each(&turns, |(_, turn, _)| rows::metadata_bytes(&turn.metadata)),
            each(&turns, |(_, turn, _)| turn.origin.to_bytes()),
            each(&branches, |it| it.conversation.0),
            each(&branches, |it| it.id.as_bytes().to_vec()),
            each(&branches, |it| it.name.as_str().to_owned()),
            tips,
            tip_indices,
            each(&branches, |it| it.forked_from.map(|turn| turn.as_bytes().to_vec())),
            each(&branches, |it| it.created_at.as_millis()),
            each(&branches, |it| rows::number(it.version)),
        ],
    )
}
