//! The state of one core: its view of the configuration, its upstream connections, its timers. Cores share only
//! [`RunningGateway`].

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, Cache};
use siphasher::sip128::SipHasher13;
use tracing::{debug, warn};

use super::log_throttle::LogThrottle;
use crate::action::GatewayError;
use crate::clock::Timestamp;
use crate::credential::VerifyBudget;
use crate::facts::MalformedRequest;
use crate::listen::{ClientFault, ConnectionTimers, CoreDrain};
use crate::observe::ProtocolError;
use crate::observe::activity::CoreActivity;
use crate::process::RunningGateway;
use crate::snapshot::Snapshot;
use crate::store::StoreHandle;
use crate::upstream::{self, Pool};

/// The state of one core.
pub struct CoreState {
    /// What all cores share.
    pub live: Arc<RunningGateway>,
    /// Connections to upstream servers.
    pub pool: Pool,
    /// This core's access to the store.
    pub store: Rc<StoreHandle>,
    /// The timers of all client connections.
    pub timers: Rc<ConnectionTimers>,
    /// The drain state of this core.
    pub drain: CoreDrain,
    /// Whether the drain timeout is so near that new requests get 503.
    pub late: Cell<bool>,
    /// Whether the drain timeout is over: requests in flight are cancelled.
    pub cut: Cell<bool>,
    /// The number of requests that continue after their clients have disconnected.
    pub detached: Cell<usize>,
    /// The time that this core may spend on verifying solutions of challenges.
    pub verify_budget: RefCell<VerifyBudget>,
    /// What this core records about requests for people.
    pub activity: Rc<CoreActivity>,
    failures: LogThrottle,
    snapshot: RefCell<Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>>,
    ids: Ids,
}

/// Generates request ids: a counter, hashed with a random secret. A client that sees one id cannot compute
/// another, or the number of requests between two.
struct Ids {
    hasher: SipHasher13,
    next: Cell<u64>,
}

// === impl CoreState ===

impl CoreState {
    /// Creates a core of the gateway `live`.
    pub fn new(
        live: Arc<RunningGateway>,
        drain: CoreDrain,
        pool: Pool,
        timers: Rc<ConnectionTimers>,
    ) -> Self {
        let snapshot = RefCell::new(Cache::new(live.current.clone()));
        Self {
            pool,
            timers,
            store: StoreHandle::new(live.process.store.clone(), live.process.clock.clone()),
            drain,
            late: Cell::new(false),
            cut: Cell::new(false),
            detached: Cell::new(0),
            verify_budget: RefCell::new(VerifyBudget::new(live.process.clock.now())),
            activity: Rc::new(CoreActivity::new(live.process.activity.clone())),
            failures: LogThrottle::default(),
            snapshot,
            ids: Ids::new(),
            live,
        }
    }

    /// Returns the time of the wall clock.
    pub fn now(&self) -> Timestamp {
        self.live.process.clock.now()
    }

    /// Returns the time of the monotonic clock.
    pub fn instant(&self) -> Instant {
        self.live.process.clock.instant()
    }

    /// Returns the current configuration.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.borrow_mut().load().clone()
    }

    /// Counts a protocol error of a client.
    pub fn protocol_error(&self, kind: ProtocolError) {
        self.live.process.metrics.count_protocol_error(kind);
    }

    /// Counts a malformed or ambiguous request, and returns as what.
    pub fn malformed(&self, malformed: MalformedRequest) -> ProtocolError {
        let kind = match malformed {
            MalformedRequest::Host | MalformedRequest::Authority => ProtocolError::Host,
            MalformedRequest::ContentLength
            | MalformedRequest::TransferEncoding
            | MalformedRequest::Framing => ProtocolError::Framing,
            MalformedRequest::UnknownCoding => ProtocolError::TransferCoding,
            MalformedRequest::Target | MalformedRequest::Path(_) | MalformedRequest::Query => {
                ProtocolError::Target
            }
            MalformedRequest::Connect | MalformedRequest::Protocol => ProtocolError::Method,
            MalformedRequest::TooManyFields => ProtocolError::HeadTooLarge,
            MalformedRequest::Version
            | MalformedRequest::FieldValue
            | MalformedRequest::Padding
            | MalformedRequest::Twin
            | MalformedRequest::ConnectionField => ProtocolError::Malformed,
        };
        self.protocol_error(kind);
        kind
    }

    /// Counts a refused request if the client caused it.
    pub fn fault(&self, fault: GatewayError) {
        match fault {
            GatewayError::BodyTooSlow => self.protocol_error(ProtocolError::Timeout),
            GatewayError::BodyTooLarge => self.protocol_error(ProtocolError::BodyTooLarge),
            GatewayError::Misdirected => self.protocol_error(ProtocolError::Misdirected),
            _ => {}
        }
    }

    /// Counts a connection without a valid PROXY header, and logs the reason at the debug level.
    pub fn reject_proxy_header(&self, peer: SocketAddr, why: &dyn Display) {
        self.protocol_error(ProtocolError::Proxy);
        debug!(%peer, error = %why, "no valid PROXY header");
    }

    /// Logs an upstream without a response, at most once per second for each reason.
    pub fn upstream_failed(&self, upstream: &str, error: &upstream::UpstreamError) {
        let reason = error.reason();
        if let Some(more) = self.failures.admit(upstream, reason, self.now()) {
            let server = error.server().map_or("-", |server| server.label());
            warn!(%upstream, %server, %reason, %error, more, "upstream failed");
        }
    }

    /// Logs that an origin server cut a response short, at most once per second for each reason.
    pub fn log_truncated_response(&self, error: &upstream::UpstreamError) {
        let server = error.server();
        let upstream = server.map_or("-", |server| server.upstream());
        if let Some(more) = self.failures.admit(upstream, error.reason(), self.now()) {
            let server = server.map_or("-", |server| server.label());
            warn!(%upstream, %server, %error, more, "response ended early");
        }
    }

    /// Generates a unique request id: 32 hexadecimal digits.
    pub fn request_id(&self) -> String {
        self.ids.next()
    }
}

// === impl ProtocolError ===

impl From<ClientFault> for ProtocolError {
    fn from(fault: ClientFault) -> Self {
        match fault {
            ClientFault::Timeout => ProtocolError::Timeout,
            ClientFault::HeadTooLarge => ProtocolError::HeadTooLarge,
            ClientFault::Framing => ProtocolError::Framing,
            ClientFault::Malformed => ProtocolError::Malformed,
            ClientFault::Flood => ProtocolError::Flood,
        }
    }
}

// === impl Ids ===

impl Ids {
    fn new() -> Self {
        let draw = || getrandom::u64().unwrap_or_default();
        Self {
            hasher: SipHasher13::new_with_keys(draw(), draw()),
            next: Cell::new(draw()),
        }
    }

    fn next(&self) -> String {
        let step = self.next.get().wrapping_add(1);
        self.next.set(step);
        let mut id = [0u8; 32];
        let mut rest = self.hasher.hash(&step.to_le_bytes()).as_u128();
        for place in id.iter_mut().rev() {
            let digit = (rest & 0xf) as u8;
            *place = digit + if digit < 10 { b'0' } else { b'a' - 10 };
            rest >>= 4;
        }
        std::str::from_utf8(&id).unwrap_or_default().to_owned()
    }
}
