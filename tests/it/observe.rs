//! What an operator sees: the access log, the log, the metrics, the admin port.

mod endings;
mod log_fields;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Client, Folder, Frames, Heard, Origin, Process, Running, wait_until};

const FIELDS: [&str; 33] = [
    "ts",
    "id",
    "client_ip",
    "peer_ip",
    "asn",
    "country",
    "ja3",
    "ja4",
    "tls",
    "proto",
    "method",
    "host",
    "path",
    "query",
    "trace_id",
    "listener",
    "route",
    "status",
    "bytes_in",
    "bytes_out",
    "duration_ms",
    "upstream",
    "server",
    "attempts",
    "upstream_ms",
    "rule",
    "action",
    "held_ms",
    "error",
    "user_agent",
    "key_fields",
    "cut",
    "ended_by",
];

const SECRETS: [&str; 3] = ["s3cret-cookie", "s3cret-token", "s3cret-key"];

/// Rules that read secrets in every way a rule can.
const READERS: &str = r#"
[[rules]]
name = "by-cookie"
count = 'http.request.uri.path eq "/login"'
key = ['http.request.cookies["sid"]', "http.cookie", 'http.request.headers["authorization"]']
limit = 1
period = "1h"
duration = "1h"
[[rules]]
name = "by-key"
count = 'http.request.headers["x-api-key"][0] contains "s3cret" and http.request.uri.path eq "/x"'
key = ['lower(http.request.headers["x-api-key"])', 'http.request.headers["x-plain"]']
limit = 1
period = "1h"
duration = "1h"
"#;

fn parse(path: &Path, count: usize) -> Vec<Value> {
    let read = || fs::read_to_string(path).unwrap_or_default();
    wait_until("the lines are written", || {
        let text = read();
        text.ends_with('\n') && text.lines().count() >= count
    });
    let lines: Vec<Value> = read()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), count);
    lines
}

/// A gateway that writes its access log to `log`.
fn logging(log: &Path, rules: &str) -> Running {
    Running::on(&config(log, rules))
}

fn config(log: &Path, rules: &str) -> String {
    format!(
        r#"
        [server]
        workers = 2
        [log]
        access = {log:?}
        [client_ip]
        trusted_proxies = ["127.0.0.1/32"]
        [geo.overrides]
        "203.0.113.0/24" = {{ asn = 64500, country = "ZZ" }}
        [[listeners]]
        address = "127.0.0.1:0"
        [[listeners]]
        address = "127.0.0.1:0"
        [listeners.tls]
        [[upstreams]]
        name = "origin"
        servers = ["{{origin}}"]
        [[routes]]
        path = "/shop/{{id}}"
        upstream = "origin"
        [[routes]]
        respond = {{ body = "own" }}
        {rules}
        "#
    )
}

#[test]
fn every_request_is_one_line_with_every_field() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = logging(&log, READERS);
    let client = gateway.tls_client().from("203.0.113.7");
    client
        .header("user-agent", "agent \"quoted\" \u{e9}")
        .header("referer", "https://a.example/")
        .header("x-plain", "seen")
        .body(b"hello")
        .post("//shop/5?a=b%20c")
        .times(1)
        .all_are(200);
    let lines = parse(&log, 1);
    let line = &lines[0];
    for field in FIELDS {
        assert!(line.get(field).is_some(), "{field} is missing in {line}");
    }
    for (field, value) in [
        ("client_ip", Value::from("203.0.113.7")),
        ("peer_ip", "127.0.0.1".into()),
        ("asn", 64500.into()),
        ("country", "ZZ".into()),
        ("tls", "TLSv1.3".into()),
        ("proto", "HTTP/1.1".into()),
        ("method", "POST".into()),
        ("host", "example.com".into()),
        ("path", "/shop/5".into()),
        ("query", "a=b%20c".into()),
        ("listener", "127.0.0.1:0".into()),
        ("route", "/shop/{id}".into()),
        ("status", 200.into()),
        ("bytes_in", 5.into()),
        ("bytes_out", 5.into()),
        ("upstream", "origin".into()),
        ("rule", Value::Null),
        ("action", Value::Null),
        ("user_agent", "agent \"quoted\" \u{e9}".into()),
        ("referer", "https://a.example/".into()),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    assert_eq!(line["id"].as_str().unwrap().len(), 32);
    assert_eq!(line["ja3"].as_str().unwrap().len(), 32);
    assert!(line["ja4"].as_str().unwrap().starts_with("t13"), "{line}");
    assert!(
        line["ts"]
            .as_str()
            .unwrap()
            .starts_with("2023-11-14T22:14:00"),
        "{line}"
    );
    assert!(line["duration_ms"].is_number() && line["upstream_ms"].is_number());
    let plain = &line["key_fields"]["http.request.headers[\"x-plain\"]"];
    assert_eq!(plain, "seen", "{}", line["key_fields"]);
}

