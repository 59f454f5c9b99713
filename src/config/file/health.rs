//! `upstreams.health`.

use http::{HeaderName, Method, header};

use super::headers::{headers, owned};
use super::upstream::{LONGEST, OFTENEST, SHORTEST};
use crate::config::scalar::{
    ValueError, between, choice, duration, host_or_none, integer, status_range, target_path, text,
};
use crate::config::section::SectionReader;
use crate::route::edit::{HeaderChanges, MessageKind};
use crate::upstream::{HealthPolicy, StatusRange};

const METHODS: &[(&str, ProbeMethod)] = &[
    ("GET", ProbeMethod::Get),
    ("HEAD", ProbeMethod::Head),
    ("OPTIONS", ProbeMethod::Options),
    ("POST", ProbeMethod::Post),
];

/// The method of health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeMethod {
    Get,
    Head,
    Options,
    Post,
}

pub(super) fn health(s: &mut SectionReader<'_, '_>) -> Option<HealthPolicy> {
    let path = s.required("path", target_path(), "\"/healthz\"");
    let default = HealthPolicy::of_path(path.map_or_else(String::new, |path| path.value));
    let interval = between(OFTENEST, LONGEST, duration());
    let timeout = between(SHORTEST, LONGEST, duration());
    let times = || integer(1..=100);
    let policy = HealthPolicy {
        interval: s.or("interval", interval, default.interval).value,
        timeout: s.or("timeout", timeout, default.timeout).value,
        healthy: s.or("healthy", times(), default.healthy).value,
        unhealthy: s.or("unhealthy", times(), default.unhealthy).value,
        host: s.or("host", host_or_none(), None).value.map(Into::into),
        method: s
            .or("method", choice(METHODS, &[]), ProbeMethod::Get)
            .value
            .into(),
        headers: probe_headers(s),
        statuses: statuses(s),
        body_contains: s.or("body_contains", text(), "").value,
        ..default
    };
    if policy.method == Method::HEAD && !policy.body_contains.is_empty() {
        let span = s.key_span("body_contains").unwrap_or_else(|| s.span());
        let message = "`body_contains` cannot match: a response to `HEAD` has no body";
        s.out.error(span, message).help("use `method = \"GET\"`");
    }
    (!policy.path.is_empty()).then_some(policy)
}

fn statuses(s: &mut SectionReader<'_, '_>) -> Vec<StatusRange> {
    let statuses = s.array_or("status", status_range(), [StatusRange::SUCCESS]);
    let message = "`status` is empty: no response would pass";
    s.not_empty("status", message, "for example `status = [\"200-399\"]`");
    statuses.into_iter().map(|range| range.value).collect()
}

fn probe_headers(s: &mut SectionReader<'_, '_>) -> HeaderChanges {
    let set = s
        .table("headers", |s| headers(s, may_set))
        .unwrap_or_default();
    let set = set.into_iter().map(|one| (one.name.value, one.value.value));
    HeaderChanges {
        set: set.collect(),
        ..HeaderChanges::default()
    }
}

fn may_set(name: &HeaderName) -> Result<(), ValueError> {
    if *name == header::HOST {
        let wrong = ValueError::new("`host` is not set among the headers of health checks");
        return Err(wrong.help("write it as `health.host`"));
    }
    if MessageKind::Request.owns(name) {
        return Err(owned(name));
    }
    Ok(())
}

// === impl ProbeMethod ===

impl From<ProbeMethod> for Method {
    fn from(method: ProbeMethod) -> Self {
        match method {
            ProbeMethod::Get => Self::GET,
            ProbeMethod::Head => Self::HEAD,
            ProbeMethod::Options => Self::OPTIONS,
            ProbeMethod::Post => Self::POST,
        }
    }
}
