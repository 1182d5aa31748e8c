//! The contract suite: what every store must do, checked through the public traits.
//!
//! Each check is a function over an empty store; [`contract_tests!`] generates a test for each. A
//! store that passes keeps records, finds them and changes them atomically. The rules of the tree
//! belong to the engine and are not checked here.

#![allow(clippy::unwrap_used)] // This is test code, though other crates call it.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::records::{
    Bookmark, Branch, Content, Conversation, ConversationKey, Detail, FeedPosition, Hidden,
    HiddenBy, Idempotency, Operation, Project, Root, SegmentNo, Split, Turn, TurnLoc, TurnOrigin,
    Visibility,
};
use crate::search::IndexMark;
use crate::traits::{PackOptions, Read, Store, Verdict, Write};
use crate::{Result, StoreError};
use tine_core::hash::turn_hash;
use tine_core::json::{Json, Object};
use tine_core::{
    Body, ConversationId, Digest, IdSource, Metadata, Name, OperationHash, ProjectId, Role,
    RootHash, Status, Timestamp, TurnId,
};

mod families;
mod search;

pub use families::*;
pub use search::*;

/// Generates one test for each check of the contract. Takes an expression that opens an empty store
/// and borrows it.
#[macro_export]
macro_rules! contract_tests {
    ($open:expr) => {
        $crate::contract_tests! { @each $open,
            a_transaction_reads_its_own_writes
            a_rollback_leaves_nothing
            an_error_leaves_nothing
            a_panic_leaves_nothing_and_the_store_keeps_working
            a_record_is_read_as_it_was_stored
            a_scan_ends_with_its_segment
            large_bodies_are_read_back_and_erased_with_their_last_holder
            many_large_bodies_are_read_in_order
            hashes_are_found_by_range_in_order
            ids_are_found_only_in_their_project
            ids_with_a_common_prefix_are_distinguished
            forks_are_listed_in_order_of_creation
            branches_are_found_by_name_and_by_id_and_renamed
            bookmarks_are_listed_in_order_of_name_page_by_page
            operations_are_listed_by_number_and_fed_in_order_of_commit
            a_key_is_found_only_in_its_project
            hidden_runs_and_splits_can_be_added_and_removed
            packing_is_invisible
            writers_in_many_threads_lose_nothing
            a_neighbour_that_rolls_back_takes_nothing_with_it
            the_feed_ends_with_the_newest_operation_and_lists_its_turns
            a_search_finds_every_matching_turn_of_its_project_only
            index_updates_are_atomic
            records_of_each_family_are_listed_in_order_of_key
            a_record_is_replaced_and_removed_and_a_rollback_keeps_it
            indexes_follow_their_records
            an_index_lists_each_date_and_each_run_that_is_due
            pieces_of_a_source_are_read_back_and_removed_together
        }
    };
    (@each $open:expr, $($check:ident)*) => {
        $(#[test]
        fn $check() {
            $crate::contract::$check($open);
        })*
    };
}

/// Makes records with distinct ids.
struct RecordFactory {
    ids: IdSource,
    at: Timestamp,
}

impl RecordFactory {
    fn new() -> Self {
        RecordFactory { ids: IdSource::default(), at: Timestamp::from_millis(1_700_000_000_000) }
    }

    fn turn_id(&mut self) -> TurnId {
        self.at = self.at.next();
        self.ids.turn(self.at, [7; 10])
    }

    fn branch(
        &mut self,
        conversation: ConversationKey,
        name: &str,
        tip: Option<TurnLoc>,
    ) -> Branch {
        Branch {
            conversation,
            id: self.ids.branch(self.at, [9; 10]),
            name: Name::from_stored(name),
            tip,
            forked_from: None,
            created_at: self.at,
            version: 1,
        }
    }

    fn turn(&mut self, loc: TurnLoc, depth: u32, parent: Option<&Turn>, body: Body) -> Turn {
        let id = self.turn_id();
        let hash = turn_hash(parent.map(|parent| &parent.hash), Role::User, &body, None, self.at);
        Turn {
            loc,
            id,
            hash,
            depth,
            role: Role::User,
            content: Content::Kept(body),
            tool_call_id: None,
            created_at: self.at,
            status: Status::Complete,
            metadata: Metadata::default(),
            operation: 1,
            origin: TurnOrigin::default(),
        }
    }
}