#[test]
fn the_access_log_goes_to_standard_output_by_default() {
    let process = Process::run(&ADMIN.replace("access = \"off\"", ""));
    Client::plain(process.address(0))
        .get("/a")
        .times(2)
        .all_are(200);
    let lines = parse(&process.folder.path().join("stdout"), 2);
    assert_eq!(lines[1]["path"], "/a");
}

#[test]
fn refusals_and_malformed_requests_are_logged() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let rules = "[[rules]]\nname = \"deny\"\nmitigate = 'http.request.uri.path eq \"/no\"'";
    let gateway = logging(&log, rules);
    gateway.client().get("/no").times(1).all_are(429);
    gateway.client().get("/%00").times(1).all_are(400);
    gateway.client().get("/own").times(1).all_are(200);
    let lines = parse(&log, 3);
    assert_eq!(
        (&lines[0]["rule"], &lines[0]["action"]),
        (&"deny".into(), &"block".into())
    );
    assert_eq!(lines[0]["status"], 429);
    assert_eq!(lines[1]["status"], 400);
    assert_eq!(
        (&lines[2]["upstream"], &lines[2]["status"]),
        (&Value::Null, &200.into())
    );
}

#[test]
fn invalid_heads_are_logged() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = logging(&log, "");
    let client = gateway.client();
    client.raw(b"GET /secret HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n");
    client.raw(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(40_000)).as_bytes());
    client.raw(b"GET /one HTTP/1.1\r\nhost: a\r\n\r\nnonsense\r\n\r\n");
    let lines = parse(&log, 4);
    let statuses = lines.iter().map(|line| line["status"].as_u64().unwrap());
    let mut statuses: Vec<_> = statuses.collect();
    // Each core writes when it is done.
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 431]);
    for line in lines.iter().filter(|line| line["status"] != 200) {
        let said = (&line["client_ip"], &line["path"], &line["method"]);
        assert_eq!(said, (&"127.0.0.1".into(), &"".into(), &"".into()));
    }
    let metrics = gateway.metrics();
    for counted in [
        r#"requests_total{listener="127.0.0.1:0",method="OTHER",status_class="4xx"} 3"#,
        r#"requests_total{listener="127.0.0.1:0",method="GET",status_class="2xx"} 1"#,
        r#"protocol_errors_total{kind="malformed"} 2"#,
        r#"protocol_errors_total{kind="head_too_large"} 1"#,
        "request_duration_seconds_count 1",
    ] {
        assert!(
            metrics.contains(&format!("{counted}\n")),
            "{counted}\n{metrics}"
        );
    }
}

