//! Shadow answers that look like real ones, over real sockets.

use std::sync::atomic::{AtomicU64, Ordering};

use lockgate::clock::{HttpDate, Timestamp};

use crate::harness::{Answer, Client, Origin, Running, Seen, wait_until};

/// Whoever comes from here is shadowed.
const BAD: &str = "198.51.100.7";

const RULES: &str = r#"
[[rules]]
name = "quiet"
mitigate = 'ip.src in {198.51.100.0/24}'
action = "shadow"
response = "fine"
[responses.fine]
content_type = "application/json"
headers = { "x-configured" = "yes" }
body = '{"ok":true,"id":"{{uuid}}"}'
imitate = true
"#;

/// The ways to send a request.
const WAYS: [Way; 4] = [Way::Plain, Way::Tls, Way::PlainH2, Way::TlsH2];

#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Tls,
    PlainH2,
    TlsH2,
}

impl Way {
    fn client(self, gateway: &Running) -> Client {
        match self {
            Way::Plain | Way::PlainH2 => gateway.client(),
            Way::Tls | Way::TlsH2 => gateway.tls_client(),
        }
    }

    fn send(self, client: &Client, count: usize) -> Vec<Answer> {
        match self {
            Way::Plain | Way::Tls => client.times(count).0,
            Way::PlainH2 | Way::TlsH2 => client.times_over_h2(count),
        }
    }
}

/// An origin like a real one: some fields are constant, some vary, some are nobody's business.
fn busy_origin() -> Origin {
    let count = AtomicU64::new(1);
    Origin::answering(move |request| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let date = HttpDate(Timestamp::from_secs(1_700_000_040));
        let body = format!("{{\"ok\":true,\"id\":\"{mixed:036x}\"}}");
        let head = format!(
            "HTTP/1.1 200 OK\r\nserver: nginx/1.27.0\r\ndate: {date}\r\n\
             content-type: application/json; charset=utf-8\r\ncontent-length: {}\r\n\
             connection: keep-alive\r\nset-cookie: sid={mixed:x}; HttpOnly\r\n\
             x-request-id: {mixed:016x}{n:016x}\r\ncache-control: private, no-cache\r\n\
             etag: W/\"1f-{:016x}\"\r\nx-csrf-token: {mixed:x}\r\nvary: accept\r\n\
             vary: cookie\r\nx-echo: {}\r\nstrict-transport-security: max-age=63072000\r\n\r\n",
            body.len(),
            mixed | 1 << 63,
            request.header("x-echo").unwrap_or("none"),
        );
        match request.line.starts_with("HEAD ") {
            true => head.into_bytes(),
            false => (head + &body).into_bytes(),
        }
    })
}

/// Lets ten clients ask, fifty times in all, and waits until that is learned.
fn teach(gateway: &Running, way: Way, method: &str, path: &str) -> Answer {
    let mut last = None;
    for n in 0..10 {
        let from = format!("203.0.113.{n}");
        let client = way.client(gateway).from(&from).method(method, path);
        last = way.send(&client, 5).pop();
    }
    // An answer is learned from after it was sent.
    wait_until("it is learned", || {
        let shadow = shadowed(gateway, way, method, path);
        shadow.header("x-configured").is_none()
    });
    last.unwrap()
}

fn shadowed(gateway: &Running, way: Way, method: &str, path: &str) -> Answer {
    let client = way.client(gateway).from(BAD).method(method, path);
    way.send(&client, 1).pop().unwrap()
}

/// The fields of an answer, without those that are never imitated.
fn visible(answer: &Answer) -> impl Iterator<Item = &(String, String)> {
    let hidden = ["set-cookie", "x-csrf-token"];
    let fields = answer.headers.iter();
    fields.filter(move |(name, _)| !hidden.contains(&name.as_str()))
}

