//! The same with a server, over the routes that it has: a conversation that is behind on one side
//! travels as a bundle; where both went on, turns travel one line at a time.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufReader, Cursor};

use tine_client::Client;
use tine_core::{ConversationId, Kind, Message, OperationHash, Reference, TurnHash};
use tine_engine::{
    Append, BundleRecord, Call, Engine, Imported, OnConflict, Operations, Page, PathQuery, Pulled,
};
use tine_formats::bundle::{Reader, read_bundle, write_bundle};
use tine_formats::render::whole_path;
use tine_store::Content;

use super::{Report, SyncArgs};
use crate::failure::{Failure, Result};

/// Conversations of either side. The log of a project stays where it is.
pub(super) fn conversations(
    here: &Engine,
    there: &Client,
    call: &Call,
) -> Result<BTreeSet<ConversationId>> {
    let own = here.exported(call)?.into_iter().filter(|id| !id.as_str().starts_with('~'));
    let mut ids: BTreeSet<ConversationId> = own.collect();
    let mut page = Page::default();
    loop {
        let listing = match there.conversations(call, true, page) {
            Ok(listing) => listing,
            // A project that only this side has.
            Err(error) if error.kind() == Kind::NotFound => return Ok(ids),
            Err(error) => return Err(error.into()),
        };
        ids.extend(listing.items.into_iter().map(|conversation| conversation.id));
        match listing.next {
            Some(next) => page = Page { cursor: Some(next), ..Page::default() },
            None => return Ok(ids),
        }
    }
}

pub(super) fn exchange(
    here: &Engine,
    there: &Client,
    call: &Call,
    id: &ConversationId,
    args: &SyncArgs,
    report: &mut Report,
) -> Result<()> {
    let ours = here.log_end(call, id)?;
    let theirs = log_end(there, call, id)?;
    let ends = |end: Option<(u64, OperationHash)>| end.map_or(0, |(seq, _)| seq);
    if ours == theirs {
        return Ok(());
    }
    if ends(ours) < ends(theirs) {
        if args.push {
            return Ok(());
        }
        let bundle = fetched(there, call, id)?;
        match read_bundle(here, Some(&call.project), &mut Cursor::new(&bundle)) {
            Ok(done) => {
                report.pulled.add(taken(&done, bundle.len()));
                return Ok(());
            }
            Err(error) if error.kind() == Kind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
    } else if ends(theirs) < ends(ours) {
        if args.pull {
            return Ok(());
        }
        let mut bundle = Vec::new();
        write_bundle(here, call, std::slice::from_ref(id), &mut bundle)?;
        match there.import(Some(&call.project), &mut Cursor::new(&bundle)) {
            Ok(done) => {
                report.pushed.add(taken(&done, bundle.len()));
                return Ok(());
            }
            Err(error) if error.kind() == Kind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
    }
    diverged(here, there, call, id, args, report)
}

/// A bundle that was taken in.
fn taken(done: &Imported, bytes: usize) -> Pulled {
    Pulled {
        new: done.conversations > 0,
        diverged: false,
        turns: done.turns,
        operations: done.operations,
        bytes: bytes as u64,
    }
}

fn log_end(
    there: &Client,
    call: &Call,
    id: &ConversationId,
) -> Result<Option<(u64, OperationHash)>> {
    match there.operations(call, id, Page { cursor: None, limit: Some(1) }) {
        Ok(listing) => Ok(listing.items.first().map(|operation| (operation.seq, operation.hash))),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn fetched(there: &Client, call: &Call, id: &ConversationId) -> Result<Vec<u8>> {
    let mut bundle = Vec::new();
    there.export(call, std::slice::from_ref(id))?.write(&mut bundle)??;
    Ok(bundle)
}

/// Both sides have gone on: each takes over the turns of the other.
fn diverged(
    here: &Engine,
    there: &Client,
    call: &Call,
    id: &ConversationId,
    args: &SyncArgs,
    report: &mut Report,
) -> Result<()> {
    let bundle = fetched(there, call, id)?;
    let mut input = BufReader::new(Cursor::new(&bundle));
    let mut reader = Reader::new(&mut input, here.limits())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    let known: HashSet<TurnHash> = records
        .iter()
        .filter_map(|record| match record {
            BundleRecord::Turn { hash, .. } => Some(*hash),
            _ => None,
        })
        .collect();
    if !args.push {
        let done = here.merge_turns(call, id, records)?;
        report.pulled.add(Pulled { bytes: bundle.len() as u64, ..done });
    }
    if args.pull {
        return Ok(());
    }
    for branch in here.branches(call, id)? {
        let Some(tip) = branch.tip else { continue };
        let path = whole_path(here, call, PathQuery::of(id.clone()).to(tip))?;
        let shared = path.turns.iter().take_while(|turn| known.contains(&turn.hash)).count();
        let mut messages = Vec::new();
        for turn in &path.turns[shared..] {
            let Content::Kept(body) = &turn.content else {
                let why = format!("the branch {} holds a purged turn", branch.name);
                return Err(Failure::refused(Kind::Unsupported, why));
            };
            messages.push(Message {
                role: turn.role,
                body: body.clone(),
                tool_call_id: turn.tool_call_id.clone(),
                created_at: Some(turn.created_at),
                status: turn.status,
                metadata: turn.metadata.clone(),
            });
        }
        if messages.is_empty() {
            continue;
        }
        let base = shared.checked_sub(1).map(|last| path.turns[last].hash.to_string());
        let base = Reference::parse(base.as_deref().unwrap_or("root"))?;
        let (turns, bytes) = (messages.len() as u64, messages.iter().map(size).sum());
        let exists = there.branch(call, id, branch.name.as_str()).is_ok();
        let append = Append {
            parent: Some(base.clone()),
            branch: Some(branch.name.to_string()),
            expected_tip: exists.then_some(base),
            on_conflict: OnConflict::Fork,
            ..Append::to(id.clone(), messages)
        };
        there.append(call, append)?;
        report.pushed.add(Pulled { new: false, diverged: true, turns, operations: 1, bytes });
    }
    Ok(())
}

fn size(message: &Message) -> u64 {
    message.body.stored_len() as u64 + 256
}
