//! libFuzzer's entry to `checks::store_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::store_reply(data));
