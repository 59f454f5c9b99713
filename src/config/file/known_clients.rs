//! `[known_clients]`.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use toml::de::DeValue;

use crate::config::scalar::{SettingType, ValueError, between, duration, filled, text};
use crate::config::schema::ExampleValue;
use crate::config::section::SectionReader;
use crate::config::{ExprText, Spanned};
use crate::facts::host;

/// `[known_clients]`.
#[derive(Clone, Debug)]
pub struct KnownClientSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// Selects the responses that make a client known. `None` if only presets do.
    pub success: Option<ExprText>,
    /// Whether `success` is not written.
    pub lacks_success: bool,
    /// The user of a request. `None`: cookies name no users.
    pub user: Option<ExprText>,
    /// The time for which a cookie is valid without a renewal. Default 180 days.
    pub lifetime: Spanned<Duration>,
    /// The domain of the cookie. `None`: the host of the request only.
    pub domain: Spanned<Option<String>>,
}

// === impl KnownClientSettings ===

impl KnownClientSettings {
    /// The table that presets imply: all settings have their defaults.
    pub(in crate::config) fn implied(span: Range<usize>) -> Self {
        SectionReader::read_defaults(span, known_clients)
    }

    /// `success` and `user`, those that are written.
    pub fn expressions(&self) -> impl Iterator<Item = &ExprText> {
        self.success.iter().chain(&self.user)
    }
}

const DAY: Duration = Duration::from_secs(86_400);
/// Browsers keep a cookie for at most 400 days.
const LONGEST: Duration = Duration::from_secs(400 * 86_400);

pub(super) fn known_clients(s: &mut SectionReader<'_, '_>) -> KnownClientSettings {
    let known = KnownClientSettings {
        span: s.span(),
        success: s.optional("success", filled()).map(ExprText::written),
        lacks_success: false,
        user: s.optional("user", filled()).map(ExprText::written),
        lifetime: s.or("lifetime", between(DAY, LONGEST, duration()), 180 * DAY),
        domain: s.or("domain", domain(), None),
    };
    KnownClientSettings {
        lacks_success: !s.has("success") && !s.is_misspelt("success"),
        ..known
    }
}

/// The domain of a cookie. An empty string means none.
fn domain() -> SettingType<Option<String>> {
    let shape = text().examples(&["shop.example"]).shape();
    let parse = |value: &DeValue<'_>| {
        let written = text().parse(value)?;
        if written.is_empty() {
            return Ok(None);
        }
        let is_name = |name: &str| name == written && !is_address(name);
        if host::parse(&written, 0).is_some_and(|normal| is_name(&normal.name)) {
            return Ok(Some(written));
        }
        let wrong = ValueError::new(format!("`{written}` is not a domain"));
        Err(wrong
            .help("write a name in lower case without a leading dot, such as \"shop.example\""))
    };
    let show = |domain: &Option<String>| domain.clone().unwrap_or_default();
    SettingType::new(shape, parse).shown(move |domain| ExampleValue::Text(show(domain)))
}

/// Browsers refuse the address of a host as a domain.
fn is_address(name: &str) -> bool {
    name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok()
}
