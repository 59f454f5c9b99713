//! libFuzzer's way into `checks::proxy_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::proxy_header(data));
