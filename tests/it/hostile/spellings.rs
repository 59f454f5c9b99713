//! One request in thousands of spellings is one key: whatever a client writes differently without
//! meaning anything else, it never opens a second counter.

use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use http::Request;

use super::noise::Numbers;
use crate::harness::{self, Running};

const CONFIG: &str = r#"
[server]
workers = 2
drain_timeout = "5s"
[log]
access = "off"
[client_ip]
trusted_proxies = ["127.0.0.1/32", "10.0.0.0/8", "2001:db8:ff::/48"]
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { status = 200, content_type = "text/plain", body = "ok" }
"#;

/// What is counted, a rule for each.
const KEYS: [(&str, &str); 6] = [
    ("ip", "ip.src"),
    ("cookie", r#"http.request.cookies["session"]"#),
    ("header", r#"http.request.headers["x-api-key"]"#),
    ("argument", r#"http.request.uri.args["user"]"#),
    ("path", "http.request.uri.path"),
    ("host", "http.host"),
];

/// So many requests go over one connection.
const ROUND: u32 = 100;

/// One way to write the request.
struct Spelling {
    host: String,
    path: String,
    query: String,
    cookies: Vec<String>,
    keys: Vec<String>,
    forwarded: Vec<String>,
}

#[test]
fn ten_thousand_spellings_of_a_path_are_one_key() {
    let gateway = gateway();
    let client = |numbers: &mut Numbers| {
        let ways = [
            "203.0.113.7",
            "203.0.113.7:443",
            "::ffff:203.0.113.7",
            "::FFFF:cb00:7107",
            "[::ffff:203.0.113.7]",
            "[::ffff:cb00:7107]:8080",
        ];
        numbers.one(&ways).to_owned()
    };
    send(&gateway, 100, client);
    check(&gateway, 10_000, 1);
    // Another request is another key, or this would prove nothing.
    let other = "GET /other?user=b HTTP/1.1\r\nhost: other\r\nx-forwarded-for: 203.0.113.8\r\n\
                 x-api-key: b\r\ncookie: session=b\r\nconnection: close\r\n\r\n";
    gateway.client().raw(other.as_bytes());
    check(&gateway, 10_001, 2);
}

#[test]
fn all_addresses_of_a_network_are_one_key() {
    let gateway = gateway();
    send(&gateway, 20, |numbers| {
        let low = (0..4).map(|_| numbers.below(0x10000) as u16);
        let mut groups = [0x2001, 0xdb8, 1, 2, 0, 0, 0, 0];
        groups[4..]
            .iter_mut()
            .zip(low)
            .for_each(|(group, low)| *group = low);
        let address = Ipv6Addr::from(groups);
        let long: Vec<String> = groups.iter().map(|group| format!("{group:04X}")).collect();
        match numbers.below(4) {
            0 => format!("[{address}]"),
            1 => format!("[{address}]:443"),
            2 => long.join(":"),
            _ => address.to_string(),
        }
    });
    check(&gateway, 2_000, 1);
}

fn gateway() -> Running {
    let rules = KEYS.map(|(name, key)| {
        format!(
            "[[rules]]\nname = \"{name}\"\ncount = 'http.request.method eq \"GET\"'\n\
             key = ['{key}']\nlimit = 1_000_000_000\nperiod = \"1h\"\n"
        )
    });
    Running::on(&format!("{CONFIG}{}", rules.concat()))
}

/// Sends `rounds` of requests, half of them over HTTP/2; `client` writes the client's address.
fn send(gateway: &Running, rounds: u32, client: impl Fn(&mut Numbers) -> String + Sync) {
    let next = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= rounds {
                        return;
                    }
                    let mut numbers = Numbers(0x9e37_79b9 ^ (round + 1));
                    let spellings: Vec<_> = (0..ROUND)
                        .map(|_| Spelling::draw(&mut numbers, &client))
                        .collect();
                    match round % 2 {
                        0 => over_http1(gateway, &spellings, &mut numbers),
                        _ => over_http2(gateway, &spellings, &mut numbers),
                    }
                }
            });
        }
    });
}

