//! The facts that rules read of a request.

use std::cell::Cell;
use std::net::IpAddr;
use std::ops::ControlFlow;

use http::request::Parts;
use http::{HeaderMap, Request, Version};

use super::{GeoSource, NoGeo, RequestFacts, ResponseFacts};
use crate::clock::Timestamp;
use crate::expr::{FieldFacts, FieldId, FieldScheme};
use crate::facts::{ClientConnection, FieldTable, HelloFacts, RequestHead, TlsFacts};

/// A database that counts its lookups.
#[derive(Default)]
struct Counted(Cell<u32>);

impl GeoSource for Counted {
    fn asn(&self, _: IpAddr) -> Option<u32> {
        self.0.set(self.0.get() + 1);
        Some(64500)
    }

    fn country(&self, _: IpAddr) -> Option<[u8; 2]> {
        self.0.set(self.0.get() + 1);
        Some(*b"DE")
    }

    fn continent(&self, _: IpAddr) -> Option<[u8; 2]> {
        Some(*b"EU")
    }
}

fn id(name: &str) -> FieldId {
    FieldTable
        .field(name)
        .unwrap_or_else(|| panic!("no {name}"))
        .id
}

fn parts(uri: &str, fields: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().method("POST").uri(uri);
    builder = builder
        .version(Version::HTTP_11)
        .header("host", "Shop.Example:8443");
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn connection() -> ClientConnection {
    ClientConnection {
        peer: "[::ffff:10.0.0.1]:4711".parse().unwrap(),
        listener: "0.0.0.0:8443".into(),
        tls: Some(TlsFacts {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            sni: Some("shop.example".into()),
            alpn: Some("h2"),
            client: None,
            hello: HelloFacts {
                ja3: "cd08e31494f9531f560d64c695473da9".into(),
                ja3_raw: "771,1,2,3,4".into(),
                ja4: "t13d1516h2_8daaf6152771_b186095e22b6".into(),
                length: 517,
            },
        }),
    }
}

/// Runs `ask` on the facts of a request.
fn facts<T>(parts: &Parts, geo: &dyn GeoSource, ask: impl FnOnce(&RequestFacts<'_>) -> T) -> T {
    let connection = connection();
    let head = RequestHead::read(parts, true).unwrap();
    let client = "203.0.113.7".parse().unwrap();
    let now = Timestamp::from_millis(1_700_000_000_999);
    let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, geo);
    facts.route = Some("/orders/{id}");
    facts.id = "abc";
    ask(&facts)
}

fn text(facts: &impl FieldFacts, field: &str) -> Option<String> {
    let bytes = facts.bytes(id(field))?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn all(facts: &impl FieldFacts, field: &str, name: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    facts.each(id(field), name.map(str::as_bytes), &mut |value| {
        found.push(String::from_utf8_lossy(value).into_owned());
        ControlFlow::Continue(())
    });
    found
}

fn at(facts: &impl FieldFacts, field: &str, name: Option<&str>, index: i32) -> Option<String> {
    let value = facts.element(id(field), name.map(str::as_bytes), index)?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

#[test]
fn every_string_field_of_a_request() {
    let parts = parts(
        "//orders/7.TAR.Gz?a=1",
        &[
            ("user-agent", "curl/8"),
            ("referer", "https://r.example/"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
        ],
    );
    facts(&parts, &Counted::default(), |facts| {
        for (field, value) in [
            ("http.request.method", "POST"),
            ("http.request.version", "HTTP/1.1"),
            (
                "http.request.full_uri",
                "https://shop.example:8443/orders/7.TAR.Gz?a=1",
            ),
            ("http.request.uri", "/orders/7.TAR.Gz?a=1"),
            ("http.request.uri.path", "/orders/7.TAR.Gz"),
            ("http.request.uri.path.extension", "gz"),
            ("http.request.uri.query", "a=1"),
            ("raw.http.request.uri.path", "//orders/7.TAR.Gz"),
            ("raw.http.request.uri.query", "a=1"),
            ("http.host", "shop.example"),
            ("http.user_agent", "curl/8"),
            ("http.referer", "https://r.example/"),
            ("http.cookie", "a=1; b=2"),
            ("http.x_forwarded_for", "1.1.1.1, 2.2.2.2"),
            ("http.request.route", "/orders/{id}"),
            ("http.request.id", "abc"),
            ("ip.src.country", "DE"),
            ("ip.geoip.country", "DE"),
            ("ip.src.continent", "EU"),
            ("tls.version", "TLSv1.3"),
            ("cf.tls_version", "TLSv1.3"),
            ("tls.cipher", "TLS_AES_128_GCM_SHA256"),
            ("tls.sni", "shop.example"),
            ("tls.alpn", "h2"),
            ("tls.ja3", "cd08e31494f9531f560d64c695473da9"),
            (
                "cf.bot_management.ja3_hash",
                "cd08e31494f9531f560d64c695473da9",
            ),
            ("tls.ja3_raw", "771,1,2,3,4"),
            ("tls.ja4", "t13d1516h2_8daaf6152771_b186095e22b6"),
        ] {
            assert_eq!(text(facts, field).as_deref(), Some(value), "{field}");
        }
    });
}

#[test]
fn numbers_addresses_and_booleans() {
    let parts = parts("/", &[("content-length", "12")]);
    facts(&parts, &Counted::default(), |facts| {
        assert_eq!(
            facts.int(id("http.request.timestamp.sec")),
            Some(1_700_000_000)
        );
        assert_eq!(facts.int(id("http.request.body.size")), Some(12));
        assert_eq!(facts.int(id("ip.src.asnum")), Some(64500));
        assert_eq!(facts.int(id("tls.client_hello_length")), Some(517));
        assert_eq!(facts.ip(id("ip.src")), Some("203.0.113.7".parse().unwrap()));
        assert_eq!(facts.ip(id("ip.peer")), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(facts.bool(id("ssl")), Some(true));
    });
}

#[test]
fn absent_values_are_missing() {
    let parts = parts("/", &[("transfer-encoding", "chunked")]);
    facts(&parts, &NoGeo, |facts| {
        for field in [
            "http.user_agent",
            "http.cookie",
            "ip.src.country",
            "http.referer",
        ] {
            assert_eq!(text(facts, field), None, "{field}");
        }
        assert_eq!(facts.int(id("ip.src.asnum")), None);
        assert_eq!(facts.int(id("http.request.body.size")), None);
        assert_eq!(text(facts, "http.request.uri.query").as_deref(), Some(""));
    });
}

#[test]
fn the_path_extension_is_read() {
    for (path, extension) in [
        ("/a.js", "js"),
        ("/a.b/c", ""),
        ("/.env", ""),
        ("/.env.js", "js"),
        ("/a.", ""),
        ("/", ""),
        ("/a.tar.GZ", "gz"),
    ] {
        let found = facts(&parts(path, &[]), &NoGeo, |facts| {
            text(facts, "http.request.uri.path.extension")
        });
        assert_eq!(found.as_deref(), Some(extension), "{path}");
    }
}

#[test]
fn a_value_of_the_wrong_type_or_index_is_missing() {
    facts(&parts("/", &[]), &NoGeo, |facts| {
        assert_eq!(facts.int(id("http.host")), None);
        assert_eq!(facts.bytes(id("ip.src")), None);
        assert_eq!(facts.ip(id("ssl")), None);
        assert_eq!(facts.bool(id("http.request.headers")), None);
        assert_eq!(facts.element(id("http.host"), None, 0), None);
        assert_eq!(facts.bytes(FieldId(u16::MAX)), None);
        assert_eq!(at(facts, "http.request.headers.names", Some("x"), 0), None);
    });
}

#[test]
fn headers_by_name_and_index() {
    let parts = parts("/", &[("x-a", "1"), ("X-A", "2"), ("x-b", "3")]);
    facts(&parts, &NoGeo, |facts| {
        let map = "http.request.headers";
        for name in ["x-a", "X-A"] {
            assert_eq!(at(facts, map, Some(name), 0).as_deref(), Some("1"));
            assert_eq!(at(facts, map, Some(name), 1).as_deref(), Some("2"));
            assert_eq!(at(facts, map, Some(name), 2), None);
            assert_eq!(at(facts, map, Some(name), -1).as_deref(), Some("2"));
            assert_eq!(at(facts, map, Some(name), -2).as_deref(), Some("1"));
            assert_eq!(at(facts, map, Some(name), -3), None);
            assert_eq!(all(facts, map, Some(name)), ["1", "2"]);
        }
        assert_eq!(at(facts, map, Some("x-c"), 0), None);
        assert_eq!(at(facts, map, Some("bad name"), 0), None);
        assert!(all(facts, map, Some("bad name")).is_empty());
        let names = all(facts, "http.request.headers.names", None);
        assert_eq!(names, ["host", "x-a", "x-a", "x-b"]);
        assert_eq!(
            at(facts, "http.request.headers.names", None, -1).as_deref(),
            Some("x-b")
        );
        assert_eq!(
            at(facts, "http.request.headers.values", None, 0).as_deref(),
            Some("Shop.Example:8443")
        );
        assert_eq!(all(facts, map, None).len(), 4);
    });
}

#[test]
fn cookies_and_arguments_by_name_and_index() {
    let parts = parts(
        "/?u=1&%75=2&v=3",
        &[("cookie", "s=x; t=y"), ("cookie", "s=z")],
    );
    facts(&parts, &NoGeo, |facts| {
        let (cookies, args) = ("http.request.cookies", "http.request.uri.args");
        assert_eq!(at(facts, cookies, Some("s"), 0).as_deref(), Some("x"));
        assert_eq!(at(facts, cookies, Some("s"), -1).as_deref(), Some("z"));
        assert_eq!(at(facts, cookies, Some("S"), 0), None);
        assert_eq!(all(facts, cookies, Some("s")), ["x", "z"]);
        assert_eq!(at(facts, args, Some("u"), 0).as_deref(), Some("1"));
        assert_eq!(at(facts, args, Some("u"), -1).as_deref(), Some("2"));
        assert_eq!(at(facts, args, Some("u"), i32::MIN), None);
        assert_eq!(at(facts, args, Some("u"), i32::MAX), None);
        assert_eq!(all(facts, &format!("{args}.names"), None), ["u", "u", "v"]);
        assert_eq!(all(facts, &format!("{args}.values"), None), ["1", "2", "3"]);
    });
}

#[test]
fn iteration_stops_when_the_callback_breaks() {
    let parts = parts("/?a=1&a=2", &[]);
    facts(&parts, &NoGeo, |facts| {
        let mut seen = 0;
        facts.each(id("http.request.uri.args"), Some(b"a"), &mut |_| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!(seen, 1);
    });
}

#[test]
fn the_geo_database_is_read_once_and_only_if_needed() {
    let geo = Counted::default();
    facts(&parts("/", &[]), &geo, |facts| {
        assert_eq!(text(facts, "http.host").as_deref(), Some("shop.example"));
        assert_eq!(geo.0.get(), 0);
        for _ in 0..3 {
            assert_eq!(text(facts, "ip.src.country").as_deref(), Some("DE"));
        }
        assert_eq!(geo.0.get(), 1);
    });
}

#[test]
fn response_fields_are_set_only_in_the_response_phase() {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "Text/HTML; charset=utf-8".parse().unwrap());
    headers.insert("x-cost", "7".parse().unwrap());
    let response = ResponseFacts {
        status: 401,
        headers: &headers,
        duration_ms: 12,
        body_size: Some(99),
        upstream: Some("app"),
        upstream_error: None,
    };
    facts(&parts("/login", &[]), &NoGeo, |facts| {
        assert_eq!(facts.int(id("http.response.code")), None);
        assert_eq!(at(facts, "http.response.headers", Some("x-cost"), 0), None);
        let both = facts.with_response(&response);
        assert_eq!(both.int(id("http.response.code")), Some(401));
        assert_eq!(both.int(id("http.response.duration_ms")), Some(12));
        assert_eq!(both.int(id("http.response.body.size")), Some(99));
        assert_eq!(
            at(&both, "http.response.headers", Some("X-Cost"), 0).as_deref(),
            Some("7")
        );
        let media_type = text(&both, "http.response.content_type.media_type");
        assert_eq!(media_type.as_deref(), Some("text/html"));
        assert_eq!(text(&both, "upstream.name").as_deref(), Some("app"));
        assert_eq!(text(&both, "upstream.error"), None);
        assert_eq!(
            text(&both, "http.request.uri.path").as_deref(),
            Some("/login")
        );
    });
}
