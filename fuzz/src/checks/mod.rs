//! What must hold for every input, whatever it is. A check panics where it does not.
//!
//! The fuzz targets call these with what libFuzzer makes up, `tests/it/fuzz.rs` with the committed
//! corpora. Only public items of lockgate are used.

mod client_hello;
mod cookies_and_query;
mod expression;
mod proxy_header;
pub mod request;

pub use client_hello::client_hello;
pub use cookies_and_query::cookies_and_query;
pub use expression::expression;
pub use proxy_header::proxy_header;

/// A check of one input.
pub type Check = fn(&[u8]);

/// All checks, with the names of their targets.
pub const ALL: [(&str, Check); 4] = [
    ("expression", expression),
    ("client_hello", client_hello),
    ("cookies_and_query", cookies_and_query),
    ("proxy_header", proxy_header),
];
