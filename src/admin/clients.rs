//! `/api/clients/ID`: what is known about an address, a key or a request id.

use std::net::IpAddr;

use ipnet::IpNet;
use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::ban_listing::{BanListing, KnownBan, listing};
use super::mitigations;
use super::objects::{ClientObject, raw_json};
use super::reply::{ApiReply, ApiResult};
use super::state::AdminState;
use crate::clock::Timestamp;
use crate::facts::GeoSource as _;
use crate::observe::activity::{ClientDecisions, ClientQuery, DecisionRecord};
use crate::rules::Rule;

/// What a client is looked for by.
#[derive(Clone, Debug)]
struct ClientSearch {
    query: ClientQuery,
    /// `None` if only a key is known.
    ip: Option<IpAddr>,
}

/// Returns what is known about a client. Fails if nothing is.
pub(super) async fn client(state: &AdminState, id: &str) -> ApiResult {
    let (hub, id) = (state.hub().clone(), id.to_owned());
    // Reads up to 65,536 decisions.
    let found = spawn_blocking(move || {
        let search = ClientSearch::new(&id, || hub.decision_by_id(&id));
        let decisions = hub.decisions(&search.query);
        (search, decisions)
    });
    let (search, decisions) = found.await.map_err(|_| ApiError::internal())?;
    let listing = listing(state).await?;
    let exempt_until = search.ip.and_then(|ip| {
        let exemptions = state.live.process.store.exemptions();
        exemptions.until(ip, state.now())
    });
    let now = state.now();
    let found = spawn_blocking(move || {
        let client = search.object(&listing, &decisions, now);
        let is_known = !decisions.newest.is_empty() || !client.bans.is_empty();
        (client, is_known)
    });
    let (client, is_known) = found.await.map_err(|_| ApiError::internal())?;
    if !is_known && exempt_until.is_none() {
        return Err(ApiError::not_found("nothing is known about this client"));
    }
    Ok(ApiReply::json(&ClientObject {
        exempt_until: exempt_until.map(Into::into),
        ..client
    }))
}

// === impl ClientSearch ===

impl ClientSearch {
    /// Reads an address, the id of a request, or a key. `by_id` looks for the decision about a request.
    fn new(id: &str, by_id: impl FnOnce() -> Option<DecisionRecord>) -> Self {
        let address = id.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
        match address.or_else(|| by_id().map(|decision| decision.client_ip)) {
            Some(ip) => Self {
                query: ClientQuery::Address(ip),
                ip: Some(ip),
            },
            None => Self {
                query: ClientQuery::Key(id.to_owned()),
                ip: None,
            },
        }
    }

    fn object(
        &self,
        listing: &BanListing,
        decisions: &ClientDecisions,
        now: Timestamp,
    ) -> ClientObject {
        let geo = &listing.snapshot.settings.geo;
        let rules = mitigations::rules_by_id(&listing.snapshot);
        let is_own = |known: &&KnownBan| {
            let rule = rules.get(&known.ban.rule);
            rule.is_some_and(|rule| self.has_ban(&listing.key_text(known), rule, decisions))
        };
        let bans = listing.live(now).filter(is_own);
        let newest = decisions.newest.iter();
        let newest = newest.map(DecisionRecord::to_json).filter_map(raw_json);
        let country = self.ip.and_then(|ip| geo.country(ip));
        ClientObject {
            ip: self.ip.map(|ip| ip.to_string()),
            asn: self.ip.and_then(|ip| geo.asn(ip)),
            as_name: self.ip.and_then(|ip| geo.as_name(ip)),
            country: country.map(|code| String::from_utf8_lossy(&code).into_owned()),
            exempt_until: None,
            bans: bans.filter_map(|known| listing.object(known)).collect(),
            decisions: newest.collect(),
            mitigated: decisions.mitigated,
            forwarded: None,
            window_start: decisions.window_start.map(Into::into),
        }
    }

    /// Returns whether a ban is one of the client: its key has the address, or is a key of the newest decisions.
    fn has_ban(&self, key: &str, rule: &Rule, decisions: &ClientDecisions) -> bool {
        let is_key = match &self.query {
            ClientQuery::Key(own) => key == own,
            ClientQuery::Address(_) => false,
        };
        is_key
            || self.ip.is_some_and(|ip| has_address(key, rule, ip))
            || decisions.newest.iter().any(|decision| {
                let is_rule = decision.rule.as_ref() == Some(&rule.name);
                is_rule && decision.key.as_deref() == Some(key)
            })
    }
}

/// Returns whether an address of the key is `ip`, or its network.
fn has_address(key: &str, rule: &Rule, ip: IpAddr) -> bool {
    let mut parts = rule.key.shown_parts(key).into_iter();
    parts.any(|part| {
        let value = part.value.filter(|_| part.is_address);
        value.is_some_and(|value| match value.parse::<IpAddr>() {
            Ok(own) => own == ip,
            Err(_) => value.parse::<IpNet>().is_ok_and(|net| net.contains(&ip)),
        })
    })
}
