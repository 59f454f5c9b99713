//! What must hold for every input, whatever it is. A check panics where it does not.
//!
//! The fuzz targets call these with what libFuzzer makes up, `tests/it/fuzz.rs` with the committed
//! corpora. Only public items of lockgate are used.

mod answer;
mod client_hello;
mod configuration;
mod cookies_and_query;
mod credential;
mod expression;
mod form;
mod form_echo;
mod forwarding;
mod pairs;
mod path;
mod proxy_header;
mod request;
pub mod sample;
mod store_reply;
mod strict;
mod sync_reply;
mod template;

pub use answer::answer;
pub use client_hello::client_hello;
pub use configuration::configuration;
pub use cookies_and_query::cookies_and_query;
pub use credential::credential;
pub use expression::expression;
pub use form::form;
pub use form_echo::form_echo;
pub use forwarding::forwarding;
pub use path::path;
pub use proxy_header::proxy_header;
pub use request::request;
pub use store_reply::store_reply;
pub use sync_reply::sync_reply;
pub use template::template;

/// A check of one input.
pub type Check = fn(&[u8]);

/// All checks, with the names of their targets.
pub const ALL: [(&str, Check); 15] = [
    ("answer", answer),
    ("client_hello", client_hello),
    ("configuration", configuration),
    ("cookies_and_query", cookies_and_query),
    ("credential", credential),
    ("expression", expression),
    ("form", form),
    ("form_echo", form_echo),
    ("forwarding", forwarding),
    ("path", path),
    ("proxy_header", proxy_header),
    ("request", request),
    ("store_reply", store_reply),
    ("sync_reply", sync_reply),
    ("template", template),
];