#[test]
fn ambiguous_body_framing_is_counted_as_such() {
    let folder = Folder::new();
    let gateway = logging(&folder.path().join("access.log"), "");
    let client = gateway.client();
    let doubtful = [
        ("1.1", "content-length: 5\r\ntransfer-encoding: chunked"),
        ("1.1", "transfer-encoding: chunked\r\ncontent-length: 5"),
        ("1.1", "content-length: 5\r\ncontent-length: 5"),
        ("1.1", "content-length: abc"),
        ("1.1", "content-length: 5, 5"),
        ("1.1", "content-length: 99999999999999999999"),
        ("1.1", "transfer-encoding: chunked, chunked"),
        ("1.0", "transfer-encoding: chunked"),
    ];
    for (done, (version, fields)) in doubtful.iter().enumerate() {
        let head = format!("POST / HTTP/{version}\r\nhost: a\r\n{fields}\r\n\r\n0\r\n\r\n");
        let answer = String::from_utf8(client.raw(head.as_bytes())).unwrap();
        assert_eq!(answer.get(8..13), Some(" 400 "), "{fields}: {answer}");
        let counted = format!("protocol_errors_total{{kind=\"framing\"}} {}\n", done + 1);
        wait_until(fields, || gateway.metrics().contains(&counted));
    }
    let metrics = gateway.metrics();
    for kind in ["malformed", "transfer_coding"] {
        let none = format!("protocol_errors_total{{kind=\"{kind}\"}} 0\n");
        assert!(metrics.contains(&none), "{metrics}");
    }
}

#[test]
fn an_invalid_chunk_is_counted() {
    let folder = Folder::new();
    let gateway = logging(&folder.path().join("access.log"), "");
    let client = gateway.client();
    let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    // One that breaks off is no error of the protocol.
    let mut gone = client.connect();
    gone.send(format!("{head}5\r\nab").as_bytes());
    drop(gone);
    let malformed = ["zz\r\n", "1\r\naXX", "1\r\na\r\n-1\r\n"];
    for (done, chunks) in malformed.iter().enumerate() {
        client.raw(format!("{head}{chunks}").as_bytes());
        let counted = format!("protocol_errors_total{{kind=\"framing\"}} {}\n", done + 1);
        wait_until(chunks, || gateway.metrics().contains(&counted));
    }
    let counted = "protocol_errors_total{kind=\"framing\"} 3\n";
    assert!(gateway.metrics().contains(counted));
}

/// A connection that breaks HTTP/2 gets no status, and none is invented for it.
#[test]
fn an_http2_violation_is_counted_and_is_not_a_request() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = logging(&log, "");
    // DATA on no stream at all (RFC 9113, section 6.1).
    let broken = Frames::default().frame(0, 0, 0, b"x");
    assert!(matches!(
        broken.heard(gateway.client().connect()),
        Heard::Goaway(1)
    ));
    let counted = r#"protocol_errors_total{kind="malformed"} 1"#;
    wait_until("it is counted", || gateway.metrics().contains(counted));
    gateway.client().get("/").times(1).all_are(200);
    assert_eq!(parse(&log, 1)[0]["status"], 200);
}

#[test]
fn control_characters_cannot_forge_a_line() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = logging(&log, "");
    let client = gateway.client().header("user-agent", "tab\there \u{202e}");
    client.get("/%0a%7b?x=%0d%0a").times(1).all_are(200);
    let text = fs::read(&log).unwrap_or_default();
    let lines = parse(&log, 1);
    assert_eq!(lines[0]["path"], "/%0A%7B");
    assert!(!text.contains(&b'\t'));
}

/// A client that sends a secret in each field that holds them.
fn secretive(client: Client) -> Client {
    client
        .header("cookie", "sid=s3cret-cookie; other=1")
        .header("authorization", "Bearer s3cret-token")
        .header("x-api-key", "s3cret-key")
}

