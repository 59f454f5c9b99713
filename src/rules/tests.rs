//! Tests of keys, plan, decide and settle, on rules compiled from text. Tests of the whole gateway
//! check that they follow the contract together with a store.

mod bodies;
mod candidates;
mod costs;
mod deciding;
mod indexing;
mod jitters;
mod key_texts;
mod keys;
mod planning;
mod pretending;
mod shares;
mod tracing;
mod waiting;

use std::net::IpAddr;
use std::time::Duration;

use http::HeaderMap;

use super::{Key, KeyPart, MissingPart, PlanResult, Rule, RuleId, RuleScope, RuleSet, StepResult};
use crate::clock::Timestamp;
use crate::expr::{ExprEnv, NamedLists, predicate, scalar};
use crate::facts::{
    ClientConnection, FieldTable, HelloFacts, IpPrefixes, NoGeo, RequestFacts, RequestHead,
    ResponseFacts, TlsFacts,
};
use crate::limit::{Algorithm, Limiter};

/// The time of every request.
const NOW: Timestamp = Timestamp::from_secs(1_700_000_040);

impl FromIterator<StepResult> for PlanResult {
    fn from_iter<I: IntoIterator<Item = StepResult>>(results: I) -> Self {
        Self {
            at: NOW,
            steps: results.into_iter().collect(),
            offences: Vec::new(),
        }
    }
}

/// Counts POSTs and mitigates `/a`; five per minute for all requests together.
fn rule() -> Rule {
    let id = RuleId {
        identity: 1,
        slot: 1,
    };
    let scope = separate(r#"http.request.method eq "POST""#);
    let minute = Duration::from_secs(60);
    Rule {
        limiter: Some(Limiter::new(Algorithm::SlidingWindow, 5, minute)),
        ..Rule::new("rule".into(), id, scope)
    }
}

fn separate(count: &str) -> RuleScope {
    RuleScope::Separate {
        count: compile(count),
        mitigate: compile(r#"http.request.uri.path eq "/a""#),
    }
}

fn same(text: &str) -> RuleScope {
    RuleScope::Same(compile(text))
}

fn compile(text: &str) -> crate::expr::Predicate {
    with_env(|env| predicate(text, env).unwrap())
}

fn key(parts: &[&str], missing: MissingPart) -> Key {
    let part = |text: &&str| KeyPart {
        scalar: with_env(|env| scalar(text, env).unwrap()),
        prefixes: text
            .starts_with("ip.")
            .then_some(IpPrefixes { v4: 24, v6: 64 }),
        secret: text.contains("cookies"),
    };
    Key {
        parts: parts.iter().map(part).collect(),
        missing,
    }
}

fn with_env<T>(then: impl FnOnce(&ExprEnv<'_>) -> T) -> T {
    then(&ExprEnv {
        scheme: &FieldTable,
        lists: &NamedLists::default(),
        allow_response: true,
    })
}

fn set<const N: usize>(rules: [Rule; N]) -> RuleSet {
    RuleSet::new(rules.into())
}

/// A request, as a source of facts.
struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    client: IpAddr,
    ja3: Option<&'static str>,
    now: Timestamp,
}

impl Ask {
    fn get(path: &str) -> Self {
        Self {
            method: "GET",
            path: path.to_owned(),
            headers: Vec::new(),
            client: IpAddr::from([203, 0, 113, 7]),
            ja3: None,
            now: NOW,
        }
    }

    fn post(path: &str) -> Self {
        Self {
            method: "POST",
            ..Self::get(path)
        }
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn facts<T>(&self, then: impl FnOnce(&RequestFacts<'_>) -> T) -> T {
        let mut request = http::Request::builder().method(self.method).uri(&self.path);
        request = request.header("host", "a.example");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = RequestHead::read(&parts, self.ja3.is_some()).unwrap();
        let tls = self.ja3.map(|ja3| TlsFacts {
            hello: HelloFacts {
                ja3: ja3.into(),
                ja4: format!("t13d_{ja3}").into(),
                ..HelloFacts::default()
            },
            ..TlsFacts::default()
        });
        let connection = ClientConnection {
            peer: "127.0.0.1:1".parse().unwrap(),
            listener: "test".into(),
            tls,
        };
        let (headers, geo) = (&parts.headers, &NoGeo);
        then(&RequestFacts::new(
            &head,
            headers,
            &connection,
            self.client,
            self.now,
            geo,
        ))
    }
}

/// The facts of a response with this status.
fn answered<T>(
    facts: &RequestFacts<'_>,
    status: u16,
    then: impl FnOnce(&dyn crate::expr::FieldFacts) -> T,
) -> T {
    answered_with(facts, status, &HeaderMap::new(), then)
}

fn answered_with<T>(
    facts: &RequestFacts<'_>,
    status: u16,
    headers: &HeaderMap,
    then: impl FnOnce(&dyn crate::expr::FieldFacts) -> T,
) -> T {
    let response = ResponseFacts {
        status,
        headers,
        duration_ms: 1,
        body_size: None,
        upstream: None,
        upstream_error: None,
    };
    then(&facts.with_response(&response))
}
