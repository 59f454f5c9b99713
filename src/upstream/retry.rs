//! What follows when a server fails a request: what is held against the server, and whether the
//! request is sent again.
//!
//! A request is sent again only if no server can have acted on it, or if it does no harm twice
//! (RFC 9110, section 9.2.2) and has no body: never when a byte of an answer was seen, but for a 503
//! with `Retry-After`, and never more often than the budget allows.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use smallvec::SmallVec;

use super::answer::{Asked, plain_number};
use super::balance::{Chooser, Chosen};
use super::cargo::Cargo;
use super::error::Error;
use super::pool::Pool;
use super::server::{InFlight, Trial};
use super::standing::Use;
use super::tally;
use super::{Answer, Server, Upstream};
use crate::clock::{HttpDate, Timestamp};

/// An attempt that did not go well.
pub(super) struct Setback<'a> {
    end: End,
    /// The request, if it can be sent again.
    cargo: Option<Cargo<'a>>,
    /// The connection had stood idle: that it closed says nothing about the server.
    pub(super) stood_idle: bool,
}

/// How an attempt ended.
enum End {
    Failed(Error),
    /// The origin asks for time.
    Refused(Box<Answer>, HeaderValue),
}

/// A request after its first setback.
pub(super) struct Round<'a> {
    pool: &'a Pool,
    chooser: Chooser<'a>,
    asked: Asked,
    /// The servers that it was sent to.
    seen: SmallVec<[u64; 4]>,
    retries: u32,
    /// What the client gets if it goes no better elsewhere.
    refusal: Option<Answer>,
}

// === impl Setback ===

impl<'a> Setback<'a> {
    pub(super) fn failed(error: Error, cargo: Option<Cargo<'a>>) -> Box<Self> {
        Box::new(Self {
            end: End::Failed(error),
            cargo,
            stood_idle: false,
        })
    }

    pub(super) fn refused(
        answer: Answer,
        wanted: HeaderValue,
        cargo: Option<Cargo<'a>>,
    ) -> Box<Self> {
        Box::new(Self {
            end: End::Refused(Box::new(answer), wanted),
            cargo,
            stood_idle: false,
        })
    }

    /// The request cannot be sent at all.
    pub(super) fn lost(error: Error) -> Box<Self> {
        Self::failed(error, None)
    }

    /// The request for another connection to the same server, if it was refused unread, or
    /// (where it `may_close`) if a connection that stood idle was closed before anything came of
    /// it.
    pub(super) fn unread(&mut self, may_close: bool) -> Option<Cargo<'a>> {
        let End::Failed(error) = &self.end else {
            return None;
        };
        let closed = error.is_closed() && self.stood_idle && may_close;
        let unread = error.is_refused() || closed;
        self.cargo.take_if(|_| unread)
    }

    /// The request for another connection to the same server, if the one that stood idle was
    /// closed before anything came of it.
    pub(super) fn again(&mut self) -> Option<(InFlight, Cargo<'a>)> {
        let End::Failed(error) = &self.end else {
            return None;
        };
        let server = error.server().filter(|_| error.is_closed())?;
        Some((InFlight::begin(server), self.cargo.take()?))
    }

    /// Whether its connection closed before anything came of it.
    pub(super) fn has_closed(&self) -> bool {
        matches!(&self.end, End::Failed(error) if error.is_closed())
    }

    /// What a client gets that has nothing better to hope for.
    pub(super) fn into_result(self) -> Result<Answer, Error> {
        match self.end {
            End::Refused(answer, _) => Ok(*answer),
            End::Failed(error) => Err(error),
        }
    }

    fn server(&self) -> Option<&Arc<Server>> {
        match &self.end {
            End::Failed(error) => error.server(),
            End::Refused(answer, _) => Some(&answer.server),
        }
    }
}

// === impl Round ===

impl<'a> Round<'a> {
    pub(super) fn new(pool: &'a Pool, chooser: Chooser<'a>, asked: Asked) -> Self {
        Self {
            pool,
            asked,
            seen: SmallVec::new(),
            retries: chooser.upstream.retries,
            chooser,
            refusal: None,
        }
    }

