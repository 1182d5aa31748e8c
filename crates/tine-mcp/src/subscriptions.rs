//! Notifications about changed resources, including changes by other processes.
//!
//! Each subscriber has a reader of the engine's change feed. One task polls for the end of the feed
//! on behalf of all readers, and only while there are any. A resource is changed by an operation
//! that names it.

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

use crate::access_scope::AccessScope;
use crate::resources::{ResourceTarget, ResourceUri};
use crate::server::McpOptions;

/// The interval at which the store is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Operations read at a time.
const BATCH_ENTRIES: usize = 256;

/// The most resources that one connection may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The subscriptions of one connection, and the polling shared by all.
#[derive(Clone)]
pub(crate) struct Subscriptions {
    shared: Arc<Shared>,
    /// The URIs subscribed to with `resources/subscribe`.
    subscribed: Arc<SubscribedUris>,
    /// Accepted requests to listen that have not started yet.
    pending: Arc<Mutex<PendingListeners>>,
    /// Whether the host has closed its output.
    ended: Arc<watch::Sender<bool>>,
}

/// The SDK confirms a request to listen before [`Subscriptions::listen`] starts. Changes between
/// the two must be reported as well.
#[derive(Default)]
struct PendingListeners {
    count: usize,
    from: FeedPosition,
}

struct Shared {
    engine: Engine,
    end: watch::Sender<u64>,
    polling: AtomicBool,
}

#[derive(Default)]
struct SubscribedUris {
    uris: Mutex<BTreeSet<String>>,
    begun: AtomicBool,
}

/// One resource that is subscribed to.
#[derive(Clone, Debug)]
struct Subscription {
    uri: String,
    project: ProjectId,
    matches: ChangeMatch,
}

/// How an operation is matched with a resource.
#[derive(Clone, Debug)]
enum ChangeMatch {
    /// It is in the log of this conversation.
    Conversation(String),
    /// Its detail names this id.
    Named(String),
}

impl Subscription {
    fn new(
        uri: &str,
        engine: &Engine,
        options: &McpOptions,
        scope: &AccessScope,
    ) -> Result<Self, crate::mcp_error::McpError> {
        let address = ResourceUri::parse(uri)?;
        let project = address.call(engine, options, scope)?.project;
        let bare = |id: &str| id.split_once('_').map_or(id, |(_, digits)| digits).to_owned();
        let matches = match &address.target {
            ResourceTarget::Conversation(id) => ChangeMatch::Conversation(id.clone()),
            ResourceTarget::Turn(id) => ChangeMatch::Named(id.clone()),
            // An observation's id contains its entity's id.
            ResourceTarget::Entity(id) | ResourceTarget::Source(id) => ChangeMatch::Named(bare(id)),
        };
        Ok(Subscription { uri: uri.to_owned(), project, matches })
    }

    fn is_changed_by(&self, entry: &FeedEntry) -> bool {
        if entry.project != self.project {
            return false;
        }
        match &self.matches {
            ChangeMatch::Conversation(id) => entry.operation.conversation.as_str() == id,
            ChangeMatch::Named(id) => {
                entry.operation.detail.as_ref().is_none_or(|detail| detail.contains(id))
            }
        }
    }
}

impl Subscriptions {
    pub(crate) fn new(engine: Engine) -> Self {
        let (end, _) = watch::channel(0);
        let shared = Arc::new(Shared { engine, end, polling: AtomicBool::new(false) });
        Subscriptions::of(shared)
    }

    pub(crate) fn for_another(&self) -> Self {
        Subscriptions::of(Arc::clone(&self.shared))
    }

    fn of(shared: Arc<Shared>) -> Self {
        let (subscribed, pending, ended) = (Arc::default(), Arc::default(), Arc::default());
        Subscriptions { shared, subscribed, pending, ended }
    }

    /// Ends all listening, because the host has closed its output: the SDK waits for unfinished
    /// requests.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Notes the position of a host whose request to listen was accepted.
    pub(crate) fn note_accepted(&self) {
        let Ok(now) = self.shared.engine.feed_end() else { return };
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.count == 0 {
            pending.from = now;
        }
        pending.count += 1;
    }