fn text(words: impl Into<String>) -> Body {
    Body::Text(words.into())
}

fn project(name: &str) -> ProjectId {
    ProjectId::from_stored(name)
}

fn at() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

fn conversation(records: &mut dyn Write, owner: &str, id: &str) -> Result<ConversationKey> {
    let owner = project(owner);
    if records.project(&owner)?.is_none() {
        records.insert_project(&Project { id: owner.clone(), created_at: at() })?;
    }
    records.insert_conversation(&Conversation {
        key: ConversationKey(0),
        project: owner,
        id: ConversationId::from_stored(id),
        root_hash: RootHash(Digest::of(id.as_bytes())),
        root: Some(Root { system_prompt: Some("Be brief.".into()), config: Json::Null }),
        title: None,
        metadata: Json::Object(Object::new()),
        created_at: at(),
        derived_from: None,
        visibility: Visibility::Shown,
    })
}

fn operation(conversation: ConversationKey, seq: u64, key: Option<&str>) -> Operation {
    Operation {
        conversation,
        seq,
        kind: "append".into(),
        actor: "tester".into(),
        at: at(),
        detail: Detail::Kept("{}".into()),
        hash: OperationHash(Digest::of(&seq.to_be_bytes())),
        undone: false,
        idempotency: key.map(|key| Idempotency {
            key: key.to_owned(),
            fingerprint: Digest::of(key.as_bytes()),
            answer: "null".into(),
        }),
    }
}

fn commit<T: Send + 'static>(
    store: &dyn Store,
    body: impl Fn(&mut dyn Write) -> Result<T> + Send + 'static,
) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    store
        .write(Box::new(move |records| {
            send.send(body(records)?).expect("the caller waits for it");
            Ok(Verdict::Commit)
        }))
        .expect("the write goes through");
    receive.recv().expect("the closure ran")
}

fn read_store<T>(store: &dyn Store, body: impl Fn(&dyn Read) -> Result<T>) -> T {
    let mut answer = None;
    store
        .read(&mut |records| {
            answer = Some(body(records)?);
            Ok(())
        })
        .expect("the read goes through");
    answer.expect("the closure ran")
}

fn collect(records: &dyn Read, segment: SegmentNo, from: u32, to: u32) -> Result<Vec<Turn>> {
    let mut turns = Vec::new();
    records.turns(segment, from, to, &mut |turn| {
        turns.push(turn);
        Ok(true)
    })?;
    Ok(turns)
}

/// Adds a chain of turns in a new segment.
fn chain(
    records: &mut dyn Write,
    factory: &mut RecordFactory,
    conversation: ConversationKey,
    parent: Option<&Turn>,
    bodies: &[Body],
) -> Result<Vec<Turn>> {
    let depth = parent.map_or(1, |parent| parent.depth + 1);
    let segment = records.insert_segment(conversation, parent.map(|parent| parent.loc), depth)?;
    let mut made: Vec<Turn> = Vec::new();
    for (index, body) in (0..).zip(bodies) {
        let above = made.last().or(parent).cloned();
        let turn =
            factory.turn(TurnLoc { segment, index }, depth + index, above.as_ref(), body.clone());
        records.insert_turn(conversation, &turn)?;
        made.push(turn);
    }
    Ok(made)
}

/// A job reads its own writes before they are committed.
pub fn a_transaction_reads_its_own_writes(store: &dyn Store) {
    commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let turns = chain(records, &mut RecordFactory::new(), key, None, &[text("a")])?;
        assert_eq!(records.turn(turns[0].loc)?.as_ref(), Some(&turns[0]));
        assert_eq!(records.find_turn(&project("p"), &turns[0].id)?, Some((key, turns[0].loc)));
        Ok(())
    });
}

fn nothing_was_stored(store: &dyn Store) {
    let totals = read_store(store, |records| records.totals());
    assert_eq!((totals.projects, totals.conversations, totals.turns), (0, 0, 0));
}

/// [`Verdict::Rollback`] undoes all writes of a job.
pub fn a_rollback_leaves_nothing(store: &dyn Store) {
    store
        .write(Box::new(move |records| {
            let key = conversation(records, "p", "c")?;
            chain(records, &mut RecordFactory::new(), key, None, &[text("a")])?;
            Ok(Verdict::Rollback)
        }))
        .unwrap();
    nothing_was_stored(store);
}

