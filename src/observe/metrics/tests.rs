//! The metrics text, checked by a small parser of the exposition format.

use super::*;
use http::Method;
use std::collections::HashMap;
use std::time::Duration;

const RULE_COUNT: &str = "lockgate_rule_count";
const RULE_TOTAL: &str = "lockgate_rule_total";

/// Parses Prometheus text into series and values. Panics on an invalid line, on a sample without its type,
/// and on a repeated name or series.
fn parsed(text: &str) -> HashMap<String, f64> {
    let (mut series, mut types) = (HashMap::new(), HashMap::new());
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty(), "{line}");
            family = name.into();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, family, "TYPE follows its HELP");
            // The count and the total of a rule are no counters: they fade with their window.
            let expected: &[&str] = if matches!(name, RULE_COUNT | RULE_TOTAL) {
                &["untyped"]
            } else if name.ends_with("_total") {
                &["counter"]
            } else {
                &["gauge", "histogram"]
            };
            assert!(expected.contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none());
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(belongs(bare(name), &family, &types[&family]), "{line}");
            let value = value.parse().unwrap();
            assert!(series.insert(name.to_owned(), value).is_none(), "{line}");
        }
    }
    series
}

/// Returns the name of a series, and checks its labels.
fn bare(series: &str) -> &str {
    let Some((name, labels)) = series.split_once('{') else {
        return series;
    };
    let labels = labels.strip_suffix("\"}").unwrap();
    for label in labels.split("\",") {
        let (key, value) = label.split_once("=\"").unwrap();
        assert!(key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert!(!value.replace("\\\"", "").contains('"'), "{series}");
    }
    name
}

fn belongs(name: &str, family: &str, kind: &str) -> bool {
    let lockgate = name.starts_with("lockgate_") && !name.contains("_total_total");
    let suffix = name.strip_prefix(family);
    lockgate
        && match kind {
            "histogram" => matches!(suffix, Some("_sum" | "_count" | "_bucket")),
            _ => suffix == Some(""),
        }
}

fn value(metrics: &Metrics, name: &str) -> Option<f64> {
    let mut all = parsed(&metrics.encode()).into_iter();
    all.find(|(series, _)| series == &format!("lockgate_{name}"))
        .map(|(_, value)| value)
}

fn count_of(metrics: &Metrics, part: &str) -> usize {
    let all = parsed(&metrics.encode());
    all.keys().filter(|series| series.contains(part)).count()
}

/// The series of a server: seven numbers, and a histogram for each class of status codes.
const SERVER_SERIES: usize = 7 + CLASSES.len() * (HISTOGRAM_BOUNDS.len() + 3);

#[test]
fn all_series_start_at_zero() {
    let metrics = Metrics::new();
    metrics.rule("login", "block", true);
    metrics.listener("[::]:8443");
    metrics.upstream("app", "127.0.0.1:9000");
    for name in [
        r#"rule_matched_total{rule="login",phase="count"}"#,
        r#"rule_matched_total{rule="login",phase="mitigate"}"#,
        r#"rule_mitigated_total{rule="login",action="block"}"#,
        r#"rule_would_mitigate_total{rule="login"}"#,
        r#"rule_divergence_total{rule="login",live="pass",candidate="act"}"#,
        r#"rule_divergence_total{rule="login",live="act",candidate="pass"}"#,
        "held_requests",
        "requests_uncounted_total",
        r#"store_keys{rule="login"}"#,
        r#"store_evictions_total{kind="counter"}"#,
        r#"store_evictions_total{kind="ban"}"#,
        "settle_dropped_total",
        r#"connections{listener="[::]:8443",protocol="opening"}"#,
        r#"connections{listener="[::]:8443",protocol="http/1.1"}"#,
        r#"connections{listener="[::]:8443",protocol="h2"}"#,
        r#"bans{rule="login"}"#,
        r#"bytes_total{direction="in"}"#,
        r#"bytes_total{direction="out"}"#,
        r#"requests_total{listener="[::]:8443",method="OTHER",status_class="5xx"}"#,
        r#"request_duration_seconds_bucket{le="+Inf"}"#,
        "request_duration_seconds_sum",
        "request_duration_seconds_count",
        r#"tls_handshakes_total{result="full"}"#,
        r#"tls_handshakes_total{result="resumed"}"#,
        r#"tls_handshakes_total{result="failed"}"#,
        r#"upstream_requests_total{upstream="app",server="127.0.0.1:9000",result="ok"}"#,
        r#"upstream_requests_total{upstream="app",server="127.0.0.1:9000",result="timeout"}"#,
        r#"upstream_duration_seconds_count{upstream="app",server="127.0.0.1:9000",status_class="5xx"}"#,
        "tunnels",
        r#"upstream_in_flight{upstream="app",server="127.0.0.1:9000"}"#,
        r#"config_reloads_total{result="success"}"#,
        r#"config_reloads_total{result="failure"}"#,
        r#"protocol_errors_total{kind="framing"}"#,
        "log_lines_dropped_total",
    ] {
        assert_eq!(value(&metrics, name), Some(0.0), "{name}");
    }
    assert_eq!(value(&metrics, "config_last_reload_success"), Some(1.0));
}

#[test]
fn requests_are_counted_by_method_and_class() {
    let metrics = Metrics::new();
    let listener = metrics.listener("a");
    let odd = Method::from_bytes(b"PROPFIND").unwrap();
    for (method, status) in [
        (&Method::GET, 200),
        (&Method::GET, 299),
        (&Method::PATCH, 101),
        (&odd, 404),
        (&Method::GET, 999),
    ] {
        listener.request(method, status, Duration::from_millis(3));
    }
    let of = |method: &str, class: &str| {
        let labels = format!("listener=\"a\",method=\"{method}\",status_class=\"{class}\"");
        value(&metrics, &format!("requests_total{{{labels}}}"))
    };
    assert_eq!(of("GET", "2xx"), Some(2.0));
    assert_eq!(of("PATCH", "1xx"), Some(1.0));
    assert_eq!(of("OTHER", "4xx"), Some(1.0));
    assert_eq!(of("GET", "5xx"), Some(1.0));
    assert_eq!(value(&metrics, "request_duration_seconds_count"), Some(5.0));
    let sum = value(&metrics, "request_duration_seconds_sum").unwrap();
    assert!((sum - 0.015).abs() < 1e-9);
    let below = r#"request_duration_seconds_bucket{le="0.0025"}"#;
    let above = r#"request_duration_seconds_bucket{le="0.005"}"#;
    assert_eq!(value(&metrics, below), Some(0.0));
    assert_eq!(value(&metrics, above), Some(5.0));
}

#[test]
fn every_method_has_its_own_row() {
    let metrics = Metrics::new();
    let listener = metrics.listener("a");
    for method in METHODS {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        listener.request(&method, 200, Duration::ZERO);
    }
    for method in METHODS {
        let series =
            format!("requests_total{{listener=\"a\",method=\"{method}\",status_class=\"2xx\"}}");
        assert_eq!(value(&metrics, &series), Some(1.0), "{method}");
    }
}

#[test]
fn a_kept_rule_keeps_its_values_and_a_removed_one_leaves_none() {
    let metrics = Metrics::new();
    let stays = metrics.rule("stays", "block", false);
    stays.matched_count.inc();
    stays.mitigated.add(2);
    stays.keys.set(7);
    metrics.rule("goes", "shadow", true).would_mitigate.inc();

    let again = metrics.rule("stays", "shadow", false);
    metrics.keep_rules(&["stays"]);
    again.matched_count.inc();
    again.mitigated.inc();

    let of = |name: &str| value(&metrics, name);
    let matched = r#"rule_matched_total{rule="stays",phase="count"}"#;
    assert_eq!(of(matched), Some(2.0));
    assert_eq!(of(r#"store_keys{rule="stays"}"#), Some(7.0));
    assert_eq!(
        of(r#"rule_mitigated_total{rule="stays",action="block"}"#),
        Some(2.0)
    );
    assert_eq!(
        of(r#"rule_mitigated_total{rule="stays",action="shadow"}"#),
        Some(1.0)
    );
    assert_eq!(count_of(&metrics, "\"goes\""), 0);

    metrics.keep_rules(&[]);
    // Solutions of challenges whose rule is gone are counted without a name.
    assert_eq!(count_of(&metrics, "rule="), count_of(&metrics, "rule=\"\""));
    metrics.rule("stays", "block", false);
    assert_eq!(of(matched), Some(0.0));
}

#[test]
fn a_candidate_is_counted_where_it_differs_and_only_where_there_is_one() {
    let metrics = Metrics::new();
    assert!(metrics.rule("plain", "block", false).divergence.is_none());
    let tried = metrics.rule("tried", "block", true).divergence.unwrap();
    tried.mitigates.inc();
    tried.admits.add(2);
    let of = |pair: &str| {
        let labels = format!("rule=\"tried\",{pair}");
        value(&metrics, &format!("rule_divergence_total{{{labels}}}"))
    };
    assert_eq!(of(r#"live="pass",candidate="act""#), Some(1.0));
    assert_eq!(of(r#"live="act",candidate="pass""#), Some(2.0));
    assert_eq!(count_of(&metrics, "rule_divergence_total{"), 2);
}

#[test]
fn the_usage_of_a_rule_is_untyped() {
    let metrics = Metrics::new();
    metrics.rule_usage("site", true).set(40, 100);
    assert_eq!(value(&metrics, r#"rule_count{rule="site"}"#), Some(40.0));
    assert_eq!(value(&metrics, r#"rule_total{rule="site"}"#), Some(100.0));
    let text = metrics.encode();
    for name in [RULE_COUNT, RULE_TOTAL] {
        let kind = format!("# TYPE {name} untyped\n");
        assert!(text.contains(&kind), "{text}");
    }
}

#[test]
fn series_of_listeners_and_servers_are_added_and_removed() {
    let metrics = Metrics::new();
    let mut open = metrics.listener("a").open();
    open.enter(ConnectionPhase::Http2);
    metrics.listener("b");
    let server = metrics.upstream("app", "one");
    server.timeout.inc();
    server.in_flight.inc();
    metrics.upstream("app", "two");
    metrics.keep_listeners(&["a"]);
    metrics.keep_upstreams(&[("app", "one"), ("other", "two")]);
    assert_eq!(count_of(&metrics, "listener=\"b\""), 0);
    assert_eq!(count_of(&metrics, "server=\"two\""), 0);
    assert_eq!(count_of(&metrics, "server=\"one\""), SERVER_SERIES);
    let of = |protocol: &str| {
        value(
            &metrics,
            &format!("connections{{listener=\"a\",protocol=\"{protocol}\"}}"),
        )
    };
    assert_eq!((of("opening"), of("h2")), (Some(0.0), Some(1.0)));
    drop(open);
    assert_eq!(of("h2"), Some(0.0));
    let timeout = r#"upstream_requests_total{upstream="app",server="one",result="timeout"}"#;
    assert_eq!(value(&metrics, timeout), Some(1.0));
}

#[test]
fn a_certificate_series_has_the_earliest_expiry_and_is_removed_with_it() {
    let metrics = Metrics::new();
    let of = |name: &str| {
        let labels = format!("listener=\"a\",certificate=\"{name}\"");
        let series = format!("certificate_not_after_timestamp_seconds{{{labels}}}");
        value(&metrics, &series)
    };
    metrics.set_certificates(&[
        ("a", "x.test", 30),
        ("a", "y.test", 40),
        ("a", "x.test", 20),
    ]);
    assert_eq!((of("x.test"), of("y.test")), (Some(20.0), Some(40.0)));
    metrics.set_certificates(&[("a", "x.test", 50), ("b", "y.test", 60)]);
    assert_eq!((of("x.test"), of("y.test")), (Some(50.0), None));
}

#[test]
fn reload_metrics_show_the_last_result() {
    let metrics = Metrics::new();
    let last = || value(&metrics, "config_last_reload_success");
    metrics.reloads.failed();
    assert_eq!(last(), Some(0.0));
    metrics.reloads.succeeded();
    assert_eq!(last(), Some(1.0));
    let failures = r#"config_reloads_total{result="failure"}"#;
    assert_eq!(value(&metrics, failures), Some(1.0));
}

#[test]
fn every_protocol_error_has_a_series_of_its_own() {
    let metrics = Metrics::new();
    for (at, kind) in ProtocolError::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, at);
        metrics.count_protocol_error(kind);
        let series = format!("protocol_errors_total{{kind=\"{}\"}}", kind.name());
        assert_eq!(value(&metrics, &series), Some(1.0));
    }
}

#[test]
fn externally_counted_totals_are_exported() {
    let metrics = Metrics::new();
    metrics.set_evictions(3, 4);
    metrics.set_log_lines_dropped(5);
    metrics.set_held(6);
    metrics.set_settle_dropped(7);
    let bans = r#"store_evictions_total{kind="ban"}"#;
    assert_eq!(value(&metrics, bans), Some(4.0));
    assert_eq!(value(&metrics, "log_lines_dropped_total"), Some(5.0));
    assert_eq!(value(&metrics, "held_requests"), Some(6.0));
    assert_eq!(value(&metrics, "settle_dropped_total"), Some(7.0));
}

#[test]
fn an_unusual_server_name_cannot_break_the_exposition() {
    let metrics = Metrics::new();
    metrics.upstream("app", "unix:/run/a\"b\\c\nd");
    assert_eq!(
        count_of(&metrics, r#"server="unix:/run/a\"b\\c\nd""#),
        SERVER_SERIES
    );
}
