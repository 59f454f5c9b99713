//! What the endpoints return and change.

use serde_json::{Value, json};

use super::{CONFIG, Operated, json as body};
use crate::harness::{Client, Folder, Origin, Process, wait_until};

#[test]
fn the_status_describes_the_gateway() {
    let gateway = Operated::run(CONFIG);
    let status = gateway.read("/api/status");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["state"], "running");
    assert_eq!(status["config"]["file"], "gateway.toml");
    assert_eq!(status["config"]["rules"], 2);
    assert_eq!(status["config"]["last_reload"], Value::Null);
    assert_eq!(status["store"]["kind"], "memory");
    assert_eq!(status["store"]["mode"], Value::Null);
    assert_eq!(status["store"]["state"], "ok");
    assert_eq!(status["held"], json!({"now": 0, "max": 10_000}));
    assert!(status["connections"]["max"].is_u64());
    assert_eq!(status["attention"], json!([]));
    let now = status["now"].as_str().unwrap();
    assert!(now.len() == 24 && now.ends_with('Z'), "{now}");
}

#[test]
fn a_reload_takes_effect_or_says_what_is_wrong() {
    let gateway = Operated::run(CONFIG);
    let reload = || gateway.admin().post("/api/reload").send();
    let answer = reload();
    assert_eq!(
        (answer.status, body(&answer)),
        (200, json!({"ok": true, "rules": 2}))
    );
    wait_until("it is logged", || {
        let changes = gateway.process.logged("admin change");
        changes
            .iter()
            .any(|line| line.contains("reload the configuration"))
    });
    let broken = CONFIG.replace(
        "http.request.uri.path eq \"/login\"",
        "http.request.uri.pth eq \"/ä\"",
    );
    gateway.process.folder.write("gateway.toml", broken);
    let answer = reload();
    assert_eq!(answer.status, 422);
    let refused = body(&answer);
    let error = &refused["errors"][0];
    assert_eq!(error["file"], "gateway.toml");
    assert_eq!(
        (&error["line"], &error["column"], &error["length"]),
        (&json!(14), &json!(13), &json!(20))
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("unknown field `http.request.uri.pth`; "),
        "{message}"
    );
    assert_eq!(
        error["source"],
        "mitigate = 'http.request.uri.pth eq \"/ä\"'"
    );
    let status = gateway.read("/api/status");
    assert_eq!(status["config"]["last_reload"]["by"], "api");
    assert_eq!(status["config"]["last_reload"]["errors"], refused["errors"]);
    assert_eq!(status["attention"][0]["id"], "reload");
    assert_eq!(status["attention"][0]["level"], "crit");
    gateway.process.reload(CONFIG);
    let last = &gateway.read("/api/status")["config"]["last_reload"];
    assert_eq!((&last["ok"], &last["by"]), (&json!(true), &json!("SIGHUP")));
}

