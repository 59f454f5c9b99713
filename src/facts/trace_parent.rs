//! The trace that a request belongs to (W3C Trace Context).

use http::HeaderMap;

/// The length of a trace id, in hexadecimal digits.
const TRACE_ID: usize = 32;

/// Returns the trace id in `traceparent`, such as `4bf92f3577b34da6a3ce929d0e0e4736`. `None` unless there is exactly
/// one valid header.
pub fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all("traceparent").iter();
    let (line, None) = (lines.next()?, lines.next()) else {
        return None;
    };
    let mut parts = line.to_str().ok()?.split('-');
    let version = parts
        .next()
        .filter(|text| is_hex(text, 2) && *text != "ff")?;
    let trace = parts.next().filter(|text| is_id(text, TRACE_ID))?;
    parts.next().filter(|text| is_id(text, 16))?;
    parts.next().filter(|text| is_hex(text, 2))?;
    // Only later versions may have more parts.
    (version != "00" || parts.next().is_none()).then_some(trace)
}

fn is_hex(text: &str, length: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == length && text.bytes().all(is_digit)
}

/// Returns whether `text` is an id: not all zeros.
fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(lines: &[&'static str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("traceparent", HeaderValue::from_static(line));
        }
        trace_id(&headers).map(str::to_owned)
    }

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_header_names_its_trace() {
        let wanted = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
        assert_eq!(of(&[VALID]), wanted);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-else";
        assert_eq!(of(&[later]), wanted);
    }

    #[test]
    fn an_invalid_header_names_none() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(of(&[wrong]), None, "{wrong}");
        }
        assert_eq!(of(&[VALID, VALID]), None);
        assert_eq!(of(&[]), None);
    }
}
