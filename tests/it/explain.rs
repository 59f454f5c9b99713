//! `lockgate explain`, as an operator runs it: what it prints, and that live traffic agrees.

mod agree;
mod counters;
mod outcomes;

use serde_json::Value;

use crate::harness::{Folder, Process};

/// A site with an upstream that nobody runs: explain asks no origin.
const SITE: &str = r#"
[[listeners]]
address = "127.0.0.1:8080"
[[listeners]]
address = "127.0.0.1:8443"
[listeners.tls]
[log]
access = "access.log"
[client_ip]
trusted_proxies = ["10.0.0.0/8"]
[lists]
office = ["192.0.2.0/24"]
[[upstreams]]
name = "app"
servers = ["127.0.0.1:9"]
[[routes]]
hosts = ["example.com"]
upstream = "app"
[[routes]]
hosts = ["old.example.com"]
redirect = "https://example.com{uri}"
"#;

const LOGIN: &str = r#"
[[rules]]
name     = "login"
mitigate = 'http.request.method eq "POST" and http.request.uri.path eq "/login"'
key      = ["ip.src"]
limit    = 3
period   = "1m"
"#;

/// What a run printed, and its exit code.
fn run(rules: &str, arguments: &[&str]) -> (String, Option<i32>) {
    let folder = Folder::new();
    folder.write("gateway.toml", format!("{SITE}{rules}"));
    let output = Process::output(&folder, &[&["explain"], arguments].concat());
    let text = [output.stdout, output.stderr].concat();
    assert!(
        !folder.path().join("access.log").exists(),
        "it wrote a file"
    );
    (String::from_utf8(text).unwrap(), output.status.code())
}

#[track_caller]
fn human(rules: &str, arguments: &[&str]) -> String {
    let (text, code) = run(rules, arguments);
    assert_eq!(code, Some(0), "{text}");
    text
}

