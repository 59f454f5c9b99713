//! What is measured: requests, reference rules, lists and hellos. Everything that is made here
//! lives until the process ends, so that no clean-up is counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Request, Version};
use lockgate::clock::Timestamp;
use lockgate::credential::{KnownCookie, SecretRing, unix_seconds};
use lockgate::expr::{self, ExprEnv, NamedList, NamedLists, Predicate};
use lockgate::facts::{
    ClientConnection, ClientCredentials, FieldTable, GeoSource, HelloFacts, KnownClients,
    RequestFacts, RequestHead, ResponseFacts, TlsFacts,
};

/// A browser's, as long as they are.
pub const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 \
     (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";

/// A crawler's that runs a browser, as it is sent.
pub const CRAWLER: &str = "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) \
     AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.6778.69 Mobile Safari/537.36 \
     (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
/// A browser's with the longest word at its end: the most that the regular expression has to do.
pub const DISGUISED: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 \
     (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 python-requests/2.32";

/// Method and path prefix.
pub const METHOD_AND_PREFIX: &str =
    r#"http.request.method eq "POST" and starts_with(http.request.uri.path, "/api/")"#;
/// User-agent regex and address in 1,000 CIDRs.
pub const AGENT_AND_ADDRESS: &str =
    r#"http.user_agent matches "(?i)(curl|python-requests|scrapy|bot)" and ip.src in $blocks"#;
/// Status in a set and country or ASN in a set.
pub const STATUS_AND_PLACE: &str = r#"http.response.code in {401 403}
     and (ip.src.country in {"CN" "RU"} or ip.src.asnum in {64500 64501})"#;

const HOST: &str = "www.shop.example";
/// When the requests are sent.
const ASKED_AT: Timestamp = Timestamp::from_secs(1_700_000_000);

/// Fixed answers, as of a database that was asked before.
pub struct Place {
    /// The autonomous system.
    pub asn: u32,
    /// The country.
    pub country: [u8; 2],
}

/// A request, as a client sends it.
pub struct Asked<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub uri: &'a str,
    /// The client's program.
    pub agent: &'a str,
    /// The client's address.
    pub client: IpAddr,
    /// Where that is.
    pub place: Place,
    /// The cookies.
    pub cookies: &'a str,
}

// === impl Place ===

impl GeoSource for Place {
    fn asn(&self, _: IpAddr) -> Option<u32> {
        Some(self.asn)
    }

    fn country(&self, _: IpAddr) -> Option<[u8; 2]> {
        Some(self.country)
    }

    fn continent(&self, _: IpAddr) -> Option<[u8; 2]> {
        None
    }
}

// === impl Asked ===

impl Asked<'_> {
    /// A browser that looks at a shop.
    pub const fn browsing() -> Asked<'static> {
        Asked {
            method: "GET",
            uri: "/catalogue/shoes/trail-runner-7?colour=red&size=43&page=2",
            agent: BROWSER,
            client: IpAddr::V4(Ipv4Addr::new(198, 51, 100, 23)),
            place: Place {
                asn: 3320,
                country: *b"DE",
            },
            cookies: "session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=1",
        }
    }

    /// What rules see of it.
    pub fn facts(self) -> &'static RequestFacts<'static> {
        leak(self.read())
    }

    /// What rules see of a client whose browser also sends the cookie of a known client, before they check it.
    pub fn known(self, credentials: &'static ClientCredentials) -> &'static RequestFacts<'static> {
        let cookie = KnownCookie::new(*b"a client", unix_seconds(ASKED_AT));
        let value = cookie.encode(&credentials.ring, HOST);
        let cookies = format!("{}; {}={value}", self.cookies, KnownCookie::HOST_NAME);
        let mut facts = Asked {
            cookies: &cookies,
            ..self
        }
        .read();
        facts.credentials = Some(credentials);
        leak(facts)
    }

    fn read(self) -> RequestFacts<'static> {
        let parts = leak(self.parts());
        let head = leak(RequestHead::read(parts, true).unwrap());
        let (client, now) = (self.client, ASKED_AT);
        let geo = leak(self.place);
        let connection = leak(connection(client));
        let mut facts = RequestFacts::new(head, &parts.headers, connection, client, now, geo);
        facts.route = Some("/catalogue/{kind}/{item}");
        facts.id = "0190f5a2c3d4e5f6";
        facts
    }

    fn parts(&self) -> Parts {
        let request = Request::builder()
            .method(self.method)
            .uri(self.uri)
            .version(Version::HTTP_11)
            .header("host", HOST)
            .header("user-agent", self.agent)
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .header("accept-language", "de-DE,de;q=0.9,en;q=0.8")
            .header("accept-encoding", "gzip, deflate, br, zstd")
            .header("referer", "https://www.shop.example/catalogue/shoes")
            .header("cookie", self.cookies)
            .header("sec-fetch-site", "same-origin")
            .header("x-api-key", "none");
        request.body(()).unwrap().into_parts().0
    }
}

