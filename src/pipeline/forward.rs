//! Requests that no rule stopped: to an origin, or to an answer of the route's own.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Response, Version};
use http_body::Body as _;

use super::body::{self, Rest};
use super::imitate::Route;
use super::tab::Tab;
use super::{Core, Visit, tunnel};
use crate::action::{self, Asked, Fault, Redirect, client_left};
use crate::body::Body;
use crate::decision::{Decision, Verdict};
use crate::facts::{BodyLength, RequestFacts, ResponseFacts};
use crate::listen::{Drained, Incoming};
use crate::route::Edits;
use crate::route::edit::Fields;
use crate::snapshot::{Snapshot, Target};
use crate::upstream::{Answer, Error, Forwarding, Outbound, Upstream};

/// What forwarding needs to know of a request.
pub struct Forward<'a, 'r> {
    /// The core.
    pub core: &'a Rc<Core>,
    /// The configuration.
    pub snapshot: &'a Snapshot,
    /// What is known of the request.
    pub facts: &'a RequestFacts<'r>,
    /// The same, for an answer of the gateway's own.
    pub asked: &'a Asked<'a>,
    /// When it went on: its head had arrived, and no rule held it any more.
    pub began: Instant,
    /// What it has open.
    pub tab: &'a Rc<Tab>,
    /// What was decided about it.
    pub decision: &'a Decision,
}

/// An answer, with what the rules and the log want to know about it.
pub struct Sent {
    /// The answer.
    pub response: Response<Body>,
    /// Whether rules may count it.
    pub settles: bool,
    /// The upstream that was asked.
    pub upstream: Option<Arc<str>>,
    /// From the request, as far as it had come, to the head of the upstream's answer.
    pub took: Option<Duration>,
    /// Why the upstream gave no answer.
    pub error: Option<&'static str>,
    /// What is left of the request's body, until the answer has ended.
    pub unread: Option<Incoming>,
    /// Whether the route answers, or seems to: what it changes is changed.
    pub by_route: bool,
}

// === impl Forward ===

impl<'a, 'r> Forward<'a, 'r> {
    /// A request that is not stopped.
    pub fn of(
        visit: &'a Visit,
        facts: &'a RequestFacts<'r>,
        asked: &'a Asked<'a>,
        decision: &'a Decision,
    ) -> Self {
        Self {
            core: &visit.core,
            snapshot: &visit.snapshot,
            facts,
            asked,
            began: visit.went_on.get(),
            tab: &visit.tab,
            decision,
        }
    }
}

impl Forward<'_, '_> {
    /// Sends the request where its route leads, or the rule that diverts it.
    pub async fn to(
        self,
        route: Option<Route<'_>>,
        incoming: Incoming,
        client: Option<tunnel::Client>,
    ) -> Sent {
        let route = route.map(|(_, route)| route);
        let target = self.snapshot.leads(self.decision.verdict, route);
        self.tab.begun.set(self.settles());
        if let Some(fault) = fault(self.snapshot, self.facts) {
            return self.fault(fault, incoming).await;
        }
        let incoming = match self.end_of_empty(incoming).await {
            Ok(incoming) => incoming,
            Err(sent) => return sent,
        };
        match target {
            None => self.fault(Fault::NoRoute, incoming).await,
            Some(Target::Reply(reply)) => {
                let rest = body::discard(incoming, self.asked.headers, &self.tab.meter).await;
                let answer = reply.answer(self.asked);
                let mut sent = Sent::by_route(answer).leaving(rest, self.asked);
                sent.settles = self.settles();
                sent
            }
            Some(Target::Redirect(template)) => {
                let rest = body::discard(incoming, self.asked.headers, &self.tab.meter).await;
                let location = Redirect(template.expand(self.facts.head));
                Sent::by_route(location.answer(self.asked)).leaving(rest, self.asked)
            }
            Some(Target::Upstream { upstream, hash_key }) => {
                let to = To {
                    upstream,
                    key: hash_key.as_ref().map_or(0, |key| key.digest(self.facts)),
                };
                let edits = route.and_then(|route| route.edits.as_ref());
                if let Some(edits) = edits {
                    self.tab.edits.get_or_init(|| edits.clone());
                }
                let edits = edits.map(|edits| &**edits);
                self.upstream(&to, edits, incoming, client).await
            }
        }
    }

    /// An HTTP/2 stream can say that it is empty and go on all the same (RFC 9113, section 8.1.1):
    /// nothing of it is sent before its end has come.
    async fn end_of_empty(&self, incoming: Incoming) -> Result<Incoming, Sent> {
        if self.facts.head.body != BodyLength::Declared(0) || incoming.is_end_stream() {
            return Ok(incoming);
        }
        let rest = body::discard(incoming, self.asked.headers, &self.tab.meter).await;
        match rest.drained {
            Drained::Whole => Ok(rest.incoming),
            _ => Err(Sent::own(Fault::Malformed.answer(self.asked)).leaving(rest, self.asked)),
        }
    }