    /// Goes on after a setback, until there is an answer or nothing more to try. `trial`: the
    /// attempt was to decide about its server.
    pub(super) async fn after(
        mut self,
        mut setback: Box<Setback<'a>>,
        mut trial: Option<Trial>,
    ) -> Result<Answer, Error> {
        loop {
            self.hold_against(&setback, trial);
            let Some((chosen, cargo)) = self.next(&mut setback) else {
                let refusal = self.refusal.ok_or(());
                return setback
                    .into_result()
                    .or_else(|error| refusal.map_err(|()| error));
            };
            if let End::Refused(answer, _) = setback.end {
                self.refusal = Some(*answer);
            }
            trial = chosen.trial;
            let upstream = self.chooser.upstream;
            let attempt = self
                .pool
                .attempt(upstream, chosen.in_flight, self.asked, cargo);
            match attempt.await {
                Ok(answer) => {
                    answer.server.answered(trial);
                    return Ok(answer);
                }
                Err(next) => setback = next,
            }
        }
    }

    /// Where the request goes next, if it may be sent again and there is somewhere to go.
    fn next(&mut self, setback: &mut Setback<'a>) -> Option<(Chosen, Cargo<'a>)> {
        self.retries = self.retries.checked_sub(1)?;
        let cargo = setback.cargo.take()?;
        let server = setback.server()?;
        self.seen.push(server.id());
        let limit = match setback.end {
            End::Refused(..) => Use::Try,
            End::Failed(_) => Use::Reluctant,
        };
        let chosen = self.chooser.other(&self.seen, limit).or_else(|| {
            // What broke off says less than a connection that cannot be made.
            let broken = |error: &Error| error.is_closed() || error.is_reset();
            let broken = matches!(&setback.end, End::Failed(error) if broken(error));
            broken.then(|| self.chooser.other(&[], limit)).flatten()
        })?;
        if !self.pool.budget.take() {
            return None;
        }
        server.tally.retried();
        Some((chosen, cargo))
    }

    /// A trial that decided nothing is given back: the client's own end, or an idle connection's.
    fn hold_against(&self, setback: &Setback<'_>, trial: Option<Trial>) {
        let Some(server) = setback.server() else {
            return;
        };
        match &setback.end {
            End::Refused(_, wanted) => {
                server.answered(trial);
                let now = self.pool.clock.now();
                if let Some(time) = wait(wanted, now) {
                    server.standing.asked_for(time, now);
                }
            }
            End::Failed(error) => {
                let closed_idle = setback.stood_idle && error.is_closed();
                if let Some(result) = result(error) {
                    server.tally.count(result);
                    if !closed_idle {
                        self.strike(server, Trial::end(trial));
                    }
                }
            }
        }
    }

    fn strike(&self, server: &Server, tried: bool) {
        let Upstream {
            roster, breaker, ..
        } = self.chooser.upstream;
        let now = self.pool.clock.now();
        // At most half, so that failures that have another cause do not leave it all to a few.
        let half = || {
            let members = roster.current();
            let others = members.all().iter().map(|member| &member.server);
            let others = others.filter(|other| other.id() != server.id());
            let out = others.filter(|other| other.standing.is_ejected()).count() + 1;
            out * 2 <= members.all().len()
        };
        server.standing.failed(tried, now, breaker.as_ref(), half);
    }
}

/// How a failure counts; `None`: it is the client's.
fn result(error: &Error) -> Option<tally::Result> {
    if error.is_bad_request() {
        return None;
    }
    Some(match error {
        error if error.is_timeout() => tally::Result::Timeout,
        error if error.is_unreachable() => tally::Result::ConnectError,
        _ => tally::Result::Error,
    })
}

/// What `Retry-After` says: seconds or a date (RFC 9110, section 10.2.3).
fn wait(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    if let Some(seconds) = plain_number(value.as_bytes()) {
        return Some(Duration::from_secs(seconds));
    }
    HttpDate::parse(value.as_bytes()).map(|HttpDate(then)| then.since(now))
}