fn over_http1(gateway: &Running, spellings: &[Spelling], numbers: &mut Numbers) {
    let mut wire = gateway.client().connect();
    for spelling in spellings {
        let request = spelling.http1(numbers);
        wire.send(request.as_bytes());
        assert_eq!(wire.answer().status, 200, "{request}");
    }
}

fn over_http2(gateway: &Running, spellings: &[Spelling], numbers: &mut Numbers) {
    harness::run(async {
        let mut talk = gateway.client().talk().await;
        for spelling in spellings {
            let request = spelling.http2(numbers);
            let shown = format!("{request:?}");
            assert_eq!(talk.send(request).await.status, 200, "{shown}");
        }
    });
}

#[track_caller]
fn check(gateway: &Running, requests: usize, keys: usize) {
    let metrics = gateway.metrics();
    for (name, _) in KEYS {
        for line in [
            format!("lockgate_store_keys{{rule=\"{name}\"}} {keys}"),
            format!("lockgate_rule_matched_total{{rule=\"{name}\",phase=\"count\"}} {requests}"),
        ] {
            let has = metrics.lines().any(|l| l == line);
            let own: Vec<_> = metrics.lines().filter(|l| l.contains(name)).collect();
            assert!(has, "no {line} in {own:#?}");
        }
    }
}

// === impl Spelling ===

impl Spelling {
    fn draw(numbers: &mut Numbers, client: &impl Fn(&mut Numbers) -> String) -> Self {
        let client = client(numbers);
        Self {
            host: numbers.host(),
            path: numbers.path(),
            query: numbers.query(),
            cookies: numbers.cookies(),
            keys: numbers.keys(),
            forwarded: numbers.forwarded(&client),
        }
    }

    /// The fields in some order; those of one name in their own.
    fn fields(&self, numbers: &mut Numbers) -> Vec<(&'static str, &str)> {
        let mut kinds = [
            ("cookie", self.cookies.as_slice()),
            ("x-api-key", self.keys.as_slice()),
            ("x-forwarded-for", self.forwarded.as_slice()),
        ];
        let mut fields = Vec::new();
        while kinds.iter().any(|(_, lines)| !lines.is_empty()) {
            let kind = numbers.below(kinds.len());
            let (name, lines) = kinds[kind];
            if let Some((first, rest)) = lines.split_first() {
                fields.push((name, first.as_str()));
                kinds[kind].1 = rest;
            }
        }
        fields
    }

    fn http1(&self, numbers: &mut Numbers) -> String {
        let target = format!("{}?{}", self.path, self.query);
        let target = match numbers.below(4) {
            0 => format!("{}://{}{target}", numbers.case("http"), numbers.host()),
            _ => target,
        };
        let mut request = format!("GET {target} HTTP/1.1\r\n");
        let mut fields = self.fields(numbers);
        fields.insert(numbers.below(fields.len() + 1), ("host", &self.host));
        for (name, value) in fields {
            let (before, after) = (numbers.space(), numbers.space());
            let name = numbers.case(name);
            write!(request, "{name}:{before}{value}{after}\r\n").unwrap();
        }
        request + "\r\n"
    }

    fn http2(&self, numbers: &mut Numbers) -> http::request::Builder {
        // An empty port is none that the library of the client would send.
        let host = self.host.strip_suffix(':').unwrap_or(&self.host);
        let uri = format!("http://{host}{}?{}", self.path, self.query);
        let mut request = Request::builder().method("GET").uri(uri);
        for (name, value) in self.fields(numbers) {
            request = request.header(name, value);
        }
        request
    }
}

// === impl Numbers ===

