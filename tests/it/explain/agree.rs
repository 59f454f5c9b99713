//! Explain and a running gateway say the same about the same requests.

use lockgate::clock::Timestamp;
use serde_json::Value;

use crate::harness::{Answer, Process, Running};

/// A request that both get, some times.
#[derive(Default)]
struct Ask {
    method: &'static str,
    path: &'static str,
    from: Option<&'static str>,
    headers: &'static [(&'static str, &'static str)],
    /// What the origin answers.
    status: Option<u16>,
    times: usize,
}

/// When explain starts, but for the day.
const MIDNIGHT: Timestamp = Timestamp::from_secs(19_676 * 86_400);

const THROTTLE: &str = r#"
[[rules]]
name     = "throttle"
mitigate = 'starts_with(http.request.uri.path, "/search")'
key      = ["ip.src"]
limit    = 3
period   = "1m"
"#;

/// Sends the request to both, and compares every answer and what each rule did.
fn agree(rules: &str, ask: &Ask) {
    let gateway = Running::with(rules);
    gateway.clock.set(MIDNIGHT);
    let mut client = gateway.client().method(ask.method, ask.path);
    let url = format!("http://example.com{}", ask.path);
    let times = ask.times.to_string();
    let mut arguments: Vec<String> = ["explain", ask.method, &url, "--peer", "127.0.0.1"]
        .map(str::to_owned)
        .to_vec();
    arguments.extend(["--format".into(), "json".into(), "--repeat".into(), times]);
    let from = ask.from.map(|from| ("x-forwarded-for", from));
    for (name, value) in ask.headers.iter().copied().chain(from) {
        client = client.header(name, value);
        arguments.extend(["-H".into(), format!("{name}: {value}")]);
    }
    if let Some(status) = ask.status {
        client = client.wants(status);
        arguments.extend(["--status".into(), status.to_string()]);
    }
    let live = client.times(ask.times).0;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = Process::output(&gateway.folder, &arguments);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    compare(&live, &report);
    compare_rules(&gateway.metrics(), &report);
}

#[track_caller]
fn compare(live: &[Answer], report: &Value) {
    let statuses: Vec<u16> = live.iter().map(|answer| answer.status).collect();
    let repeats = report["repeat"].as_array().unwrap().iter();
    let told: Vec<u64> = repeats.map(|r| r["status"].as_u64().unwrap()).collect();
    assert_eq!(
        statuses.iter().map(|s| u64::from(*s)).collect::<Vec<_>>(),
        told
    );
    let last = live.last().unwrap();
    for name in ["retry-after", "ratelimit", "ratelimit-policy", "location"] {
        let told = report["response"]["headers"][name].as_str();
        assert_eq!(last.header(name), told, "{name}");
    }
    let forwarded = matches!(
        report["decision"].as_str().unwrap(),
        "forward" | "allow" | "delay" | "tag"
    );
    let upstream = report["to"] == "upstream";
    assert_eq!(last.is_from_origin(), forwarded && upstream);
}

/// As often as explain says that a rule acted, the gateway counted that it did.
#[track_caller]
fn compare_rules(metrics: &str, report: &Value) {
    let repeats = report["repeat"].as_array().unwrap();
    for rule in report["rules"].as_array().unwrap() {
        let name = rule["name"].as_str().unwrap();
        let acts = |r: &&Value| r["rule"] == name && r["action"] != Value::Null;
        let (would, did): (Vec<&Value>, Vec<&Value>) = repeats
            .iter()
            .filter(acts)
            .partition(|r| r["action"].as_str().unwrap().starts_with("would_"));
        let label = format!("{{rule=\"{name}\"");
        let counted = |family: &str| -> usize {
            let lines = metrics.lines().filter(|line| line.starts_with(family));
            let own = lines.filter(|line| line.contains(&label));
            own.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
                .sum()
        };
        assert_eq!(
            counted("lockgate_rule_mitigated_total"),
            did.len(),
            "{name}"
        );
        assert_eq!(
            counted("lockgate_rule_would_mitigate_total"),
            would.len(),
            "{name}"
        );
    }
}

fn get(path: &'static str, times: usize) -> Ask {
    Ask {
        method: "GET",
        path,
        times,
        ..Ask::default()
    }
}

#[test]
fn explain_agrees_with_the_gateway_on_throttles_and_paths() {
    agree(THROTTLE, &get("/search", 6));
    agree(THROTTLE, &get("//%73earch/./x?q=1", 6));
    agree(THROTTLE, &get("/elsewhere", 2));
    agree(THROTTLE, &get("/search/..%2fx", 1));
    agree(
        THROTTLE,
        &Ask {
            from: Some("203.0.113.7, 198.51.100.2"),
            ..get("/search", 5)
        },
    );
}

