//! A file that is something else altogether: said once, instead of a mistake a line.

use super::header::Header;
use super::is_pair;
use crate::config::Diagnostics;
use crate::config::source::Part;

/// A text of fewer lines may be the beginning of a configuration.
const FEWEST: usize = 3;

/// Where to begin, for whoever has a configuration of another program.
const TOML: &str = "a configuration is TOML: `[[listeners]]`, and below it `address = \
                    \"0.0.0.0:8443\"`; docs/configuration.md shows all of it";

/// What a file seems to be, and what to do about it.
struct Other {
    what: &'static str,
    help: &'static str,
}

/// Tells what the file is, if no line of it is TOML.
pub(super) fn report(part: &Part<'_>, diagnostics: &mut Diagnostics) -> bool {
    let text = part.text.trim_start_matches('\u{feff}');
    let Some((first, other)) = first_line(text).zip(seems(text)) else {
        return false;
    };
    let at = part.text.find(first).unwrap_or_default() + part.start;
    diagnostics
        .error(at..at + first.len(), other.what)
        .help(other.help);
    true
}

fn seems(text: &str) -> Option<Other> {
    let first = first_line(text)?;
    if let Some(label) = first.strip_prefix("-----BEGIN ") {
        return Some(pem(label));
    }
    let other = |what, help| Some(Other { what, help });
    if first.starts_with('<') {
        return other("this is HTML or XML, not a configuration", TOML);
    }
    if first.starts_with('{') {
        let help = "a configuration is TOML; `lockgate import cloudflare FILE.json` turns a \
                    rulesets export into rules";
        return other("this is JSON, not TOML", help);
    }
    if has_toml(text) || lines(text).take(FEWEST).count() < FEWEST {
        return None;
    }
    if text.starts_with("#!") {
        return other("this is a script, not a configuration", TOML);
    }
    let all = lines(text).count();
    let most = |is: fn(&str) -> bool| lines(text).filter(|line| is(line)).count() * 2 >= all;
    match () {
        () if most(is_braced) => other(
            "this is not TOML: it looks like a configuration of nginx or Caddy",
            TOML,
        ),
        () if lines(text).any(is_proxy) => other(
            "this is not TOML: it looks like a configuration of HAProxy",
            TOML,
        ),
        () if most(is_yaml) => other("this is YAML, not TOML", TOML),
        () => other("no line of this file is TOML", TOML),
    }
}

fn pem(label: &str) -> Other {
    let what = match label {
        label if label.starts_with("CERTIFICATE-") => "this is a certificate, not a configuration",
        label if label.contains("PRIVATE KEY") => "this is a private key, not a configuration",
        _ => "this is a PEM file, not a configuration",
    };
    let help = "a configuration names it: `certificates = [{ cert = \"site.pem\", key = \
                \"site.key\" }]` in `[listeners.tls]`";
    Other { what, help }
}

/// The lines that say something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn first_line(text: &str) -> Option<&str> {
    lines(text).next()
}

/// Whether there is a header, or a key with a value that is no part of another language.
fn has_toml(text: &str) -> bool {
    lines(text).any(|line| Header::is_one(line) || is_pair(line) && !line.ends_with([';', '{']))
}

fn is_braced(line: &str) -> bool {
    line.ends_with([';', '{', '}'])
}

fn is_proxy(line: &str) -> bool {
    let word = line.split_whitespace().next();
    word.is_some_and(|word| ["global", "defaults", "frontend", "backend"].contains(&word))
}

fn is_yaml(line: &str) -> bool {
    line.starts_with("- ") || line.ends_with(':') || line.contains(": ") || line == "---"
}
