//! See `rpc::rpc`.

#![no_main]

#[path = "../src/rpc.rs"]
mod rpc;

libfuzzer_sys::fuzz_target!(|data: &[u8]| rpc::rpc(data));
