//! Warnings about written values that a field never has: `"de"` for a country, `"login"` for a path.

use super::{LintCode, ParsedExpr, Warnings};
use crate::config::scalar::warn_of_host_bits;
use crate::expr::{GivenValue, TestOutline, TestRelation, WrittenValue};
use crate::facts::fields::{self, ValueFormat};
use crate::facts::path;

/// A description of the field's values, and the written value in that format. `None` if it cannot
/// be converted.
type Form = (&'static str, Option<String>);

const NORMAL: &str = "paths are compared in normalized form";
const SLASH: &str = "a path starts with `/`";

/// Warns of comparisons with values that a field never has.
pub(super) fn warn(parsed: &ParsedExpr<'_>, warnings: &mut Warnings<'_>) {
    for leaf in parsed.outline.leaves() {
        for given in &leaf.values {
            network(given, parsed, warnings);
            value(leaf, given, parsed, warnings);
        }
    }
}

/// Warns of a network that is written with the address of one of its hosts.
fn network(given: &WrittenValue, parsed: &ParsedExpr<'_>, warnings: &mut Warnings<'_>) {
    let written = parsed.text.value.get(given.span.clone());
    let network = written.and_then(|text| text.trim().parse().ok());
    if let Some(network) = network {
        let span = parsed.text.inner(warnings.source, given.span.clone());
        warn_of_host_bits(network, &span, warnings.out);
    }
}

fn value(
    leaf: &TestOutline,
    given: &WrittenValue,
    parsed: &ParsedExpr<'_>,
    warnings: &mut Warnings<'_>,
) {
    let Some(field) = leaf.subject.plain_each().and_then(fields::find) else {
        return;
    };
    let field = fields::by_id(field);
    let equals = matches!(
        leaf.relation,
        TestRelation::Eq | TestRelation::Ne | TestRelation::In
    );
    let never = format!("`{}` never has this value:", field.name);
    let (code, message, help) = match (&given.value, field.format) {
        (GivenValue::Ints(from, to), ValueFormat::Number(low, high))
            if equals && (*to < low || high < *from) =>
        {
            let message = format!("{never} its range is {low} to {high}");
            (LintCode::ImpossibleValue, message, None)
        }
        (GivenValue::Text(text), ValueFormat::Header)
            if text.is_empty() && matches!(leaf.relation, TestRelation::Eq | TestRelation::In) =>
        {
            let name = field.name;
            let message = format!("`{name}` is missing, not empty, if the header was not sent");
            let help = format!("`not len({name}) gt 0` matches both");
            (LintCode::MissingValue, message, Some(help))
        }
        (GivenValue::Text(bytes), format) => {
            let text = String::from_utf8_lossy(bytes);
            let (what, right) = match leaf.relation {
                _ if equals => form(format, &text),
                _ if format == ValueFormat::Path => part_of_path(&leaf.relation, &text),
                _ => return,
            };
            if right.as_deref() == Some(&*text) {
                return;
            }
            let help = right.map(|right| format!("write `\"{right}\"`"));
            (LintCode::ImpossibleValue, format!("{never} {what}"), help)
        }
        _ => return,
    };
    let warning = warnings.within(code, parsed.text, given.span.clone(), message);
    warning.help.extend(help);
}

/// Returns the format of a whole value.
fn form(format: ValueFormat, text: &str) -> Form {
    let lower = text.to_ascii_lowercase();
    let upper = text.to_ascii_uppercase();
    let if_right = |right: bool| right.then(|| text.to_owned());
    match format {
        ValueFormat::Any | ValueFormat::Header | ValueFormat::Number(..) => ("", if_right(true)),
        ValueFormat::Method => ("methods are in upper case", Some(upper)),
        ValueFormat::Version => version(text),
        ValueFormat::FullUri => {
            let known = text.starts_with("https://") || text.starts_with("http://");
            ("it starts with `https://` or `http://`", if_right(known))
        }
        ValueFormat::Uri => {
            let path = text.split('?').next().unwrap_or_default();
            let (what, right) = whole_path(path);
            (what, if_right(right.as_deref() == Some(path)))
        }
        ValueFormat::Path => whole_path(text),
        ValueFormat::Extension => {
            let last = lower.rsplit('.').next().unwrap_or_default();
            ("it has no dot and is in lower case", Some(last.to_owned()))
        }
        ValueFormat::HeaderName => ("header names are in lower case", Some(lower)),
        ValueFormat::MediaType => {
            let bare = lower.split(';').next().unwrap_or_default().trim();
            let what = "it is in lower case, without parameters";
            (what, Some(bare.to_owned()))
        }
        ValueFormat::Host => host(text),
        ValueFormat::Country => {
            let two = text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphanumeric());
            let what = "a country is two capital letters (ISO 3166-1)";
            (what, Some(upper).filter(|_| two))
        }
        ValueFormat::Continent => {
            let known = ["AF", "AN", "AS", "EU", "NA", "OC", "SA"].contains(&&*upper);
            let what = "a continent is AF, AN, AS, EU, NA, OC or SA";
            (what, Some(upper).filter(|_| known))
        }
        ValueFormat::TlsVersion
        | ValueFormat::Cipher
        | ValueFormat::Alpn
        | ValueFormat::Ja3
        | ValueFormat::Ja4 => tls_form(format, text),
    }
}

