//! libFuzzer's way into `checks::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::request(data));
