//! Changes of resources as they happen, also those that other processes make.
//!
//! Everybody who follows keeps a place in the engine's feed and reads on when its end has moved.
//! One task looks for that on behalf of all, and only while somebody follows. A resource is
//! changed by an operation that names it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, Peer, RoleServer};
use tine_core::ProjectId;
use tine_engine::{Engine, FeedEntry, FeedFilter};
use tine_store::FeedPosition;
use tokio::sync::watch;

use crate::access::Reach;
use crate::resources::{Address, Thing};
use crate::server::Options;

/// How often the store is asked whether somebody has written.
const LOOK: Duration = Duration::from_millis(50);

/// Operations read at once.
const ENTRIES: usize = 256;

/// Resources that one connection may follow.
const MOST_FOLLOWED: usize = 1_000;

/// All who follow.
#[derive(Clone)]
pub(crate) struct Followers {
    shared: Arc<Shared>,
    /// What this connection subscribed to one by one.
    subscribed: Arc<Subscribed>,
    /// Where those begin whom the SDK has promised news already.
    promised: Arc<Mutex<Promised>>,
    /// Whether the host has said its last word.
    over: Arc<watch::Sender<bool>>,
}

/// A host is told that it is listened to before [`Followers::listen`] begins: what happens
/// between the two is news as well.
#[derive(Default)]
struct Promised {
    count: usize,
    from: FeedPosition,
}

struct Shared {
    engine: Engine,
    end: watch::Sender<u64>,
    looking: AtomicBool,
}

#[derive(Default)]
struct Subscribed {
    uris: Mutex<BTreeSet<String>>,
    begun: AtomicBool,
}

/// One resource that is followed.
#[derive(Clone, Debug)]
struct Followed {
    uri: String,
    project: ProjectId,
    mark: Mark,
}

/// What tells that an operation is about a resource.
#[derive(Clone, Debug)]
enum Mark {
    /// It stands in the log of this conversation.
    Conversation(String),
    /// What it did names this id.
    Named(String),
}

impl Followed {
    fn new(
        uri: &str,
        engine: &Engine,
        options: &Options,
        reach: &Reach,
    ) -> Result<Self, crate::refusal::Refusal> {
        let address = Address::parse(uri)?;
        let project = address.call(engine, options, reach)?.project;
        let bare = |id: &str| id.split_once('_').map_or(id, |(_, digits)| digits).to_owned();
        let mark = match &address.thing {
            Thing::Conversation(id) => Mark::Conversation(id.clone()),
            Thing::Turn(id) => Mark::Named(id.clone()),
            // An observation's id holds its entity's.
            Thing::Entity(id) | Thing::Source(id) => Mark::Named(bare(id)),
        };
        Ok(Followed { uri: uri.to_owned(), project, mark })
    }

    fn is_changed_by(&self, entry: &FeedEntry) -> bool {
        if entry.project != self.project {
            return false;
        }
        match &self.mark {
            Mark::Conversation(id) => entry.operation.conversation.as_str() == id,
            Mark::Named(id) => {
                entry.operation.detail.as_ref().is_none_or(|detail| detail.contains(id))
            }
        }
    }
}

impl Followers {
    pub(crate) fn new(engine: Engine) -> Self {
        let (end, _) = watch::channel(0);
        let shared = Arc::new(Shared { engine, end, looking: AtomicBool::new(false) });
        Followers::of(shared)
    }

    pub(crate) fn for_another(&self) -> Self {
        Followers::of(Arc::clone(&self.shared))
    }

    fn of(shared: Arc<Shared>) -> Self {
        let (subscribed, promised, over) = (Arc::default(), Arc::default(), Arc::default());
        Followers { shared, subscribed, promised, over }
    }

    /// Ends what the host listens to, as it will hear nothing any more: the SDK waits for calls
    /// that are not answered yet.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Notes where somebody begins who is about to be told so.
    pub(crate) fn promise(&self) {
        let Ok(now) = self.shared.engine.feed_end() else { return };
        let mut promised = self.promised.lock().unwrap_or_else(PoisonError::into_inner);
        if promised.count == 0 {
            promised.from = now;
        }
        promised.count += 1;
    }

    fn promised(&self) -> Option<FeedPosition> {
        let mut promised = self.promised.lock().unwrap_or_else(PoisonError::into_inner);
        promised.count = promised.count.checked_sub(1)?;
        Some(promised.from)
    }