/// An error undoes all writes of a job and is returned to the caller.
pub fn an_error_leaves_nothing(store: &dyn Store) {
    let outcome = store.write(Box::new(move |records| {
        conversation(records, "p", "c")?;
        Err(StoreError::Contract("on purpose".into()))
    }));
    assert!(matches!(outcome, Err(StoreError::Contract(_))));
    nothing_was_stored(store);
}

/// A panic undoes all writes of a job, and later calls work.
pub fn a_panic_leaves_nothing_and_the_store_keeps_working(store: &dyn Store) {
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.write(Box::new(move |records| {
            conversation(records, "p", "c")?;
            panic!("on purpose");
        }))
    }));
    assert!(panicked.is_err());
    nothing_was_stored(store);
    commit(store, move |records| conversation(records, "p", "c"));
    assert_eq!(read_store(store, |records| records.totals()).conversations, 1);
}

/// Every field of every record is kept.
pub fn a_record_is_read_as_it_was_stored(store: &dyn Store) {
    let mut expected = Vec::new();
    let (key, turns) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let factory = &mut RecordFactory::new();
        let turns = chain(records, factory, key, None, &[text("a\u{0}\u{1f338}"), text("b")])?;
        let mut odd = factory.turn(
            turns[1].loc.next(),
            3,
            Some(&turns[1]),
            Body::Blocks("[{\"type\":\"x\"}]".into()),
        );
        odd.role = Role::Tool;
        odd.tool_call_id = Some("call".into());
        odd.status = Status::Partial;
        odd.metadata.title = Some("T".into());
        odd.metadata.tags.extend(["x".to_owned(), "y".to_owned()]);
        odd.metadata.custom_data = Some(Json::from(9_007_199_254_740_993_u64));
        odd.origin.edited_from = Some(turns[0].id);
        odd.origin.part_of = Some(turns[1].id);
        odd.created_at = Timestamp::from_millis(-1);
        odd.operation = 77;
        records.insert_turn(key, &odd)?;
        Ok((key, vec![turns[0].clone(), turns[1].clone(), odd]))
    });
    for turn in &turns {
        expected.push(read_store(store, |records| records.turn(turn.loc)).unwrap());
    }
    assert_eq!(expected, turns);
    let found = read_store(store, |records| records.conversation_by_key(key)).unwrap();
    assert_eq!(found.root.unwrap().system_prompt.as_deref(), Some("Be brief."));
    assert_eq!(read_store(store, |records| records.last_index(turns[0].loc.segment)), 2);
    let metadata = Metadata { title: Some("other".into()), ..Metadata::default() };
    let (loc, wanted) = (turns[0].loc, metadata.clone());
    commit(store, move |records| records.set_metadata(loc, &wanted));
    assert_eq!(read_store(store, |records| records.turn(turns[0].loc)).unwrap().metadata, metadata);
}

/// A scan does not go beyond its segment, whatever its bounds.
pub fn a_scan_ends_with_its_segment(store: &dyn Store) {
    let (first, second) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let factory = &mut RecordFactory::new();
        let bodies = [text("a"), text("b"), text("c")];
        let first = chain(records, factory, key, None, &bodies)?;
        let second = chain(records, factory, key, Some(&first[0]), &bodies)?;
        Ok((first, second))
    });
    let scan =
        |from, to| read_store(store, |records| collect(records, first[0].loc.segment, from, to));
    assert_eq!(scan(0, u32::MAX), first);
    assert_eq!(scan(1, 1), first[1..=1]);
    assert_eq!(scan(2, 1), []);
    assert_eq!(scan(3, u32::MAX), []);
    let other = read_store(store, |records| collect(records, second[0].loc.segment, 0, u32::MAX));
    assert_eq!(other, second);
    let mut seen = 0;
    read_store(store, |records| {
        records.turns(first[0].loc.segment, 0, u32::MAX, &mut |_| Ok(false))
    });
    store
        .read(&mut |records| {
            records.turns(first[0].loc.segment, 0, u32::MAX, &mut |_| {
                seen += 1;
                Ok(seen < 2)
            })
        })
        .unwrap();
    assert_eq!(seen, 2, "a visitor that has seen enough is not asked again");
}

