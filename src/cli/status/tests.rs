//! The output of `status` in a pipe.

use serde_json::json;

use super::*;

fn example() -> Value {
    json!({
        "version": "0.4.0", "instance": "edge-fra-1", "state": "running", "uptime_s": 1044140,
        "connections": {"open": 8014, "max": 100000, "tunnels": 212}, "held": {"now": 231, "max": 10000},
        "store": {"kind": "redis", "state": "degraded", "since": "2026-11-18T03:11:53.120Z",
            "error": "no reply within 25 ms, 3 times in a row", "bans": 422},
        "config": {"file": "/etc/lockgate/gateway.toml", "loaded_at": "2026-11-18T03:00:55.310Z", "rules": 10,
            "last_reload": {"at": "2026-11-18T03:09:56.741Z", "ok": false, "by": "SIGHUP", "errors": [
                {"file": "gateway.toml", "line": 112, "column": 14, "length": 20, "source": "",
                 "message": "unknown field `http.request.uri.pth`; did you mean `http.request.uri.path`?"}]}},
        "certificates": [{"listener": "public", "name": "shop.example", "not_after": "2026-12-11T12:50:07.000Z"}],
        "tick": {"requests_per_s": 1897, "actions_per_s":
            {"forward": 1140.2, "delay": 11.0, "shadow": 712.4, "block": 16.1, "close": 2.2, "own": 11.0},
            "latency_ms": {"p50": 12.1, "p99": 228.0}},
        "attention": [
            {"level": "crit", "id": "reload", "text": "The last reload was refused"},
            {"level": "warn", "id": "store", "text": "Store redis is degraded"}],
    })
}

fn upstreams() -> Value {
    json!([{"name": "app", "servers": [
        {"address": "10.0.4.12:9000", "health": "healthy", "state": "ready", "reason": null},
        {"address": "10.0.4.13:9000", "health": "unhealthy", "state": "ready", "reason": "connection refused"}]}])
}

const EXPECTED: &str = "\
instance→edge-fra-1
version→0.4.0
state→running
uptime_s→1044140
requests_per_s→1897
forwarded_per_s→1140
blocked_per_s→18
shadowed_per_s→712
challenged_per_s→0
p50_ms→12
p99_ms→228
connections→8014→100000
held→231→10000
store→redis→degraded→2026-11-18T03:11:53.120Z→no reply within 25 ms, 3 times in a row
config→/etc/lockgate/gateway.toml→2026-11-18T03:00:55.310Z→10
last_reload→refused→2026-11-18T03:09:56.741Z→gateway.toml:112:14: unknown field `http.request.uri.pth`; did you mean `http.request.uri.path`?
certificate→shop.example→2026-12-11T12:50:07.000Z
bans→422
upstream→app→10.0.4.13:9000→unhealthy→connection refused
attention→crit→reload→The last reload was refused
attention→warn→store→Store redis is degraded
";

fn piped(all: bool) -> String {
    let records = records(&example(), &upstreams(), all);
    RecordStyle::Tabs.render(&[], &records)
}

#[test]
fn a_pipe_gets_one_record_per_line() {
    assert_eq!(piped(false).replace('\t', "→"), EXPECTED);
}

#[test]
fn all_servers_are_listed_on_request() {
    let expected = "upstream\tapp\t10.0.4.12:9000\thealthy\nupstream\tapp\t10.0.4.13:9000\tunhealthy\tconnection refused\n";
    assert!(piped(true).contains(expected));
}

#[test]
fn only_critical_entries_fail_the_command() {
    let mut status = example();
    assert!(is_critical(&status));
    status["attention"][0]["level"] = json!("warn");
    assert!(!is_critical(&status));
}

#[test]
fn a_gateway_without_requests_has_no_latency() {
    let mut status = example();
    status["tick"]["latency_ms"] = Value::Null;
    status["config"]["last_reload"] = Value::Null;
    status["store"]["state"] = json!("ok");
    let text = RecordStyle::Tabs.render(&[], &records(&status, &json!([]), false));
    for line in ["p50_ms\t-\n", "last_reload\t-\n", "store\tredis\tok\n"] {
        assert!(text.contains(line), "{text}");
    }
}
