//! What runs for every request allocates nothing once it is warm, and nothing that no rule reads
//! is computed. In a program of its own: the counting allocator is one for a whole program.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

#[path = "alloc/activity.rs"]
mod activity;
#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../benches/instructions/cases.rs"]
mod cases;
#[path = "alloc/flood.rs"]
mod flood;
#[path = "alloc/imitate.rs"]
mod imitate;
#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../benches/store/load.rs"]
mod load;
#[path = "../benches/instructions/rules.rs"]
mod rules;

use std::cell::Cell;
use std::hint::black_box;
use std::net::IpAddr;

use allocation_counter::measure;
use lockgate::expr::{FieldFacts, NamedLists, Predicate};
use lockgate::facts::{GeoSource, RequestFacts, ResponseFacts};
use lockgate::fingerprint;

use cases::{Asked, Place, leak};

/// Tests of every kind of field that needs no list of its own.
const TYPICAL: &[&str] = &[
    r#"http.request.method in {"GET" "HEAD"} and http.request.uri.path wildcard "/catalogue/*""#,
    r#"http.host eq "www.shop.example" and not http.request.uri.path.extension eq "css""#,
    r#"lower(http.user_agent) contains "chrome" and len(http.request.uri.path) gt 3"#,
    r#"http.user_agent matches "(Chrome|Firefox)/[0-9]+""#,
    r#"any(http.request.headers["accept-encoding"][*] contains "br")"#,
    r#"http.request.headers["accept-language"][0] contains "de""#,
    r#"http.request.cookies["theme"][0] eq "dark""#,
    r#"http.request.uri.args["colour"][0] eq "red""#,
    r#"ip.src in {198.51.100.0/24 2001:db8::/32} and not ip.src in {10.0.0.0/8}"#,
    r#"ip.src.asnum in {3320 64500..64600} and ip.src.country eq "DE""#,
    r#"ssl and tls.version eq "TLSv1.3" and tls.ja4 contains "h2""#,
    r#"http.request.timestamp.sec gt 1 and http.request.route eq "/catalogue/{kind}/{item}""#,
    r#"http.request.uri contains "size=43" and http.request.uri.query contains "page""#,
];

/// A database that counts how often it is asked.
#[derive(Default)]
struct Counted(Cell<u32>);

impl GeoSource for Counted {
    fn asn(&self, _: IpAddr) -> Option<u32> {
        self.0.update(|asked| asked + 1);
        Some(3320)
    }

    fn country(&self, _: IpAddr) -> Option<[u8; 2]> {
        self.0.update(|asked| asked + 1);
        Some(*b"DE")
    }

    fn continent(&self, _: IpAddr) -> Option<[u8; 2]> {
        self.0.update(|asked| asked + 1);
        Some(*b"EU")
    }
}

/// Allocations of the second run of `run`.
fn when_warm<T>(mut run: impl FnMut() -> T) -> u64 {
    drop(run());
    measure(|| drop(run())).count_total
}

/// Allocations of a single test.
fn of_test(predicate: &Predicate, facts: &dyn FieldFacts) -> u64 {
    let run = || {
        black_box(predicate.test(facts));
    };
    measure(run).count_total
}

/// The same request with nothing computed yet.
fn fresh(of: &RequestFacts<'static>) -> RequestFacts<'static> {
    let mut facts = RequestFacts::new(
        of.head,
        of.headers,
        of.connection,
        of.client,
        of.now,
        of.geo,
    );
    facts.route = of.route;
    facts
}

/// The same request with nothing computed yet, on a machine with `geo`.
fn fresh_with(of: &RequestFacts<'static>, geo: &'static Counted) -> RequestFacts<'static> {
    let mut facts = fresh(of);
    facts.geo = geo;
    facts
}

#[test]
fn the_counter_sees_an_allocation() {
    assert_eq!(when_warm(|| format!("{}", black_box(1))), 1);
    let facts = Asked::browsing().facts();
    let copies = cases::predicate(
        r#"concat(http.host, "x") eq "www.shop.examplex""#,
        &NamedLists::new(),
    );
    assert!(copies.test(facts));
    assert!(when_warm(|| copies.test(facts)) > 0);
}

#[test]
fn reference_rules_allocate_nothing() {
    let lists = cases::lists("blocks", &cases::blocks_v4(1000));
    let asked = Asked {
        method: "POST",
        uri: "/api/orders",
        agent: "python-requests/2.32",
        place: Place {
            asn: 64500,
            country: *b"RU",
        },
        ..Asked::browsing()
    };
    let facts = cases::answered(asked.facts(), 403);
    for text in [
        cases::METHOD_AND_PREFIX,
        cases::AGENT_AND_ADDRESS,
        cases::STATUS_AND_PLACE,
    ] {
        let predicate = cases::predicate(text, &lists);
        assert_eq!(when_warm(|| predicate.test(facts)), 0, "{text}");
    }
}

#[test]
fn typical_rules_match_and_allocate_nothing() {
    let facts = Asked::browsing().facts();
    for text in TYPICAL {
        let predicate = cases::predicate(text, &NamedLists::new());
        assert!(predicate.test(facts), "{text}");
        assert_eq!(when_warm(|| predicate.test(facts)), 0, "{text}");
    }
}

