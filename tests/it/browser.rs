//! Tests in headless Chromium, over real TLS against the real gateway.
//!
//! They need the Debian packages `chromium` and `chromium-driver`, which `./test` installs. With axe-core, which `./test`
//! downloads if there is npm, they check its rules too.

mod accessibility;
mod challenge;
mod dashboard;
mod driver;
mod element;

pub use driver::Browser;
pub use element::Element;
