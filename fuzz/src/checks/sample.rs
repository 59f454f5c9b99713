//! Requests to ask: their facts need a head, a connection and a place.

use std::net::IpAddr;

use http::request::Parts;
use lockgate::clock::Timestamp;
use lockgate::expr::{FieldId, FieldScheme};
use lockgate::facts::{
    ClientConnection, FieldTable, GeoSource, HelloFacts, NoGeo, RequestFacts, RequestHead, TlsFacts,
};

/// A place that knows every address.
struct Somewhere;

/// Runs `ask` on the facts of a plain request, or not at all where the gateway would refuse it.
pub fn plain(parts: &Parts, ask: &mut dyn FnMut(&RequestFacts<'_>)) {
    with(parts, None, &NoGeo, ask);
}

/// The same with a handshake and a place.
pub fn over_tls(parts: &Parts, ask: &mut dyn FnMut(&RequestFacts<'_>)) {
    let tls = TlsFacts {
        version: "TLSv1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        sni: Some("shop.example".into()),
        alpn: Some("h2"),
        client: None,
        hello: HelloFacts {
            ja3: "cd08e31494f9531f560d64c695473da9".into(),
            ja3_raw: "771,4865-4866,0-23,29-23,0".into(),
            ja4: "t13d1516h2_8daaf6152771_b186095e22b6".into(),
            length: 517,
        },
    };
    with(parts, Some(tls), &Somewhere, ask);
}

/// The number of a field.
pub fn field(name: &str) -> FieldId {
    FieldTable.field(name).expect("a field of the table").id
}

fn with(
    parts: &Parts,
    tls: Option<TlsFacts>,
    geo: &dyn GeoSource,
    ask: &mut dyn FnMut(&RequestFacts<'_>),
) {
    let Ok(head) = RequestHead::read(parts, tls.is_some()) else {
        return;
    };
    let connection = ClientConnection {
        peer: "[2001:db8::7]:4711".parse().expect("an address"),
        listener: "0.0.0.0:8443".into(),
        tls,
    };
    let client = "203.0.113.7".parse().expect("an address");
    let now = Timestamp::from_millis(1_700_000_000_999);
    let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, geo);
    facts.route = Some("/orders/{id}");
    facts.id = "0123456789abcdef";
    ask(&facts);
}

// === impl Somewhere ===

impl GeoSource for Somewhere {
    fn asn(&self, _: IpAddr) -> Option<u32> {
        Some(64500)
    }

    fn country(&self, _: IpAddr) -> Option<[u8; 2]> {
        Some(*b"DE")
    }

    fn continent(&self, _: IpAddr) -> Option<[u8; 2]> {
        Some(*b"EU")
    }
}