    async fn fault(&self, fault: Fault, incoming: Incoming) -> Sent {
        self.core.fault(fault);
        let rest = body::discard(incoming, self.asked.headers, &self.tab.meter).await;
        Sent::own(fault.answer(self.asked)).leaving(rest, self.asked)
    }

    async fn upstream(
        &self,
        to: &To<'_>,
        edits: Option<&Edits>,
        incoming: Incoming,
        client: Option<tunnel::Client>,
    ) -> Sent {
        let (upstream, head) = (to.upstream, self.facts.head);
        let target = edits.map_or_else(|| head.uri(), |edits| edits.path.target(head));
        let rules = match self.decision.tags.is_empty() {
            true => String::new(),
            false => self.tagging(),
        };
        let clock = &self.core.live.lasting.clock;
        let outbound = Outbound {
            method: head.method,
            target: &target,
            headers: self.asked.headers,
            edits: edits.map(|edits| &edits.request),
            version: head.version,
            forwarding: self.forwarding(head.authority(), &rules),
            body: body::streamed(incoming, self.snapshot.max_body, self.tab, clock),
            upgrade: head.upgrade.is_some(),
            key: to.key,
        };
        let Some(answer) = self
            .while_wanted(self.core.pool.forward(upstream, outbound))
            .await
        else {
            return Sent::own(client_left());
        };
        let mut sent = match answer.and_then(|answer| tunnel::checked(answer, client.as_ref())) {
            Ok(answer) => self.answered(answer, client),
            Err(error) => self.failed(&error, upstream),
        };
        sent.upstream = Some(upstream.name.clone());
        sent.took = Some(self.waited());
        sent
    }

    /// How long the origin has had all that it was to have: how long a rule held the request, or
    /// its client took to send it, is not its doing.
    fn waited(&self) -> Duration {
        let sent = self.tab.meter.ended.get();
        let since = sent.map_or(self.began, |sent| sent.max(self.began));
        self.core.live.lasting.clock.instant() - since
    }

    /// What `answer` gives; `None`: its client has left, and no rule would count it.
    async fn while_wanted<A>(&self, answer: impl Future<Output = A>) -> Option<A> {
        let mut answer = pin!(answer);
        poll_fn(|cx| match self.tab.left.get() && !self.is_counted() {
            true => Poll::Ready(None),
            false => answer.as_mut().poll(cx).map(Some),
        })
        .await
    }

    /// Whether a rule that the request reached may count its answer.
    fn is_counted(&self) -> bool {
        let rules = &self.snapshot.rules;
        self.settles() && rules.may_count_answer(self.facts, self.decision.settle_before)
    }

    /// No rule counts the answer to a request that a rule diverts.
    fn settles(&self) -> bool {
        self.decision.verdict == Verdict::Forward
    }

    /// The names of the rules that the origin is told of.
    fn tagging(&self) -> String {
        let rules = self.decision.tags.iter();
        let mut rules = rules.filter_map(|rule| self.snapshot.rules.get(*rule));
        let first = rules.next().map_or("", |rule| &rule.name);
        rules.fold(first.to_owned(), |names, rule| names + ", " + &rule.name)
    }

    fn forwarding<'a>(&'a self, authority: &'a str, rules: &'a str) -> Forwarding<'a> {
        let peer = self.facts.connection.peer.ip();
        Forwarding {
            peer: peer.to_canonical(),
            client: self.facts.client,
            trusted_peer: self.snapshot.client_ip.trusts(peer),
            host: authority,
            https: self.facts.connection.tls.is_some(),
            request_id: self.asked.id,
            rules,
        }
    }

    fn answered(&self, answer: Answer, client: Option<tunnel::Client>) -> Sent {
        if let (Some(origin), Some(client)) = (answer.upgraded, client) {
            let (patience, places) = (self.snapshot.limits.idle_timeout, &self.tab.places);
            tunnel::spawn(self.core, patience, client, origin, places.hand_over());
        }
        let mut sent = Sent::by_route(answer.response).closing_if_endless(self.asked);
        sent.settles = self.settles();
        sent
    }

    fn failed(&self, error: &Error, upstream: &Upstream) -> Sent {
        let meter = &self.tab.meter;
        let of_body = match (meter.too_large.get(), meter.too_slow.get()) {
            (true, _) => Some(Fault::BodyTooLarge),
            (_, true) => Some(Fault::BodyTooSlow),
            _ => None,
        };
        if let Some(fault) = of_body {
            self.core.fault(fault);
            return Sent::own(fault.answer(self.asked)).closing(true, self.asked);
        }
        if error.is_bad_request() {
            return Sent::own(Fault::Malformed.answer(self.asked)).closing(true, self.asked);
        }
        self.core.upstream_failed(&upstream.name, error);
        let fault = match error.status().as_u16() {
            504 => Fault::GatewayTimeout,
            503 => Fault::Unavailable,
            _ => Fault::BadGateway,
        };
        // What is left of the body was not read.
        let mut sent =
            Sent::own(fault.answer(self.asked)).closing(self.facts.head.has_body(), self.asked);
        if let Some(time) = error.retry_after() {
            sent.retry_after(time);
        }
        sent.settles = self.settles();
        sent.error = Some(error.reason());
        sent
    }
}

