//! `{{…}}` in configured bodies.

use http::{HeaderValue, StatusCode};

use super::super::{RefusingRule, ResponseTemplate, Template, block};
use super::{Request, text};

#[test]
fn values_are_filled_in() {
    let cases = [
        ("plain", "plain"),
        ("", ""),
        ("{{now}}", "2023-11-14T22:14:00.000Z"),
        ("{{ now }}", "2023-11-14T22:14:00.000Z"),
        ("<{{request.id}}>", "<00ff>"),
        ("{{rule}}{{rule}}", "login-stuffinglogin-stuffing"),
        ("wait {{retry_after}} s", "wait 42 s"),
        ("{{int 7 7}}", "7"),
        ("{{int -3 -3}}", "-3"),
        ("{{hex 0}}", ""),
        ("{ {} }}", "{ {} }}"),
    ];
    for (template, expected) in cases {
        assert_eq!(fill(template, "text/plain"), expected, "{template}");
    }
}

#[test]
fn random_values_have_their_shape() {
    for _ in 0..200 {
        let uuid = fill("{{uuid}}", "text/plain");
        let dashes: Vec<usize> = uuid.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((uuid.len(), dashes), (36, vec![8, 13, 18, 23]), "{uuid}");
        // Version 4, variant 10 (RFC 9562, 4.1 and 4.2).
        assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
        let hex = fill("{{hex 40}}", "text/plain");
        assert_eq!(hex.len(), 40);
        assert!(hex.bytes().all(|b| b"0123456789abcdef".contains(&b)));
        let int: i64 = fill("{{int 1 6}}", "text/plain").parse().unwrap();
        assert!((1..=6).contains(&int));
    }
    assert_ne!(
        fill("{{uuid}}", "text/plain"),
        fill("{{uuid}}", "text/plain")
    );
    let extreme = format!("{{{{int {} {}}}}}", i64::MIN, i64::MAX);
    assert!(fill(&extreme, "text/plain").parse::<i64>().is_ok());
}

#[test]
fn values_are_escaped_for_their_content_type() {
    let rule = "a\"<b>&\\";
    let cases = [
        ("application/json", "a\\\"<b>&\\\\"),
        ("application/problem+json; charset=utf-8", "a\\\"<b>&\\\\"),
        ("Application/JSON", "a\\\"<b>&\\\\"),
        ("text/html", "a&quot;&lt;b&gt;&amp;\\"),
        ("Text/HTML; charset=utf-8", "a&quot;&lt;b&gt;&amp;\\"),
        ("application/xhtml+xml", "a&quot;&lt;b&gt;&amp;\\"),
        ("image/svg+xml", "a&quot;&lt;b&gt;&amp;\\"),
        ("text/plain", "a\"<b>&\\"),
        ("text/plain; charset=json", "a\"<b>&\\"),
        ("application/x-ndjson", "a\\\"<b>&\\\\"),
        ("text/csv", "a\"\"<b>&\\"),
        ("text/javascript", "a\\u0022\\u003cb\\u003e\\u0026\\\\"),
    ];
    for (content_type, expected) in cases {
        let filled = fill_for(rule, "{{rule}}<i>", content_type);
        assert_eq!(filled, format!("{expected}<i>"), "{content_type}");
    }
}

#[test]
fn template_errors_have_a_span() {
    const HEX: &str = "`hex` takes a number of digits up to 255, as in `{{hex 16}}`";
    const INT: &str = "`int` takes two whole numbers, the lower one first, as in `{{int 1 1000}}`";
    let cases = [
        ("a {{nope}} b", 2..10, "unknown template value `nope`"),
        ("{{}}", 0..4, "unknown template value ``"),
        ("é{{ x }}", 2..9, "unknown template value `x`"),
        ("{{now}} {{hex}}", 8..15, HEX),
        ("{{hex 256}}", 0..11, HEX),
        ("{{hex -1}}", 0..10, HEX),
        ("{{hex 1 2}}", 0..11, HEX),
        ("{{int 5}}", 0..9, INT),
        ("{{int 5 4}}", 0..11, INT),
        ("{{int 0 9223372036854775808}}", 0..29, INT),
        ("{{int 1 2 3}}", 0..13, INT),
        (
            "{{now now}}",
            0..11,
            "`now` takes no arguments, as in `{{now}}`",
        ),
        ("{{now}} and {{uuid", 12..14, "`{{` without `}}`"),
    ];
    for (template, span, message) in cases {
        let error = Template::parse(template).unwrap_err();
        assert_eq!((error.span, error.message.as_str()), (span, message));
    }
}

#[test]
fn a_template_that_names_the_rule_or_a_wait_is_detected() {
    let tells = |template| Template::parse(template).unwrap().names_rule_or_wait();
    assert!(tells("{{rule}}") && tells("wait {{ retry_after }}"));
    assert!(!tells("{{uuid}} {{now}} {{request.id}} rule retry_after"));
}

fn fill(template: &str, content_type: &'static str) -> String {
    fill_for("login-stuffing", template, content_type)
}

fn fill_for(rule: &str, template: &str, content_type: &'static str) -> String {
    let canned = ResponseTemplate {
        status: StatusCode::OK,
        content_type: HeaderValue::from_static(content_type),
        headers: Vec::new(),
        body: Template::parse(template).unwrap(),
        html: None,
        json: None,
        imitate: false,
    };
    let refused = RefusingRule {
        rule,
        response: Some(&canned),
        retry_after: Some(42),
    };
    text(block(&Request::get(&[]).asked(), &refused))
}