#[test]
fn a_client_cannot_grow_the_cache_of_a_regex_much() {
    // Every run of twenty letters is a state of its own.
    let mut seed = 1u32;
    let letters = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 30 & 1 == 1 { 'a' } else { 'b' }
    });
    let agent: String = letters.take(32 << 10).collect();
    let asked = Asked {
        agent: &agent,
        ..Asked::browsing()
    };
    let facts = asked.facts();
    for text in [
        r#"http.user_agent matches "[ab]*a[ab]{20}c""#,
        r#"lower(http.user_agent) contains "abababababababababababababababababababab""#,
    ] {
        let predicate = cases::predicate(text, &NamedLists::new());
        let kept = measure(|| assert!(!predicate.test(facts))).bytes_current;
        assert!(kept < 1 << 20, "{text}: {kept} bytes");
    }
}

#[test]
fn a_thousand_rules_that_do_not_match_allocate_nothing() {
    let (rules, facts) = (rules::set(1000), Asked::browsing().facts());
    // Each run has a request of its own, as it has in life.
    assert_eq!(when_warm(|| rules.plan(&fresh(facts)).steps.len()), 0);
    let response = ResponseFacts {
        status: 403,
        headers: leak(http::HeaderMap::new()),
        duration_ms: 12,
        body_size: Some(512),
        upstream: Some("app"),
        upstream_error: None,
    };
    let settle = || {
        let facts = fresh(facts);
        let answered = facts.with_response(&response);
        rules.settle(&answered, None).steps.len()
    };
    assert_eq!(when_warm(settle), 0);
}

#[test]
fn a_new_request_computes_only_the_fields_that_rules_read() {
    let (base, geo) = (Asked::browsing().facts(), leak(Counted::default()));
    let text = r#"http.request.method eq "POST" or starts_with(http.request.uri.path, "/login")
        or http.user_agent contains "curl" or http.request.headers["x-api-key"][0] eq "k"
        or ip.src in {10.0.0.0/8} or tls.sni eq "a.example""#;
    let predicate = cases::predicate(text, &NamedLists::new());
    predicate.test(base);
    let facts = fresh_with(base, geo);
    // Cookies, arguments and the whole URI are each a list or a string of their own.
    assert_eq!(of_test(&predicate, &facts), 0);
    assert_eq!(geo.0.get(), 0);
}

#[test]
fn a_field_is_computed_once_per_request() {
    let (base, geo) = (Asked::browsing().facts(), leak(Counted::default()));
    for (text, asked) in [
        (r#"ip.src.asnum eq 1"#, 1),
        (r#"ip.src.asnum eq 1 or ip.src.asnum eq 2"#, 1),
        (r#"ip.src.country eq "X" or ip.src.country in {"Y" "Z"}"#, 1),
        (r#"ip.src.continent eq "AS" or ip.src.asnum eq 1"#, 2),
        (r#"http.request.method eq "POST" and ip.src.asnum eq 1"#, 0),
        (r#"ip.src.asnum eq 1 and http.request.method eq "POST""#, 0),
        (r#"ip.src.asnum eq 1 and ip.src.country eq "DE""#, 1),
    ] {
        geo.0.set(0);
        let predicate = cases::predicate(text, &NamedLists::new());
        let facts = fresh_with(base, geo);
        assert!(!predicate.test(&facts) && !predicate.test(&facts), "{text}");
        assert_eq!(geo.0.get(), asked, "{text}");
    }
    for text in [
        r#"http.request.cookies["theme"][0] eq "x""#,
        r#"http.request.uri.args["size"][0] eq "x""#,
    ] {
        let predicate = cases::predicate(text, &NamedLists::new());
        let facts = fresh(base);
        let allocated: Vec<u64> = (0..9).map(|_| of_test(&predicate, &facts)).collect();
        // Few looks take no memory; who looks often has all values kept, once.
        assert_eq!(allocated.first(), Some(&0), "{text}");
        assert_eq!(
            allocated.iter().filter(|count| **count > 0).count(),
            1,
            "{text}"
        );
    }
}

#[test]
fn fingerprints_are_computed_only_if_read() {
    let shown = fingerprint::of_records(&cases::hello("chrome146")).unwrap();
    let base = Asked::browsing().facts();
    let mut connection = base.connection.clone();
    let tls = connection.tls.as_mut().unwrap();
    (tls.hello.ja3, tls.hello.ja4) = (shown.ja3, shown.ja4);
    let mut facts = fresh(base);
    facts.connection = leak(connection);
    let hello = &facts.connection.tls.as_ref().unwrap().hello;
    let test = |text| cases::predicate(text, &NamedLists::new()).test(&facts as &dyn FieldFacts);

    assert!(test(
        r#"ssl and tls.sni eq "www.shop.example" and tls.version eq "TLSv1.3""#
    ));
    assert_eq!(
        (hello.ja3.is_computed(), hello.ja4.is_computed()),
        (false, false)
    );
    assert!(test(r#"starts_with(tls.ja4, "t13d")"#));
    assert_eq!(
        (hello.ja3.is_computed(), hello.ja4.is_computed()),
        (false, true)
    );
}
