//! The functions once more, by definition: bit by bit, step by step, through serde_json.

use std::fmt;
use std::net::IpAddr;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::super::super::json::JsonStep;

/// `regex_replace` and `wildcard_replace` give up beyond this.
const MAX_RESULT: usize = 64 << 10;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The members of an object, repeated names included.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect)
    }
}

/// Repeated names are found in the outermost object alone.
fn json(text: &str, path: &[JsonStep]) -> Option<Value> {
    let whole: Value = serde_json::from_str(text).ok()?;
    if let (Some(JsonStep::Name(name)), Value::Object(_)) = (path.first(), &whole) {
        let Members(members) = serde_json::from_str(text).ok()?;
        let named = members
            .iter()
            .filter(|(other, _)| other.as_bytes() == &**name);
        if named.count() > 1 {
            return None;
        }
    }
    let step = |value: Value, step: &JsonStep| match step {
        JsonStep::Name(name) => value
            .as_object()?
            .get(std::str::from_utf8(name).ok()?)
            .cloned(),
        JsonStep::At(at) => value.as_array()?.get(*at).cloned(),
    };
    path.iter().try_fold(whole, step)
}

pub(in super::super) fn json_text(text: &str, path: &[JsonStep]) -> Option<String> {
    json(text, path)?.as_str().map(str::to_owned)
}

pub(in super::super) fn json_int(text: &str, path: &[JsonStep]) -> Option<i64> {
    json(text, path)?.as_i64()
}

pub(super) fn jwt_claim(token: &[u8], path: &[JsonStep]) -> Option<Vec<u8>> {
    let token = std::str::from_utf8(token).ok()?;
    let token = match token.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case("bearer ") => token[7..].trim_start(),
        _ => token,
    };
    let parts: Vec<&str> = token.split('.').collect();
    let [_, claims, _] = parts.as_slice() else {
        return None;
    };
    let claims = String::from_utf8(decode_base64(claims.as_bytes())?).ok()?;
    match json(&claims, path)? {
        Value::String(text) => Some(text.into_bytes()),
        Value::Bool(value) => Some(value.to_string().into_bytes()),
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            Some(number.to_string().into_bytes())
        }
        _ => None,
    }
}

pub(in super::super) fn encode(bytes: &[u8], url: bool, padded: bool) -> String {
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let digit = |six: &[u8]| {
        let value = (0..6).fold(0, |sum, at| sum << 1 | six.get(at).copied().unwrap_or(0));
        match STANDARD[usize::from(value)] {
            b'+' if url => '-',
            b'/' if url => '_',
            byte => char::from(byte),
        }
    };
    let mut text: String = bits.chunks(6).map(digit).collect();
    while padded && !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) || digits.len() % 4 == 1 {
        return None;
    }
    let mut bits = Vec::new();
    for c in digits.chars() {
        let c = match c {
            '-' => '+',
            '_' => '/',
            c => c,
        };
        let value = STANDARD.iter().position(|digit| char::from(*digit) == c)?;
        bits.extend((0..6).rev().map(|bit| (value >> bit & 1) as u8));
    }
    let whole = bits.chunks_exact(8);
    Some(
        whole
            .map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit))
            .collect(),
    )
}

pub(super) fn url_decode(value: &[u8], options: Option<Vec<u8>>) -> Vec<u8> {
    let options = options.unwrap_or_default();
    let layers = if options.contains(&b'r') { 16 } else { 1 };
    (0..layers).fold(value.to_vec(), |value, _| {
        layer(&value, options.contains(&b'u'))
    })
}

fn layer(value: &[u8], unicode: bool) -> Vec<u8> {
    let pattern = if unicode {
        r"(?-u)\+|%[0-9A-Fa-f]{2}|%[uU][0-9A-Fa-f]{4}"
    } else {
        r"(?-u)\+|%[0-9A-Fa-f]{2}"
    };
    let regex = regex::bytes::Regex::new(pattern).unwrap();
    let decoded = regex.replace_all(value, |found: &regex::bytes::Captures<'_>| {
        let text = std::str::from_utf8(&found[0]).unwrap();
        let number = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
        match text.len() {
            1 => b" ".to_vec(),
            3 => vec![number(&text[1..]) as u8],
            _ => match char::from_u32(number(&text[2..])) {
                Some(c) => c.to_string().into_bytes(),
                None => text.as_bytes().to_vec(),
            },
        }
    });
    decoded.into_owned()
}

pub(super) fn regex_replace(value: &[u8], pattern: &[u8], with: &[u8]) -> Vec<u8> {
    let regex = regex::bytes::Regex::new(std::str::from_utf8(pattern).unwrap()).unwrap();
    // The regex crate's own templates know `${1}` and `$$` too.
    let out = regex.replacen(value, 1, with).into_owned();
    assert!(out.len() <= MAX_RESULT);
    out
}

pub(super) fn wildcard_replace(
    value: &[u8],
    pattern: &[u8],
    with: &[u8],
    ignore_case: bool,
) -> Vec<u8> {
    let pattern = std::str::from_utf8(pattern).unwrap();
    let lazy: Vec<String> = pattern.split('*').map(regex::escape).collect();
    let flags = if ignore_case { "(?is-u)" } else { "(?s-u)" };
    let regex = regex::bytes::Regex::new(&format!("{flags}^{}$", lazy.join("(.*?)"))).unwrap();
    regex.replacen(value, 1, with).into_owned()
}

pub(super) fn split(value: &[u8], separator: &[u8], limit: usize) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut rest = value;
    while parts.len() + 1 < limit {
        let Some(at) = rest
            .windows(separator.len())
            .position(|part| part == separator)
        else {
            break;
        };
        parts.push(rest[..at].to_vec());
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest.to_vec());
    parts
}

pub(super) fn network(ip: IpAddr, v4: u8, v6: u8) -> IpAddr {
    let prefix = if ip.is_ipv4() { v4 } else { v6 };
    ipnet::IpNet::new(ip, prefix).unwrap().network()
}
