//! Upstreams that fail, and unhealthy servers.

use super::{AttentionFinding, capitalized};
use crate::admin::objects::{AttentionLevel, UpstreamObject};

/// The number of recent attempts from which an upstream can be found to fail.
const FEWEST_ATTEMPTS: u64 = 5;

/// An upstream without a server that takes requests, or without one that responds.
pub(super) fn failing_upstream(upstream: &UpstreamObject) -> Option<AttentionFinding> {
    let (name, servers) = (&upstream.name, &upstream.servers);
    let (text, detail) = if !servers.iter().any(|server| server.takes_requests()) {
        let detail = "Requests for this upstream get 502 or 503.".to_owned();
        (format!("{name}: no server takes requests"), detail)
    } else {
        let attempts: u64 = servers.iter().map(|server| server.recent_attempts).sum();
        let errors: u64 = servers.iter().map(|server| server.recent_errors).sum();
        if attempts < FEWEST_ATTEMPTS || errors < attempts {
            return None;
        }
        let detail = format!("{attempts} attempts in the last 10 s, none with a response.");
        (format!("Every request to {name} fails"), detail)
    };
    let id = format!("upstream:{name}");
    let finding = AttentionFinding::new(&id, AttentionLevel::Crit, text);
    Some(finding.with_detail(detail).linked("section:upstreams"))
}

pub(super) fn unhealthy_servers(upstream: &UpstreamObject) -> Vec<AttentionFinding> {
    let unhealthy = upstream
        .servers
        .iter()
        .filter(|server| server.health != "healthy");
    let finding = unhealthy.map(|server| {
        let (name, address) = (&upstream.name, &server.address);
        let text = format!("{name}: {address} is unhealthy");
        let id = format!("server:{name}/{address}");
        let takes = upstream
            .servers
            .iter()
            .filter(|server| server.takes_requests())
            .count();
        let reason = server.reason.as_deref().unwrap_or("unknown reason");
        let detail = format!(
            "{reason}. {takes} of {} servers take requests.",
            upstream.servers.len()
        );
        let finding = AttentionFinding::new(&id, AttentionLevel::Warn, text);
        let since = server.since.map(|since| since.0);
        finding
            .with_detail(capitalized(&detail))
            .at(since)
            .linked("section:upstreams")
    });
    finding.collect()
}
