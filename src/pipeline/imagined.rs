//! A request that nobody sent, on the way that a real one takes: the same head, facts, plan, store,
//! decision and settling. Only the origin's answer is made up. Nothing is forwarded, held or logged,
//! and `concurrency` places are given back at once: each request has ended before the next.

mod way;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};

use self::way::Way;
use super::{read_head, record};
use crate::action::Asked;
use crate::body::Body;
use crate::clock::Timestamp;
use crate::config::is_secret;
use crate::decision::RuleIndex;
use crate::expr::FieldId;
use crate::facts::{Connection, GeoSource, Head, Malformed, RequestFacts};
use crate::geo::continent;
use crate::observe::Redactor;
use crate::rules::trace::{self, Secrets, Trace};
use crate::snapshot::{Snapshot, Target};
use crate::store::Store;

/// The id of a request that nobody sent.
const ID: &str = "00000000000000000000000000000000";

/// A request that nobody sent, with what its origin would answer.
pub struct Imagined {
    /// Its head.
    pub parts: Parts,
    /// What makes it impossible to write that head; the target in `parts` then means nothing.
    pub unreadable: Option<Malformed>,
    /// The connection that it comes on.
    pub connection: Connection,
    /// The client's address; `None`: found as for a real request.
    pub client: Option<IpAddr>,
    /// The client's autonomous system, whatever the databases say.
    pub asn: Option<u32>,
    /// The client's country, whatever the databases say.
    pub country: Option<[u8; 2]>,
    /// The status of the answer; `None`: what the route gives, 200 from an upstream.
    pub status: Option<StatusCode>,
    /// Further headers of the answer.
    pub response_headers: HeaderMap,
}

