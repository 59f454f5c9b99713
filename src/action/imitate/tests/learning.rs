//! What is learned, and when it is enough.

use super::super::learned_responses::ENOUGH_CLIENTS;
use super::*;

const JSON: &[(&str, &str)] = &[
    ("server", "nginx"),
    ("content-type", "application/json; charset=utf-8"),
    ("content-length", "17"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("cache-control", "private"),
];

#[test]
fn header_names_order_and_constants_match_real_responses() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 60, JSON);
    let canned = canned("application/json", "{}");
    let response = dressed(&memory, &canned);
    let mut expected = JSON.to_vec();
    expected[2].1 = "2";
    assert_eq!(fields(&response), expected);
}

#[test]
fn nothing_is_imitated_before_fifty_responses_to_ten_clients() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 49, JSON);
    assert!(imitated(&memory).is_none());
    teach_all(&memory, 1, JSON);
    assert!(imitated(&memory).is_some());

    let memory = LearnedResponses::default();
    for answer in 0..500 {
        teach(&memory, answer % (ENOUGH_CLIENTS as u32 - 1), JSON);
    }
    assert!(imitated(&memory).is_none());
    teach(&memory, 77, JSON);
    assert!(imitated(&memory).is_some());
}

#[test]
fn a_value_is_repeated_only_after_fifty_responses_to_ten_clients() {
    // Every response has the header; the tested value is sent to few clients, or rarely.
    for (clients, answers, repeated) in [(9, 200, false), (10, 49, false), (10, 50, true)] {
        let memory = LearnedResponses::default();
        for answer in 0..answers {
            teach(&memory, answer % clients, &[("x-plan", "gold")]);
            let odd = [".", "o ", ", x"][answer as usize % 3].repeat(answer as usize + 1);
            teach(&memory, 100 + answer, &[("x-plan", &odd)]);
        }
        let ever = (0..500).any(|_| value(&memory, "x-plan").as_deref() == Some("gold"));
        assert_eq!(ever, repeated, "{clients} clients, {answers} answers");
    }
}

#[test]
fn a_header_with_few_values_gets_one_of_them() {
    let memory = LearnedResponses::default();
    for answer in 0..600 {
        let cache = if answer % 3 == 0 { "MISS" } else { "HIT" };
        teach(&memory, answer % 20, &[("x-cache", cache)]);
    }
    let drawn: Vec<String> = (0..900)
        .map(|_| value(&memory, "x-cache").unwrap())
        .collect();
    let hits = drawn.iter().filter(|value| *value == "HIT").count();
    assert!(drawn.iter().all(|value| value == "HIT" || value == "MISS"));
    assert!((450..750).contains(&hits), "{hits} hits");
}

#[test]
fn the_most_common_header_order_is_imitated() {
    let memory = LearnedResponses::default();
    for _ in 0..3 {
        teach_all(&memory, 50, &[("server", "a"), ("x-b", "1")]);
        teach_all(&memory, 30, &[("x-b", "1"), ("server", "a")]);
        teach_all(&memory, 7, &[("server", "a")]);
    }
    let canned = canned("text/plain", "");
    let response = dressed(&memory, &canned);
    assert_eq!(fields(&response), [("server", "a"), ("x-b", "1")]);
}

#[test]
fn a_constant_that_changes_is_dropped_and_learned_again() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 300, &[("x-version", "41-a")]);
    assert_eq!(value(&memory, "x-version").as_deref(), Some("41-a"));
    teach_all(&memory, 20, &[("x-version", "42-b")]);
    assert_eq!(value(&memory, "x-version"), None);
    assert!(memory.is_curious() && memory.is_curious());
    teach_all(&memory, 30, &[("x-version", "42-b")]);
    assert_eq!(value(&memory, "x-version").as_deref(), Some("42-b"));
}

#[test]
fn one_unusual_response_changes_nothing() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 300, &[("server", "a")]);
    teach(&memory, 1, &[("server", "b")]);
    teach(&memory, 1, &[("x-other", "b")]);
    assert_eq!(value(&memory, "server").as_deref(), Some("a"));
}

#[test]
fn learned_responses_are_still_sampled_occasionally() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 99, JSON);
    assert!((0..100).all(|_| memory.is_curious()));
    teach_all(&memory, 1000, JSON);
    let looks = (0..160).filter(|_| memory.is_curious()).count();
    assert!((20..=21).contains(&looks), "{looks}");
}