fn names(answer: &Answer) -> Vec<&str> {
    visible(answer).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn header_edits_of_a_route_apply_to_shadow_responses() {
    let edits = "response_headers = { remove = [\"x-csrf-token\", \"vary\", \"x-request-id\"], \
                 set = { server = \"gateway\", \"set-cookie\" = \"a=b\" } }\n";
    for way in [Way::Plain, Way::TlsH2] {
        let gateway = Running::with_origin(busy_origin(), &format!("{edits}{RULES}"));
        let real = teach(&gateway, way, "GET", "/page");
        let shadow = shadowed(&gateway, way, "GET", "/page");
        let all = |answer: &Answer| -> Vec<String> {
            let fields = answer.headers.iter();
            fields.map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(all(&shadow), all(&real), "{way:?}");
        assert_eq!(shadow.header("server"), Some("gateway"));
        assert_eq!(shadow.header("set-cookie"), Some("a=b"));
        // Another change counts at once, though what was learned stays.
        gateway
            .reload(&format!("{}{RULES}", edits.replace("gateway", "other")))
            .unwrap();
        let later = shadowed(&gateway, way, "GET", "/page");
        assert_eq!(later.header("server"), Some("other"));
    }
}

#[test]
fn names_order_and_constants_are_equal_and_the_origin_is_untouched() {
    for way in WAYS {
        let gateway = Running::with_origin(busy_origin(), RULES);
        let real = teach(&gateway, way, "GET", "/page");
        let before = gateway.origin.count();
        let shadow = shadowed(&gateway, way, "GET", "/page");
        let again = shadowed(&gateway, way, "GET", "/page");
        assert_eq!(gateway.origin.count(), before, "{way:?}");
        assert_eq!((real.status, shadow.status), (200, 200));
        assert_eq!(names(&shadow), names(&real), "{way:?}");
        for (real, made) in visible(&real).zip(visible(&shadow)) {
            match made.0.as_str() {
                "x-request-id" | "etag" => {
                    assert_eq!(made.1.len(), real.1.len(), "{real:?}");
                    assert_ne!(Some(made.1.as_str()), again.header(&made.0));
                    assert!(!real_ones(&gateway).contains(&made.1));
                }
                _ => assert_eq!(made, real),
            }
        }
        assert_eq!(shadow.body.len(), real.body.len());
        assert!(shadow.text().starts_with("{\"ok\":true,\"id\":\""));
    }
}

/// Every `x-request-id` that the origin has made.
fn real_ones(gateway: &Running) -> Vec<String> {
    let made = (1..=gateway.origin.count() as u64).map(|n| {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{mixed:016x}{n:016x}")
    });
    made.collect()
}

#[test]
fn the_configured_response_is_used_until_enough_is_learned() {
    let gateway = Running::with_origin(busy_origin(), RULES);
    let configured = ["content-type", "content-length", "x-configured", "date"];
    let plain = |answer: &Answer| {
        let fields = answer.headers.iter().map(|(name, _)| name.clone());
        fields
            .filter(|name| name != "connection")
            .collect::<Vec<_>>()
    };
    assert_eq!(
        plain(&shadowed(&gateway, Way::Plain, "GET", "/")),
        configured
    );
    // Many answers, to nine clients.
    for n in 0..9 {
        let from = format!("203.0.113.{n}");
        gateway.client().from(&from).times(7).all_are(200);
    }
    assert_eq!(
        plain(&shadowed(&gateway, Way::Plain, "GET", "/")),
        configured
    );
    gateway.client().from("203.0.113.99").send();
    // An answer is learned from after it was sent.
    let mut known = Answer::default();
    wait_until("ten clients are enough", || {
        known = shadowed(&gateway, Way::Plain, "GET", "/");
        known.header("server") == Some("nginx/1.27.0")
    });
    assert_eq!(known.header("x-configured"), None);
    // Another method, another protocol: not yet.
    assert_eq!(
        plain(&shadowed(&gateway, Way::Plain, "POST", "/")),
        configured
    );
    assert_eq!(
        shadowed(&gateway, Way::PlainH2, "GET", "/").header("server"),
        None
    );
}

#[test]
fn failures_and_mitigated_requests_are_not_learned() {
    let gateway = Running::with(RULES);
    for n in 0..12 {
        let from = format!("203.0.113.{n}");
        gateway
            .client()
            .from(&from)
            .wants(500)
            .times(5)
            .all_are(500);
        gateway
            .client()
            .from(&from)
            .wants(301)
            .times(5)
            .all_are(301);
        let from = format!("198.51.100.{n}");
        gateway.client().from(&from).times(5).all_are(200);
    }
    let shadow = shadowed(&gateway, Way::Plain, "GET", "/");
    assert_eq!(shadow.header("x-configured"), Some("yes"));
}

#[test]
fn a_value_seen_by_few_clients_is_not_repeated() {
    let gateway = Running::with_origin(busy_origin(), RULES);
    for n in 0..9 {
        let client = gateway.client().from(&format!("203.0.113.{n}"));
        client.header("x-echo", "for nine").times(20).all_are(200);
    }
    for n in 10..14 {
        let client = gateway.client().from(&format!("203.0.113.{n}"));
        client
            .header("x-echo", "for four, seldom")
            .times(3)
            .all_are(200);
    }
    for _ in 0..30 {
        let shadow = shadowed(&gateway, Way::Plain, "GET", "/");
        assert_eq!(shadow.header("server"), Some("nginx/1.27.0"));
        assert_eq!(shadow.header("x-echo"), None);
    }
}

#[test]
fn a_date_is_current() {
    let gateway = Running::with_origin(busy_origin(), RULES);
    teach(&gateway, Way::Plain, "GET", "/");
    for hours in 1..4 {
        gateway.wait(std::time::Duration::from_secs(3600));
        let shadow = shadowed(&gateway, Way::Plain, "GET", "/");
        let date = HttpDate(Timestamp::from_secs(1_700_000_040 + hours * 3600));
        assert_eq!(shadow.header("date"), Some(date.to_string().as_str()));
    }
}

/// A whole configuration with these settings of the server and these routes.
fn whole(server: &str, paths: &[&str]) -> String {
    let route = |path: &&str| format!("[[routes]]\npath = {path:?}\nupstream = \"origin\"\n");
    let routes: String = paths.iter().map(route).collect();
    format!(
        r#"
        [server]
        {server}
        [log]
        access = "off"
        [client_ip]
        trusted_proxies = ["127.0.0.1/32"]
        [[listeners]]
        address = "127.0.0.1:0"
        [[upstreams]]
        name = "origin"
        servers = ["{{origin}}"]
        {routes}
        {RULES}"#
    )
}

#[test]
fn learned_responses_survive_a_reload_and_stay_with_their_route() {
    let routes = |paths: [&str; 2]| whole("", &paths);
    let gateway = Running::before(busy_origin(), &routes(["/a/*", "/b/*"]));
    let server = |path: &str| {
        let answer = shadowed(&gateway, Way::Plain, "GET", path);
        answer.header("server").map(str::to_owned)
    };
    let known = Some("nginx/1.27.0".to_owned());
    teach(&gateway, Way::Plain, "GET", "/a/1");
    assert_eq!((server("/a/2"), server("/b/2")), (known.clone(), None));
    gateway.reload_whole(&routes(["/b/*", "/a/*"])).unwrap();
    assert_eq!((server("/a/2"), server("/b/2")), (known, None));
    gateway.reload_whole(&routes(["/b/*", "/c/*"])).unwrap();
    gateway.reload_whole(&routes(["/a/*", "/b/*"])).unwrap();
    assert_eq!((server("/a/2"), server("/b/2")), (None, None));
}

#[test]
fn responses_that_a_rule_counts_are_learned_separately_from_their_route() {
    let origin = Origin::answering(|request: &Seen| {
        let fields = match request.line.contains("/invite") {
            true => "x-app: invites\r\ncontent-type: application/json",
            false => "content-type: text/html\r\nx-app: pages",
        };
        format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{fields}\r\n\r\n{{}}").into_bytes()
    });
    let rules = RULES.replace(
        "mitigate = 'ip.src in {198.51.100.0/24}'",
        "count = 'http.request.uri.path eq \"/invite\"'\nkey = [\"ip.src\"]\nlimit = 5\nperiod = \"1h\"",
    );
    let gateway = Running::with_origin(origin, &rules);
    teach(&gateway, Way::Plain, "GET", "/invite");
    for _ in 0..3 {
        teach(&gateway, Way::Plain, "GET", "/");
    }
    let client = gateway.client().from("203.0.113.3").get("/invite");
    let answers = client.times(3).0;
    let app = |answer: &Answer| answer.header("x-app").map(str::to_owned);
    assert_eq!(app(&answers[0]).as_deref(), Some("invites"));
    let all = names(&answers[0]);
    assert!(
        all.starts_with(&["content-length", "x-app", "content-type"]),
        "{all:?}"
    );
}

#[test]
fn bodies_are_framed_as_the_origin_frames_them() {
    let origin = Origin::answering(|request: &Seen| {
        let head = "HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\
                    content-type: application/json\r\n\r\n";
        let body = match request.line.starts_with("HEAD ") {
            true => "",
            false => "b\r\n{\"ok\":true}\r\n0\r\n\r\n",
        };
        format!("{head}{body}").into_bytes()
    });
    let gateway = Running::with_origin(origin, RULES);
    for (way, method) in [
        (Way::Plain, "GET"),
        (Way::Plain, "HEAD"),
        (Way::TlsH2, "GET"),
    ] {
        let real = teach(&gateway, way, method, "/");
        let shadow = shadowed(&gateway, way, method, "/");
        assert_eq!(names(&shadow), names(&real), "{way:?} {method}");
        assert_eq!(
            shadow.header("content-length"),
            real.header("content-length")
        );
        assert_eq!(shadow.body.is_empty(), method == "HEAD");
    }
    let old = b"GET / HTTP/1.0\r\nhost: example.com\r\nx-forwarded-for: 198.51.100.7\r\n\r\n";
    let shadow = Answer::parse(&gateway.client().raw(old));
    let old = b"GET / HTTP/1.0\r\nhost: example.com\r\n\r\n";
    let real = Answer::parse(&gateway.client().raw(old));
    assert_eq!(shadow.headers.len(), real.headers.len());
    assert_eq!(names(&shadow), names(&real));
    assert!(shadow.text().starts_with("{\"ok\":true"));
}

#[test]
fn other_methods_and_bodies_are_imitated() {
    let gateway = Running::with_origin(busy_origin(), RULES);
    for method in ["HEAD", "OPTIONS", "DELETE"] {
        let real = teach(&gateway, Way::Plain, method, "/");
        let shadow = shadowed(&gateway, Way::Plain, method, "/");
        assert_eq!(names(&shadow), names(&real), "{method}");
        assert_eq!(
            shadow.header("content-length"),
            real.header("content-length")
        );
    }
    for n in 0..12 {
        let client = gateway.client().from(&format!("203.0.113.{n}"));
        client.post("/").body(b"a=1").times(5).all_are(200);
    }
    let before = gateway.origin.count();
    let client = gateway.client().from(BAD).post("/").body(&[b'x'; 100_000]);
    assert_eq!(client.send().header("server"), Some("nginx/1.27.0"));
    let mut wire = gateway.client().connect();
    wire.send(
        b"POST / HTTP/1.1\r\nhost: example.com\r\nx-forwarded-for: 198.51.100.7\r\n\
          expect: 100-continue\r\ncontent-length: 3\r\n\r\n",
    );
    assert_eq!(wire.answer().status, 100);
    wire.send(b"a=1");
    assert_eq!(wire.answer().header("server"), Some("nginx/1.27.0"));
    assert_eq!(wire.get("/").status, 200);
    assert_eq!(gateway.origin.count(), before + 1);
}

#[test]
fn quota_headers_have_the_position_of_real_responses() {
    let rules = r#"
        [[rules]]
        name = "api"
        count = 'starts_with(http.request.uri.path, "/")'
        key = ["ip.src"]
        limit = 100
        period = "1m"
    "#;
    let gateway = Running::with_origin(busy_origin(), &format!("{rules}{RULES}"));
    for way in [Way::Plain, Way::TlsH2] {
        let real = teach(&gateway, way, "GET", "/");
        let shadow = shadowed(&gateway, way, "GET", "/");
        assert!(names(&real).contains(&"ratelimit"));
        assert_eq!(names(&shadow), names(&real));
    }
}

#[test]
fn a_shadow_response_is_imitated_even_if_max_held_is_zero() {
    let gateway = Running::before(busy_origin(), &whole("max_held = 0", &["/*"]));
    let real = teach(&gateway, Way::Plain, "GET", "/");
    let shadow = shadowed(&gateway, Way::Plain, "GET", "/");
    assert_eq!(names(&shadow), names(&real));
}

#[test]
fn every_held_shadow_response_is_released() {
    let gateway = Running::with_origin(busy_origin(), RULES);
    teach(&gateway, Way::Plain, "GET", "/");
    for _ in 0..20 {
        let shadow = shadowed(&gateway, Way::Plain, "GET", "/");
        assert_eq!(shadow.header("server"), Some("nginx/1.27.0"));
    }
    let held = &gateway.gateway().live().process.held;
    wait_until("nobody is held", || held.load(Ordering::Relaxed) == 0);
}

#[test]
fn the_state_of_learning_is_reported() {
    let gateway = Running::with_origin(busy_origin(), RULES);
    let ready = "lockgate_imitation_ready{rule=\"quiet\"}";
    let is = |value: u8| gateway.metrics().contains(&format!("{ready} {value}\n"));
    assert!(is(0), "{}", gateway.metrics());
    teach(&gateway, Way::Plain, "GET", "/page");
    assert!(is(1), "{}", gateway.metrics());
}

#[test]
fn a_configured_body_unlike_real_ones_is_reported() {
    // The rule matches real requests too, and bans one client.
    let rules = RULES.replace(
        "mitigate = 'ip.src in {198.51.100.0/24}'",
        "mitigate = 'http.host ne \"\"'\ncount = 'ip.src in {198.51.100.0/24}'\nkey = [\"ip.src\"]\n\
         limit = 1\nperiod = \"1h\"\nduration = \"1h\"",
    );
    let rules = rules.replace("application/json", "text/html");
    let gateway = Running::with_origin(busy_origin(), &rules);
    shadowed(&gateway, Way::Plain, "GET", "/page");
    teach(&gateway, Way::Plain, "GET", "/page");
    let live = gateway.gateway().live();
    wait_until("the rule's own responses are learned", || {
        let progress = live.process.imitation_progress(&live.current.load());
        progress[0].1.difference.as_deref()
            == Some("real responses are application/json, the configured one is text/html")
    });
}
