//! libFuzzer's way into `checks::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::configuration(data));
