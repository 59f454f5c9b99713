//! The rows of the response table, the endpoint's responses, and the page itself.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use super::*;

const NAVIGATE: (&str, &str) = ("sec-fetch-mode", "navigate");
const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");
const FORM: (&str, &str) = (
    "content-type",
    "application/x-www-form-urlencoded; charset=utf-8",
);

fn then(response: Response<Body>) -> &'static str {
    assert_eq!(
        header(&response, "content-type"),
        Some("text/html; charset=utf-8")
    );
    let page = text(response);
    match (
        page.contains("data-then=\"continue\""),
        page.contains("<form"),
    ) {
        (true, false) => "reload",
        (true, true) => "send the form",
        (false, _) => "go back",
    }
}

#[test]
fn a_navigation_gets_the_page() {
    for fields in [
        &[NAVIGATE][..],
        &[("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")],
        &[("accept", "*/*, TEXT/HTML;q=0.5")],
    ] {
        assert_eq!(then(challenge(&Request::get(fields), b"")), "reload");
    }
    let head = challenge(&Request::new(Method::HEAD, &[NAVIGATE]), b"");
    assert!(header(&head, "content-length").is_some_and(|length| length.len() == 4));
    assert_eq!(text(head), "");
}

#[test]
fn a_form_is_sent_again_and_other_bodies_are_not() {
    let post = |fields: &[(&str, &str)], body| {
        let fields: Vec<_> = [NAVIGATE, OWN_PAGE]
            .into_iter()
            .chain(fields.iter().copied())
            .collect();
        then(challenge(&Request::new(Method::POST, &fields), body))
    };
    assert_eq!(post(&[FORM], b"user=a&user=b"), "send the form");
    assert_eq!(post(&[FORM], b""), "send the form");
    assert_eq!(post(&[FORM], b"user=%ff"), "go back");
    assert_eq!(
        post(&[FORM, ("content-encoding", "gzip")], b"user=a"),
        "go back"
    );
    assert_eq!(
        post(&[("content-type", "multipart/form-data; boundary=x")], b""),
        "go back"
    );
    assert_eq!(post(&[], b"user=a"), "go back");
    let put = Request::new(Method::PUT, &[NAVIGATE, OWN_PAGE, FORM]);
    assert_eq!(then(challenge(&put, b"user=a")), "go back");
    assert_eq!(
        ChallengeAudience::repeating(None),
        ChallengeAudience::OtherBody
    );
}

#[test]
fn the_form_of_a_foreign_page_is_not_sent_again() {
    let sent_by = |page: &[(&str, &str)]| {
        let fields = [&[("accept", "text/html"), FORM], page].concat();
        then(challenge(&Request::new(Method::POST, &fields), b"to=spam"))
    };
    for page in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[("origin", "http://shop.example")],
        &[("origin", "null")],
        &[
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://shop.example"),
        ],
        &[
            ("origin", "https://shop.example"),
            ("origin", "https://evil.example"),
        ],
        &[
            OWN_PAGE,
            ("origin", "https://shop.example"),
            ("origin", "https://shop.example"),
        ],
    ] {
        assert_eq!(sent_by(page), "go back", "{page:?}");
    }
    for page in [
        &[OWN_PAGE][..],
        &[OWN_PAGE, ("origin", "null")],
        &[("origin", "https://shop.example")],
    ] {
        assert_eq!(sent_by(page), "send the form", "{page:?}");
    }
}

#[test]
fn a_program_gets_the_document() {
    let post = Request::new(
        Method::POST,
        &[("sec-fetch-mode", "cors"), ("accept", "text/html"), FORM],
    );
    let requests = [
        Request::get(&[]),
        Request::get(&[("accept", "*/*")]),
        Request::get(&[("accept", "application/json")]),
        Request::get(&[("sec-fetch-mode", "websocket"), ("accept", "text/html")]),
        post,
    ];
    for request in requests {
        let response = challenge(&request, b"user=a");
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            header(&response, "content-type"),
            Some("application/problem+json")
        );
        assert_eq!(header(&response, "content-security-policy"), None);
        let expected = format!(
            "{{\"type\":\"about:blank\",\"title\":\"Too Many Requests\",\"status\":429,\
             \"detail\":\"Solve the challenge, then send the request again.\",\"challenge\":{{\
             \"token\":\"{TOKEN}\",\"salt\":\"AAECAwQFBgcICQoLDA0ODw\",\"iterations\":250,\"bits\":8,\
             \"parts\":8,\"url\":\"/.lockgate/challenge\"}}}}\n"
        );
        assert_eq!(text(response), expected);
    }
    let opening = Request::get(&[NAVIGATE]);
    assert_eq!(
        ChallengeAudience::of(&opening.asked(), true),
        ChallengeAudience::Program
    );
}

#[test]
fn every_challenge_has_the_headers() {
    for fields in [&[NAVIGATE][..], &[]] {
        let response = challenge(&Request::get(fields), b"");
        assert_eq!(header(&response, "cache-control"), Some("no-store"));
        assert_eq!(header(&response, "vary"), Some("Cookie"));
        assert_eq!(header(&response, "x-lockgate-challenge"), Some("required"));
        assert_eq!(header(&response, "retry-after"), Some("42"));
        assert_eq!(header(&response, "access-control-allow-origin"), None);
    }
    let never = challenge_with(&Request::get(&[]), b"", 1, None);
    assert_eq!(header(&never, "retry-after"), None);
}

