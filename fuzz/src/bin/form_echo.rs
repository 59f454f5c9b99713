//! libFuzzer's way into `checks::form_echo`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::form_echo(data));
