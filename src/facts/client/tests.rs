//! The fields of clients with cookies of the gateway.

use http::Request;
use http::request::Parts;

use super::*;
use crate::clock::Timestamp;
use crate::credential::{ChallengeToken, TokenIssue};
use crate::expr::{ExprEnv, NamedLists, predicate, scalar};
use crate::facts::{ClientConnection, FieldTable, NoGeo, RequestHead, TlsFacts};

const NOW: u32 = 1_800_000_000;
const HOST: &str = "shop.example";

fn source(request: Option<&str>, user: &str) -> SuccessSource {
    let lists = NamedLists::default();
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &lists,
        allow_response: true,
    };
    SuccessSource {
        request: request.map(|request| predicate(request, &env).unwrap()),
        success: predicate("http.response.code eq 200", &env).unwrap(),
        user: Some(scalar(user, &env).unwrap()),
    }
}

/// A site with a login, a registration and a table for all other requests.
fn credentials() -> ClientCredentials {
    let of_path = |path: &str| format!("http.request.uri.path eq \"{path}\"");
    let header = |name: &str| format!("http.request.headers[\"{name}\"]");
    let sources = vec![
        source(Some(&of_path("/login")), &header("x-login")),
        source(Some(&of_path("/signup")), &header("x-signup")),
        source(None, &header("x-other")),
    ];
    ClientCredentials {
        ring: SecretRing::from_secret([7; 32]),
        known: Some(KnownClients {
            sources,
            lifetime: 86_400,
            domain: None,
        }),
        clearance_lifetime: Some(3_600),
    }
}

fn parts(path: &str, headers: &[(&str, &str)]) -> Parts {
    let request = Request::post(path).header("host", HOST);
    let add = |request: http::request::Builder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    let request = headers.iter().fold(request, add);
    request.body(()).unwrap().into_parts().0
}

fn ask<T>(parts: &Parts, all: &ClientCredentials, ask: impl FnOnce(&RequestFacts<'_>) -> T) -> T {
    let mut tls = TlsFacts::default();
    tls.hello.ja4 = "t13d1516h2_8daaf6152771_b186095e22b6".into();
    let connection = ClientConnection {
        peer: "203.0.113.7:4711".parse().unwrap(),
        listener: "0.0.0.0:8443".into(),
        tls: Some(tls),
    };
    let head = RequestHead::read(parts, true).unwrap();
    let now = Timestamp::from_secs(NOW.into());
    let client = connection.peer.ip();
    let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, &NoGeo);
    facts.credentials = Some(all);
    ask(&facts)
}

#[test]
fn the_first_source_of_the_request_names_the_user() {
    let all = credentials();
    let headers = [
        ("x-login", "alice"),
        ("x-signup", "bob"),
        ("x-other", "carol"),
    ];
    for (path, expected) in [("/login", "alice"), ("/signup", "bob"), ("/", "carol")] {
        let parts = parts(path, &headers);
        let user = ask(&parts, &all, |facts| facts.user().map(<[u8]>::to_vec));
        assert_eq!(user.as_deref(), Some(expected.as_bytes()), "{path}");
    }
    // The source of the path decides, also if it finds no user.
    let parts = parts("/login", &[("x-other", "carol"), ("x-login", "")]);
    assert_eq!(
        ask(&parts, &all, |facts| facts.user().map(<[u8]>::to_vec)),
        None
    );
}

#[test]
fn a_known_client_has_an_id_an_age_and_users() {
    let all = credentials();
    let mut cookie = KnownCookie::new([1; 8], NOW - 60);
    cookie.add_user(&all.ring, b"alice");
    let line = format!(
        "sid=1; {}={}",
        KnownCookie::HOST_NAME,
        cookie.encode(&all.ring, HOST)
    );
    for (user, is_known) in [("alice", true), ("bob", false)] {
        let parts = parts("/login", &[("cookie", &line), ("x-login", user)]);
        ask(&parts, &all, |facts| {
            assert_eq!(facts.checked_standing(), None);
            assert_eq!(facts.has_known_user(), is_known, "{user}");
            assert_eq!(facts.checked_standing(), Some(ClientStanding::Known));
            assert_eq!(facts.client_id(), Some(&cookie.client_id()));
            assert_eq!(facts.client_age(), Some(60));
        });
    }
    let parts = parts("/login", &[("x-login", "alice")]);
    ask(&parts, &all, |facts| {
        assert_eq!(facts.client_standing(), Some(ClientStanding::New));
        assert!(!facts.has_known_user());
        assert_eq!((facts.client_id(), facts.client_age()), (None, None));
    });
}

#[test]
fn a_clearance_is_valid_on_its_connection_and_host() {
    let all = credentials();
    let clearance = |ja4: &str| {
        let token = ChallengeToken::new(&TokenIssue {
            difficulty: 1,
            now: NOW - 60,
            nonce: [9; 16],
            binding: ClientBinding::from_ja4(ja4),
            rule: "r",
        });
        ClearanceCookie::for_token(&token, &all.ring)
    };
    let id = |cookie: String| {
        let line = format!("{}={cookie}", ClearanceCookie::NAME);
        let parts = parts("/", &[("cookie", &line)]);
        ask(&parts, &all, |facts| facts.clearance().copied())
    };
    let own = clearance("t13d1516h2_8daaf6152771_000000000000");
    assert_eq!(id(own.encode(&all.ring, HOST)), Some(own.id()));
    assert_eq!(id(own.encode(&all.ring, "other.example")), None);
    let foreign = clearance("t13d1516h2_000000000000_000000000000");
    assert_eq!(id(foreign.encode(&all.ring, HOST)), None);
}
