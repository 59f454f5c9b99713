//! libFuzzer's way into `checks::client_hello`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate::checks::client_hello(data));
