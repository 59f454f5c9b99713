//! Any bytes as a ClientHello: fingerprints have their shape and do not depend on how the message
//! is cut into records.

use lockgate::fingerprint::{self, ClientHelloError, Fingerprint, MAX_RAW};

/// The most that a record may carry (RFC 8446, section 5.1).
const RECORD: usize = 1 << 14;

/// Takes the first two bytes for the cutting, the rest for records and for a message's body.
pub fn client_hello(data: &[u8]) {
    let [first, second, rest @ ..] = data else {
        return;
    };
    let sizes = [usize::from(*first) + 1, usize::from(*second) + 1];
    if let Ok(found) = fingerprint::of_records(rest) {
        check(&found);
        let message = fingerprint::client_hello(rest).expect("it was read");
        cut_alike(&message, sizes);
    }
    let mut message = vec![1];
    message.extend(&u32::try_from(rest.len()).unwrap_or(0).to_be_bytes()[1..]);
    message.extend(rest);
    cut_alike(&message, sizes);
}

/// One record or many, with more behind it: the same. Less than all of it: incomplete.
fn cut_alike(message: &[u8], sizes: [usize; 2]) {
    let whole = records(message, &[RECORD]);
    let many = records(message, &sizes);
    let found = fingerprint::of_records(&whole);
    assert_eq!(fingerprint::of_records(&many), found);
    assert_eq!(
        fingerprint::of_records(&[&many, &b"more"[..]].concat()),
        found
    );
    if let Ok(found) = &found {
        check(found);
        assert_eq!(found.length, message.len());
    }
    for end in [0, sizes[0], many.len() / 2, many.len().saturating_sub(1)] {
        let part = &many[..end.min(many.len().saturating_sub(1))];
        assert_eq!(
            fingerprint::of_records(part),
            Err(ClientHelloError::Incomplete)
        );
    }
}

fn records(message: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut sizes = sizes.iter().cycle();
    let mut rest = message;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let size = sizes.next().map_or(RECORD, |size| rest.len().min(*size));
        let (piece, after) = rest.split_at(size);
        records.extend([22, 3, 1]);
        records.extend(u16::try_from(size).unwrap_or(0).to_be_bytes());
        records.extend(piece);
        rest = after;
    }
    records
}

fn check(found: &Fingerprint) {
    let parts: Vec<&str> = found.ja4.split('_').collect();
    assert_eq!(
        parts.iter().map(|p| p.len()).collect::<Vec<_>>(),
        [10, 12, 12],
        "{found:?}"
    );
    assert!(
        parts[0].bytes().all(|b| b.is_ascii_alphanumeric()),
        "{found:?}"
    );
    assert!(parts[0].starts_with('t'), "{found:?}");
    let hashes = [parts[1], parts[2], &found.ja3];
    assert!(hashes.iter().all(|hash| is_hex(hash)), "{found:?}");
    assert_eq!(found.ja3.len(), 32);
    let digit = |b: u8| b.is_ascii_digit() || matches!(b, b',' | b'-');
    assert!(found.ja3_raw.bytes().all(digit), "{found:?}");
    let commas = found.ja3_raw.matches(',').count();
    assert!(commas == 4 || found.ja3_raw.len() == MAX_RAW, "{found:?}");
    assert!(found.ja3_raw.len() <= MAX_RAW);
    if found.sni.is_some() {
        assert_eq!(parts[0].as_bytes()[3], b'd');
    }
}

fn is_hex(text: &str) -> bool {
    let hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    text.bytes().all(hex)
}
