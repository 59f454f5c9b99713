//! libFuzzer's way into `checks::expression`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::expression(data));
