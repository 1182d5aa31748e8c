//! Checks of the search index.

use tine_core::Body;

use super::{RecordFactory, chain, commit, conversation, operation, project, read_store, text};
use crate::records::{Content, ConversationKey, Turn, TurnLoc};
use crate::search::{IndexDocument, IndexMark, IndexState, Phrase, SearchFilter, TextQuery};
use crate::traits::{Store, Write};
use crate::{Result, StoreError};

/// A turn with its project and conversation.
type Owned = (String, Turn, ConversationKey);

/// Two turns in one project and one in another.
fn three_turns(store: &dyn Store) -> Vec<Owned> {
    let said = |records: &mut dyn Write, owner: &str, words: &[&str]| -> Result<Vec<Owned>> {
        let key = conversation(records, owner, "c")?;
        let bodies: Vec<Body> = words.iter().map(|words| text(*words)).collect();
        let made = chain(records, &mut RecordFactory::new(), key, None, &bodies)?;
        records.insert_operation(&operation(key, 1, None))?;
        Ok(made.into_iter().map(|turn| (owner.to_owned(), turn, key)).collect())
    };
    commit(store, move |records| {
        let mut all = said(records, "p", &["red fox, 東京都", "red hen"])?;
        all.extend(said(records, "q", &["red fox"])?);
        Ok(all)
    })
}

fn put_all(store: &dyn Store, turns: &[Owned], mark: IndexMark) {
    store
        .index(&mut |index| {
            for (owner, turn, conversation) in turns {
                let Content::Kept(body) = &turn.content else { continue };
                index.put(&IndexDocument {
                    loc: turn.loc,
                    conversation: *conversation,
                    project: &project(owner),
                    role: turn.role,
                    at: turn.created_at,
                    pieces: &tine_core::search_text::pieces(body, &turn.metadata),
                    tags: &turn.metadata.tags,
                })?;
            }
            index.advance(mark)
        })
        .unwrap();
}

fn everything_in(owner: &str) -> SearchFilter {
    SearchFilter {
        project: project(owner),
        conversation: None,
        role: None,
        from: None,
        to: None,
        tags: Default::default(),
    }
}

fn candidates(store: &dyn Store, owner: &str, words: &[&str], end: IndexMark) -> Vec<TurnLoc> {
    let all = words.iter().map(|words| vec![Phrase::new(words, false).unwrap()]).collect();
    let query = TextQuery { all, none: Vec::new() };
    let found = store.search(&query, &everything_in(owner), end.at).unwrap();
    let mut found: Vec<TurnLoc> = found.unwrap().map(|candidate| candidate.loc).collect();
    found.sort();
    found
}

/// Words, phrases and pairs are found, within one project.
pub fn a_search_finds_every_matching_turn_of_its_project_only(store: &dyn Store) {
    let turns = three_turns(store);
    let end = read_store(store, |records| records.feed_end()).unwrap();
    put_all(store, &turns, end);
    let locs: Vec<TurnLoc> = turns.iter().map(|(_, turn, _)| turn.loc).collect();
    let found = |owner: &str, words: &[&str]| candidates(store, owner, words, end);
    assert_eq!(found("p", &["red"]), locs[..2]);
    assert_eq!(found("p", &["RED", "fox"]), locs[..1]);
    assert_eq!(found("p", &["fox red"]), []);
    assert_eq!(found("p", &["京都"]), locs[..1]);
    assert_eq!(found("q", &["red fox"]), locs[2..]);
    assert_eq!(found("nobody", &["red"]), []);
}

/// The changes of a closure take effect together; turns can be removed, and the index cleared.
pub fn index_updates_are_atomic(store: &dyn Store) {
    if store.index_state().unwrap() == IndexState::NotNeeded {
        return;
    }
    let turns = three_turns(store);
    let end = read_store(store, |records| records.feed_end()).unwrap();
    assert_eq!(store.index_state().unwrap(), IndexState::Empty);
    let failed = store.index(&mut |index| {
        index.advance(end)?;
        Err(StoreError::Contract("on purpose".into()))
    });
    assert!(matches!(failed, Err(StoreError::Contract(_))));
    assert_eq!(store.index_state().unwrap(), IndexState::Empty);
    let query = TextQuery { all: vec![vec![Phrase::new("red", false).unwrap()]], none: Vec::new() };
    let early = store.search(&query, &everything_in("p"), end.at).unwrap();
    assert!(early.is_none(), "an index that is not up to date does not answer");
    put_all(store, &turns, end);
    put_all(store, &turns, end);
    assert_eq!(store.index_state().unwrap(), IndexState::Through(end));
    assert_eq!(candidates(store, "p", &["red"], end).len(), 2);
    store.unindex(&[turns[0].1.loc]).unwrap();
    assert_eq!(candidates(store, "p", &["red"], end), [turns[1].1.loc]);
    assert_eq!(store.index_state().unwrap(), IndexState::Through(end));
    store.index(&mut |index| index.clear()).unwrap();
    assert_eq!(store.index_state().unwrap(), IndexState::Empty);
}
