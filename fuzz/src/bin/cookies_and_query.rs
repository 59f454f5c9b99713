//! libFuzzer's way into `checks::cookies_and_query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::cookies_and_query(data));
