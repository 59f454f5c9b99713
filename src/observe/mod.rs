//! What the gateway tells of itself: metrics, the access log and its own log.
//!
//! Nothing here ever makes a request wait: counters are atomics that were looked up when the
//! configuration was built, and lines go to a bounded queue whose losses are counted. Nothing here
//! decides anything.

pub mod access;
mod cut;
mod escape;
pub mod log;
pub mod metrics;
mod panics;
pub mod redact;
pub mod sink;

pub use access::{AccessLog, Record};
pub use cut::Cut;
pub use log::{Field, Format, Level, Log};
pub use metrics::{Count, ListenerMetrics, Metrics, ProtocolError, RuleMetrics, UpstreamMetrics};
pub use panics::tell_panics;
pub use redact::Redactor;
pub use sink::Sink;
