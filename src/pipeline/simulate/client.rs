//! The known client of a simulation, and the cookie that it would get.

use std::time::Duration;

use http::HeaderValue;

use super::Simulation;
use crate::credential::{CredentialId, KnownCookie, unix_seconds};
use crate::facts::{FactsView, RequestFacts};
use crate::pipeline::known_client::{SuccessOutcome, after_response};
use crate::pipeline::respond::HandledResponse;

/// A known client.
pub struct SimulatedClient {
    /// The user that has succeeded. `None` if none has.
    pub user: Option<String>,
    /// The time since its first success.
    pub age: Duration,
}

// === impl Simulation ===

impl Simulation {
    /// Replaces the result of the cookie checks by the client of the simulation.
    pub(super) fn assume_client(&self, facts: &RequestFacts<'_>) {
        let Some(credentials) = facts.credentials else {
            return;
        };
        if let Some(known) = &self.known {
            let age = u32::try_from(known.age.as_secs()).unwrap_or(u32::MAX);
            let first = unix_seconds(facts.now).saturating_sub(age);
            let mut cookie = KnownCookie::new([0; 8], first);
            let users = known.user.iter();
            users.for_each(|user| cookie.add_user(&credentials.ring, user.as_bytes()));
            facts.assume_known(cookie);
        }
        if self.has_clearance {
            facts.assume_clearance(CredentialId::default());
        }
    }
}

/// Returns the cookie that the response would set, with an id of zeros.
pub(super) fn issued_cookie(
    view: &FactsView<'_, '_>,
    handled: &HandledResponse,
) -> Option<HeaderValue> {
    if !handled.countable {
        return None;
    }
    let (named_user, now) = (
        handled.named_user.as_deref(),
        unix_seconds(view.request.now),
    );
    match after_response(view.request.credentials?, view, named_user, now, || {
        Some([0; 8])
    })? {
        SuccessOutcome::Issue(_, cookie) => Some(cookie),
        SuccessOutcome::Cacheable => None,
    }
}
