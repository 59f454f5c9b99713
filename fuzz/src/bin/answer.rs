//! libFuzzer's way into `checks::answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::answer(data));