impl Numbers {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn space(&mut self) -> &'static str {
        self.one(&["", " ", " ", "\t", "  \t"])
    }

    /// Some letters large, some small.
    fn case(&mut self, text: &str) -> String {
        let letter = |letter: char| match self.below(2) {
            0 => letter.to_ascii_uppercase(),
            _ => letter.to_ascii_lowercase(),
        };
        text.chars().map(letter).collect()
    }

    /// Some letters as escapes.
    fn escaped(&mut self, text: &str) -> String {
        let mut out = String::new();
        for letter in text.chars() {
            match self.below(8) {
                0 => write!(out, "%{:02x}", u32::from(letter)).unwrap(),
                1 => write!(out, "%{:02X}", u32::from(letter)).unwrap(),
                _ => out.push(letter),
            }
        }
        out
    }

    fn host(&mut self) -> String {
        let dot = self.one(&["", "", "."]);
        let port = self.one(&["", "", ":80", ":0080", ":"]);
        format!("{}{dot}{port}", self.case("shop.example.com"))
    }

    fn path(&mut self) -> String {
        let mut path = String::new();
        for segment in ["shop", "items-1", "~list_all.html"] {
            let before = [
                "",
                "",
                "/",
                "/.",
                "/%2e",
                "/x/..",
                "/%79/%2E.",
                "//./a//.%2e",
            ];
            path.push_str(self.one(&before));
            path.push('/');
            path.push_str(&self.escaped(segment));
        }
        path
    }

    fn query(&mut self) -> String {
        let user = |numbers: &mut Numbers, value: &str| {
            let (name, value) = (numbers.escaped("user"), numbers.escaped(value));
            format!("{name}={value}")
        };
        let mut query = vec![user(self, "alice")];
        for n in 0..self.below(4) {
            let noise = format!(
                "{}{n}={}",
                self.one(&["page", "User", "us", ""]),
                self.below(99)
            );
            match self.below(4) {
                0 => query.push(user(self, "bob")),
                1 => query.push(String::new()),
                2 => query.push(noise),
                _ => query.insert(0, noise),
            }
        }
        query.join("&")
    }

    fn cookies(&mut self) -> Vec<String> {
        let value = self.escaped("s3cret");
        let mut pairs = match self.below(3) {
            0 => vec![format!("session=\"{value}\"")],
            _ => vec![format!("session={value}")],
        };
        for n in 0..self.below(4) {
            let noise = format!(
                "{}{n}={}",
                self.one(&["theme", "Session", "a"]),
                self.below(99)
            );
            match self.below(3) {
                0 => pairs.push("session=other".into()),
                1 => pairs.push(noise),
                _ => pairs.insert(0, noise),
            }
        }
        self.lines(pairs, &["; ", ";", ";  "])
    }

    fn keys(&mut self) -> Vec<String> {
        let mut keys = vec!["key-1".to_owned()];
        keys.extend((0..self.below(3)).map(|n| format!("other-{n}")));
        keys
    }

    /// What a client may have made up, then the client, then proxies that are trusted.
    fn forwarded(&mut self, client: &str) -> Vec<String> {
        let spoofed = [
            "203.0.113.99",
            "unknown",
            "10.1.2.3",
            "::1",
            "_hidden",
            "999.1.1.1",
        ];
        let hops = [
            "10.0.0.9",
            "10.255.0.1:80",
            "127.0.0.1",
            "[2001:db8:ff::7]:9",
            "::ffff:10.1.1.1",
        ];
        let mut chain = Vec::new();
        for _ in 0..self.below(3) {
            chain.push(self.one(&spoofed).to_owned());
        }
        chain.push(client.to_owned());
        for _ in 0..self.below(3) {
            chain.push(self.one(&hops).to_owned());
        }
        self.lines(chain, &[", ", ",", " ,\t"])
    }

    /// A list as one line or as several.
    fn lines(&mut self, parts: Vec<String>, separators: &[&str]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for part in parts {
            match lines.last_mut() {
                Some(line) if self.below(3) > 0 => {
                    line.push_str(self.one(separators));
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
        lines
    }
}
