//! One core's own things: its view of the configuration, its origin connections, its deadlines.
//! Nothing in it is shared with another core but [`Live`].

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};
use siphasher::sip128::SipHasher13;

use super::alarm::Alarm;
use super::drift::Drift;
use super::seldom::Seldom;
use crate::action::Fault;
use crate::facts::Malformed;
use crate::listen::{self, Deadlines, Drain};
use crate::observe::Field::{Number, Text};
use crate::observe::ProtocolError;
use crate::snapshot::{Live, Snapshot};
use crate::tls::HandshakeError;
use crate::upstream::{self, Pool};

/// One core.
pub struct Core {
    /// What all cores share.
    pub live: Arc<Live>,
    /// Connections to origins.
    pub pool: Pool,
    /// The one timer of all client connections.
    pub deadlines: Rc<Deadlines>,
    /// The one timer of all requests that are held.
    pub alarm: Rc<Alarm>,
    /// How long it takes to write shadow answers.
    pub drift: Drift,
    /// Whether the gateway is stopping.
    pub drain: Drain,
    /// Whether it stops so soon that it begins no request any more.
    pub late: Cell<bool>,
    /// Whether its time is over, and it cuts off what is under way.
    pub cut: Cell<bool>,
    /// Requests that are finished though their clients have left.
    pub outlived: Cell<usize>,
    failures: Seldom,
    snapshot: RefCell<Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>>,
    ids: Ids,
}

/// Makes request ids: a number that is stepped up, hashed under a key that nobody knows, so that
/// who sees one cannot tell the next, or how many there were between two.
struct Ids {
    hasher: SipHasher13,
    next: Cell<u64>,
}

// === impl Core ===

impl Core {
    /// A core of the gateway `live`.
    pub fn new(live: Arc<Live>, drain: Drain, pool: Pool, deadlines: Rc<Deadlines>) -> Self {
        let snapshot = RefCell::new(Cache::new(live.current.clone()));
        Self {
            pool,
            deadlines,
            alarm: Alarm::new(live.lasting.clock.clone()),
            drift: Drift::default(),
            drain,
            late: Cell::new(false),
            cut: Cell::new(false),
            outlived: Cell::new(0),
            failures: Seldom::default(),
            snapshot,
            ids: Ids::new(),
            live,
        }
    }

    /// The current configuration.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.borrow_mut().load().clone()
    }

    /// Counts a client that broke the protocol.
    pub fn protocol_error(&self, kind: ProtocolError) {
        self.live.lasting.metrics.protocol_errors.count(kind);
    }

    /// Counts a request that has no meaning, or two.
    pub fn malformed(&self, malformed: Malformed) {
        self.protocol_error(match malformed {
            Malformed::Host | Malformed::Authority => ProtocolError::Host,
            Malformed::ContentLength | Malformed::TransferEncoding | Malformed::Framing => {
                ProtocolError::Framing
            }
            Malformed::UnknownCoding => ProtocolError::TransferCoding,
            Malformed::Target | Malformed::Path(_) | Malformed::Query => ProtocolError::Target,
            Malformed::Connect | Malformed::Protocol => ProtocolError::Method,
            Malformed::TooManyFields => ProtocolError::HeadTooLarge,
            Malformed::Version
            | Malformed::FieldValue
            | Malformed::Padding
            | Malformed::Twin
            | Malformed::ConnectionField => ProtocolError::Malformed,
        });
    }

    /// Counts a fault that is the client's.
    pub fn fault(&self, fault: Fault) {
        match fault {
            Fault::BodyTooSlow => self.protocol_error(ProtocolError::Timeout),
            Fault::BodyTooLarge => self.protocol_error(ProtocolError::BodyTooLarge),
            Fault::Misdirected => self.protocol_error(ProtocolError::Misdirected),
            _ => {}
        }
    }

    /// Counts a connection that came past the proxy in front, and says why at the debug level.
    pub fn not_behind(&self, peer: SocketAddr, why: &dyn Display) {
        self.protocol_error(ProtocolError::Proxy);
        let fields = [Text("peer", &peer), Text("error", why)];
        self.live.lasting.log.debug("no PROXY header", &fields);
    }

    /// Says at the debug level why a client did not get through its handshake.
    pub fn handshake_failed(&self, peer: SocketAddr, error: &HandshakeError) {
        let fields = [
            Text("peer", &peer),
            Text("kind", &error.kind()),
            Text("error", error),
        ];
        self.live.lasting.log.debug("handshake failed", &fields);
    }

    /// Counts how a connection ended, where it ended badly.
    pub fn connection_ended(&self, ended: &Result<(), listen::Error>) {
        for _ in 0..self.deadlines.take_stream_errors() {
            self.protocol_error(ProtocolError::Malformed);
        }
        for _ in 0..self.deadlines.take_malformed_bodies() {
            self.protocol_error(ProtocolError::Framing);
        }
        match ended {
            Err(error) if error.is_timeout() => self.protocol_error(ProtocolError::Timeout),
            Err(error) if error.is_flood() => self.protocol_error(ProtocolError::Flood),
            Err(error) if error.is_head_too_large() => {
                self.protocol_error(ProtocolError::HeadTooLarge);
            }
            Err(error) if error.is_framing() => self.protocol_error(ProtocolError::Framing),
            Err(error) if error.is_malformed() => self.protocol_error(ProtocolError::Malformed),
            _ => {}
        }
    }

    /// Says that an origin gave no answer, unless that was said a moment ago.
    pub fn upstream_failed(&self, upstream: &str, error: &upstream::Error) {
        let now = self.live.lasting.clock.now();
        let Some(more) = self.failures.say(upstream, error.reason(), now) else {
            return;
        };
        let server = error.server().map_or("-", |server| server.label());
        let fields = [
            Text("upstream", &upstream),
            Text("server", &server),
            Text("reason", &error.reason()),
            Text("error", error),
            Number("more", more),
        ];
        self.live.lasting.log.warn("upstream failed", &fields);
    }

    /// Says that an origin broke off an answer, unless that was said a moment ago.
    pub fn answer_cut(&self, error: &upstream::Error) {
        let server = error.server();
        let upstream = server.map_or("-", |server| server.upstream());
        let now = self.live.lasting.clock.now();
        let Some(more) = self.failures.say(upstream, error.reason(), now) else {
            return;
        };
        let server = server.map_or("-", |server| server.label());
        let fields = [
            Text("upstream", &upstream),
            Text("server", &server),
            Text("error", error),
            Number("more", more),
        ];
        self.live.lasting.log.warn("answer cut short", &fields);
    }

    /// An id that no other request has: 32 hexadecimal digits.
    pub fn request_id(&self) -> String {
        self.ids.next()
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
