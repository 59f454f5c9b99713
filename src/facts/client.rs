//! What the cookies of a client prove. Each cookie is checked on its first use, at most once per request; without
//! the cookie, nothing is computed.

#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use super::{BodyReads, FactsView, RequestFacts};
use crate::credential::{
    ClearanceCheck, ClearanceCookie, ClientBinding, CredentialId, KnownCheck, KnownCookie,
    SecretRing, unix_seconds,
};
use crate::expr::{EvalContext, Predicate, Scalar, ScalarValue};

/// How a configuration checks and issues the cookies of clients.
#[derive(Debug)]
pub struct ClientCredentials {
    /// The keys.
    pub ring: SecretRing,
    /// What makes a client known. `None`: no client can become known.
    pub known: Option<KnownClients>,
    /// The time for which a clearance is valid, in seconds. `None`: no clearance is valid.
    pub clearance_lifetime: Option<u32>,
}

/// What makes a client known, and for how long.
#[derive(Debug)]
pub struct KnownClients {
    /// What counts as a success. The first source whose request condition matches names the user.
    pub sources: Vec<SuccessSource>,
    /// The time for which a cookie is valid without a renewal, in seconds.
    pub lifetime: u32,
    /// The domain of the cookie. `None`: the host of the request only.
    pub domain: Option<Box<str>>,
}

/// A kind of success.
#[derive(Debug)]
pub struct SuccessSource {
    /// Selects the requests whose user `user` reads. `None` for all.
    pub request: Option<Predicate>,
    /// Selects the responses that make a client known.
    pub success: Predicate,
    /// The user of a request, a string. `None`: no user is named.
    pub user: Option<Scalar>,
}

/// Whether a client is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStanding {
    /// The cookie is valid.
    Known,
    /// There is no cookie.
    New,
    /// The cookie has expired.
    Expired,
    /// The cookie is not one of this gateway, or not for this host.
    Invalid,
}

/// What a request's cookies have proved so far.
#[derive(Default)]
pub(super) struct ClientMemo {
    /// `Some(None)` without a cookie.
    cookie: OnceCell<Option<KnownCheck>>,
    id: OnceCell<CredentialId>,
    user: OnceCell<Option<Box<[u8]>>>,
    has_user: OnceCell<bool>,
    clearance: OnceCell<Option<CredentialId>>,
}

// === impl KnownClients ===

impl KnownClients {
    /// The name of the cookie.
    pub fn cookie_name(&self) -> &'static str {
        if self.domain.is_some() {
            KnownCookie::DOMAIN_NAME
        } else {
            KnownCookie::HOST_NAME
        }
    }

    /// The scope within which cookies are valid: the domain, or else the host of the request.
    pub fn scope<'a>(&'a self, facts: &'a RequestFacts<'_>) -> &'a str {
        self.domain.as_deref().unwrap_or(&facts.head.host)
    }

    /// Whether a browser accepts a cookie of this scope from the host of the request.
    pub fn covers(&self, facts: &RequestFacts<'_>) -> bool {
        let host: &str = &facts.head.host;
        let Some(domain) = self.domain.as_deref() else {
            return !host.is_empty();
        };
        let rest = host.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Whether the response makes the client known.
    pub fn is_success(&self, view: &FactsView<'_, '_>) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| source.success.test(view))
    }
}

/// What known clients need of request bodies.
impl KnownClients {
    /// What the users of requests read of their bodies.
    pub fn user_reads(&self) -> BodyReads {
        let reads = self.sources.iter().map(SuccessSource::user_reads);
        reads.fold(BodyReads::default(), BodyReads::or)
    }

    /// What is read of the body of this request, judged from its head: for the sources that it may satisfy.
    pub fn body_reads(&self, facts: &RequestFacts<'_>) -> BodyReads {
        let context = EvalContext::of(facts);
        let may_succeed = |source: &&SuccessSource| source.success.can_hold(&context);
        let mut successes = self.sources.iter().filter(may_succeed).peekable();
        if successes.peek().is_none() {
            return BodyReads::default();
        }
        let may_select = |request: &Predicate| request.can_hold(&context);
        let users = self
            .sources
            .iter()
            .filter(|source| source.request.as_ref().is_none_or(may_select));
        let of_users = users.map(|source| {
            let request = source
                .request
                .iter()
                .map(|part| BodyReads::of(part.reads()));
            request.fold(source.user_reads(), BodyReads::or)
        });
        let of_successes = successes.map(|source| BodyReads::of(source.success.reads()));
        of_users
            .chain(of_successes)
            .fold(BodyReads::default(), BodyReads::or)
    }

    /// Whether a request body can be needed.
    pub fn needs_bodies(&self) -> bool {
        let needs = |source: &SuccessSource| {
            let mut parts = source.request.iter().chain([&source.success]);
            !source.user_reads().is_none()
                || parts.any(|part| !BodyReads::of(part.reads()).is_none())
        };
        self.sources.iter().any(needs)
    }
}

// === impl SuccessSource ===

impl SuccessSource {
    fn user_reads(&self) -> BodyReads {
        let user = self.user.as_ref();
        user.map_or_else(BodyReads::default, |user| BodyReads::of(user.reads()))
    }

    fn selects(&self, facts: &RequestFacts<'_>) -> bool {
        self.request
            .as_ref()
            .is_none_or(|request| request.test(facts))
    }

