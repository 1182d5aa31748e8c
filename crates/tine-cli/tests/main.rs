//! Runs the built `tine` in temporary stores; and draws generated trees.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod acp;
mod architecture;
mod bad_input;
mod changing;
mod commits;
mod damage;
mod database;
mod demo;
mod documents;
mod drawing;
mod exit_codes;
mod formats;
mod graph;
mod guides;
mod harness;
mod help;
mod importing;
mod learned;
mod listing;
mod mcp;
mod output;
mod reading;
mod redaction;
mod reference;
mod remote;
mod rendering;
mod repl;
mod rpc;
mod search;
mod serving;
mod settings;
mod strict_edge;
mod syncing;
mod transfer;
mod watching;
