//! libFuzzer's way into `checks::template`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::template(data));
