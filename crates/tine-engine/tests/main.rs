//! What the engine promises, one claim to a test, over every store.

mod append;
mod bad_input;
mod bookmarks;
mod concurrency;
mod cost;
mod delete;
mod embedded;
mod fork_and_edit;
mod hashes;
mod idempotency;
mod landing;
mod metadata;
mod old_defects;
mod paths;
mod purge;
mod references;
mod revert;
mod roots;
mod search;
mod search_index;
mod search_random;
mod split;
mod topology;
mod transfer;
mod undo;
mod world;