/// Bodies may be shared, also by turns far apart.
pub fn many_large_bodies_are_read_in_order(store: &dyn Store) {
    let bodies: Vec<Body> = (0..60)
        .map(|nth| match nth % 3 {
            0 => text(format!("small {nth}")),
            1 => text(format!("word {nth} ").repeat(4_000)),
            _ => text(format!("again {} ", nth % 5).repeat(4_000)),
        })
        .collect();
    let turns = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let turns = chain(records, &mut RecordFactory::new(), key, None, &bodies)?;
        records.insert_operation(&operation(key, 1, None))?;
        Ok(turns)
    });
    let segment = turns[0].loc.segment;
    for (from, to) in [(0, 59), (7, 31), (58, 59)] {
        let found = read_store(store, |records| collect(records, segment, from, to));
        assert_eq!(found, turns[from as usize..=to as usize], "from {from} to {to}");
    }
}

/// A body of any size is kept, and erased when no turn holds it any more.
pub fn large_bodies_are_read_back_and_erased_with_their_last_holder(store: &dyn Store) {
    let large = "word ".repeat(20_000);
    let (key, turns) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let bodies = [text(large.clone()), text(large.clone()), text("small"), text("small")];
        Ok((key, chain(records, &mut RecordFactory::new(), key, None, &bodies)?))
    });
    let read_turn = |turn: &Turn| read_store(store, |records| records.turn(turn.loc)).unwrap();
    assert_eq!(read_turn(&turns[1]), turns[1]);
    let same_content =
        |turn: &Turn| read_store(store, |records| records.same_content(turn.loc, 10));
    assert_eq!(same_content(&turns[0]), [(key, turns[1].loc)]);
    assert_eq!(same_content(&turns[2]), [(key, turns[3].loc)]);
    let digest = Digest::of(b"what is left");
    let (first, second) = (turns[0].loc, turns[1].loc);
    commit(store, move |records| records.purge_turn(first, &digest));
    assert_eq!(read_turn(&turns[0]).content, Content::Purged(digest));
    assert_eq!(read_turn(&turns[1]), turns[1], "another holder keeps it");
    commit(store, move |records| records.purge_turn(second, &digest));
    assert_eq!(read_turn(&turns[1]).content, Content::Purged(digest));
    store.scrub().unwrap();
    assert_eq!(read_turn(&turns[2]), turns[2]);
}

/// Prefix read-ups are ranges of hashes.
pub fn hashes_are_found_by_range_in_order(store: &dyn Store) {
    let (key, turns) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let bodies: Vec<Body> = (0..50).map(|number| text(number.to_string())).collect();
        Ok((key, chain(records, &mut RecordFactory::new(), key, None, &bodies)?))
    });
    let find = |low: [u8; 32], high: [u8; 32], limit| {
        read_store(store, |records| records.find_hashes(key, &Digest(low), &Digest(high), limit))
    };
    let mut sorted = turns.clone();
    sorted.sort_by_key(|turn| turn.hash);
    let locs = |turns: &[Turn]| turns.iter().map(|turn| turn.loc).collect::<Vec<_>>();
    assert_eq!(find([0; 32], [255; 32], 100), locs(&sorted));
    assert_eq!(find([0; 32], [255; 32], 3), locs(&sorted[..3]));
    for turn in &turns {
        assert_eq!(find(turn.hash.0.0, turn.hash.0.0, 9), [turn.loc]);
        let mut above = turn.hash.0.0;
        above[31] = above[31].wrapping_add(1);
        assert!(above[31] == 0 || find(above, above, 9).is_empty());
    }
    let (low, high) = (sorted[10].hash.0.0, sorted[20].hash.0.0);
    assert_eq!(find(low, high, 100), locs(&sorted[10..=20]));
}

/// The same id may exist in two projects, as after an import into both.
pub fn ids_are_found_only_in_their_project(store: &dyn Store) {
    let (one, other, id) = commit(store, move |records| {
        let one = conversation(records, "p", "c")?;
        let other = conversation(records, "q", "c")?;
        let first = chain(records, &mut RecordFactory::new(), one, None, &[text("a")])?;
        let second = chain(records, &mut RecordFactory::new(), other, None, &[text("a")])?;
        assert_eq!(first[0].id, second[0].id);
        Ok((first[0].loc, second[0].loc, first[0].id))
    });
    let find = |name| read_store(store, |records| records.find_turn(&project(name), &id));
    assert_eq!(find("p").unwrap().1, one);
    assert_eq!(find("q").unwrap().1, other);
    assert_eq!(find("r"), None);
}

