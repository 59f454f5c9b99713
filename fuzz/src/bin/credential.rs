//! libFuzzer's way into `checks::credential`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::credential(data));