#[test]
fn secrets_never_appear_in_plain_text() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let origin = crate::harness::Origin::start();
    let config = config(&log, READERS).replace("{origin}", &origin.address.to_string());
    let process = Process::run(&config.replace("[log]", "[log]\nlevel = \"debug\""));
    let client = secretive(Client::plain(process.address(0)));
    client
        .clone()
        .get("/login")
        .times(3)
        .then_all(&[200, 429, 429]);
    client.get("/x").times(3).then_all(&[200, 429, 429]);
    parse(&log, 6);
    let access = fs::read_to_string(&log).unwrap();
    wait_until("both bans are in the log", || {
        process.logged(" banned ").len() >= 2
    });
    let bans = process.logged(" banned ");
    assert_eq!(bans.len(), 2, "a ban is told once: {bans:?}");
    assert!(bans[0].contains("rule=by-cookie"), "{bans:?}");
    assert!(bans[1].contains("rule=by-key"), "{bans:?}");
    let cause = "count=2 cause=\"2 × GET /login in 1 h";
    assert!(bans[0].contains(cause), "{bans:?}");
    for text in [access, process.logged_raw("").join("\n")] {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    // The hash tells the same from another, and is the same in every line.
    let lines = parse(&log, 6);
    let hash = &lines[0]["key_fields"]["http.request.cookies[\"sid\"]"];
    assert!(hash.is_string(), "{}", lines[0]["key_fields"]);
    assert_eq!(
        hash,
        &lines[5]["key_fields"]["http.request.cookies[\"sid\"]"]
    );
}

#[test]
fn every_value_that_a_rule_can_read_is_logged() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let rules = r#"
        [[rules]]
        name = "many"
        mitigate = '''any(http.request.headers["x-tag"][*] eq "none")
            or any(http.request.cookies["sid"][*] eq "none")
            or any(http.request.headers.names[*] eq "x-none")'''
        [[rules]]
        name = "work"
        count = '(http.request.uri.path eq "/")'
        limit = 9
        period = "1m"
        cost = { response_header = "content-type" }
    "#;
    let gateway = logging(&log, rules);
    let mut wire = gateway.client().connect();
    let fields = "host: a\r\nx-tag: 1\r\nx-tag: 2\r\ncookie: sid=3; sid=4";
    wire.send(format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes());
    assert_eq!(wire.answer().status, 200);
    let fields = &parse(&log, 1)[0]["key_fields"];
    assert_eq!(fields["http.request.headers[\"x-tag\"]"], json!(["1", "2"]));
    assert_eq!(
        fields["http.request.headers.names"],
        json!(["host", "x-tag", "x-tag", "cookie"])
    );
    let answered = fields["http.response.headers[\"content-type\"]"].as_str();
    assert!(
        answered.is_some_and(|t| t.starts_with("text/plain")),
        "{fields}"
    );
    let secret = fields["http.request.cookies[\"sid\"]"].as_array().unwrap();
    assert!(secret.len() == 2 && secret[0] != secret[1], "{fields}");
    assert!(!secret.contains(&json!("3")), "{fields}");
}

#[test]
fn a_renamed_access_log_is_reopened() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = logging(&log, "");
    let mut wire = gateway.client().connect();
    wire.get("/one");
    parse(&log, 1);
    let old = folder.path().join("access.log.1");
    fs::rename(&log, &old).unwrap();
    wire.get("/two");
    assert_eq!(parse(&old, 2)[1]["path"], "/two");
    gateway
        .gateway()
        .reloader()
        .reload(lockgate::gateway::ReloadTrigger::Signal)
        .unwrap();
    wire.get("/three");
    assert_eq!(parse(&log, 1)[0]["path"], "/three");
    parse(&old, 2);
}

const ADMIN: &str = r#"
[server]
workers = 2
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
[[rules]]
name = "flood"
count = 'http.request.uri.path eq "/flood"'
key = ["ip.src"]
limit = 2
period = "1h"
[[rules]]
name = "trial"
count = 'http.request.uri.path eq "/flood"'
key = ["ip.src"]
limit = 1
period = "1h"
action = "shadow"
dry_run = true
"#;