/// What became of it.
pub struct Report {
    /// What became of it, in a word.
    pub outcome: Outcome,
    /// The rule that the access log would name, and what it would say that the rule did.
    pub credit: Option<(Arc<str>, &'static str)>,
    /// How long it is held before that.
    pub held: Duration,
    /// The rules that its origin is told of.
    pub tags: Vec<Arc<str>>,
    /// Where its route leads, or the rule that diverts it.
    pub to: Option<To>,
    /// The template of its route.
    pub route: Option<String>,
    /// The client's address.
    pub client: IpAddr,
    /// The client's answer; `None`: nobody answers.
    pub response: Option<Response<Body>>,
    /// Whether rules could count that answer.
    pub settled: bool,
    /// What each rule of the file did, in order.
    pub rules: Vec<Trace>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went where its route leads.
    Forward,
    /// The same, because a rule let it pass.
    Allow,
    /// The same, after a wait.
    Delay,
    /// The same, with a word about the rules that tagged it.
    Tag,
    /// It went where a rule leads.
    Divert,
    /// A rule refused it.
    Block,
    /// The same, after a wait.
    Tarpit,
    /// A rule closed its connection.
    Close,
    /// A rule answered in the origin's place.
    Shadow,
    /// The gateway refused it, for this reason; no rule did.
    Refuse(&'static str),
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// To this upstream.
    Upstream(Arc<str>),
    /// To an answer of its own.
    Respond,
    /// To another address.
    Redirect,
}

/// What the databases say of the client, but for what is imagined of it.
struct Told<'a>(&'a Imagined, &'a dyn GeoSource);

// === impl Imagined ===

impl Imagined {
    /// Sends it through the rules. `detail`: with every expression taken apart.
    pub async fn pass(
        &self,
        snapshot: &Snapshot,
        store: &Store,
        now: Timestamp,
        detail: bool,
    ) -> Report {
        let peer = self.connection.peer.ip();
        let given = (snapshot.client_ip).request_id(peer, &self.parts.headers);
        let id = given.unwrap_or(ID);
        let asked = Asked::of(&self.parts, id, now);
        let head = match self.head(snapshot) {
            Ok(head) => head,
            Err(malformed) => return self.malformed(snapshot, &asked, malformed),
        };
        let route = snapshot.routes.find(head.authority(), &head.path);
        let told = Told(self, &snapshot.geo);
        let (headers, client) = (&self.parts.headers, self.client(snapshot));
        let mut facts = RequestFacts::new(&head, headers, &self.connection, client, now, &told);
        facts.route = route.map(|(template, _)| template);
        facts.id = id;

        let way = Way {
            imagined: self,
            snapshot,
            store,
            asked: &asked,
            facts: &facts,
            route: route.map(|(_, route)| route),
        };
        way.go(detail).await
    }

    fn head(&self, snapshot: &Snapshot) -> Result<Head<'_>, Malformed> {
        if let Some(malformed) = self.unreadable {
            return Err(malformed);
        }
        let headers = &self.parts.headers;
        let length = headers.get(CONTENT_LENGTH).map(|value| value.as_bytes());
        let ended = length.unwrap_or(b"0") == b"0" && !headers.contains_key(TRANSFER_ENCODING);
        read_head(&self.parts, self.connection.tls.is_some(), ended, snapshot)
    }

    fn client(&self, snapshot: &Snapshot) -> IpAddr {
        let peer = self.connection.peer.ip();
        let found = || snapshot.client_ip.resolve(peer, &self.parts.headers);
        self.client.map_or_else(found, |ip| ip.to_canonical())
    }

    fn malformed(&self, snapshot: &Snapshot, asked: &Asked<'_>, malformed: Malformed) -> Report {
        let why = "not reached: the request is refused before any rule";
        let rules = trace::unreached(&snapshot.rules, why);
        Report {
            outcome: Outcome::Refuse(malformed.reason()),
            credit: None,
            held: Duration::ZERO,
            tags: Vec::new(),
            to: None,
            route: None,
            client: self.client(snapshot),
            response: Some(record::fault(malformed).answer(asked)),
            settled: false,
            rules: with_disabled(snapshot, rules),
        }
    }

    /// The answer as it is imagined.
    fn changed(&self, mut response: Response<Body>) -> Response<Body> {
        if let Some(status) = self.status {
            *response.status_mut() = status;
        }
        let headers = response.headers_mut();
        for name in self.response_headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.response_headers {
            headers.append(name, value.clone());
        }
        response
    }
}

/// All rules of the file, in its order.
fn with_disabled(snapshot: &Snapshot, traces: Vec<Trace>) -> Vec<Trace> {
    let mut disabled = snapshot.disabled.iter().peekable();
    let mut all = Vec::with_capacity(traces.len() + snapshot.disabled.len());
    for (index, trace) in (0..).map(RuleIndex).zip(traces) {
        while let Some((_, name)) = disabled.next_if(|(before, _)| *before <= index) {
            all.push(Trace::disabled(name));
        }
        all.push(trace);
    }
    all.extend(disabled.map(|(_, name)| Trace::disabled(name)));
    all
}

// === impl Outcome ===

impl Outcome {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Forward => "forward",
            Outcome::Allow => "allow",
            Outcome::Delay => "delay",
            Outcome::Tag => "tag",
            Outcome::Divert => "divert",
            Outcome::Block => "block",
            Outcome::Tarpit => "tarpit",
            Outcome::Close => "close",
            Outcome::Shadow => "shadow",
            Outcome::Refuse(_) => "refuse",
        }
    }
}

// === impl To ===

impl To {
    fn of(target: &Target) -> Self {
        match target {
            Target::Upstream { upstream, .. } => To::Upstream(upstream.name.clone()),
            Target::Reply(_) => To::Respond,
            Target::Redirect(_) => To::Redirect,
        }
    }
}

// === impl Told ===

impl GeoSource for Told<'_> {
    fn asn(&self, ip: IpAddr) -> Option<u32> {
        self.0.asn.or_else(|| self.1.asn(ip))
    }

    fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.0.country.or_else(|| self.1.country(ip))
    }

    /// A country says it too, as an override in the configuration does.
    fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        match self.0.country {
            Some(country) => continent::of(country),
            None => self.1.continent(ip),
        }
    }
}

// === impl Redactor ===

impl Secrets for Redactor {
    fn is_secret(&self, fields: &[FieldId], entries: &[(FieldId, Box<str>)]) -> bool {
        is_secret(fields, entries, self)
    }

    fn hash(&self, value: &[u8]) -> String {
        Redactor::hash(self, value).to_string()
    }
}
