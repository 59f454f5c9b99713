//! `[store]` and `[lists]`.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::checked_name;
use crate::config::scalar::{
    SettingType, ValueError, between, choice, duration, filled, integer, kind, number, path,
    path_or_none, size_between, text,
};
use crate::config::schema::{self, ExampleValue, ValueSchema};
use crate::config::section::{Raw, SectionReader};
use crate::config::{Spanned, Text};
use crate::rules::{OnStoreFailure, StoreMode};
use crate::store::redis::address::RedisAddress;

/// `[store]`.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// The kind of store. Default memory.
    pub kind: Spanned<StoreKind>,
    /// The maximum number of keys over all rules. Default 1,000,000.
    pub max_keys: Spanned<u32>,
    /// The maximum size of all `sliding_log` timestamps in bytes. Default 64 MiB.
    pub max_log_bytes: Spanned<u64>,
    /// The file of the counter snapshot. `None`, the default, saves nothing.
    pub snapshot: Spanned<Option<PathBuf>>,
    /// The shared store. It is used if `kind` is `redis`.
    pub redis: RedisTableSettings,
}

/// `[store.redis]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RedisTableSettings {
    /// The header of the section, or that of `[store]`.
    pub span: Range<usize>,
    /// Where the store is. Default `redis://127.0.0.1:6379`.
    pub url: Spanned<RedisAddress>,
    /// How long a request waits for the store. Default 25 ms.
    pub timeout: Spanned<Duration>,
    /// How rules share their counters. Default exact.
    pub mode: Spanned<StoreMode>,
    /// In async mode, how often a gateway reports what it has admitted. Default 100 ms.
    pub sync_interval: Spanned<Duration>,
    /// What rules do during a store outage. Default local.
    pub on_failure: Spanned<OnStoreFailure>,
    /// The share of each limit that one gateway enforces during a store outage. Default 0.5.
    pub local_fraction: Spanned<f64>,
    /// The start of every key in the store. Default `lockgate:`.
    pub prefix: Spanned<String>,
    /// The ACL user. Empty, the default, is the default user.
    pub username: Spanned<String>,
    /// The file with the password. `None`, the default, uses the environment or no password.
    pub password_file: Spanned<Option<PathBuf>>,
    /// The certificate authorities for TLS. `None`, the default, uses those of the system.
    pub ca: Spanned<Option<PathBuf>>,
    /// The client certificate for TLS. `None`, the default, presents none.
    pub certificate: Spanned<Option<PathBuf>>,
    /// The private key of the client certificate.
    pub private_key: Spanned<Option<PathBuf>>,
}

/// Where counters are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In this process.
    Memory,
    /// In Redis or Valkey, shared by a fleet.
    Redis,
}

/// One of `[lists]`.
#[derive(Clone, Debug)]
pub struct ListSettings {
    /// The name that expressions use after the `$`.
    pub name: Text,
    /// The values of the list.
    pub items: ListItems,
}

/// The source of a list's values.
#[derive(Clone, Debug)]
pub enum ListItems {
    /// Values in the configuration file.
    Inline(Vec<Spanned<ListItem>>),
    /// A file with one value per line.
    File(Spanned<PathBuf>),
}

/// An element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// A string: an address, a network or any text.
    Text(String),
    /// An integer.
    Integer(i64),
}

const KINDS: &[(&str, StoreKind)] = &[("memory", StoreKind::Memory), ("redis", StoreKind::Redis)];

/// What rules can do during a store outage.
pub(super) const ON_FAILURE: &[(&str, OnStoreFailure)] = &[
    ("local", OnStoreFailure::Local),
    ("open", OnStoreFailure::Open),
    ("closed", OnStoreFailure::Closed),
];

/// How rules can share their counters.
pub(super) const MODES: &[(&str, StoreMode)] = &[
    (StoreMode::Exact.name(), StoreMode::Exact),
    (StoreMode::Async.name(), StoreMode::Async),
];

