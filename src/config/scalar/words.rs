//! Words that users of other gateways write for ours.

/// Ours, and what is written for it elsewhere: nginx, HAProxy, Caddy, Traefik, Envoy, Cloudflare,
/// syslog. A word counts only where ours is one of those to choose from.
const ROWS: &[(&str, &str)] = &[
    // Balance.
    (
        "least_requests",
        "least_conn leastconn least_connections least_connection least_request least",
    ),
    ("round_robin", "roundrobin rr wrr weighted static_rr"),
    (
        "p2c",
        "random random_choose two_choices power_of_two default",
    ),
    (
        "hash",
        "ip_hash source consistent consistent_hash maglev ring_hash sticky uri_hash cookie",
    ),
    // Action.
    (
        "block",
        "deny reject ban refuse limit throttle rate_limit ratelimit forbid forbidden 429 challenge \
         js_challenge managed_challenge captcha",
    ),
    (
        "allow",
        "pass accept permit skip bypass whitelist allowlist ok",
    ),
    ("close", "drop silent_drop reset abort 444"),
    ("shadow", "fake honeypot deceive lie 200"),
    ("log", "monitor observe report count simulate detect alert"),
    ("delay", "slow queue wait"),
    ("divert", "proxy redirect route forward"),
    // Level and format of the log.
    ("warn", "warning"),
    ("error", "err crit critical alert emerg fatal panic"),
    ("info", "notice information informational normal"),
    ("debug", "verbose all"),
    ("text", "plain console common combined logfmt human"),
    // Algorithm.
    ("sliding_window", "sliding rolling rolling_window"),
    ("fixed_window", "fixed window"),
    ("token_bucket", "token bucket tokens"),
    ("leaky_bucket", "leaky"),
    (
        "concurrency",
        "concurrent connections conn in_flight inflight",
    ),
    // Protocols, versions and client certificates.
    ("h2", "http2 http/2 http/2.0 h2c grpc"),
    (
        "http/1.1",
        "http1 http/1 http1.1 http/1.0 http h1 https 1.1",
    ),
    ("1.2", "tlsv1.2 tls1.2 tls12 tls_1.2 tls1_2 versiontls12"),
    ("1.3", "tlsv1.3 tls1.3 tls13 tls_1.3 tls1_3 versiontls13"),
    (
        "required",
        "require mandatory on verify requireandverifyclientcert",
    ),
    ("optional", "request optional_no_ca verifyclientcertifgiven"),
    // The rest.
    ("memory", "mem ram local in_memory inmemory"),
    ("skip", "ignore exclude"),
    ("group", "shared together"),
    ("none", "off no false never disabled"),
    ("standard", "draft ietf on yes true"),
    ("legacy", "x_ratelimit x_rate_limit old"),
    ("raw", "original unchanged as_is"),
];

/// The word of `known` that `written` stands for.
pub(super) fn meant(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let written = written.to_lowercase().replace(['-', ' '], "_");
    let row = ROWS.iter().find(|(ours, theirs)| {
        known.contains(ours) && theirs.split_whitespace().any(|word| word == written)
    });
    row.map(|(ours, _)| *ours)
}

#[cfg(test)]
mod tests {
    use super::{ROWS, meant};
    use crate::config::schema::{self, Shape, Table};

    /// The words of every choice.
    fn choices() -> Vec<Vec<&'static str>> {
        let mut found = Vec::new();
        collect(&schema::root(), &mut found);
        found
    }

    fn collect(table: &Table, found: &mut Vec<Vec<&'static str>>) {
        let names = table.names.iter().flat_map(|names| &names.shapes);
        let keys = table.keys.iter().map(|key| &key.shape);
        keys.chain(names).for_each(|shape| within(shape, found));
    }

    fn within(shape: &Shape, found: &mut Vec<Vec<&'static str>>) {
        match shape {
            Shape::Words(words) => found.push(words.clone()),
            Shape::Table(table) => collect(table, found),
            Shape::List { item, .. } => within(item, found),
            Shape::Either(all) => all.iter().for_each(|shape| within(shape, found)),
            _ => {}
        }
    }

    #[test]
    fn every_word_of_ours_can_be_chosen_and_none_of_theirs_beside_it() {
        let choices = choices();
        for (ours, theirs) in ROWS {
            let mut own = choices
                .iter()
                .filter(|words| words.contains(ours))
                .peekable();
            assert!(own.peek().is_some(), "nowhere is `{ours}` to choose");
            for words in own {
                for word in theirs.split_whitespace() {
                    assert!(!words.contains(&word), "`{word}` is beside `{ours}`");
                    assert_eq!(meant(word, words), Some(*ours), "{word}");
                }
            }
        }
    }

    #[test]
    fn a_word_is_known_only_where_it_has_a_meaning() {
        assert_eq!(
            meant("Least-Conn", &["p2c", "least_requests"]),
            Some("least_requests")
        );
        assert_eq!(meant("least_conn", &["block", "log"]), None);
        assert_eq!(meant("flavour", &["block", "log"]), None);
    }
}
