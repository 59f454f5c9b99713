//! Observability: metrics, the access log and the gateway's own log.
//!
//! Nothing here blocks a request: counters are atomics that are looked up when the configuration is built,
//! and lines go to a bounded queue that counts lost lines. Nothing here makes decisions.

/// Declares an enum with a name for each variant, used in the access log and in metrics.
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

            /// Returns the name in the access log and in metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Name::$Variant => $name,)*
                }
            }
        }
    };
}

pub mod access;
pub mod activity;
mod escape;
pub mod log;
pub mod metrics;
pub mod redact;
pub mod sink;

pub use access::{AbortReason, AccessLog, AccessRecord, TunnelSide};
pub use log::{LogHandle, LogOutput, install_panic_hook};
pub use metrics::{
    BodyInspection, ConnectionPhase, GaugeGuard, HISTOGRAM_BOUNDS, KnownClientResult,
    ListenerMetrics, MetricCounter, Metrics, ProcessUsage, ProtocolError, RuleMetrics, RuleUsage,
    UpstreamMetrics,
};
pub use redact::Redactor;
pub use sink::LineSink;