/// Ids of the same millisecond share a prefix, and so may others.
pub fn ids_with_a_common_prefix_are_distinguished(store: &dyn Store) {
    let id = |last: u8| {
        let mut bytes = [7; 16];
        bytes[15] = last;
        TurnId::from_bytes(bytes)
    };
    let (key, turns) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let segment = records.insert_segment(key, None, 1)?;
        let (factory, mut turns) = (&mut RecordFactory::new(), Vec::<Turn>::new());
        for index in 0..3 {
            let loc = TurnLoc { segment, index: u32::from(index) };
            let depth = u32::from(index) + 1;
            let mut turn = factory.turn(loc, depth, turns.last(), text("a"));
            turn.id = id(index);
            records.insert_turn(key, &turn)?;
            turns.push(turn);
        }
        records.insert_operation(&operation(key, 1, None))?;
        Ok((key, turns))
    });
    let check = || {
        let find = |id| read_store(store, |records| records.find_turn(&project("p"), &id));
        for turn in &turns {
            assert_eq!(find(turn.id), Some((key, turn.loc)));
        }
        assert_eq!(find(id(3)), None);
    };
    check();
    store.pack(PackOptions { keep_recent: 20, shortest_run: 10 }).unwrap();
    check();
    store.pack(PackOptions::EVERYTHING).unwrap();
    check();
}

/// Lists forks of the root, of a turn, and from a turn on.
pub fn forks_are_listed_in_order_of_creation(store: &dyn Store) {
    let (key, trunk, twigs) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let factory = &mut RecordFactory::new();
        let trunk = chain(records, factory, key, None, &[text("a"), text("b"), text("c")])?;
        let mut twigs = Vec::new();
        for (parent, word) in [(Some(1), "x"), (Some(0), "y"), (Some(1), "z"), (None, "r")] {
            let parent = parent.map(|at: usize| &trunk[at]);
            twigs.push(chain(records, factory, key, parent, &[text(word)])?[0].loc.segment);
        }
        Ok((key, trunk, twigs))
    });
    let forks = |parent| {
        let found = read_store(store, |records| records.forks(key, parent));
        found.iter().map(|segment| segment.no).collect::<Vec<_>>()
    };
    assert_eq!(forks(Some(trunk[1].loc)), [twigs[0], twigs[2]]);
    assert_eq!(forks(Some(trunk[2].loc)), []);
    assert_eq!(forks(None), [trunk[0].loc.segment, twigs[3]]);
    let after_fork = read_store(store, |records| records.forks_from(key, trunk[1].loc));
    assert_eq!(
        after_fork.iter().map(|segment| segment.no).collect::<Vec<_>>(),
        [twigs[0], twigs[2]]
    );
    let all = read_store(store, |records| records.segments(key));
    assert_eq!(all.iter().map(|extent| extent.turns).collect::<Vec<_>>(), [3, 1, 1, 1, 1]);
    assert_eq!(all[1].segment.parent, Some(trunk[1].loc));
    assert_eq!(all[1].segment.base_depth, 3);
}

/// A branch keeps its id when its name changes.
pub fn branches_are_found_by_name_and_by_id_and_renamed(store: &dyn Store) {
    let branch = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let factory = &mut RecordFactory::new();
        let turns = chain(records, factory, key, None, &[text("a")])?;
        let branch = factory.branch(key, "main", None);
        records.put_branch(&branch)?;
        let moved = Branch { tip: Some(turns[0].loc), version: 2, ..branch };
        records.put_branch(&moved)?;
        Ok(moved)
    });
    let key = branch.conversation;
    let named = |name| read_store(store, |records| records.branch(key, &Name::from_stored(name)));
    let by_id =
        |owner| read_store(store, |records| records.branch_by_id(&project(owner), &branch.id));
    assert_eq!(named("main"), Some(branch.clone()));
    assert_eq!((by_id("p"), by_id("q")), (Some(branch.clone()), None));
    let renamed = Branch { name: Name::from_stored("other"), version: 3, ..branch.clone() };
    let wanted = renamed.clone();
    commit(store, move |records| records.put_branch(&wanted));
    assert_eq!((named("main"), named("other")), (None, Some(renamed.clone())));
    assert_eq!(read_store(store, |records| records.branches(key)), [renamed]);
    commit(store, move |records| records.delete_branch(key, &branch.id));
    assert_eq!(named("other"), None);
}