#[test]
fn explain_agrees_with_the_gateway_on_counted_responses_and_bans() {
    let rules = r#"
[[rules]]
name     = "stuffing"
count    = 'http.request.uri.path eq "/login" and http.response.code in {401 403}'
mitigate = 'starts_with(http.request.uri.path, "/login")'
key      = ["ip.src", "http.user_agent"]
limit    = 2
period   = "1m"
duration = "10m"
"#;
    let login = |status| Ask {
        method: "POST",
        headers: &[("user-agent", "curl/8")],
        status: Some(status),
        ..get("/login", 5)
    };
    agree(rules, &login(401));
    agree(rules, &login(200));
    let throttle = rules.replace("duration = \"10m\"", "");
    agree(&throttle, &login(403));
}

#[test]
fn explain_agrees_with_the_gateway_on_other_actions() {
    let with = |more: &str| THROTTLE.replace("limit    = 3", &format!("limit = 2\n{more}"));
    agree(&with("action = \"shadow\""), &get("/search", 4));
    agree(&with("dry_run = true"), &get("/search", 4));
    agree(&with("action = \"log\""), &get("/search", 4));
    agree(&with("duration = \"5m\""), &get("/search", 4));
    let deny = "[[rules]]\nname = \"deny\"\nmitigate = 'http.request.uri.path contains \"x\"'\n";
    agree(deny, &get("/x", 2));
    let allow = "[[rules]]\nname = \"office\"\nmitigate = 'ip.src in {203.0.113.0/24}'\n\
                 action = \"allow\"\n";
    let both = format!("{allow}{THROTTLE}");
    agree(
        &both,
        &Ask {
            from: Some("203.0.113.7"),
            ..get("/search", 5)
        },
    );
    agree(
        &both,
        &Ask {
            from: Some("198.51.100.7"),
            ..get("/search", 5)
        },
    );
}

#[test]
fn explain_agrees_with_the_gateway_on_several_rules_and_keys() {
    let slow = THROTTLE
        .replace("throttle", "slow")
        .replace("\"1m\"", "\"5m\"");
    agree(&format!("{THROTTLE}{slow}"), &get("/search", 5));
    agree(&format!("{slow}{THROTTLE}"), &get("/search", 5));
    let keyed = |missing: &str| {
        let key = format!("key = ['http.request.headers[\"x-key\"]']\nmissing = \"{missing}\"");
        THROTTLE.replace("key      = [\"ip.src\"]", &key)
    };
    agree(&keyed("skip"), &get("/search", 5));
    agree(&keyed("group"), &get("/search", 5));
    agree(
        &keyed("skip"),
        &Ask {
            headers: &[("x-key", "a")],
            ..get("/search", 5)
        },
    );
    let geo = "[geo.overrides]\n\"203.0.113.0/24\" = { asn = 64500, country = \"ZZ\" }\n";
    let rule = THROTTLE.replace("\"ip.src\"", "\"ip.src.asnum\"");
    agree(
        &format!("{geo}{rule}"),
        &Ask {
            from: Some("203.0.113.7"),
            ..get("/search", 5)
        },
    );
}

#[test]
fn explain_agrees_with_the_gateway_on_every_algorithm_and_cost() {
    let with = |more: &str| {
        let period = format!("period   = \"1m\"\n{more}");
        THROTTLE.replace("period   = \"1m\"", &period)
    };
    for more in [
        "slices = 6",
        "algorithm = \"fixed_window\"",
        "algorithm = \"sliding_log\"",
        "algorithm = \"token_bucket\"\nburst = 2",
        "algorithm = \"gcra\"\ncost = 2",
        "algorithm = \"leaky_bucket\"\nqueue = 0",
        "cost = 'http.response.code'",
        "escalate = [\"1m\", \"1h\"]",
        "candidate = { algorithm = \"gcra\", limit = 1 }",
    ] {
        agree(&with(more), &get("/search", 5));
    }
    let places = "algorithm = \"concurrency\"";
    agree(
        &THROTTLE.replace("period   = \"1m\"", places),
        &get("/search", 5),
    );
}

#[test]
fn explain_agrees_with_the_gateway_on_shadow_quotas() {
    let shadow = THROTTLE.replace("throttle", "shadow") + "action = \"shadow\"\n";
    let behind = THROTTLE.replace("limit    = 3", "limit = 50\ncost = 2");
    agree(&format!("{shadow}{behind}"), &get("/search", 5));
    let deny = "[[rules]]\nname = \"all\"\nmitigate = 'http.request.uri.path eq \"/search\"'\n\
                action = \"shadow\"\n";
    agree(&format!("{deny}{behind}"), &get("/search", 2));
    let late = behind.replace("period ", "count = 'http.response.code eq 200'\nperiod ");
    agree(&format!("{shadow}{late}"), &get("/search", 5));
}
