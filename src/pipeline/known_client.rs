//! Issues the cookie of a known client when a response matches the condition of a success.

use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::request_context::RequestContext;
use super::respond::HandledResponse;
use crate::credential::{CookieIssue, KnownCookie, unix_seconds};
use crate::facts::{ClientCredentials, ClientStanding, FactsView, KnownClients};
use crate::observe::KnownClientResult;

/// The response header in which an origin server names the user. It reaches no client.
const X_LOCKGATE_USER: HeaderName = HeaderName::from_static("x-lockgate-user");

/// What a success means for the client's cookie.
pub enum SuccessOutcome {
    /// The response sets this cookie.
    Issue(CookieIssue, HeaderValue),
    /// Caches may share the response, so it sets no cookie.
    Cacheable,
}

// === impl RequestContext ===

impl RequestContext<'_, '_> {
    /// Returns the `Set-Cookie` header for a response that makes the client known, renews its cookie or adds a user.
    pub fn issue_cookie(&self, handled: &HandledResponse) -> Option<HeaderValue> {
        let credentials = self.facts.credentials?;
        if !handled.countable {
            return None;
        }
        let response = handled.facts(self.latency(handled));
        let view = self.facts.with_response(&response);
        let now = unix_seconds(self.state.core.now());
        let named_user = handled.named_user.as_deref();
        let outcome = after_response(credentials, &view, named_user, now, random_id)?;
        let metrics = &self.state.core.live.process.metrics;
        metrics.count_known_client((&outcome).into());
        match outcome {
            SuccessOutcome::Issue(_, cookie) => Some(cookie),
            SuccessOutcome::Cacheable => None,
        }
    }

    /// Counts the result of the cookie check, if there was one.
    pub fn count_cookie_check(&self) {
        if let Some(standing) = self.facts.checked_standing() {
            let metrics = &self.state.core.live.process.metrics;
            metrics.count_known_client(standing.into());
        }
    }
}

/// Removes the user that an origin server names from its response. Returns it only if clients can become known.
pub fn take_named_user(
    credentials: &ClientCredentials,
    headers: &mut HeaderMap,
) -> Option<Box<HeaderValue>> {
    credentials.known.as_ref()?;
    let user = headers.remove(X_LOCKGATE_USER)?;
    Some(Box::new(user)).filter(|user| !user.is_empty())
}

/// Returns what the response in `view` changes about the client's cookie. `named_user` is the user that the origin
/// server names. `None` if nothing changes.
pub fn after_response(
    credentials: &ClientCredentials,
    view: &FactsView<'_, '_>,
    named_user: Option<&HeaderValue>,
    now: u32,
    new_id: impl FnOnce() -> Option<[u8; 8]>,
) -> Option<SuccessOutcome> {
    let known = credentials.known.as_ref()?;
    let facts = view.request;
    if !known.is_success(view) || !known.covers(facts) {
        return None;
    }
    let user = named_user.map_or_else(|| facts.user(), |user| Some(user.as_bytes()));
    let ring = &credentials.ring;
    let (cookie, issue) = match facts.known_cookie() {
        Some(cookie) => cookie.after_success(ring, user, now, known.lifetime)?,
        None => {
            let mut cookie = KnownCookie::new(new_id()?, now);
            user.into_iter()
                .for_each(|user| cookie.add_user(ring, user));
            (cookie, CookieIssue::Issued)
        }
    };
    if view
        .response
        .is_some_and(|response| is_shared(response.headers))
    {
        return Some(SuccessOutcome::Cacheable);
    }
    let value = cookie.encode(ring, known.scope(facts));
    Some(SuccessOutcome::Issue(issue, set_cookie(known, &value)?))
}

fn set_cookie(known: &KnownClients, value: &str) -> Option<HeaderValue> {
    let (name, lifetime) = (known.cookie_name(), known.lifetime);
    let mut cookie =
        format!("{name}={value}; Max-Age={lifetime}; Path=/; Secure; HttpOnly; SameSite=Lax");
    if let Some(domain) = &known.domain {
        cookie = cookie + "; Domain=" + domain;
    }
    HeaderValue::try_from(cookie).ok()
}

/// Returns whether a shared cache may store the response for other clients (RFC 9111, section 5.2.2).
fn is_shared(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CACHE_CONTROL).iter();
    let mut directives = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    directives.any(|directive| {
        let name = directive
            .split(|byte| *byte == b'=')
            .next()
            .unwrap_or_default();
        let name = name.trim_ascii();
        name.eq_ignore_ascii_case(b"public") || name.eq_ignore_ascii_case(b"s-maxage")
    })
}

/// `None` if the system has no random numbers.
fn random_id() -> Option<[u8; 8]> {
    getrandom::u64().ok().map(u64::to_be_bytes)
}

// === impl KnownClientResult ===

impl From<ClientStanding> for KnownClientResult {
    fn from(standing: ClientStanding) -> Self {
        match standing {
            ClientStanding::Known => Self::Known,
            ClientStanding::New => Self::New,
            ClientStanding::Expired => Self::Expired,
            ClientStanding::Invalid => Self::Invalid,
        }
    }
}

impl From<&SuccessOutcome> for KnownClientResult {
    fn from(outcome: &SuccessOutcome) -> Self {
        match outcome {
            SuccessOutcome::Cacheable => Self::Cacheable,
            SuccessOutcome::Issue(CookieIssue::Issued, _) => Self::Issued,
            SuccessOutcome::Issue(CookieIssue::Renewed, _) => Self::Renewed,
            SuccessOutcome::Issue(CookieIssue::UserAdded, _) => Self::UserAdded,
        }
    }
}