/// Names are compared byte by byte.
pub fn bookmarks_are_listed_in_order_of_name_page_by_page(store: &dyn Store) {
    let names = ["Zebra", "apple", "äpfel", "東京"];
    commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let turns = chain(records, &mut RecordFactory::new(), key, None, &[text("a")])?;
        for name in ["東京", "apple", "äpfel", "Zebra"] {
            records.put_bookmark(&Bookmark {
                project: project("p"),
                name: Name::from_stored(name),
                conversation: key,
                turn: turns[0].loc,
                created_at: at(),
            })?;
        }
        Ok(())
    });
    let page = |after: Option<&str>, limit| {
        let after = after.map(Name::from_stored);
        let found =
            read_store(store, |records| records.bookmarks(&project("p"), after.as_ref(), limit));
        found.iter().map(|mark| mark.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 10), names);
    assert_eq!(page(Some("Zebra"), 2), names[1..3]);
    commit(store, move |records| {
        records.delete_bookmark(&project("p"), &Name::from_stored("apple"))
    });
    assert_eq!(page(None, 2), ["Zebra", "äpfel"]);
}

/// Operations are numbered within a conversation; the feed covers all conversations.
pub fn operations_are_listed_by_number_and_fed_in_order_of_commit(store: &dyn Store) {
    let (one, other) = commit(store, move |records| {
        Ok((conversation(records, "p", "c")?, conversation(records, "p", "d")?))
    });
    for (key, seq) in [(one, 1), (other, 1), (one, 2), (one, 3), (other, 2)] {
        commit(store, move |records| records.insert_operation(&operation(key, seq, None)));
    }
    let mut seen = Vec::new();
    store
        .read(&mut |records| {
            records.operations(one, 2, u64::MAX, &mut |found| {
                seen.push(found.seq);
                Ok(true)
            })
        })
        .unwrap();
    assert_eq!(seen, [2, 3]);
    let last = read_store(store, |records| records.last_operation(one)).unwrap();
    assert_eq!(last.seq, 3);
    assert_eq!(read_store(store, |records| records.changed_at(one)), Some(last.at));
    assert_eq!(read_store(store, |records| records.log_end(one)), Some((last.seq, last.hash)));
    let fed = read_store(store, |records| records.feed(FeedPosition(0), 100));
    let order: Vec<_> = fed.iter().map(|(_, found)| (found.conversation, found.seq)).collect();
    assert_eq!(order, [(one, 1), (other, 1), (one, 2), (one, 3), (other, 2)]);
    let rest = read_store(store, |records| records.feed(fed[2].0, 1));
    assert_eq!(rest, fed[3..4]);
    commit(store, move |records| {
        records.set_undone(one, 2, true)?;
        records.purge_operation(one, 2)
    });
    let purged = read_store(store, |records| records.operation(one, 2)).unwrap();
    assert_eq!((purged.undone, purged.detail), (true, Detail::Purged(Digest::of(b"{}"))));
}

/// Idempotency keys belong to a project.
pub fn a_key_is_found_only_in_its_project(store: &dyn Store) {
    commit(store, move |records| {
        let one = conversation(records, "p", "c")?;
        let other = conversation(records, "q", "c")?;
        records.insert_operation(&operation(one, 1, Some("k")))?;
        records.insert_operation(&operation(other, 1, Some("k")))?;
        records.insert_operation(&operation(other, 2, Some("l")))
    });
    let find =
        |owner, key: &str| read_store(store, |records| records.idempotent(&project(owner), key));
    assert_eq!(find("p", "k").unwrap().seq, 1);
    assert_ne!(find("p", "k").unwrap().conversation, find("q", "k").unwrap().conversation);
    assert_eq!((find("p", "l"), find("q", "l").unwrap().seq), (None, 2));
    assert_eq!(find("r", "k"), None);
}