const DEFAULT_URL: &str = "redis://127.0.0.1:6379";
const DEFAULT_PREFIX: &str = "lockgate:";
const LONGEST_PREFIX: usize = 64;
const MILLISECOND: Duration = Duration::from_millis(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(10);
const SHORTEST_SYNC: Duration = Duration::from_millis(10);
const LONGEST_SYNC: Duration = Duration::from_secs(10);

pub(super) fn store(s: &mut SectionReader<'_, '_>) -> StoreSettings {
    StoreSettings {
        span: s.span(),
        kind: s.or("kind", choice(KINDS, &[]), StoreKind::Memory),
        max_keys: s.or("max_keys", integer(1..=1_000_000_000), 1_000_000u32),
        max_log_bytes: s.or(
            "max_log_bytes",
            size_between(64 << 10, 1 << 40),
            64u64 << 20,
        ),
        snapshot: s.or("snapshot", path_or_none(), None),
        redis: redis(s),
    }
}

fn redis(s: &mut SectionReader<'_, '_>) -> RedisTableSettings {
    let span = s.span();
    s.table("redis", redis_table)
        .unwrap_or_else(|| RedisTableSettings::defaults(span))
}

fn redis_table(s: &mut SectionReader<'_, '_>) -> RedisTableSettings {
    let default = RedisTableSettings::defaults(s.span());
    let timeout = between(MILLISECOND, LONGEST_TIMEOUT, duration());
    let sync_interval = between(SHORTEST_SYNC, LONGEST_SYNC, duration());
    let mut table = RedisTableSettings {
        url: s.or("url", url(), default.url.value),
        timeout: s.or("timeout", timeout, default.timeout.value),
        mode: s.or("mode", choice(MODES, &[]), StoreMode::Exact),
        sync_interval: s.or("sync_interval", sync_interval, default.sync_interval.value),
        on_failure: s.or("on_failure", choice(ON_FAILURE, &[]), OnStoreFailure::Local),
        local_fraction: s.or(
            "local_fraction",
            number(0.01, 1.0),
            default.local_fraction.value,
        ),
        prefix: s.or("prefix", prefix(), default.prefix.value),
        username: s.or("username", text(), String::new()),
        password_file: s.or("password_file", path_or_none(), None),
        ..RedisTableSettings::defaults(default.span)
    };
    s.table("tls", |s| {
        table.ca = s.or("ca", path_or_none(), None);
        table.certificate = s.or("cert", path_or_none(), None);
        table.private_key = s.or("key", path_or_none(), None);
    });
    table
}

fn url() -> SettingType<RedisAddress> {
    let examples = &[
        DEFAULT_URL,
        "redis-cluster://10.0.0.5,10.0.0.6",
        "redis-sentinel://10.0.0.5/main",
    ];
    SettingType::new(
        ValueSchema::string_of_form(schema::STORE_URL, examples),
        |value| {
            let written = filled().parse(value)?;
            RedisAddress::parse(&written)
                .map_err(|wrong| ValueError::new(wrong.to_string()).help(wrong.help()))
        },
    )
    .shown(|address| ExampleValue::Text(format!("redis://{address}")))
}

fn prefix() -> SettingType<String> {
    SettingType::new(
        ValueSchema::string_of_form(schema::STORE_PREFIX, &[]),
        |value| {
            let written = text().parse(value)?;
            if written.contains(['{', '}']) {
                let wrong = ValueError::new("a prefix must not contain `{` or `}`");
                return Err(wrong.help("Redis Cluster uses braces to choose a slot"));
            }
            if !written.bytes().all(|byte| byte.is_ascii_graphic()) {
                let wrong = ValueError::new("a prefix has only visible ASCII characters");
                return Err(wrong.help("every key begins with it"));
            }
            if written.len() > LONGEST_PREFIX {
                let message = format!("this prefix has more than {LONGEST_PREFIX} characters");
                return Err(ValueError::new(message).help("every key begins with it"));
            }
            Ok(written)
        },
    )
    .shown(|prefix| ExampleValue::Text(prefix.clone()))
}

// === impl RedisTableSettings ===

impl RedisTableSettings {
    fn defaults(span: Range<usize>) -> Self {
        let address = RedisAddress::parse(DEFAULT_URL);
        let address = address.expect("the default URL is valid");
        Self {
            url: Spanned::new(address, span.clone()),
            timeout: Spanned::new(Duration::from_millis(25), span.clone()),
            mode: Spanned::new(StoreMode::Exact, span.clone()),
            sync_interval: Spanned::new(Duration::from_millis(100), span.clone()),
            on_failure: Spanned::new(OnStoreFailure::Local, span.clone()),
            local_fraction: Spanned::new(0.5, span.clone()),
            prefix: Spanned::new(DEFAULT_PREFIX.to_owned(), span.clone()),
            username: Spanned::new(String::new(), span.clone()),
            password_file: Spanned::new(None, span.clone()),
            ca: Spanned::new(None, span.clone()),
            certificate: Spanned::new(None, span.clone()),
            private_key: Spanned::new(None, span.clone()),
            span,
        }
    }
}

pub(super) fn lists(s: &mut SectionReader<'_, '_>) -> Vec<ListSettings> {
    let mut lists = Vec::new();
    for (name, raw) in s.entries(schema::NAME) {
        let name = checked_name(s, name);
        // A list with errors is still defined, so rules that use it get no further errors.
        let items = items(s, raw).unwrap_or(ListItems::Inline(Vec::new()));
        lists.push(ListSettings { name, items });
    }
    lists
}

fn items(s: &mut SectionReader<'_, '_>, raw: &Raw<'_>) -> Option<ListItems> {
    let example = "[\"192.0.2.0/24\"] or { file = \"agents.txt\" }";
    let inline = |items| Some(ListItems::Inline(items));
    s.entry_array_or_table(raw, &item(), inline, from_file, example)
        .flatten()
}

fn from_file(s: &mut SectionReader<'_, '_>) -> Option<ListItems> {
    s.required("file", path(), "\"agents.txt\"")
        .map(ListItems::File)
}

fn item() -> SettingType<ListItem> {
    let (number, word) = (integer(i64::MIN..=i64::MAX), filled());
    let shape = ValueSchema::Either(vec![word.shape(), number.shape()]);
    SettingType::new(shape, move |value| match value {
        DeValue::Integer(_) => number.parse(value).map(ListItem::Integer),
        DeValue::String(_) => word.parse(value).map(ListItem::Text),
        other => Err(kind("a string or an integer", other)),
    })
}