#[test]
fn rules_are_listed_in_file_order_with_their_totals() {
    let gateway = Operated::run(CONFIG);
    gateway
        .client()
        .get("/login")
        .times(3)
        .then_all(&[200, 200, 429]);
    gateway.client().get("/.env").times(2).all_are(200);
    let rules = gateway.read("/api/rules");
    let names: Vec<_> = rules
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["name"])
        .collect();
    assert_eq!(names, ["login/site", "off", "scan"]);
    let login = &rules[0];
    assert_eq!(login["algorithm"], "token_bucket");
    assert_eq!((&login["limit"], &login["burst"]), (&json!(2), &json!(2)));
    assert_eq!(
        (&login["period"], &login["key"]),
        (&json!("1m"), &json!(["ip.src"]))
    );
    assert_eq!(
        (&login["matched"], &login["mitigated"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(login["candidate"]["stricter"], 1);
    assert_eq!(rules[1]["enabled"], false);
    assert_eq!(rules[1]["mitigate"], "http.request.uri.path eq \"/off\"");
    assert_eq!(rules[1]["algorithm"], Value::Null);
    assert_eq!(
        (&rules[2]["duration"], &rules[2]["dry_run"]),
        (&json!("10m"), &json!(true))
    );
    assert_eq!(
        (&rules[2]["mitigated"], &rules[2]["would_mitigate"]),
        (&json!(0), &json!(1))
    );
    let one = gateway.read("/api/rules/login%2Fsite");
    assert_eq!(one["name"], "login/site");
    assert!(one.as_object().unwrap().contains_key("distribution"));
    gateway
        .admin()
        .get("/api/rules/login/site")
        .times(1)
        .all_are(404);
    gateway
        .admin()
        .get("/api/rules/nothing")
        .times(1)
        .all_are(404);
}

#[test]
fn explain_reads_the_live_counters_and_counts_nothing() {
    let gateway = Operated::run(CONFIG);
    let request = r#"{"method": "GET", "url": "/login", "ip": "127.0.0.1"}"#;
    let explain = || body(&gateway.admin().post("/api/explain").json(request).send());
    for _ in 0..5 {
        let explained = explain();
        assert_eq!(explained["decision"], "forward", "{explained}");
        assert_eq!(explained["rules"][0]["name"], "login/site");
        assert_eq!(explained["rules"][0]["limit"], 2);
    }
    let login = gateway.client().get("/login");
    login.times(2).all_are(200);
    let explained = explain();
    assert_eq!(
        (&explained["decision"], &explained["rule"]),
        (&json!("block"), &json!("login/site"))
    );
    assert_eq!(explained["response"]["status"], 429);
    let elsewhere = request.replace("127.0.0.1", "203.0.113.7");
    let other = gateway.admin().post("/api/explain").json(&elsewhere).send();
    assert_eq!(body(&other)["decision"], "forward");
    login.times(1).all_are(429);
    let matched = &gateway.read("/api/rules")[0]["matched"];
    assert_eq!(matched, 3);
}

#[test]
fn explain_returns_the_object_of_the_command() {
    let gateway = Operated::run(CONFIG);
    let folder = &gateway.process.folder;
    let arguments = [
        "explain",
        "GET",
        "/login",
        "--ip",
        "203.0.113.7",
        "--format",
        "json",
    ];
    let printed = Process::output(folder, &arguments).stdout;
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    let request = r#"{"method": "GET", "url": "/login", "ip": "203.0.113.7"}"#;
    let returned = body(&gateway.admin().post("/api/explain").json(request).send());
    let mut expected = printed.clone();
    expected.as_object_mut().unwrap().remove("repeat");
    let names =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(names(&returned), names(&expected));
    assert_eq!(names(&returned["rules"][0]), names(&expected["rules"][0]));
    for wrong in [
        "{}",
        "[]",
        "{",
        r#"{"method": "GET", "url": "/", "path": 1}"#,
    ] {
        let answer = gateway.admin().post("/api/explain").json(wrong).send();
        assert_eq!(answer.status, 422, "{wrong}");
    }
}

fn two_servers(one: &Origin, other: &Origin) -> String {
    let servers = format!("servers = [\"{}\", \"{}\"]", one.address, other.address);
    CONFIG.replace(
        "[[routes]]\nrespond = { body = \"hello\" }",
        &format!("[[upstreams]]\nname = \"app\"\n{servers}\n[[routes]]\nupstream = \"app\""),
    )
}

#[test]
fn a_drained_server_gets_no_requests_until_it_is_ready() {
    let (one, other) = (Origin::start(), Origin::start());
    let config = two_servers(&one, &other);
    let gateway = Operated::run(&config);
    let set = |origin: &Origin, state: &str| {
        let path = format!("/api/upstreams/app/{}", origin.address);
        let put = gateway.admin().method("PUT", &path);
        put.json(&format!("{{\"state\": \"{state}\"}}")).send()
    };
    let drained = set(&one, "drain");
    assert_eq!(drained.status, 200);
    assert_eq!(body(&drained)["state"], "drain");
    assert_eq!(body(&drained)["health"], "healthy");
    gateway.client().get("/").times(10).all_are(200);
    assert_eq!((one.count(), other.count()), (0, 10));
    gateway.process.reload(&config);
    gateway.client().get("/").times(10).all_are(200);
    assert_eq!(one.count(), 0);
    set(&other, "drain");
    gateway.client().get("/").times(1).all_are(503);
    wait_until("it needs attention", || {
        gateway.read("/api/status")["attention"][0]["id"] == "upstream:app"
    });
    set(&one, "ready");
    gateway.client().get("/").times(3).all_are(200);
    assert_eq!(one.count(), 3);
    wait_until("its latency is known", || {
        gateway.read("/api/upstreams")[0]["servers"][0]["p99_ms"].as_f64() > Some(0.0)
    });
    let metrics = gateway.admin().get("/metrics").send().text();
    let counted = format!(
        "lockgate_upstream_duration_seconds_count{{upstream=\"app\",server=\"{}\",status_class=\"2xx\"}} 3",
        one.address
    );
    assert!(metrics.contains(&counted), "{metrics}");
    let upstreams = gateway.read("/api/upstreams");
    assert_eq!(upstreams[0]["name"], "app");
    assert_eq!(upstreams[0]["servers"][0]["state"], "ready");
    assert_eq!(upstreams[0]["servers"][1]["state"], "drain");
    wait_until("all changes are logged", || {
        gateway.process.logged("admin change").len() == 3
    });
}

#[test]
fn a_change_of_something_unknown_is_refused() {
    let (one, other) = (Origin::start(), Origin::start());
    let gateway = Operated::run(&two_servers(&one, &other));
    let put = |path: &str, body: &str| {
        let put = gateway.admin().method("PUT", path).json(body);
        put.send().status
    };
    let own = format!("/api/upstreams/app/{}", one.address);
    assert_eq!(
        put("/api/upstreams/app/192.0.2.1:1", r#"{"state": "drain"}"#),
        404
    );
    assert_eq!(
        put(&own.replace("app", "nothing"), r#"{"state": "drain"}"#),
        404
    );
    assert_eq!(put(&own, r#"{"state": "off"}"#), 422);
    assert_eq!(put(&own, ""), 422);
    assert!(gateway.process.logged("admin change").is_empty());
}

#[test]
fn an_unhealthy_server_has_a_reason() {
    let origin = Origin::start();
    let config = CONFIG.replace(
        "[[routes]]\nrespond = { body = \"hello\" }",
        &format!(
            "[[upstreams]]\nname = \"app\"\nservers = [\"{}\", \"127.0.0.1:1\"]\n\
             health = {{ path = \"/\", interval = \"1s\", unhealthy = 1 }}\n[[routes]]\nupstream = \"app\"",
            origin.address
        ),
    );
    let gateway = Operated::run(&config);
    wait_until("it is unhealthy", || {
        gateway.read("/api/upstreams")[0]["servers"][1]["since"].is_string()
    });
    let server = &gateway.read("/api/upstreams")[0]["servers"][1];
    assert_eq!(server["health"], "unhealthy");
    let reason = server["reason"].as_str().unwrap();
    assert!(reason.starts_with("health check failed: "), "{reason}");
    wait_until("it needs attention", || {
        gateway.read("/api/status")["attention"][0]["id"] == "server:app/127.0.0.1:1"
    });
}

/// No health check says so: the gateway knows from the requests.
#[test]
fn a_dead_origin_server_is_seen_without_health_checks() {
    let origin = Origin::start();
    let dead = "127.0.0.1:1";
    let both = format!("\"{dead}\", \"{}\"", origin.address);
    for (servers, id) in [
        (format!("\"{dead}\""), "upstream:app"),
        (both, "server:app/127.0.0.1:1"),
    ] {
        let upstream = format!(
            "[[upstreams]]\nname = \"app\"\nbalance = \"round_robin\"\nservers = [{servers}]\n\
             [[routes]]\nupstream = \"app\""
        );
        let own = "[[routes]]\nrespond = { body = \"hello\" }";
        let gateway = Operated::run(&CONFIG.replace(own, &upstream));
        wait_until("it needs attention", || {
            gateway.client().get("/").times(5).statuses();
            gateway.read("/api/status")["attention"][0]["id"] == id
        });
        let metrics = gateway.admin().get("/metrics").send().text();
        let healthy = |value| {
            format!("lockgate_upstream_healthy{{upstream=\"app\",server=\"{dead}\"}} {value}\n")
        };
        let server = &gateway.read("/api/upstreams")[0]["servers"][0];
        if server["health"] == "healthy" {
            let entry = &gateway.read("/api/status")["attention"][0];
            assert_eq!(entry["text"], "Every request to app fails");
            assert!(metrics.contains(&healthy(1)), "{metrics}");
        } else {
            assert_eq!(server["reason"], "failing: the server refuses connections");
            assert!(metrics.contains(&healthy(0)), "{metrics}");
        }
    }
}

#[test]
fn requests_to_the_admin_port_never_count() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = Operated::run(&CONFIG.replace("access = \"off\"", &format!("access = {log:?}")));
    gateway.admin().get("/api/status").times(5).all_are(200);
    gateway.admin().get("/login").times(5).all_are(404);
    let metrics = Client::admin(gateway.admin).get("/metrics").send().text();
    let total = "lockgate_requests_total{";
    let counted = metrics
        .lines()
        .filter(|line| line.starts_with(total) && !line.ends_with(" 0"));
    assert_eq!(counted.count(), 0);
    assert_eq!(std::fs::read_to_string(&log).unwrap_or_default(), "");
}