#[track_caller]
fn json(rules: &str, arguments: &[&str]) -> Value {
    let text = human(rules, &[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_match_is_shown_completely() {
    let text = human(
        LOGIN,
        &[
            "POST",
            "http://example.com//login?x=1",
            "--ip",
            "203.0.113.7",
        ],
    );
    let expected = r#"forwarded to upstream app
  POST http://example.com//login?x=1 over HTTP/1.1 from 203.0.113.7, route /*

login: counted
  why       counted 1 of 3: within the limit
  count     yes
  mitigate  yes
  key       ip.src is 203.0.113.7
  used      1 of 3
  count and mitigate:
    yes and
        yes http.request.method eq "POST"
              http.request.method is "POST"
        yes http.request.uri.path eq "/login"
              http.request.uri.path is "/login"
"#;
    assert_eq!(text, expected);
}

#[test]
fn a_misspelled_value_is_shown_with_the_value_that_was_read() {
    let text = human(LOGIN, &["POST", "http://example.com/logn"]);
    let why = r#"
login: no_match
  why       did not match: `http.request.uri.path eq "/login"` is false, http.request.uri.path is "/logn"
  count     no
  mitigate  no
"#;
    assert!(text.contains(why), "{text}");
    let tree = r#"
    no  and
        yes http.request.method eq "POST"
              http.request.method is "POST"
        no  http.request.uri.path eq "/login"
              http.request.uri.path is "/logn"
"#;
    assert!(text.contains(tree), "{text}");
}

#[test]
fn repeated_requests_reach_the_limit() {
    let text = human(
        LOGIN,
        &["POST", "http://example.com/login", "--repeat", "5"],
    );
    let lines = "\
1  0s  forwarded to upstream app (login: 1 of 3)
2  0s  forwarded to upstream app (login: 2 of 3)
3  0s  forwarded to upstream app (login: 3 of 3)
4  0s  429 by rule login, Retry-After 80 (login: 3 of 3)
5  0s  429 by rule login, Retry-After 80 (login: 3 of 3)

The decision first changed at request 4.
Request 5 in detail:

429 by rule login, Retry-After 80
  POST http://example.com/login over HTTP/1.1 from 127.0.0.1, route /*

login: block
  why       blocked: over the limit, 3 of 3 are used
";
    assert!(text.starts_with(lines), "{text}");
    let spread = ["--repeat", "5", "--every", "30s"];
    let text = human(
        LOGIN,
        &[&["POST", "http://example.com/login"], &spread[..]].concat(),
    );
    assert!(
        text.contains("5  120s  forwarded to upstream app (login: "),
        "{text}"
    );
    assert!(text.contains("The decision never changed."), "{text}");
}

#[test]
fn repeated_requests_are_aligned_in_columns() {
    let spread = ["--repeat", "12", "--every", "900ms"];
    let text = human(
        LOGIN,
        &[&["POST", "http://example.com/login"], &spread[..]].concat(),
    );
    let lines: Vec<&str> = text.lines().take(12).collect();
    assert!(lines[0].starts_with(" 1      0s  forwarded"), "{text}");
    assert!(lines[1].starts_with(" 2   900ms  forwarded"), "{text}");
    assert!(lines[10].starts_with("11      9s  "), "{text}");
    assert!(lines[11].starts_with("12  9900ms  "), "{text}");
}

#[test]
fn simulated_responses_are_counted() {
    let rules = r#"
[[rules]]
name     = "stuffing"
count    = 'http.response.code eq 401 and http.response.headers["x-why"][0] eq "password"'
mitigate = 'starts_with(http.request.uri.path, "/login")'
key      = ["ip.src"]
limit    = 2
period   = "1m"
duration = "10m"
"#;
    let ask = ["POST", "http://example.com/login", "--repeat", "4"];
    let failed = ["--status", "401", "--response-header", "X-Why: password"];
    let text = human(rules, &[&ask[..], &failed[..]].concat());
    let lines = "\
1  0s  forwarded to upstream app (stuffing: 1 of 2)
2  0s  forwarded to upstream app (stuffing: 2 of 2)
3  0s  forwarded to upstream app (stuffing: banned for 600s)
4  0s  429 by rule stuffing, Retry-After 600 (stuffing: banned for 600s)
";
    assert!(text.starts_with(lines), "{text}");
    assert!(
        text.contains("why       blocked: banned for another 10m\n"),
        "{text}"
    );
    let text = human(rules, &ask);
    let why = "`mitigate` matched, but the key is not banned; `count` did not match: \
               `http.response.code eq 401` is false, http.response.code is 200\n";
    assert!(text.contains(why), "{text}");
    assert!(
        text.contains("count     no, in the response phase\n"),
        "{text}"
    );
}

#[test]
fn a_missing_key_part_is_named() {
    let rules = LOGIN.replace(
        r#"["ip.src"]"#,
        "['http.request.cookies[\"session\"]']\nmissing = \"skip\"",
    );
    let text = human(&rules, &["POST", "http://example.com/login"]);
    let why = r#"
login: skip
  why       key part `http.request.cookies["session"]` is missing and missing = "skip"
  count     yes
  mitigate  yes
  key       http.request.cookies["session"] is missing
"#;
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_dry_run_and_a_disabled_rule_are_labelled() {
    let rules = LOGIN.replace("limit    = 3", "limit = 1\ndry_run = true")
        + "[[rules]]\nname = \"off\"\nmitigate = 'ssl'\nenabled = false\n"
        + "[[rules]]\nname = \"on\"\nmitigate = 'ssl'\n";
    let text = human(
        &rules,
        &["POST", "http://example.com/login", "--repeat", "2"],
    );
    let line = "2  0s  forwarded to upstream app; rule login: would_block (login: 1 of 1)\n";
    assert!(text.contains(line), "{text}");
    let why = "why       dry_run: would have blocked: over the limit, 1 of 1 are used\n";
    assert!(text.contains(why), "{text}");
    let off = "\noff: disabled\n  why       disabled: `enabled = false`\n\non: no_match\n";
    assert!(text.contains(off), "{text}");
}

#[test]
fn an_allow_rule_ends_the_evaluation() {
    let exempt =
        "[[rules]]\nname = \"office\"\nmitigate = 'ip.src in $office'\naction = \"allow\"\n";
    let rules = format!("{exempt}{LOGIN}");
    let ask = ["POST", "http://example.com/login", "--ip", "192.0.2.9"];
    let text = human(&rules, &ask);
    assert!(
        text.starts_with("allowed by rule office: forwarded to upstream app\n"),
        "{text}"
    );
    assert!(
        text.contains("yes ip.src in $office\n          ip.src is 192.0.2.9\n"),
        "{text}"
    );
    let why = "\nlogin: not_reached\n  why       not reached: rule office ended the evaluation\n";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_shadow_shows_what_the_client_would_not_see() {
    let rules = LOGIN.replace("limit    = 3", "limit = 1\naction = \"shadow\"");
    let ask = ["POST", "http://example.com/login", "--repeat", "2"];
    let text = human(&rules, &ask);
    assert!(
        text.contains("2  0s  shadow 200 by rule login (login: 1 of 1)\n"),
        "{text}"
    );
    let report = json(&rules, &ask);
    assert_eq!(
        (&report["decision"], &report["rule"]),
        (&"shadow".into(), &"login".into())
    );
    assert_eq!(report["response"]["headers"]["ratelimit"], Value::Null);
}

#[test]
fn secrets_are_hashed() {
    let rules = r#"
[[rules]]
name     = "sessions"
mitigate = 'http.request.headers["authorization"][0] contains "Bearer" or http.cookie contains "x"'
key      = ['http.request.cookies["session"]', 'http.request.headers["x-api-key"]']
limit    = 3
period   = "1m"
"#;
    let ask = [
        "GET",
        "https://example.com/",
        "-H",
        "authorization: Bearer topsecret1",
        "-H",
        "cookie: session=topsecret2",
        "-H",
        "x-api-key: topsecret3",
        "--response-header",
        "set-cookie: session=topsecret4",
    ];
    for text in [human(rules, &ask), json(rules, &ask).to_string()] {
        assert!(!text.contains("topsecret"), "{text}");
        assert!(text.contains("h:"), "{text}");
    }
    let report = json(rules, &ask);
    let key = report["rules"][0]["key"].as_str().unwrap();
    let hashed = |text: &str| text.starts_with("h:") && text.len() == 18;
    assert!(key.split(' ').all(hashed), "{key}");
    let reads = &report["rules"][0]["conditions"]["both"]["parts"][0]["reads"][0];
    assert!(hashed(reads["values"][0].as_str().unwrap()), "{reads}");
    assert_eq!(reads["secret"], true);
}

#[test]
fn refusals_have_their_status_and_reason() {
    for (url, more, first) in [
        (
            "http://example.com/a%zz",
            &[][..],
            "refused with 400: the path has a `%` without two hexadecimal digits",
        ),
        (
            "http://example.com/a/..%2fb",
            &[],
            "refused with 400: the path hides a dot segment, such as `..%2f`",
        ),
        (
            "http://example.com/a b",
            &[],
            "refused with 400: the target is not a path, or has a character that needs escaping",
        ),
        (
            "http://example.com/",
            &["-H", "host: a", "-H", "host: b"],
            "refused with 400: the host is missing, duplicated, or neither a name nor an address",
        ),
        (
            "http://nobody.example/",
            &[],
            "refused with 404: no route matches",
        ),
        (
            "http://old.example.com/x",
            &[],
            "308 redirect from the route",
        ),
    ] {
        let text = human(LOGIN, &[&["GET", url], more].concat());
        assert_eq!(text.lines().next(), Some(first), "{url}");
    }
    let text = human(LOGIN, &["GET", "http://example.com/%00"]);
    let why = "\nlogin: not_reached\n  why       not reached: the gateway refused the request \
               before any rule\n";
    assert!(text.ends_with(why), "{text}");
}

#[test]
fn a_host_of_another_certificate_is_misdirected() {
    let folder = Folder::new();
    let mut certificates = String::new();
    for name in ["a.example", "b.example"] {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        folder.write(&format!("{name}.pem"), made.cert.pem());
        folder.write(&format!("{name}.key"), made.signing_key.serialize_pem());
        certificates += &format!("{{ cert = \"{name}.pem\", key = \"{name}.key\" }},");
    }
    let config = format!(
        "[[listeners]]\naddress = \"127.0.0.1:8443\"\n[listeners.tls]\n\
         certificates = [{certificates}]\n[[routes]]\nrespond = {{}}\n"
    );
    folder.write("gateway.toml", config);
    let ask = ["explain", "GET", "https://a.example/", "-H"];
    for (host, first) in [
        ("host: a.example", "200 from the route"),
        (
            "host: b.example",
            "refused with 421: the certificate of the connection is not for this host",
        ),
    ] {
        let output = Process::output(&folder, &[&ask[..], &[host]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().next(), Some(first), "{host}");
    }
}

#[test]
fn bodies_and_grpc_are_recognized_by_their_headers() {
    let limits = "[limits]\nmax_body_bytes = \"10B\"\n";
    let url = "http://example.com/login";
    let large = ["POST", url, "-H", "content-length: 11"];
    let text = human(limits, &large);
    assert!(
        text.starts_with("refused with 413: the body is larger"),
        "{text}"
    );
    let deny = "[[rules]]\nname = \"deny\"\nmitigate = 'not ssl'\n";
    let text = human(&format!("{limits}{deny}action = \"shadow\"\n"), &large);
    assert!(text.starts_with("shadow 413 by rule deny\n"), "{text}");
    let grpc = ["POST", url, "-H", "content-type: application/grpc"];
    let text = human(deny, &grpc);
    assert!(
        text.starts_with("200 (grpc-status 8) by rule deny\n"),
        "{text}"
    );
    let shadow = format!("{deny}action = \"shadow\"\n");
    let text = human(&shadow, &grpc);
    assert!(
        text.starts_with("200 (grpc-status 8) by rule deny\n"),
        "{text}"
    );
    let text = human(&shadow, &[&["GET"], &grpc[1..]].concat());
    assert!(text.starts_with("shadow 200 by rule deny\n"), "{text}");
}

#[test]
fn the_client_address_is_resolved_as_in_the_gateway() {
    let client = |more: &[&str]| {
        let ask = [
            "GET",
            "http://example.com/",
            "-H",
            "x-forwarded-for: 203.0.113.9",
        ];
        json("", &[&ask[..], more].concat())["client"].clone()
    };
    assert_eq!(client(&[]), "127.0.0.1");
    assert_eq!(client(&["--peer", "10.0.0.1"]), "203.0.113.9");
    assert_eq!(client(&["--peer", "198.51.100.1"]), "198.51.100.1");
    assert_eq!(
        client(&["--peer", "10.0.0.1", "--ip", "2001:db8::1"]),
        "2001:db8::1"
    );
}

#[test]
fn facts_outside_the_request_can_be_given_as_options() {
    let rules = r#"
[[rules]]
name     = "hosters"
mitigate = 'ip.src.asnum eq 64500 and ip.src.country eq "DE" and ip.src.continent eq "EU" and tls.alpn eq "h2"'
key      = ["tls.ja3", "tls.ja4"]
limit    = 3
period   = "1m"
"#;
    let (ja3, ja4) = (
        "CD08E31494F9531F560D64C695473DA9",
        "t13d1516h2_8daaf6152771_b186095e22b6",
    );
    let ask = [
        "GET",
        "https://example.com/",
        "--asn",
        "64500",
        "--country",
        "de",
    ];
    let report = json(rules, &[&ask[..], &["--ja3", ja3, "--ja4", ja4]].concat());
    let rule = &report["rules"][0];
    assert_eq!(rule["verdict"], "counted");
    let key = format!("\"{}\" \"{ja4}\"", ja3.to_lowercase());
    assert_eq!(rule["key"], key.as_str());
    assert_eq!(report["notes"], serde_json::json!([]));
    let text = human(rules, &ask);
    for note in [
        "tls.ja3 is missing here; a real client has one: set --ja3",
        "--ja4",
    ] {
        assert!(text.contains(note), "{text}");
    }
    let report = json(rules, &[&ask[..], &["--http", "1.1"]].concat());
    assert_eq!(report["rules"][0]["verdict"], "no_match");
}

#[test]
fn the_json_has_the_documented_shape() {
    let report = json(
        LOGIN,
        &["POST", "http://example.com/login", "--repeat", "4"],
    );
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let top = [
        "action", "client", "decision", "held_ms", "notes", "reason", "repeat", "request",
        "response", "route", "rule", "rules", "tags", "to", "upstream",
    ];
    assert_eq!(keys(&report), top);
    assert_eq!(report["decision"], "block");
    assert_eq!(
        (&report["rule"], &report["action"]),
        (&"login".into(), &"block".into())
    );
    assert_eq!(report["response"]["status"], 429);
    assert_eq!(report["response"]["headers"]["retry-after"], "80");
    assert_eq!(
        report["response"]["headers"]["ratelimit"],
        "\"login\";r=0;t=80"
    );
    let rule = &report["rules"][0];
    let fields = [
        "banned_for_ms",
        "candidate",
        "conditions",
        "cost",
        "count",
        "counts_at",
        "drawn_from",
        "held_ms",
        "key",
        "key_parts",
        "limit",
        "mitigate",
        "name",
        "ratio",
        "remaining",
        "room",
        "total",
        "value",
        "verdict",
        "why",
    ];
    assert_eq!(keys(rule), fields);
    assert_eq!(
        (&rule["count"], &rule["mitigate"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&rule["value"], &rule["limit"], &rule["remaining"]),
        (&3.into(), &3.into(), &0.into())
    );
    assert_eq!(
        keys(&rule["conditions"]["both"]),
        ["holds", "kind", "parts", "reads", "text"]
    );
    let repeats = report["repeat"].as_array().unwrap();
    let decisions: Vec<_> = repeats
        .iter()
        .map(|r| r["decision"].as_str().unwrap())
        .collect();
    assert_eq!(decisions, ["forward", "forward", "forward", "block"]);
}

#[test]
fn a_bad_argument_is_a_usage_error() {
    let ask = ["GET", "http://example.com/"];
    for (arguments, says) in [
        (&["GET"][..], "URL"),
        (&["get", "/"], "methods are written in capitals: GET"),
        (
            &["GET", "example.com"],
            "it is not an HTTP URL: write https://example.com/login",
        ),
        (&["GET", "http://exa mple/"], "`exa mple` is not a host"),
        (&[ask[0], ask[1], "-H", "accept"], "'accept: text/html'"),
        (
            &[ask[0], ask[1], "--ip", "here"],
            "write 203.0.113.7 or 2001:db8::1",
        ),
        (&[ask[0], ask[1], "--every", "5"], "\"500ms\""),
        (&[ask[0], ask[1], "--status", "99"], "from 200 to 599"),
        (&[ask[0], ask[1], "--repeat", "0"], "1..=10000"),
        (&[ask[0], ask[1], "--country", "Germany"], "two letters"),
        (
            &[
                ask[0],
                ask[1],
                "--ja4",
                "t13d1516h2_8daaf6152771_b186095e22b6",
            ],
            "need TLS",
        ),
    ] {
        let (text, code) = run("", arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
}

#[test]
fn a_bad_configuration_is_reported_as_by_check() {
    let bad = LOGIN.replace("uri.path eq", "uri.pth eq");
    let (text, code) = run(&bad, &["GET", "/"]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("error: unknown field `http.request.uri.pth`; did you mean"),
        "{text}"
    );
    let (text, code) = run(&bad, &["GET", "/", "--format", "json"]);
    assert_eq!(code, Some(1));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["ok"], false);
}

#[test]
fn http_1_0_and_options_asterisk_can_be_explained() {
    let rules = "[[rules]]\nname = \"old\"\nmitigate = 'http.request.version eq \"HTTP/1.0\"'\n\
                 [[rules]]\nname = \"star\"\nmitigate = 'http.request.uri.path eq \"*\"'\n";
    let old = human(rules, &["GET", "http://example.com/", "--http", "1.0"]);
    assert!(old.starts_with("429 by rule old\n"), "{old}");
    for version in ["1.1", "2"] {
        let star = ["OPTIONS", "*", "-H", "host: example.com", "--http", version];
        let star = human(rules, &star);
        assert!(star.starts_with("429 by rule star\n"), "{star}");
        assert!(
            star.contains("  OPTIONS * of http://localhost over "),
            "{star}"
        );
    }
    let get = human(rules, &["GET", "*", "-H", "host: example.com"]);
    assert!(get.starts_with("refused with 400: "), "{get}");
}