/// Where a request goes.
struct To<'a> {
    upstream: &'a Arc<Upstream>,
    /// What is sent to the same server has the same.
    key: u64,
}

// === impl Sent ===

impl Sent {
    /// An answer that no rule counts.
    pub fn own(response: Response<Body>) -> Self {
        Self {
            response,
            settles: false,
            upstream: None,
            took: None,
            error: None,
            unread: None,
            by_route: false,
        }
    }

    /// An answer of the route's.
    pub fn by_route(response: Response<Body>) -> Self {
        Self {
            by_route: true,
            ..Self::own(response)
        }
    }

    /// Says when it may go better: in whole seconds, rounded up, at least one.
    fn retry_after(&mut self, time: Duration) {
        let seconds = time.as_millis().div_ceil(1000).max(1);
        let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
        self.response.headers_mut().insert(RETRY_AFTER, seconds);
    }

    /// Ends an HTTP/1 connection after this answer if it must end.
    pub fn closing(mut self, must: bool, asked: &Asked<'_>) -> Self {
        if must && asked.version != Version::HTTP_2 {
            let headers = self.response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self
    }

    /// HTTP/1.0 knows no chunks: a body without a length ends with its connection.
    pub fn closing_if_endless(self, asked: &Asked<'_>) -> Self {
        let exact = self.response.body().size_hint().exact();
        let endless = asked.version == Version::HTTP_10 && exact.is_none();
        self.closing(endless, asked)
    }

    /// Keeps what is left of the request's body, and ends an HTTP/1 connection because of it.
    pub fn leaving(mut self, rest: Rest, asked: &Asked<'_>) -> Self {
        if rest.drained == Drained::Whole {
            return self;
        }
        self.unread = Some(rest.incoming);
        self.closing(true, asked)
    }

    /// The answer as rules see it.
    pub fn facts(&self, visit: &Visit, core: &Core) -> ResponseFacts<'_> {
        let elapsed = || core.live.lasting.clock.instant() - visit.went_on.get();
        let duration = self.took.unwrap_or_else(elapsed);
        ResponseFacts {
            status: self.response.status().as_u16(),
            headers: self.response.headers(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            body_size: http_body::Body::size_hint(self.response.body()).exact(),
            upstream: self.upstream.as_deref(),
            upstream_error: self.error,
        }
    }

    /// What the route changes in this answer.
    pub fn edits<'a>(&self, route: Option<Route<'a>>) -> Option<&'a Fields> {
        let edits = route.and_then(|(_, route)| route.edits.as_deref());
        edits.map(|edits| &edits.response).filter(|_| self.by_route)
    }

    /// Tells the client of its quotas.
    pub fn tell(&mut self, snapshot: &Snapshot, decision: &Decision) {
        if !decision.quotas.is_empty() {
            let headers = self.response.headers_mut();
            action::tell_quotas(&snapshot.quota_names, &decision.quotas, headers);
        }
    }
}

/// Why a request is refused whatever its route, though no rule stopped it.
pub fn fault(snapshot: &Snapshot, facts: &RequestFacts<'_>) -> Option<Fault> {
    if is_misdirected(snapshot, facts) {
        return Some(Fault::Misdirected);
    }
    is_too_large(snapshot, facts).then_some(Fault::BodyTooLarge)
}

/// Whether the body says that it is larger than allowed.
pub fn is_too_large(snapshot: &Snapshot, facts: &RequestFacts<'_>) -> bool {
    let declared = facts.head.body_size().unwrap_or(0);
    snapshot.max_body.is_some_and(|max| declared > max)
}

fn is_misdirected(snapshot: &Snapshot, facts: &RequestFacts<'_>) -> bool {
    let Some(tls) = &facts.connection.tls else {
        return false;
    };
    let listeners = snapshot.listeners.iter();
    let mut own = listeners.filter(|l| l.label == facts.connection.listener);
    let terminator = own.next().and_then(|listener| listener.tls.as_ref());
    terminator.is_some_and(|t| t.misdirects(tls.sni.as_deref(), &facts.head.host))
}
