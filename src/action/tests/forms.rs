//! Tests of the format of a response.

use super::super::escape::{html_escape, json_escape};
use super::super::format::ResponseFormat::{self, Html, Problem, Text};

/// What clients send, and what they get.
const ACCEPTS: &[(&str, ResponseFormat)] = &[
    ("", Problem),
    ("*/*", Problem),
    ("application/json", Problem),
    ("application/problem+json", Problem),
    ("application/*", Problem),
    ("application/json, text/plain, */*", Problem),
    ("application/json;q=0.5, */*;q=0.1", Problem),
    ("text/html", Html),
    ("TEXT/HTML", Html),
    ("text/*", Html),
    (
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        Html,
    ),
    (
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,\
         */*;q=0.8,application/signed-exchange;v=b3;q=0.7",
        Html,
    ),
    ("text/html, */*; q=0.01", Html),
    ("text/html;level=1", Html),
    ("text/html;charset=utf-8;q=0.9, text/plain;q=0.8", Html),
    ("text/html, */*", Html),
    ("*/*, text/html", Html),
    ("text/plain", Text),
    ("text/plain, text/html", Text),
    ("text/html;q=0.5, text/plain", Text),
    (
        "text/plain;q=0.9,text/html;q=0.8,application/json;q=0.7",
        Text,
    ),
    ("text/*;q=0.5, text/plain;q=0.6", Text),
    ("text/*, text/html;q=0", Text),
    ("text/html;q=0", Problem),
    ("text/html;q=0.5, */*", Problem),
    ("text/html;q=0.2, application/json;q=0.3", Problem),
    (
        "application/json;q=0, application/problem+json;q=0, */*",
        Html,
    ),
    ("application/*;q=0, */*;q=0.1", Html),
    ("text/html;Q=0.1, text/plain;Q=0.2", Text),
    ("text/html;q=nonsense, text/plain;q=0.001", Text),
    ("text/html;q=7, text/plain;q=0.9", Html),
    ("text/html;q=-1, text/plain;q=0.1", Text),
    ("image/png", Problem),
    ("image/png, image/*;q=0.9", Problem),
    ("text", Problem),
    (",,;,/,*", Problem),
    ("text/html2", Problem),
    (" text/html ; q=0.3 , text/plain ; q=0.4 ", Text),
];

#[test]
fn the_format_with_the_highest_accept_quality_is_chosen() {
    for (accept, form) in ACCEPTS {
        assert_eq!(
            ResponseFormat::negotiate(&[accept.as_bytes()]),
            *form,
            "{accept:?}"
        );
    }
}

#[test]
fn missing_and_repeated_accept_headers_are_negotiated() {
    assert_eq!(ResponseFormat::negotiate(&[]), Problem);
    assert_eq!(
        ResponseFormat::negotiate(&[b"image/png", b"text/plain"]),
        Text
    );
    assert_eq!(
        ResponseFormat::negotiate(&[b"text/plain;q=0.1", b"text/html"]),
        Html
    );
    assert_eq!(
        ResponseFormat::negotiate(&[b"text/html\xff, text/plain"]),
        Text
    );
}

#[test]
fn escapes_leave_no_byte_that_could_end_a_value() {
    assert_eq!(
        json_escape("a\"b\\c\n\u{7f}é"),
        "a\\\"b\\\\c\\u000a\\u007fé"
    );
    assert_eq!(
        html_escape("<a href='x'>\"&"),
        "&lt;a href=&#39;x&#39;&gt;&quot;&amp;"
    );
}
