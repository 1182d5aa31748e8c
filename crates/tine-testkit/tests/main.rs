//! The state machine over model, memory store and embedded store.

mod state_machine;