fn tls_form(format: ValueFormat, text: &str) -> Form {
    let hex = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    let if_right = |right: bool| right.then(|| text.to_owned());
    match format {
        ValueFormat::TlsVersion => {
            let mut known = ["TLSv1.2", "TLSv1.3"].into_iter();
            let near = known.find(|known| text.ends_with(known.trim_start_matches("TLSv")));
            ("it is `TLSv1.2` or `TLSv1.3`", near.map(str::to_owned))
        }
        ValueFormat::Cipher => {
            // Cloudflare uses OpenSSL's names.
            let what = "ciphers have IANA names, such as `TLS_AES_128_GCM_SHA256`";
            (what, if_right(text.starts_with("TLS")))
        }
        ValueFormat::Alpn => {
            let known = ["h2", "http/1.1", "http/1.0"].contains(&text);
            ("it is `h2`, `http/1.1` or `http/1.0`", if_right(known))
        }
        ValueFormat::Ja3 => {
            let what = "a JA3 is 32 hexadecimal digits in lower case";
            let lower = text.to_ascii_lowercase();
            (what, Some(lower).filter(|_| hex(text, 32)))
        }
        ValueFormat::Ja4 => {
            let shaped = match text.split('_').collect::<Vec<_>>().as_slice() {
                [a, b, c] => a.len() == 10 && a.starts_with('t') && hex(b, 12) && hex(c, 12),
                _ => false,
            };
            let what = "a JA4 over TCP looks like `t13d1516h2_8daaf6152771_02713d6af862`";
            (what, if_right(shaped))
        }
        _ => ("", if_right(true)),
    }
}

fn version(text: &str) -> Form {
    let number = |version: &str| {
        let number = version.trim_start_matches("HTTP/");
        number.trim_end_matches(".0").to_owned()
    };
    let mut known = ["HTTP/1.0", "HTTP/1.1", "HTTP/2"].into_iter();
    let near = known.find(|known| number(known) == number(text));
    let what = "it is `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`";
    (what, near.map(str::to_owned))
}

fn host(text: &str) -> Form {
    if text.contains('*') {
        return ("`*` is a pattern only after `wildcard`", None);
    }
    let bare = text.split("://").last().unwrap_or(text);
    let bare = bare.split('/').next().unwrap_or(bare);
    let port = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let bare = match bare.rsplit_once(':') {
        Some((name, rest)) if port(rest) && !name.ends_with(':') => name,
        _ => bare,
    };
    let clean = bare.trim_end_matches('.').to_ascii_lowercase();
    let what = "a host is in lower case, without scheme, port and trailing dot";
    (what, Some(clean))
}

fn whole_path(text: &str) -> Form {
    if let Some((path, _)) = text.split_once('?') {
        return ("the query is not part of it", Some(path.to_owned()));
    }
    if text == "*" {
        return (NORMAL, Some(text.to_owned()));
    }
    if !text.starts_with('/') {
        return (SLASH, Some(format!("/{text}")));
    }
    match path::normalise(text) {
        Ok(normal) => (NORMAL, Some(normal.into_owned())),
        Err(_) => ("the gateway rejects such a path with 400", None),
    }
}

/// Returns the format of the start of a path, of a pattern, or of another part of a path.
fn part_of_path(relation: &TestRelation, text: &str) -> Form {
    let begins = *relation == TestRelation::StartsWith;
    let pattern = matches!(
        relation,
        TestRelation::Wildcard | TestRelation::StrictWildcard
    );
    let part = matches!(relation, TestRelation::Contains | TestRelation::EndsWith);
    let right = Some(text.to_owned());
    if !begins && !pattern && !part {
        return ("", right);
    }
    if text.contains('?') {
        return if begins {
            whole_path(text)
        } else {
            let what = "the query is not part of it; `http.request.uri` has both";
            (what, None)
        };
    }
    let open = text.is_empty() || text.starts_with('/');
    if begins && !open || pattern && !open && !text.starts_with(['*', '\\']) {
        return (SLASH, Some(format!("/{text}")));
    }
    if begins && ["//", "/./", "/../"].iter().any(|part| text.contains(part)) {
        return (NORMAL, None);
    }
    // The path may continue a truncated escape.
    let normal = path::normalise(text).ok();
    match normal.filter(|_| begins && text.contains('%')) {
        Some(normal) => (NORMAL, Some(normal.into_owned())),
        None => ("", right),
    }
}