#[test]
fn the_admin_port_serves_health_readiness_and_metrics() {
    let process = Process::run(ADMIN);
    let admin = Client::admin(process.admin());
    for path in ["/healthz", "/readyz"] {
        let answer = admin.clone().get(path).send();
        assert_eq!(answer.status, 200, "{path}");
        serde_json::from_slice::<Value>(&answer.body).unwrap();
    }
    admin.clone().get("/nothing").times(1).all_are(404);
    admin.clone().post("/metrics").times(1).all_are(405);
    let answer = admin.get("/metrics").send();
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
}

#[test]
fn a_token_protects_only_the_metrics() {
    let folder = Folder::new();
    let token = folder.write("admin.token", "open sesame\n");
    let guarded = format!("[admin]\ntoken_file = {token:?}");
    let process = Process::run(&ADMIN.replace("[admin]", &guarded));
    let admin = Client::admin(process.admin());
    for path in ["/healthz", "/readyz"] {
        admin.clone().get(path).times(1).all_are(200);
    }
    let metrics = admin.get("/metrics");
    metrics.times(1).all_are(401);
    for wrong in ["Bearer open", "Bearer ", "Basic open sesame", "open sesame"] {
        let wrong = metrics.clone().header("authorization", wrong);
        wrong.times(1).all_are(401);
    }
    let right = metrics.header("authorization", "Bearer open sesame");
    right.times(1).all_are(200);
}

