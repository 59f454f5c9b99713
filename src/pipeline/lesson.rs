//! How an answer goes on after its head: watched for those who learn from it, who look at it once it
//! is on its way. It delays nothing, and keeps nothing of a body but the times of its pieces.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Uri, Version};
use http_body::Body as _;
use smallvec::SmallVec;

use super::Core;
use super::drift;
use crate::action::Asked;
use crate::action::imitate::{Memory, Pace, Seen, When};
use crate::body::Body;
use crate::clock::Timestamp;
use crate::facts::client_ip::Prefixes;

/// How an answer goes on after its head, watched for those who learn from it.
#[derive(Default)]
pub struct Lesson(Cell<Option<Box<Watching>>>);

struct Watching {
    both: Rc<Both>,
    pace: Pace,
    /// What happens when its head is written; `None`: that has happened.
    leaving: Option<Leaving>,
    /// Since when the client waits for more.
    waits_since: Option<Instant>,
}

/// What is known of an answer's time when it has ended and when its head has been written,
/// whichever comes first.
struct Both {
    /// Who learns from it; nobody: it is a shadow answer.
    learners: Learners,
    /// How long it took to write its head.
    lag: Cell<Option<Duration>>,
    /// Its pace, but for that.
    ended: Cell<Option<Pace>>,
}

/// The head of an answer on its way out.
pub struct Leaving {
    /// The core that sends it.
    pub core: Rc<Core>,
    /// When it was due.
    pub due: Instant,
    /// When whoever waited for that was awake.
    pub woke: Instant,
    /// What is learned from it once it is written, so that nobody waits longer for it than others
    /// do; `None`: it is a shadow answer.
    pub head: Option<RealHead>,
}

/// The head of a real answer, and what it answers.
pub struct RealHead {
    headers: HeaderMap,
    method: Method,
    uri: Uri,
    version: Version,
    request: HeaderMap,
    id: String,
    asked: Timestamp,
    client: IpAddr,
    when: When,
}

/// Who learns from an answer.
pub type Learners = SmallVec<[Arc<Memory>; 2]>;

// === impl Lesson ===

impl Lesson {
    /// Whether anybody learns.
    pub fn is_on(&self) -> bool {
        let watching = self.0.take();
        let is_on = watching.is_some();
        self.0.set(watching);
        is_on
    }

    /// An answer begins that comes, or was to come, after `head`.
    pub fn begin(&self, learners: Learners, head: Duration, leaving: Leaving, body: &Body) {
        let both = Both {
            learners,
            ended: Cell::new(None),
            lag: Cell::new(None),
        };
        let mut watching = Box::new(Watching {
            both: Rc::new(both),
            pace: Pace::after(head),
            leaving: Some(leaving),
            waits_since: None,
        });
        match body.is_end_stream() {
            true => {
                watching.leave();
                watching.end();
            }
            false => self.0.set(Some(watching)),
        }
    }

    /// The body is asked for: what has come of the answer goes out now.
    pub fn asked(&self) {
        self.with(Watching::leave);
    }

    /// There is no more of the body yet.
    pub fn waits(&self, now: Instant) {
        self.with(|watching| {
            watching.waits_since.get_or_insert(now);
        });
    }

    /// A piece of the body has come.
    pub fn piece(&self, bytes: usize, now: Instant, last: bool) {
        self.with(|watching| {
            // What came without waiting leaves together with the head.
            let since = watching.waits_since.unwrap_or(now);
            let at = now.saturating_duration_since(since);
            watching.pace.add(bytes, at);
        });
        if last {
            self.end();
        }
    }

    /// The body has ended as it should.
    pub fn end(&self) {
        if let Some(watching) = self.0.take() {
            watching.end();
        }
    }

    /// It has not.
    pub fn give_up(&self) {
        drop(self.0.take());
    }

    fn with(&self, look: impl FnOnce(&mut Watching)) {
        if let Some(mut watching) = self.0.take() {
            look(&mut watching);
            self.0.set(Some(watching));
        }
    }
}

// === impl Watching ===

impl Watching {
    /// The head goes out now.
    fn leave(&mut self) {
        if let Some(leaving) = self.leaving.take() {
            let (both, head) = (self.both.clone(), self.pace.head);
            // It runs when the connection has written.
            tokio::task::spawn_local(async move { leaving.written(&both, head) });
        }
    }

    fn end(self) {
        self.both.ended.set(Some(self.pace.whole()));
        self.both.learn();
    }
}

// === impl Both ===

impl Both {
    fn learn(&self) {
        let (Some(pace), Some(lag)) = (self.ended.get(), self.lag.get()) else {
            return;
        };
        for learner in &self.learners {
            learner.learn_pace(pace.later(lag));
        }
    }
}

// === impl Leaving ===

impl Leaving {
    /// The head has been written; it was due after `head`.
    fn written(self, both: &Both, head: Duration) {
        let lasting = &self.core.live.lasting;
        let now = lasting.clock.instant();
        let lag = now.saturating_duration_since(self.due);
        let Some(real) = self.head else {
            let awake = now.saturating_duration_since(self.woke);
            return self.core.drift.learn(head, lag, awake);
        };
        // Longer than this, something else was done before this was.
        let lag = lag.min(drift::MOST);
        let network = Prefixes::default().network(real.client);
        let asked = real.asked();
        let seen = Seen {
            headers: &real.headers,
            asked: &asked,
            client: lasting.imitations.client(network),
            when: real.when.later(lag),
        };
        for learner in &both.learners {
            learner.learn(&seen);
        }
        both.lag.set(Some(lag));
        both.learn();
    }
}

// === impl RealHead ===

impl RealHead {
    /// A copy of the head of an answer to this client's request.
    pub fn of(headers: &HeaderMap, asked: &Asked<'_>, client: IpAddr, when: When) -> Self {
        Self {
            headers: headers.clone(),
            method: asked.method.clone(),
            uri: asked.uri.clone(),
            version: asked.version,
            request: asked.headers.clone(),
            id: asked.id.to_owned(),
            asked: asked.now,
            client,
            when,
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            method: &self.method,
            uri: &self.uri,
            version: self.version,
            headers: &self.request,
            id: &self.id,
            now: self.asked,
        }
    }
}
