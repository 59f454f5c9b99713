//! libFuzzer's way into `checks::form`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::form(data));
