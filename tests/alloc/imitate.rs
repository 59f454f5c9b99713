//! What is learned for `imitate` stays within its bounds, whatever origin servers send.

use std::time::Duration;

use allocation_counter::measure;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use lockgate::action::RequestInfo;
use lockgate::action::imitate::{
    HeadSent, ImitationStore, LearnedResponses, ResponseClass, ResponsePacing, SendSchedule,
};
use lockgate::clock::Timestamp;

use super::cases::Random;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_040);

/// Headers that take as much memory as headers can.
fn worst(random: &mut Random, names: u64) -> Vec<(String, String)> {
    let header = |n: u64| {
        let parts: Vec<String> = (0..20)
            .map(|_| format!("{:x}", random.next() >> 20))
            .collect();
        let pad = "y".repeat(random.below(2000) as usize);
        let value = match random.below(3) {
            0 => parts.join("-"),
            1 => pad,
            _ => format!("{}.{}", random.below(1000), random.below(1000)),
        };
        (format!("x-{}", (n + random.below(3)) % 50), value)
    };
    (0..names).map(header).collect()
}

fn teach(memory: &LearnedResponses, client: u32, headers: &[(String, String)]) {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name).unwrap();
        map.append(name, HeaderValue::try_from(value).unwrap());
    }
    memory.learn(&HeadSent {
        headers: map,
        request_headers: HeaderMap::new(),
        request_id: "00ff".to_owned(),
        client,
        when: SendSchedule {
            now: NOW,
            head: Duration::ZERO,
        },
    });
}

#[test]
fn a_flood_of_odd_responses_stays_within_bounds() {
    let (method, uri, headers) = (Method::GET, Uri::from_static("/"), HeaderMap::new());
    let asked = RequestInfo {
        method: &method,
        uri: &uri,
        version: Version::HTTP_11,
        headers: &headers,
        id: "00ff",
        now: NOW,
        errors: None,
    };
    let imitations = ImitationStore::default();
    let kind = ResponseClass::new("/".into(), "app".into(), &asked, StatusCode::OK);
    let memory = imitations.get_or_begin(kind.unwrap()).unwrap();
    let grown = measure(|| {
        let mut random = Random(1);
        for response in 0..400 {
            let names = if response % 100 == 0 { 200 } else { 32 };
            teach(&memory, response, &worst(&mut random, names));
        }
        // Long constants, beside what varies.
        let name = |n| (format!("x-{n}"), "z".repeat(2048));
        let long: Vec<(String, String)> = (0..32).map(name).collect();
        for response in 0..400 {
            teach(&memory, response % 12, &long);
        }
        for response in 0..5000 {
            let mut pace = ResponsePacing::default();
            for piece in 0..100 {
                pace.add(piece + response, Duration::from_secs(piece as u64));
            }
            memory.learn_pace(pace.whole());
        }
    });
    let bytes = grown.bytes_current;
    assert!(bytes < 128 << 10, "{bytes} bytes for a kind of response");
}
