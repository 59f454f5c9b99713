//! The value of every key that is left out. They stand here and nowhere else.

use std::time::Duration;

use super::file::{
    Balance, ClientAuth, CountHeaders, Level, LogFormat, Missing, OriginProtocol, PathForm,
    Protocol, StoreKind, TlsVersion,
};
use crate::decision::Action;
use crate::limit::Algorithm;

/// `server.workers`: 0 is one per core.
pub const WORKERS: u32 = 0;
/// `server.drain_timeout`.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// `server.max_connections`.
pub const MAX_CONNECTIONS: u32 = 100_000;
/// `server.max_held`.
pub const MAX_HELD: u32 = 10_000;

/// `listeners.protocols`, in ALPN order.
pub const PROTOCOLS: [Protocol; 2] = [Protocol::H2, Protocol::Http11];
/// `listeners.proxy_protocol`.
pub const PROXY_PROTOCOL: bool = false;
/// `listeners.tls.client_auth`.
pub const CLIENT_AUTH: ClientAuth = ClientAuth::Required;
/// `listeners.tls.min_version`.
pub const MIN_VERSION: TlsVersion = TlsVersion::Tls12;

/// `limits.header_timeout`.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// `limits.idle_timeout`.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// `limits.request_body_timeout`.
pub const REQUEST_BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// `limits.response_write_timeout`.
pub const RESPONSE_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// `limits.min_rate`, in bytes a second: 0 is off.
pub const MIN_RATE: u64 = 100;
/// `limits.max_header_bytes`.
pub const MAX_HEADER_BYTES: u64 = 32 * 1024;
/// `limits.max_headers`.
pub const MAX_HEADERS: u32 = 100;
/// `limits.max_body_bytes`: 0 is unlimited.
pub const MAX_BODY_BYTES: u64 = 0;
/// `limits.max_connections_per_ip`: 0 is unlimited.
pub const MAX_CONNECTIONS_PER_IP: u32 = 0;
/// `limits.h2_max_concurrent_streams`.
pub const H2_MAX_CONCURRENT_STREAMS: u32 = 128;
/// `limits.h2_max_resets`: 0 is unlimited.
pub const H2_MAX_RESETS: u32 = 100;

/// `client_ip.header`.
pub const CLIENT_IP_HEADER: &str = "x-forwarded-for";
/// `client_ip.ipv4_prefix`.
pub const IPV4_PREFIX: u8 = 32;
/// `client_ip.ipv6_prefix`.
pub const IPV6_PREFIX: u8 = 64;

/// `log.level`.
pub const LOG_LEVEL: Level = Level::Info;
/// `log.format`.
pub const LOG_FORMAT: LogFormat = LogFormat::Text;
/// `log.redact`.
pub const REDACT: [&str; 4] = ["authorization", "cookie", "set-cookie", "x-api-key"];

/// `store.kind`.
pub const STORE_KIND: StoreKind = StoreKind::Memory;
/// `store.max_keys`.
pub const MAX_KEYS: u32 = 1_000_000;
/// `store.max_log_bytes`.
pub const MAX_LOG_BYTES: u64 = 64 << 20;

/// `upstreams.balance`.
pub const BALANCE: Balance = Balance::P2c;
/// `upstreams.protocol`.
pub const ORIGIN_PROTOCOL: OriginProtocol = OriginProtocol::Http11;
/// `upstreams.tls.verify`.
pub const VERIFY: bool = true;
/// `upstreams.connect_timeout`.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// `upstreams.response_timeout`.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// `upstreams.max_idle_per_server`.
pub const MAX_IDLE_PER_SERVER: u32 = 256;
/// `upstreams.servers.weight`.
pub const WEIGHT: u32 = 1;
/// `upstreams.servers.backup`.
pub const BACKUP: bool = false;
/// `upstreams.resolve_interval`.
pub const RESOLVE_INTERVAL: Duration = Duration::from_secs(10);
/// `upstreams.hash_key`.
pub const HASH_KEY: [&str; 1] = ["ip.src"];
/// `upstreams.retries`.
pub const RETRIES: u32 = 1;
/// `upstreams.health.interval`.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(5);
/// `upstreams.health.timeout`.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);
/// `upstreams.health.healthy`.
pub const HEALTHY: u32 = 2;
/// `upstreams.health.unhealthy`.
pub const UNHEALTHY: u32 = 3;
/// `upstreams.circuit_breaker.failures`.
pub const FAILURES: u32 = 5;
/// `upstreams.circuit_breaker.within`.
pub const FAILURES_WITHIN: Duration = Duration::from_secs(10);
/// `upstreams.circuit_breaker.open_for`.
pub const OPEN_FOR: Duration = Duration::from_secs(5);

/// `routes.forward_path`.
pub const FORWARD_PATH: PathForm = PathForm::Normalized;
/// `routes.respond.status`.
pub const RESPOND_STATUS: u16 = 200;
/// `content_type` of `respond` and `[responses]`.
pub const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// `rules.algorithm`.
pub const ALGORITHM: Algorithm = Algorithm::SlidingWindow;
/// `rules.action`.
pub const ACTION: Action = Action::Block;
/// `rules.duration`: zero is a throttle.
pub const DURATION: Duration = Duration::ZERO;
/// `rules.dry_run`.
pub const DRY_RUN: bool = false;
/// `rules.enabled`.
pub const ENABLED: bool = true;
/// `rules.missing`.
pub const MISSING: Missing = Missing::Group;
/// `rules.headers`.
pub const COUNT_HEADERS: CountHeaders = CountHeaders::Standard;
/// `rules.cost`.
pub const COST: u32 = 1;
/// `rules.slices`.
pub const SLICES: u16 = 1;
/// `rules.queue`.
pub const QUEUE: u32 = 100;
/// `rules.jitter`.
pub const JITTER: f64 = 0.0;
/// `rules.max_delay`.
pub const MAX_DELAY: Duration = Duration::from_secs(5);

/// `responses.NAME.imitate`.
pub const IMITATE: bool = false;