    fn user_of(&self, facts: &RequestFacts<'_>) -> Option<Box<[u8]>> {
        match self.user.as_ref()?.eval(facts)? {
            ScalarValue::Bytes(user) if !user.is_empty() => Some(user.into()),
            _ => None,
        }
    }
}

// === impl RequestFacts ===

impl RequestFacts<'_> {
    /// Whether the client is known. `None` if no client can be.
    pub fn client_standing(&self) -> Option<ClientStanding> {
        self.known_clients()?;
        Some(ClientStanding::of(self.checked_cookie()))
    }

    /// [`RequestFacts::client_standing`] if the cookie was checked. `None` otherwise.
    pub fn checked_standing(&self) -> Option<ClientStanding> {
        let checked = self.client_memo.get()?.cookie.get()?;
        Some(ClientStanding::of(checked.as_ref()))
    }

    /// The valid cookie of a known client. `None` for a new client.
    pub fn known_cookie(&self) -> Option<&KnownCookie> {
        match self.checked_cookie() {
            Some(KnownCheck::Known(cookie)) => Some(cookie),
            _ => None,
        }
    }

    /// What identifies the cookie of a known client.
    pub fn client_id(&self) -> Option<&CredentialId> {
        let cookie = self.known_cookie()?;
        Some(self.memo().id.get_or_init(|| cookie.client_id()))
    }

    /// The seconds since the first success of a known client.
    pub fn client_age(&self) -> Option<u32> {
        let cookie = self.known_cookie()?;
        Some(cookie.age(unix_seconds(self.now)))
    }

    /// Whether the user of the request has succeeded with its cookie.
    pub fn has_known_user(&self) -> bool {
        let has_user = || {
            let (cookie, user) = (self.known_cookie()?, self.user()?);
            Some(cookie.has_user(&self.credentials?.ring, user))
        };
        *self
            .memo()
            .has_user
            .get_or_init(|| has_user().unwrap_or(false))
    }

    /// The user of the request. Read it before the request is forwarded, because the body is not kept. `None` if it
    /// is missing or empty.
    pub fn user(&self) -> Option<&[u8]> {
        let known = self.known_clients()?;
        let read = || {
            let mut sources = known.sources.iter();
            sources.find(|source| source.selects(self))?.user_of(self)
        };
        self.memo().user.get_or_init(read).as_deref()
    }

    /// What identifies the valid clearance of the client. `None` without one.
    pub fn clearance(&self) -> Option<&CredentialId> {
        self.credentials?.clearance_lifetime?;
        let check = || self.check_clearance().map(|clearance| clearance.id());
        self.memo().clearance.get_or_init(check).as_ref()
    }

    /// What clearances and tokens of this connection are bound to.
    pub fn binding(&self) -> ClientBinding {
        let tls = self.connection.tls.as_ref();
        tls.map_or_else(ClientBinding::default, |tls| {
            ClientBinding::from_ja4(&tls.hello.ja4)
        })
    }

    /// Treats the client as known by this cookie, for a simulation. Returns whether clients can become known.
    pub fn assume_known(&self, cookie: KnownCookie) -> bool {
        let is_possible = self.known_clients().is_some();
        let known = Some(KnownCheck::Known(cookie));
        is_possible && self.memo().cookie.set(known).is_ok()
    }

    /// Treats the client as one with this clearance, for a simulation. Returns whether clients can have one.
    pub fn assume_clearance(&self, id: CredentialId) -> bool {
        let lifetime = self.credentials.and_then(|all| all.clearance_lifetime);
        lifetime.is_some() && self.memo().clearance.set(Some(id)).is_ok()
    }

    /// The memo, allocated on its first use: most requests need none.
    fn memo(&self) -> &ClientMemo {
        self.client_memo.get_or_init(Box::default)
    }

    fn known_clients(&self) -> Option<&KnownClients> {
        self.credentials?.known.as_ref()
    }

    /// The result for the first cookie with the name. `None` without one.
    fn checked_cookie(&self) -> Option<&KnownCheck> {
        let (credentials, known) = (self.credentials?, self.known_clients()?);
        let check = || {
            let cookie = self.cookie(known.cookie_name().as_bytes(), 0)?;
            let (scope, now) = (known.scope(self), unix_seconds(self.now));
            Some(KnownCookie::check(
                &cookie,
                &credentials.ring,
                scope,
                now,
                known.lifetime,
            ))
        };
        self.memo().cookie.get_or_init(check).as_ref()
    }

    fn check_clearance(&self) -> Option<ClearanceCookie> {
        let credentials = self.credentials?;
        let lifetime = credentials.clearance_lifetime?;
        let cookie = self.cookie(ClearanceCookie::NAME.as_bytes(), 0)?;
        let check = ClearanceCheck {
            ring: &credentials.ring,
            scope: &self.head.host,
            now: unix_seconds(self.now),
            lifetime,
            binding: self.binding(),
        };
        ClearanceCookie::verify(&cookie, &check)
    }
}

// === impl ClientStanding ===

impl ClientStanding {
    fn of(checked: Option<&KnownCheck>) -> Self {
        match checked {
            Some(KnownCheck::Known(_)) => Self::Known,
            Some(KnownCheck::Expired) => Self::Expired,
            Some(KnownCheck::Invalid) => Self::Invalid,
            None => Self::New,
        }
    }

    /// The standing that rules, logs and origin servers see: `known` or `new`.
    pub fn name(self) -> &'static str {
        if self == Self::Known { "known" } else { "new" }
    }
}