#[test]
fn metrics_exist_from_the_start_and_count_correctly() {
    let process = Process::run(ADMIN);
    let scrape = || Client::admin(process.admin()).get("/metrics").send().text();
    let zero = |text: &str, series: &str| {
        assert!(
            text.contains(&format!("lockgate_{series} 0\n")),
            "{series}\n{text}"
        );
    };
    let text = scrape();
    for rule in ["flood", "trial"] {
        zero(
            &text,
            &format!("rule_matched_total{{rule=\"{rule}\",phase=\"count\"}}"),
        );
        zero(
            &text,
            &format!("rule_matched_total{{rule=\"{rule}\",phase=\"mitigate\"}}"),
        );
        zero(
            &text,
            &format!("rule_would_mitigate_total{{rule=\"{rule}\"}}"),
        );
        zero(&text, &format!("store_keys{{rule=\"{rule}\"}}"));
    }
    zero(
        &text,
        "rule_mitigated_total{rule=\"flood\",action=\"block\"}",
    );
    zero(
        &text,
        "rule_mitigated_total{rule=\"trial\",action=\"shadow\"}",
    );
    zero(&text, "protocol_errors_total{kind=\"framing\"}");
    let client = Client::plain(process.address(0));
    client
        .clone()
        .get("/flood")
        .times(4)
        .then_all(&[200, 200, 429, 429]);
    client.clone().get("/evil-path").times(2).all_are(200);
    client
        .method("EVILMETHOD", "/")
        .header("host", "evil-host")
        .header("user-agent", "evil-agent")
        .times(1)
        .all_are(200);
    Client::plain(process.address(0))
        .get("/%00")
        .times(1)
        .all_are(400);
    let has = |series: &str| {
        wait_until(series, || {
            scrape().contains(&format!("lockgate_{series}\n"))
        });
    };
    has("rule_mitigated_total{rule=\"flood\",action=\"block\"} 2");
    has("rule_mitigated_total{rule=\"trial\",action=\"shadow\"} 0");
    has("rule_would_mitigate_total{rule=\"trial\"} 1");
    has("rule_would_mitigate_total{rule=\"flood\"} 0");
    has("store_keys{rule=\"flood\"} 1");
    let text = scrape();
    let total = |method: &str, class: &str| {
        let series = text.lines().find(|line| {
            line.starts_with("lockgate_requests_total{")
                && line.contains(&format!("method=\"{method}\""))
                && line.contains(&format!("status_class=\"{class}\""))
        });
        let series = series.unwrap_or_else(|| panic!("{method} {class}\n{text}"));
        series.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(total("GET", "2xx"), "4");
    assert_eq!(total("GET", "4xx"), "3");
    assert_eq!(total("OTHER", "2xx"), "1");
    assert!(!text.to_lowercase().contains("evil"), "{text}");
}

#[test]
fn a_client_that_disconnects_before_its_response_is_logged() {
    let (asked, is_asked) = std::sync::mpsc::channel();
    let silent = Origin::scripted(move |mut stream| {
        let mut byte = [0];
        std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
        asked.send(()).unwrap();
        // Never answers; ends when the gateway hangs up.
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let config = config(&log, "").replace("{origin}", &silent.address.to_string());
    let gateway = Running::on(&config);
    let mut wire = gateway.client().connect();
    wire.send(b"GET /shop/5 HTTP/1.1\r\nhost: a\r\n\r\n");
    is_asked.recv().unwrap();
    drop(wire);
    let lines = parse(&log, 1);
    assert_eq!(lines[0]["status"], 499);
    assert_eq!(lines[0]["path"], "/shop/5");
    let counted = r#"requests_total{listener="127.0.0.1:0",method="GET",status_class="4xx"} 1"#;
    assert!(gateway.metrics().contains(counted));
}

#[test]
fn redacted_headers_are_redacted_everywhere() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let rules = "[[rules]]\nname = \"agents\"\ncount = 'http.referer ne \"x\"'\n\
                 key = [\"http.user_agent\"]\nlimit = 9\nperiod = \"1m\"\n";
    let redact = "[log]\nredact = [\"user-agent\", \"referer\"]\n";
    let config = config(&log, rules).replace("[log]\n", redact);
    let gateway = Running::on(&config);
    let client = gateway.client().header("user-agent", "s3cret-agent");
    let client = client.header("referer", "https://a/?t=s3cret-token");
    client.get("/").times(1).all_are(200);
    let line = parse(&log, 1).remove(0);
    for field in ["user_agent", "referer"] {
        let shown = line[field].as_str().unwrap();
        assert!(shown.starts_with("h:"), "{shown}");
    }
    assert!(!line.to_string().contains("s3cret"), "{line}");
}

/// Otherwise a client that never waits for an answer would never be counted.
#[test]
fn a_disconnected_client_is_counted_by_rules_that_count_responses() {
    let (asked, is_asked) = std::sync::mpsc::channel();
    let slow = Origin::scripted(move |mut stream| {
        let mut request = [0; 1024];
        let (allow, allowed) = std::sync::mpsc::channel();
        if matches!(std::io::Read::read(&mut stream, &mut request), Ok(1..)) {
            asked.send(allow).unwrap();
            allowed.recv().unwrap();
            let answer = b"HTTP/1.1 401 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = std::io::Write::write_all(&mut stream, answer);
        }
    });
    let rules = "[[rules]]\nname = \"guesses\"\ncount = 'http.response.code eq 401'\n\
                 mitigate = 'http.request.uri.path eq \"/shop/5\"'\n\
                 key = [\"ip.src\"]\nlimit = 1\nperiod = \"1h\"\nduration = \"1h\"\n";
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let config = config(&log, rules).replace("{origin}", &slow.address.to_string());
    let gateway = Running::on(&config);
    for _ in 0..2 {
        let mut wire = gateway.client().connect();
        wire.send(b"GET /shop/5 HTTP/1.1\r\nhost: a\r\n\r\n");
        let allow = is_asked.recv().unwrap();
        drop(wire);
        // The gateway sees the end of the connection before the answer.
        std::thread::sleep(std::time::Duration::from_millis(200));
        allow.send(()).unwrap();
    }
    let counted = r#"rule_matched_total{rule="guesses",phase="count"} 2"#;
    wait_until("both are counted", || gateway.metrics().contains(counted));
    gateway.client().get("/shop/5").times(1).all_are(429);
}