/// Hidden runs and splits are records that can be removed again.
pub fn hidden_runs_and_splits_can_be_added_and_removed(store: &dyn Store) {
    let (key, turns) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let turns = chain(
            records,
            &mut RecordFactory::new(),
            key,
            None,
            &[text("a"), text("b"), text("c")],
        )?;
        records.insert_operation(&operation(key, 1, None))?;
        records.insert_operation(&operation(key, 2, None))?;
        Ok((key, turns))
    });
    let segment = turns[0].loc.segment;
    let run = |from, to, operation, by| Hidden {
        conversation: key,
        segment,
        from,
        to,
        operation,
        by,
        root: turns[0].loc,
    };
    let (first, second) = (run(0, 2, 1, HiddenBy::Cascade), run(1, 1, 2, HiddenBy::Reparent));
    let split = Split {
        conversation: key,
        whole: turns[0].loc,
        left: turns[1].loc,
        right: turns[2].loc,
        operation: 1,
    };
    commit(store, move |records| {
        records.insert_hidden(&first)?;
        records.insert_hidden(&second)?;
        records.insert_split(&split)
    });
    assert_eq!(read_store(store, |records| records.hidden(key)), [first, second]);
    assert_eq!(read_store(store, |records| records.hidden_in(key, segment)).len(), 2);
    assert_eq!(read_store(store, |records| records.hidden_in(key, SegmentNo(999))), []);
    assert_eq!(read_store(store, |records| records.splits(key)), [split]);
    commit(store, move |records| {
        records.delete_hidden(key, 1)?;
        records.delete_split(key, turns[0].loc)
    });
    assert_eq!(read_store(store, |records| records.hidden(key)), [second]);
    assert_eq!(read_store(store, |records| records.splits(key)), []);
}

/// Packed turns are read, found, changed and erased like others.
pub fn packing_is_invisible(store: &dyn Store) {
    let large = "word ".repeat(20_000);
    let (key, turns, twig) = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let factory = &mut RecordFactory::new();
        let mut bodies: Vec<Body> = (0..150).map(|number| text(number.to_string())).collect();
        bodies[70] = text(large.clone());
        bodies[71] = Body::Blocks("[{\"type\":\"x\"}]".into());
        let turns = chain(records, factory, key, None, &bodies)?;
        let twig = chain(records, factory, key, Some(&turns[80]), &[text("7"), text("twig")])?;
        records.insert_operation(&operation(key, 1, None))?;
        Ok((key, turns, twig))
    });
    let segment = turns[0].loc.segment;
    let check = |turns: &[Turn]| {
        for (from, to) in [(0, u32::MAX), (0, 63), (63, 64), (70, 71), (100, 149), (149, 149)] {
            let found = read_store(store, |records| collect(records, segment, from, to));
            let end = (to as usize + 1).min(turns.len());
            assert_eq!(found, turns[from as usize..end], "from {from} to {to}");
        }
        for turn in turns.iter().chain(&twig) {
            let (id, hash) = (turn.id, turn.hash.0);
            read_store(store, |records| {
                assert_eq!(records.turn(turn.loc)?.as_ref(), Some(turn));
                assert_eq!(records.find_turn(&project("p"), &id)?, Some((key, turn.loc)));
                assert_eq!(records.find_hashes(key, &hash, &hash, 2)?, [turn.loc]);
                Ok(())
            });
        }
        let extents = read_store(store, |records| records.segments(key));
        assert_eq!(extents.iter().map(|extent| extent.turns).collect::<Vec<_>>(), [150, 2]);
        assert_eq!(read_store(store, |records| records.last_index(segment)), 149);
        let same_content = read_store(store, |records| records.same_content(turns[7].loc, 10));
        assert_eq!(same_content, [(key, twig[0].loc)]);
    };
    check(&turns);
    let recent = PackOptions { keep_recent: 20, shortest_run: 10 };
    for options in [recent, recent, PackOptions::EVERYTHING, PackOptions::EVERYTHING] {
        store.pack(options).unwrap();
        check(&turns);
    }
    // A turn in the middle changes, and is packed again.
    let mut changed = turns.clone();
    changed[65].metadata.title = Some("T".into());
    let (loc, metadata) = (changed[65].loc, changed[65].metadata.clone());
    commit(store, move |records| records.set_metadata(loc, &metadata));
    check(&changed);
    store.pack(PackOptions::EVERYTHING).unwrap();
    check(&changed);
    let (loc, digest) = (changed[70].loc, Digest::of(b"left"));
    commit(store, move |records| records.purge_turn(loc, &digest));
    changed[70].content = Content::Purged(digest);
    changed[70].metadata = Metadata::default();
    store.pack(PackOptions::EVERYTHING).unwrap();
    check(&changed);
    // The segment grows after its packed turns.
    let last = changed[149].clone();
    let more = commit(store, move |records| {
        let mut factory =
            RecordFactory { at: Timestamp::from_millis(1_800_000_000_000), ..RecordFactory::new() };
        let turn = factory.turn(last.loc.next(), 151, Some(&last), text("more"));
        records.insert_turn(key, &turn)?;
        Ok(turn)
    });
    assert_eq!(read_store(store, |records| records.turn(more.loc)), Some(more));
    assert_eq!(read_store(store, |records| records.last_index(segment)), 150);
}

