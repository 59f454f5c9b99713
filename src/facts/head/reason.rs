//! Why a request head is refused, in words.

use super::Malformed;
use crate::facts::path::Bad;

// === impl Malformed ===

impl Malformed {
    /// What is wrong, in one sentence without a full stop.
    pub const fn reason(self) -> &'static str {
        match self {
            Malformed::Version => "the version is none that the gateway speaks",
            Malformed::Connect => "CONNECT is for proxies",
            Malformed::Protocol => "CONNECT is for a protocol that the gateway does not know",
            Malformed::Target => "the target is not a path, or has a character that needs escaping",
            Malformed::Host => "the host is missing, doubled or not a name or an address",
            Malformed::Authority => "`Host` is not the host of the target",
            Malformed::ContentLength => "`Content-Length` is doubled or not a number",
            Malformed::TransferEncoding => "`Transfer-Encoding` is not exactly `chunked`",
            Malformed::UnknownCoding => "the transfer coding is unknown",
            Malformed::Framing => "`Content-Length` and `Transfer-Encoding` exclude each other",
            Malformed::TooManyFields => "there are more header fields than `limits.max_headers`",
            Malformed::FieldValue => "a header field has a control character",
            Malformed::Padding => "a header field begins or ends with white space",
            Malformed::Twin => "a header field looks like one that the gateway vouches for",
            Malformed::ConnectionField => "a header field about the connection, in HTTP/2",
            Malformed::Path(bad) => bad.reason(),
            Malformed::Query => "the query has a space or a control character",
        }
    }
}

// === impl Bad ===

impl Bad {
    const fn reason(self) -> &'static str {
        match self {
            Bad::Relative => "the path does not start with `/`",
            Bad::Escape => "the path has a `%` without two hexadecimal digits",
            Bad::Nul => "the path has `%00`",
            Bad::Control => "the path has a space or a control character",
            Bad::Backslash => "the path has a `\\`, which some origins take for `/`",
            Bad::Delimiter => "the path has a `?` or `#`",
            Bad::HiddenDots => "the path hides a dot segment, such as `..%2f`",
            Bad::Nameless => "the path has a segment of parameters alone, such as `/;a/b`",
        }
    }
}
