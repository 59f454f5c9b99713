//! libFuzzer's way into `checks::client_hello`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::client_hello(data));
