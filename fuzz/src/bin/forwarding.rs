//! libFuzzer's way into `checks::forwarding`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lockgate_fuzz::checks::forwarding(data));