    /// Tells a host what it listens to, until it goes away.
    pub(crate) async fn listen(
        &self,
        context: SubscriptionContext,
        reach: Reach,
        options: &Options,
    ) -> Result<(), ErrorData> {
        let accepted = context.accepted().clone();
        let mut followed = Vec::new();
        for uri in accepted.resource_subscriptions.iter().flatten().take(MOST_FOLLOWED) {
            // What is out of reach never changes as far as the caller can see.
            followed.extend(Followed::new(uri, &self.shared.engine, options, &reach).ok());
        }
        let lists = accepted.resources_list_changed == Some(true);
        let project = reach.project(None, &options.project);
        let from = self.promised();
        let mut place = self.begin().await?;
        place.at = from.unwrap_or(place.at);
        let mut over = self.over.subscribe();
        loop {
            let entries = tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = over.wait_for(|over| *over) => return Ok(()),
                entries = place.next() => entries?,
            };
            if !reach.holds() {
                return Ok(());
            }
            for one in &followed {
                if entries.iter().any(|entry| one.is_changed_by(entry))
                    && context.sink().notify_resource_updated(one.uri.as_str()).await.is_err()
                {
                    return Ok(());
                }
            }
            if lists
                && entries.iter().any(|entry| entry.project == project && is_first(entry))
                && context.sink().notify_resource_list_changed().await.is_err()
            {
                return Ok(());
            }
        }
    }

    /// Follows one resource more for a host of an older protocol.
    pub(crate) async fn subscribe(
        &self,
        uri: String,
        reach: Reach,
        peer: Peer<RoleServer>,
        options: &Options,
    ) -> Result<(), ErrorData> {
        let known = self.subscribed.lock().len();
        if known >= MOST_FOLLOWED {
            let why = format!("at most {MOST_FOLLOWED} resources are followed at once");
            return Err(ErrorData::invalid_params(why, None));
        }
        Followed::new(&uri, &self.shared.engine, options, &reach)?;
        self.subscribed.lock().insert(uri);
        if self.subscribed.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut place = self.begin().await?;
        let (followers, options) = (self.clone(), options.clone());
        tokio::spawn(async move {
            loop {
                let waited = tokio::time::timeout(Duration::from_secs(5), place.next()).await;
                if peer.is_transport_closed() || !reach.holds() {
                    break;
                }
                let entries = match waited {
                    Err(_) => continue,
                    Ok(Ok(entries)) => entries,
                    Ok(Err(_)) => break,
                };
                let uris: Vec<String> = followers.subscribed.lock().iter().cloned().collect();
                for uri in uris {
                    let followed =
                        Followed::new(&uri, &followers.shared.engine, &options, &reach).ok();
                    let changed = followed
                        .is_some_and(|one| entries.iter().any(|entry| one.is_changed_by(entry)));
                    if changed {
                        let update = ResourceUpdatedNotificationParam::new(uri);
                        if peer.notify_resource_updated(update).await.is_err() {
                            break;
                        }
                    }
                }
            }
            followers.subscribed.begun.store(false, Ordering::Relaxed);
        });
        Ok(())
    }

    /// Follows a resource no more.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().remove(uri);
    }

    /// A place at the present end of the feed.
    async fn begin(&self) -> Result<Place, ErrorData> {
        let engine = self.shared.engine.clone();
        let end = self.shared.end.subscribe();
        self.look();
        let at = tokio::task::spawn_blocking(move || engine.feed_end()).await;
        match at {
            Ok(Ok(at)) => Ok(Place { engine: self.shared.engine.clone(), at, end }),
            _ => Err(ErrorData::internal_error("the feed cannot be read", None)),
        }
    }

    /// Sees to it that somebody looks for the end of the feed.
    fn look(&self) {
        if self.shared.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            while shared.end.receiver_count() > 0 {
                tokio::time::sleep(LOOK).await;
                let engine = shared.engine.clone();
                let asked = tokio::task::spawn_blocking(move || engine.feed_end()).await;
                if let Ok(Ok(FeedPosition(now))) = asked {
                    shared.end.send_if_modified(|known| std::mem::replace(known, now) != now);
                }
            }
            shared.looking.store(false, Ordering::Relaxed);
            // Somebody may have come while the last look was taken.
            if shared.end.receiver_count() > 0 {
                Followers::of(Arc::clone(&shared)).look();
            }
        });
    }
}

impl Subscribed {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an operation is the first of its conversation.
fn is_first(entry: &FeedEntry) -> bool {
    entry.operation.seq == 1 && !entry.operation.conversation.as_str().starts_with('~')
}

/// How far somebody has read.
struct Place {
    engine: Engine,
    at: FeedPosition,
    end: watch::Receiver<u64>,
}

impl Place {
    /// What was done since; waits until there is something.
    async fn next(&mut self) -> Result<Vec<FeedEntry>, ErrorData> {
        loop {
            self.end.borrow_and_update();
            let (engine, at) = (self.engine.clone(), self.at);
            let read = tokio::task::spawn_blocking(move || {
                engine.feed(at, &FeedFilter::default(), ENTRIES)
            });
            let Ok(Ok((entries, now))) = read.await else {
                return Err(ErrorData::internal_error("the feed cannot be read", None));
            };
            self.at = self.at.max(now);
            if !entries.is_empty() {
                return Ok(entries);
            }
            if self.end.changed().await.is_err() {
                return Err(ErrorData::internal_error("the server stops", None));
            }
        }
    }
}
