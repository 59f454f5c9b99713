//! What the gateway reports about itself: metrics, the access log and its own log.
//!
//! Nothing here ever makes a request wait: counters are atomics that were looked up when the
//! configuration was built, and lines go to a bounded queue whose losses are counted. Nothing here
//! decides anything.

/// Declares an enum whose variants have names in the access log and in metrics.
macro_rules! named {
    ($(#[$doc:meta])* pub enum $Name:ident { $($(#[$of:meta])* $Variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name {
            $($(#[$of])* $Variant,)*
        }

        impl $Name {
            /// All variants, in the order of their declaration.
            pub const ALL: [$Name; [$($name),*].len()] = [$($Name::$Variant),*];

            /// The word in the access log and in metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Name::$Variant => $name,)*
                }
            }
        }
    };
}

pub mod access;
mod escape;
pub mod log;
pub mod metrics;
pub mod redact;
pub mod sink;

pub use access::{AbortReason, AccessLog, AccessRecord};
pub use log::{LogHandle, LogOutput, install_panic_hook};
pub use metrics::{
    ListenerMetrics, MetricCounter, Metrics, ProtocolError, RuleMetrics, UpstreamMetrics,
};
pub use redact::Redactor;
pub use sink::LineSink;
