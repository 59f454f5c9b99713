//! Underscore twins: `x_forwarded_for` is `x-forwarded-for` to an origin that turns both into
//! `HTTP_X_FORWARDED_FOR`, so a client could set what the gateway vouches for.

/// Fields about who the client is or where a message ends.
const FIELDS: &[&str] = &[
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "client-ip",
    "connection",
    "content-length",
    "fastly-client-ip",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-real-ip",
    "x-rewrite-url",
];

/// Families of such fields.
const FAMILIES: &[&str] = &["x-forwarded-", "x-lockgate-", "x-original-"];

/// Whether `name`, in lower case, is another spelling of a field that the gateway vouches for.
pub fn is_twin(name: &str) -> bool {
    name.contains('_') && is_guarded(name)
}

fn is_guarded(name: &str) -> bool {
    FIELDS
        .iter()
        .any(|field| field.len() == name.len() && begins(name, field))
        || FAMILIES.iter().any(|family| begins(name, family))
}

fn begins(name: &str, with: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || (a == b'_' && b == b'-');
    name.len() >= with.len() && name.bytes().zip(with.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::is_twin;

    #[test]
    fn other_spellings_are_found() {
        for name in [
            "x_forwarded_for",
            "x-forwarded_for",
            "x_forwarded-proto",
            "x_forwarded_host",
            "x_real_ip",
            "x_lockgate_rule",
            "x_original_url",
            "x_rewrite_url",
            "transfer_encoding",
            "content_length",
            "keep_alive",
        ] {
            assert!(is_twin(name), "{name}");
        }
    }

    #[test]
    fn the_fields_themselves_and_strangers_are_not_twins() {
        for name in [
            "x-forwarded-for",
            "x-real-ip",
            "forwarded",
            "my_header",
            "x_forwarded",
            "content_type",
            "_",
        ] {
            assert!(!is_twin(name), "{name}");
        }
    }
}