/// Keeps `value` until the process ends.
pub fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The facts with an answer of this status.
pub fn answered(
    facts: &'static RequestFacts<'static>,
    status: u16,
) -> &'static dyn expr::FieldFacts {
    let response = leak(ResponseFacts {
        status,
        headers: leak(HeaderMap::new()),
        duration_ms: 12,
        body_size: Some(512),
        upstream: Some("app"),
        upstream_error: None,
    });
    leak(facts.with_response(response))
}

/// Compiles a test that may read the response.
pub fn predicate(text: &str, lists: &NamedLists) -> Predicate {
    let env = ExprEnv {
        scheme: &FieldTable,
        lists,
        allow_response: true,
    };
    expr::predicate(text, &env).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

/// The secret of a gateway that knows clients by their cookies.
pub fn credentials() -> &'static ClientCredentials {
    leak(ClientCredentials {
        ring: SecretRing::from_secret([7; 32]),
        known: Some(KnownClients {
            sources: Vec::new(),
            lifetime: 86_400,
            domain: None,
        }),
        clearance_lifetime: None,
    })
}

/// One list of that name.
pub fn lists(name: &str, texts: &[String]) -> NamedLists {
    let mut lists = NamedLists::new();
    let list = NamedList::from_texts(texts.iter().map(String::as_str));
    lists.insert(name, list);
    lists
}

/// `count` networks of IPv4, of the lengths that block lists have; about one address in two of
/// `1.0.0.0/8` to `223.0.0.0/8` is near one of them.
pub fn blocks_v4(count: usize) -> Vec<String> {
    let mut random = Random(4);
    let mut block = |_| {
        let length = 20 + random.below(13);
        let bits = (0x0100_0000 + random.below(0xde00_0000)) as u32 & (u32::MAX << (32 - length));
        format!("{}/{length}", Ipv4Addr::from_bits(bits))
    };
    (0..count).map(&mut block).collect()
}

/// `count` networks of IPv6 within `2000::/3`.
pub fn blocks_v6(count: usize) -> Vec<String> {
    let mut random = Random(6);
    let mut block = |_| {
        let length = 29 + random.below(36);
        let high = 0x2000_0000_0000_0000 | random.next() >> 3;
        let bits = u128::from(high) << 64 & (u128::MAX << (128 - length));
        format!("{}/{length}", Ipv6Addr::from_bits(bits))
    };
    (0..count).map(&mut block).collect()
}

/// `count` user agents.
pub fn strings(count: usize) -> Vec<String> {
    let mut random = Random(5);
    let mut text = |at| format!("Crawler-{at}/{}.{}", random.below(40), random.below(10_000));
    (0..count).map(&mut text).collect()
}

/// A recorded ClientHello: TLS records.
pub fn hello(name: &str) -> Vec<u8> {
    let root = env!("CARGO_MANIFEST_DIR");
    let hex = std::fs::read_to_string(format!("{root}/tests/data/hellos/{name}.hex")).unwrap();
    let digits: Vec<u32> = hex.trim().chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes = digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |a, d| a << 4 | d));
    bytes.map(|byte| byte as u8).collect()
}

/// Numbers that are the same in every run.
pub struct Random(pub u64);

// === impl Random ===

impl Random {
    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One of `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of `choices`.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn connection(client: IpAddr) -> ClientConnection {
    ClientConnection {
        peer: (client, 4711).into(),
        listener: Arc::from("0.0.0.0:8443"),
        tls: Some(TlsFacts {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            sni: Some("www.shop.example".into()),
            alpn: Some("h2"),
            client: None,
            hello: HelloFacts {
                ja3: "cd08e31494f9531f560d64c695473da9".into(),
                ja3_raw: "771,4865-4866-4867,0-23-65281,29-23-24,0".into(),
                ja4: "t13d1516h2_8daaf6152771_b186095e22b6".into(),
                length: 517,
            },
        }),
    }
}
