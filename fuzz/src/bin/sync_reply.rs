//! libFuzzer's entry to `checks::sync_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::sync_reply(data));
