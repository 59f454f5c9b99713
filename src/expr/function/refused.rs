//! Functions of Cloudflare's that do not exist here, with the nearest thing that works.

/// Name and nearest thing.
#[rustfmt::skip] // a row a line
const ROWS: &[(&str, &str)] = &[
    ("bit_slice", "a test of `ip.src`: the gateway sees requests, not packets"),
    ("encode_base64", "compare `decode_base64(…)` of the other side"),
    ("is_timed_hmac_valid_v0", "`jwt_claim(…)` reads a token, but let the origin verify it"),
    ("remove_query_args", "`http.request.uri.args[\"name\"]`, or `regex_replace` of `http.request.uri.query`"),
    ("sha256", "compare the value itself"),
    ("uuidv4", "`http.request.id`"),
];

/// The nearest thing to the function called `name`; `None`: Cloudflare has no such function.
pub(in super::super) fn nearest(name: &str) -> Option<&'static str> {
    let row = ROWS.iter().find(|(row, _)| *row == name);
    row.map(|(_, nearest)| *nearest)
}
