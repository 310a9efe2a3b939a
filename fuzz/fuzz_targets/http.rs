#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = bootlace_fuzz::http::response(data);
});