#[test]
fn echoed_request_values_are_echoed_again() {
    let memory = LearnedResponses::default();
    for answer in 0..60 {
        let (own, id) = (format!("c-{answer}"), format!("{answer:032x}"));
        let mut request = Request::with(&[("x-correlation-id", &own), ("origin", &own)]);
        request.id = id.clone();
        let fields = [
            ("x-correlation-id", own.as_str()),
            ("access-control-allow-origin", &own),
            ("x-request-id", &id),
        ];
        teach_at(&memory, answer, &request, NOW, &fields);
    }
    let mut request = Request::with(&[("x-correlation-id", "mine"), ("origin", "https://a.test")]);
    request.id = "abcd".to_owned();
    let imitation = imitated_at(&memory, &request, NOW).unwrap();
    let values: Vec<&str> = imitation
        .fields
        .iter()
        .map(|(_, value)| value.as_ref().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(values, ["mine", "https://a.test", "abcd"]);
}

#[test]
fn a_constant_value_is_not_treated_as_an_echo() {
    let memory = LearnedResponses::default();
    let request = Request::with(&[("content-type", "text/plain")]);
    for answer in 0..60 {
        let fields = [("content-type", "text/plain")];
        teach_at(&memory, answer % 12, &request, NOW, &fields);
    }
    let other = Request::with(&[("content-type", "text/evil")]);
    let imitation = imitated_at(&memory, &other, NOW).unwrap();
    let value = imitation.fields[0].1.as_ref().unwrap();
    assert_eq!(value, "text/plain");
}

#[test]
fn the_configured_response_fills_values_that_cannot_be_learned() {
    let memory = LearnedResponses::default();
    for answer in 0..100 {
        let note = ["a b", "c, d; e", "(f)", "g=h i j"][answer % 4].repeat(answer + 1);
        let answer = answer as u32;
        teach(
            &memory,
            answer,
            &[
                ("set-cookie", "id=1"),
                ("x-note", &note),
                ("x-other", &note),
                ("content-type", "application/json"),
            ],
        );
    }
    let mut canned = canned("text/html", "<p>");
    for (name, value) in [("set-cookie", "a=b"), ("x-note", "mine"), ("x-more", "no")] {
        let value = HeaderValue::from_static(value);
        canned.headers.push((
            HeaderName::from_static(name),
            crate::action::HeaderTemplate::Fixed(value),
        ));
    }
    let expected = [
        ("set-cookie", "a=b"),
        ("x-note", "mine"),
        ("content-type", "text/html"),
    ];
    assert_eq!(fields(&dressed(&memory, &canned)), expected);
}

#[test]
fn a_head_request_gets_the_headers_and_no_body() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 60, JSON);
    let mut request = Request::get();
    request.method = Method::HEAD;
    let canned = canned("application/json", "{\"a\":1}");
    let imitation = imitated_at(&memory, &request, NOW).unwrap();
    let response = dress(&request.asked(NOW), &canned, &imitation);
    assert_eq!(response.headers()["content-length"], "7");
    assert!(http_body::Body::is_end_stream(response.body()));
}

#[test]
fn a_compressed_response_goes_only_to_clients_that_accept_it() {
    let memory = LearnedResponses::default();
    let plain = [("content-type", "text/plain"), ("content-length", "3")];
    let coded = [plain[0], ("content-encoding", "gzip"), plain[1]];
    teach_all(&memory, 300, &coded);
    let canned = canned("text/plain", "hello hello hello");
    let answer = |accept: &str| {
        let request = Request::with(&[("accept-encoding", accept)]);
        let imitation = imitated_at(&memory, &request, NOW).unwrap();
        dress(&request.asked(NOW), &canned, &imitation)
    };
    let names = |response: &Response<Body>| -> Vec<String> {
        fields(response)
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect()
    };
    let whole = ["content-type", "content-encoding", "content-length"];
    let response = answer("br, gzip;q=0.8");
    assert_eq!(names(&response), whole);
    let Body::Whole(bytes) = response.into_body() else {
        panic!("no body");
    };
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
    std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
    assert_eq!(text, "hello hello hello");
    for accept in ["br", "gzip;q=0", "gzip; q=0.000", ""] {
        assert_eq!(
            names(&answer(accept)),
            ["content-type", "content-length"],
            "{accept}"
        );
    }
    teach_all(&memory, 60, &plain);
    assert_eq!(names(&answer("br")), ["content-type", "content-length"]);
    assert_eq!(names(&answer("gzip")), whole);
}

#[test]
fn a_drawn_response_time_lies_between_recorded_ones() {
    let memory = LearnedResponses::default();
    teach_all(&memory, 60, JSON);
    for micros in 1..=2000 {
        memory.learn_pace(ResponsePacing::after(Duration::from_micros(1000 + micros)));
    }
    let paces: Vec<ResponsePacing> = (0..200).map(|_| memory.pace().unwrap()).collect();
    // The oldest are forgotten.
    let range = Duration::from_micros(1977)..=Duration::from_micros(3000);
    assert!(paces.iter().all(|pace| range.contains(&pace.head())));
    let mut heads: Vec<_> = paces.iter().map(|pace| pace.head()).collect();
    heads.dedup();
    assert!(heads.len() > 100);
}

#[test]
fn a_body_is_split_like_real_bodies() {
    let mut pace = ResponsePacing::after(Duration::ZERO);
    assert_eq!(pace.pieces(10).next(), Some((10, Duration::ZERO)));
    let at = Duration::from_micros;
    pace.add(43, at(0));
    assert!(pace.is_one());
    pace.add(44, at(250));
    let pace = pace.whole();
    assert!(!pace.is_one());
    let pieces = |length| pace.pieces(length).collect::<Vec<_>>();
    assert_eq!(pieces(87)[..2], [(43, at(0)), (87, at(250))]);
    assert_eq!(pieces(8700)[..2], [(4300, at(0)), (8700, at(250))]);
    assert_eq!(pieces(0)[..2], [(0, at(0)), (0, at(250))]);
    let mut many = ResponsePacing::default();
    for piece in 0..1000 {
        many.add(1, at(piece));
    }
    let many = many.whole();
    let ends: Vec<_> = many.pieces(1000).map(|(end, _)| end).collect();
    assert_eq!(ends, [1, 2, 3, 1000, 1000]);
}