#[test]
fn a_listed_origin_may_read_the_challenge() {
    let response = challenge(&Request::get(&[("origin", "https://app.example")]), b"");
    let allowed = header(&response, "access-control-allow-origin");
    assert_eq!(allowed, Some("https://app.example"));
    assert_eq!(
        header(&response, "access-control-allow-credentials"),
        Some("true")
    );
    let exposed = header(&response, "access-control-expose-headers");
    assert_eq!(exposed, Some("x-lockgate-challenge, retry-after"));
    let vary: Vec<_> = response.headers().get_all("vary").iter().collect();
    assert_eq!(vary, ["Cookie", "Origin"]);
    let (app, other) = (
        ("origin", "https://app.example"),
        ("origin", "https://other.example"),
    );
    for foreign in [&[other][..], &[app, other], &[app, app]] {
        let response = challenge(&Request::get(foreign), b"");
        let mut names = response.headers().keys();
        assert!(!names.any(|name| name.as_str().starts_with("access-control")));
    }
}

#[test]
fn the_page_allows_exactly_its_own_script_and_style() {
    let response = challenge(&Request::get(&[NAVIGATE]), b"");
    let policy = header(&response, "content-security-policy")
        .unwrap()
        .to_owned();
    assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"));
    assert_eq!(header(&response, "referrer-policy"), Some("same-origin"));
    let page = text(response);
    let inside = |start: &str, end: &str| {
        let (_, rest) = page.split_once(start).unwrap();
        let (inside, after) = rest.split_once(end).unwrap();
        assert!(!after.contains(start), "a second {start}");
        format!(
            "'sha256-{}'",
            BASE64_STANDARD.encode(Sha256::digest(inside))
        )
    };
    let (script, style) = (
        inside("<script>", "</script>"),
        inside("<style>", "</style>"),
    );
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; \
             form-action https:; base-uri 'none'; frame-ancestors 'self'"
        )
    );
}

#[test]
fn the_page_is_small_and_refers_to_nothing_else() {
    let page = text(challenge(&Request::get(&[NAVIGATE]), b""));
    assert!(page.len() <= 6 << 10, "{} bytes", page.len());
    for foreign in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<img", "<link",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(!page.contains("{style}") && !page.contains("{form}") && !page.contains("{challenge}"));
    assert!(page.contains("role=\"status\"") && page.contains("<html lang=\"en\">"));
}

#[test]
fn the_page_says_how_long_it_takes_and_when_to_return() {
    let page = |difficulty, retry_after| {
        let request = Request::get(&[NAVIGATE]);
        text(challenge_with(&request, b"", difficulty, retry_after))
    };
    assert!(page(1, None).contains("reload the page.</p>"));
    assert!(page(2, None).contains("This takes about a second."));
    assert!(page(3, None).contains("This takes a few seconds."));
    for (seconds, wait) in [
        (1, "a second"),
        (90, "90 seconds"),
        (91, "2 minutes"),
        (3_601, "61 minutes"),
        (21_600, "6 hours"),
    ] {
        let sentence = format!("reload the page, or try again in {wait}.</p>");
        assert!(page(1, Some(seconds)).contains(&sentence), "{seconds}");
    }
}

#[test]
fn the_endpoint_describes_each_failure() {
    let cases = [
        (RefusedSolution::ForeignOrigin, 403, "origin"),
        (RefusedSolution::MediaType, 415, "media_type"),
        (RefusedSolution::TooLarge, 413, "length"),
        (RefusedSolution::Malformed, 400, "malformed"),
        (RefusedSolution::Wrong, 403, "wrong"),
        (RefusedSolution::Expired, 403, "expired"),
        (RefusedSolution::Busy, 503, "busy"),
    ];
    for (refused, status, reason) in cases {
        let request = Request::new(Method::POST, &[("origin", "https://app.example")]);
        let response = EndpointResponse::Refused(refused).to_response(&request.asked(), &ORIGINS);
        assert_eq!(response.status(), status);
        assert_eq!(header(&response, "cache-control"), Some("no-store"));
        let retry = (refused == RefusedSolution::Busy).then_some("1");
        assert_eq!(header(&response, "retry-after"), retry);
        let allowed = header(&response, "access-control-allow-origin");
        assert_eq!(allowed, Some("https://app.example"));
        assert!(text(response).contains(&format!("\"reason\":\"{reason}\"")));
    }
}

#[test]
fn the_module_is_public_and_exports_solve() {
    let response = EndpointResponse::Module.to_response(&Request::get(&[]).asked(), &[]);
    assert_eq!(header(&response, "content-type"), Some("text/javascript"));
    assert_eq!(
        header(&response, "cache-control"),
        Some("public, max-age=3600")
    );
    assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
    assert_eq!(
        header(&response, "cross-origin-resource-policy"),
        Some("cross-origin")
    );
    assert!(text(response).contains("export async function solve("));
}

#[test]
fn only_a_listed_origin_gets_a_preflight() {
    let preflight = |origin| {
        let request = Request::new(Method::OPTIONS, &[("origin", origin)]);
        EndpointResponse::Preflight.to_response(&request.asked(), &ORIGINS)
    };
    let response = preflight("https://app.example");
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    for (name, value) in [
        ("access-control-allow-origin", "https://app.example"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "POST"),
        ("access-control-allow-headers", "content-type"),
        ("access-control-max-age", "600"),
        ("vary", "Origin"),
    ] {
        assert_eq!(header(&response, name), Some(value), "{name}");
    }
    assert_eq!(
        preflight("https://other.example").status(),
        StatusCode::FORBIDDEN
    );
}
