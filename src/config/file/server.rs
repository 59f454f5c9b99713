//! `[server]` and `[limits]`.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use crate::config::Spanned;
use crate::config::scalar::{
    SettingType, between, duration, integer, path_or_none, size, size_between,
};
use crate::config::schema::ExampleValue;
use crate::config::section::SectionReader;
use crate::listen;

/// `[server]`.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The number of worker threads; 0 is one per core. Default 0.
    pub workers: Spanned<u32>,
    /// The timeout for requests in flight after a stop signal. Default 30 s.
    pub drain_timeout: Spanned<Duration>,
    /// How long the listeners keep accepting connections after a stop signal. Default 0 s.
    pub drain_delay: Spanned<Duration>,
    /// The file with the process id. `None`, the default, writes no file.
    pub pid_file: Spanned<Option<PathBuf>>,
    /// The maximum number of open connections over all listeners. Default 100,000.
    pub max_connections: Spanned<u32>,
    /// The maximum number of requests that rules hold. Default 10,000.
    pub max_held: Spanned<u32>,
    /// The file with the gateway's secret. `None`, the default, creates a new secret at each start.
    pub secret_file: Spanned<Option<PathBuf>>,
}

/// `[limits]`: per connection and per request.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// The timeouts and size limits of a connection and its requests.
    pub connection: listen::ConnectionLimits,
    /// The maximum size of a request body in bytes; 0 is unlimited. Default 0.
    pub max_body_bytes: u64,
    /// The number of bytes of a request body that rules can read. Default 16 KiB.
    pub inspect_body: usize,
    /// The maximum number of open connections per address, by the prefixes of `[client_ip]`; 0 is
    /// unlimited. Default 0.
    pub max_connections_per_ip: u32,
}

const DAY: Duration = Duration::from_secs(86_400);
const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) fn server(s: &mut SectionReader<'_, '_>) -> ServerSettings {
    ServerSettings {
        workers: s.or("workers", workers(), 0u32),
        drain_timeout: s.or(
            "drain_timeout",
            between(Duration::ZERO, DAY, duration()),
            Duration::from_secs(30),
        ),
        drain_delay: s.or(
            "drain_delay",
            between(Duration::ZERO, DAY, duration()),
            Duration::ZERO,
        ),
        pid_file: s.or("pid_file", path_or_none(), None),
        max_connections: s.or("max_connections", integer(1..=10_000_000), 100_000u32),
        max_held: s.or("max_held", integer(0..=10_000_000), 10_000u32),
        secret_file: s.or("secret_file", path_or_none(), None),
    }
}

/// The number of workers. Other gateways write `auto` for what 0 means here.
fn workers() -> SettingType<u32> {
    let number = integer(0..=1024);
    let shape = number.shape();
    let parse = move |value: &DeValue<'_>| {
        let is_word = value
            .as_str()
            .is_some_and(|word| word.parse::<u32>().is_err());
        number.parse(value).map_err(|wrong| {
            if is_word {
                wrong.help("write `workers = 0` for one worker per core")
            } else {
                wrong
            }
        })
    };
    SettingType::new(shape, parse).shown(|workers| ExampleValue::Integer(i64::from(*workers)))
}

/// The window over which `limits.min_rate` is averaged.
const RATE_WINDOW: Duration = Duration::from_secs(30);

/// The maximum of `limits.linger.time`.
const LONGEST_LINGER: Duration = Duration::from_secs(600);

pub(super) fn limits(s: &mut SectionReader<'_, '_>) -> LimitSettings {
    let timeout = |s: &mut SectionReader<'_, '_>, key, seconds| {
        let bounded = between(MILLISECOND, DAY, duration());
        s.or(key, bounded, Duration::from_secs(seconds)).value
    };
    let bytes = size_between(256, 16 << 20);
    let connection = listen::ConnectionLimits {
        header_timeout: timeout(s, "header_timeout", 10),
        idle_timeout: timeout(s, "idle_timeout", 75),
        request_body_timeout: timeout(s, "request_body_timeout", 30),
        response_write_timeout: timeout(s, "response_write_timeout", 30),
        min_rate: s.or("min_rate", size(), 100u64).value,
        rate_window: RATE_WINDOW,
        max_header_bytes: s.or("max_header_bytes", bytes, 32u64 << 10).value as usize,
        max_headers: s.or("max_headers", integer(1..=10_000u32), 100u32).value as usize,
        h2_max_concurrent_streams: s
            .or("h2_max_concurrent_streams", integer(1..=100_000), 128u32)
            .value,
        h2_max_resets: s.or("h2_max_resets", integer(0..=1_000_000), 100u32).value,
        linger: s.table_or_defaults("linger", linger),
    };
    let inspected = size_between(256, 1 << 20);
    let per_ip = integer(0..=10_000_000);
    LimitSettings {
        connection,
        max_body_bytes: s.or("max_body_bytes", size(), 0u64).value,
        inspect_body: s.or("inspect_body", inspected, 16u64 << 10).value as usize,
        max_connections_per_ip: s.or("max_connections_per_ip", per_ip, 0u32).value,
    }
}

/// `linger` in `[limits]`.
fn linger(s: &mut SectionReader<'_, '_>) -> listen::LingerLimits {
    let time = between(Duration::ZERO, LONGEST_LINGER, duration());
    listen::LingerLimits {
        bytes: s.or("bytes", size(), 16u64 << 20).value,
        time: s.or("time", time, Duration::from_secs(5)).value,
    }
}