/// Eight threads add operations to one conversation; every number is used once.
pub fn writers_in_many_threads_lose_nothing(store: &dyn Store) {
    const THREADS: usize = 8;
    const EACH: usize = 25;
    let key = commit(store, move |records| conversation(records, "p", "c"));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    commit(store, move |records| {
                        let last = records.last_operation(key)?.map_or(0, |last| last.seq);
                        records.insert_operation(&operation(key, last + 1, None))
                    });
                }
            });
        }
    });
    let fed = read_store(store, |records| records.feed(FeedPosition(0), 10_000));
    let numbers: Vec<u64> = fed.iter().map(|(_, found)| found.seq).collect();
    let expected: Vec<u64> = (1..=(THREADS * EACH) as u64).collect();
    assert_eq!(numbers, expected);
}

/// Jobs may share a commit; a rollback affects one job only.
pub fn a_neighbour_that_rolls_back_takes_nothing_with_it(store: &dyn Store) {
    let key = commit(store, move |records| conversation(records, "p", "c"));
    let kept = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let kept = &kept;
            scope.spawn(move || {
                for turn in 0..25 {
                    let keep = (thread + turn) % 3 != 0;
                    store
                        .write(Box::new(move |records| {
                            let last = records.last_operation(key)?.map_or(0, |last| last.seq);
                            records.insert_operation(&operation(key, last + 1, None))?;
                            Ok(if keep { Verdict::Commit } else { Verdict::Rollback })
                        }))
                        .unwrap();
                    kept.fetch_add(usize::from(keep), Ordering::SeqCst);
                }
            });
        }
    });
    let last = read_store(store, |records| records.last_operation(key)).unwrap();
    assert_eq!(last.seq, kept.load(Ordering::SeqCst) as u64);
}

/// The end of the feed is the newest operation, and an operation lists its turns in runs.
pub fn the_feed_ends_with_the_newest_operation_and_lists_its_turns(store: &dyn Store) {
    assert_eq!(read_store(store, |records| records.feed_end()), None);
    let made = commit(store, move |records| {
        let key = conversation(records, "p", "c")?;
        let factory = &mut RecordFactory::new();
        let mut made = chain(records, factory, key, None, &[text("a"), text("b"), text("c")])?;
        made.extend(chain(records, factory, key, Some(&made[0]), &[text("d")])?);
        records.insert_operation(&operation(key, 1, None))?;
        records.insert_operation(&operation(key, 2, None))?;
        Ok(made.iter().map(|turn| turn.loc).collect::<Vec<_>>())
    });
    let fed = read_store(store, |records| records.feed(FeedPosition::default(), 10));
    let [(first, _), (last, _)] = fed[..] else { panic!("two operations: {fed:?}") };
    let end = read_store(store, |records| records.feed_end()).unwrap();
    let hash = OperationHash(Digest::of(&2_u64.to_be_bytes()));
    assert_eq!(end, IndexMark { at: last, hash });
    let listed = |at| {
        let runs = read_store(store, |records| records.made_by(at)).into_iter();
        let each = |(loc, count): (TurnLoc, u32)| {
            (0..count).map(move |n| TurnLoc { index: loc.index + n, ..loc })
        };
        runs.flat_map(each).collect::<Vec<_>>()
    };
    assert_eq!(listed(first), made);
    assert_eq!(listed(last), []);
    assert_eq!(listed(FeedPosition(last.0 + 1)), []);
}
