//! libFuzzer's way into `checks::path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::path(data));