    fn take_pending(&self) -> Option<FeedPosition> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.count = pending.count.checked_sub(1)?;
        Some(pending.from)
    }

    /// Notifies a host of changes until it disconnects.
    pub(crate) async fn listen(
        &self,
        context: SubscriptionContext,
        scope: AccessScope,
        options: &McpOptions,
    ) -> Result<(), ErrorData> {
        let accepted = context.accepted().clone();
        let mut subscriptions = Vec::new();
        for uri in accepted.resource_subscriptions.iter().flatten().take(MAX_SUBSCRIPTIONS) {
            // A resource out of scope never changes, as far as the caller can see.
            subscriptions.extend(Subscription::new(uri, &self.shared.engine, options, &scope).ok());
        }
        let lists = accepted.resources_list_changed == Some(true);
        let project = scope.project(None, &options.project);
        let from = self.take_pending();
        let mut reader = self.reader_at_end().await?;
        reader.at = from.unwrap_or(reader.at);
        let mut ended = self.ended.subscribe();
        loop {
            let entries = tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = ended.wait_for(|ended| *ended) => return Ok(()),
                entries = reader.next() => entries?,
            };
            if !scope.is_valid() {
                return Ok(());
            }
            for one in &subscriptions {
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

    /// Subscribes a host of an older protocol to a resource.
    pub(crate) async fn subscribe(
        &self,
        uri: String,
        scope: AccessScope,
        peer: Peer<RoleServer>,
        options: &McpOptions,
    ) -> Result<(), ErrorData> {
        let known = self.subscribed.lock().len();
        if known >= MAX_SUBSCRIPTIONS {
            let why = format!(
                "at most {MAX_SUBSCRIPTIONS} resources can be subscribed to; unsubscribe from one first"
            );
            return Err(ErrorData::invalid_params(why, None));
        }
        Subscription::new(&uri, &self.shared.engine, options, &scope)?;
        self.subscribed.lock().insert(uri);
        if self.subscribed.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut reader = self.reader_at_end().await?;
        let (subscriptions, options) = (self.clone(), options.clone());
        tokio::spawn(async move {
            loop {
                let waited = tokio::time::timeout(Duration::from_secs(5), reader.next()).await;
                if peer.is_transport_closed() || !scope.is_valid() {
                    break;
                }
                let entries = match waited {
                    Err(_) => continue,
                    Ok(Ok(entries)) => entries,
                    Ok(Err(_)) => break,
                };
                let uris: Vec<String> = subscriptions.subscribed.lock().iter().cloned().collect();
                for uri in uris {
                    let subscriptions =
                        Subscription::new(&uri, &subscriptions.shared.engine, &options, &scope)
                            .ok();
                    let changed = subscriptions
                        .is_some_and(|one| entries.iter().any(|entry| one.is_changed_by(entry)));
                    if changed {
                        let update = ResourceUpdatedNotificationParam::new(uri);
                        if peer.notify_resource_updated(update).await.is_err() {
                            break;
                        }
                    }
                }
            }
            subscriptions.subscribed.begun.store(false, Ordering::Relaxed);
        });
        Ok(())
    }

    /// Removes a subscription.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().remove(uri);
    }

    /// Returns a reader at the current end of the feed.
    async fn reader_at_end(&self) -> Result<FeedReader, ErrorData> {
        let engine = self.shared.engine.clone();
        let end = self.shared.end.subscribe();
        self.start_polling();
        let at = tokio::task::spawn_blocking(move || engine.feed_end()).await;
        match at {
            Ok(Ok(at)) => Ok(FeedReader { engine: self.shared.engine.clone(), at, end }),
            _ => Err(ErrorData::internal_error("the feed cannot be read", None)),
        }
    }

    /// Starts the task that polls for the end of the feed, unless it is running.
    fn start_polling(&self) {
        if self.shared.polling.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            while shared.end.receiver_count() > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
                let engine = shared.engine.clone();
                let asked = tokio::task::spawn_blocking(move || engine.feed_end()).await;
                if let Ok(Ok(FeedPosition(now))) = asked {
                    shared.end.send_if_modified(|known| std::mem::replace(known, now) != now);
                }
            }
            shared.polling.store(false, Ordering::Relaxed);
            // A reader may have been added since the last poll.
            if shared.end.receiver_count() > 0 {
                Subscriptions::of(Arc::clone(&shared)).start_polling();
            }
        });
    }
}

impl SubscribedUris {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether an operation is the first of its conversation.
fn is_first(entry: &FeedEntry) -> bool {
    entry.operation.seq == 1 && !entry.operation.conversation.as_str().starts_with('~')
}

/// A position in the feed.
struct FeedReader {
    engine: Engine,
    at: FeedPosition,
    end: watch::Receiver<u64>,
}

impl FeedReader {
    /// Returns the next entries; waits until there are some.
    async fn next(&mut self) -> Result<Vec<FeedEntry>, ErrorData> {
        loop {
            self.end.borrow_and_update();
            let (engine, at) = (self.engine.clone(), self.at);
            let read = tokio::task::spawn_blocking(move || {
                engine.feed(at, &FeedFilter::default(), BATCH_ENTRIES)
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
