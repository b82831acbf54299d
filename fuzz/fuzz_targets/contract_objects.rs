#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| declarest_fuzz::contract::objects(data));
