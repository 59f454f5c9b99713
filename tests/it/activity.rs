//! What the gateway remembers about requests, for people: rates, decisions, hottest keys and bans.

use std::sync::Arc;

use lockgate::clock::Clock;
use lockgate::observe::activity::{
    ActionClass, ActivityHub, ClientDecisions, ClientQuery, DecisionFilter, MarkerKind,
    StreamEvents,
};
use lockgate::rules::{BanId, RuleId};
use serde_json::Value;

use crate::harness::{Client, Running, wait_until};

/// With one worker, what it records arrives in order.
const BEGINNING: &str = r#"
[server]
workers = 1
drain_timeout = "5s"
[log]
access = "off"
[client_ip]
trusted_proxies = ["127.0.0.1/32"]
[geo.overrides]
"203.0.113.0/24" = { asn = 64500, country = "ZZ" }
[[listeners]]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[[upstreams]]
name = "origin"
servers = ["{origin}"]
[[routes]]
upstream = "origin"
"#;

/// Failed logins ban a client and a session; the other rules only look.
const RULES: &str = r#"
[[rules]]
name = "logins"
count = 'http.request.method eq "POST" and http.response.code eq 401'
mitigate = 'http.request.uri.path eq "/login"'
key = ["ip.src", 'http.request.cookies["sid"]']
limit = 3
period = "1m"
duration = "10m"
[[rules]]
name = "trial"
mitigate = 'http.request.uri.path eq "/trial"'
dry_run = true
[[rules]]
name = "tagged"
mitigate = 'http.request.uri.path eq "/tag"'
action = "tag"
"#;

fn start(rules: &str) -> Running {
    Running::on(&format!("{BEGINNING}\n{rules}"))
}

fn hub(gateway: &Running) -> Arc<ActivityHub> {
    gateway.gateway().live().process.activity.clone()
}

fn rule(gateway: &Running, name: &str) -> RuleId {
    let snapshot = gateway.gateway().live().current.load();
    let mut rules = snapshot.rules.iter();
    rules.find(|(_, rule)| &*rule.name == name).unwrap().1.id
}

fn bot(gateway: &Running) -> Client {
    let client = gateway.client().from("203.0.113.7");
    let client = client.header("cookie", "sid=s3cret");
    client.header("user-agent", "bot/1").post("/login")
}

/// The requests per second of a class, over the whole history.
fn rate(gateway: &Running, class: ActionClass) -> f32 {
    let now = gateway.clock.now();
    let (history, _) = hub(gateway).history(900, now);
    history.actions_per_s[class.index()].iter().sum()
}

fn decisions(gateway: &Running, client: &str) -> ClientDecisions {
    let query = ClientQuery::Address(client.parse().unwrap());
    hub(gateway).decisions(&query)
}

#[test]
fn a_ban_can_be_explained_afterwards() {
    let gateway = start(RULES);
    bot(&gateway).wants(401).times(4).all_are(401);
    bot(&gateway).times(3).all_are(429);
    wait_until("the decisions are known", || {
        decisions(&gateway, "203.0.113.7").mitigated == 3
    });
    let found = decisions(&gateway, "203.0.113.7");
    let newest: Value = serde_json::from_str(&found.newest[0].to_json()).unwrap();
    for (field, value) in [
        ("client_ip", Value::from("203.0.113.7")),
        ("asn", 64500.into()),
        ("country", "ZZ".into()),
        ("method", "POST".into()),
        ("path", "/login".into()),
        ("status", 429.into()),
        ("user_agent", "bot/1".into()),
        ("rule", "logins".into()),
        ("action", "block".into()),
        ("dry_run", false.into()),
        ("banned", true.into()),
        ("count", Value::Null),
        ("limit", 3.into()),
    ] {
        assert_eq!(newest[field], value, "{field}");
    }
    let key = newest["key"].as_str().unwrap();
    assert!(
        key.starts_with("203.0.113.7 h:") && !key.contains("s3cret"),
        "{key}"
    );
    let by_id = hub(&gateway).decision_by_id(newest["id"].as_str().unwrap());
    assert_eq!(by_id.as_ref(), found.newest.first());

    let logins = rule(&gateway, "logins");
    let now = gateway.clock.now();
    let ban = gateway.gateway().live().process.store.bans(now).remove(0);
    let figures = hub(&gateway)
        .ban_figures(BanId::of(logins, &ban.key))
        .unwrap();
    assert_eq!((figures.mitigated, figures.addresses()), (3, 1));
    assert_eq!((figures.last_seen, figures.is_own), (Some(now), true));
    let cause = "4 × POST /login 401 in 1 min, bot/1";
    assert_eq!(figures.cause.as_deref(), Some(cause));
    let (_, markers) = hub(&gateway).history(5, now);
    assert_eq!(markers[0].kind, MarkerKind::Ban);

    let hottest = hub(&gateway).hottest(logins, 10);
    assert_eq!((hottest.len(), &hottest[0].key), (1, &ban.key));
    let sample: Value = serde_json::from_str(hottest[0].sample.as_ref().unwrap()).unwrap();
    assert_eq!(
        (&sample["status"], &sample["ip"]),
        (&401.into(), &"203.0.113.7".into())
    );
    let hidden = sample["headers"]["cookie"].as_str().unwrap();
    assert!(hidden.starts_with("h:"), "{hidden}");
    assert_eq!(sample["headers"]["user-agent"], "bot/1");
}

#[test]
fn every_request_has_one_class() {
    let gateway = start(RULES);
    let client = gateway.client();
    client.clone().get("/trial").times(2).all_are(200);
    client.clone().get("/tag").times(2).all_are(200);
    let broken = b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n";
    assert!(client.raw(broken).starts_with(b"HTTP/1.1 400"));
    assert!(
        client
            .raw(b"GET / / HTTP/1.1\r\n\r\n")
            .starts_with(b"HTTP/1.1 400")
    );
    client.clone().get("/").wants(404).send();
    wait_until("a tick has the requests", || {
        rate(&gateway, ActionClass::Own) > 0.0
    });
    let known = [ActionClass::Forward, ActionClass::Tag, ActionClass::Own];
    for class in ActionClass::ALL {
        let is_known = known.contains(&class);
        assert_eq!(rate(&gateway, class) > 0.0, is_known, "{}", class.name());
    }
    let found = decisions(&gateway, "127.0.0.1");
    assert_eq!(
        found.mitigated, 2,
        "the tagged ones; a dry run does nothing"
    );
    let mut trial = found.newest.iter().filter(|one| one.dry_run);
    let trial = trial.next().unwrap();
    assert_eq!(
        (trial.action, trial.repeat, trial.limit),
        ("block", 2, None)
    );
    assert_eq!(trial.key.as_deref(), Some(""));
}

#[test]
fn requests_for_the_challenge_path_are_no_decisions() {
    let gateway = start(
        r#"
        [challenge]
        [[rules]]
        name = "pages"
        mitigate = 'starts_with(http.request.uri.path, "/p")'
        action = "challenge"
        "#,
    );
    let client = gateway.tls_client();
    client.clone().get("/.lockgate/nothing").send();
    client.clone().post("/.lockgate/challenge").send();
    client.clone().get("/p").send();
    wait_until("a tick has the challenge", || {
        rate(&gateway, ActionClass::Challenge) > 0.0
    });
    assert_eq!(rate(&gateway, ActionClass::Own), 0.0);
    assert_eq!(rate(&gateway, ActionClass::Forward), 0.0);
    let challenged = &decisions(&gateway, "127.0.0.1").newest[0];
    assert_eq!(
        (challenged.action, &*challenged.path),
        ("challenge", b"/p".as_slice())
    );
}

/// Takes events until there is one that `wanted` accepts.
fn events(
    gateway: &Running,
    filter: DecisionFilter,
    act: impl FnOnce(),
    wanted: impl Fn(&StreamEvents) -> bool,
) -> StreamEvents {
    let stream = hub(gateway).subscribe(filter);
    act();
    let mut found = StreamEvents::default();
    wait_until("the stream has the event", || {
        found = stream.take().unwrap_or_default();
        wanted(&found)
    });
    found
}

#[test]
fn a_stream_shows_what_happens() {
    let gateway = start(RULES);
    let all = DecisionFilter::default();
    let first = events(&gateway, all.clone(), || (), |events| events.tick.is_some());
    let tick: Value = serde_json::from_str(&first.tick.unwrap()).unwrap();
    assert_eq!(tick["rules"]["logins"]["candidate"], Value::Null);
    let forward = || {
        gateway.client().get("/free").times(5).all_are(200);
    };
    let has_decision = |events: &StreamEvents| !events.decisions.is_empty();
    let shown = events(&gateway, all, forward, has_decision);
    let shown: Value = serde_json::from_str(&shown.decisions[0]).unwrap();
    assert_eq!(
        (&shown["action"], &shown["rule"]),
        (&"forward".into(), &Value::Null)
    );
    let tagged = DecisionFilter {
        rule: Some("tagged".to_owned()),
        ..DecisionFilter::default()
    };
    let act = || {
        forward();
        gateway.client().get("/tag").times(2).all_are(200);
    };
    let shown = events(&gateway, tagged, act, has_decision);
    let shown: Value = serde_json::from_str(&shown.decisions[0]).unwrap();
    assert_eq!(
        (&shown["rule"], &shown["path"]),
        (&"tagged".into(), &"/tag".into())
    );
}

#[test]
fn a_reload_is_marked_and_forgets_removed_rules() {
    let gateway = start(RULES);
    bot(&gateway).wants(401).times(2).all_are(401);
    let logins = rule(&gateway, "logins");
    wait_until("the key is known", || {
        hub(&gateway).hottest(logins, 1).len() == 1
    });
    assert!(gateway.reload_whole("nonsense = 1").is_err());
    gateway.reload_whole(BEGINNING).unwrap();
    assert!(hub(&gateway).hottest(logins, 1).is_empty());
    let (history, markers) = hub(&gateway).history(5, Clock::System.now());
    assert!(history.rules.is_empty());
    let reloads: Vec<_> = markers.iter().map(|one| (one.kind, one.bad)).collect();
    assert_eq!(
        reloads,
        [(MarkerKind::Reload, true), (MarkerKind::Reload, false)]
    );
    assert!(
        markers[0].text.contains("gateway.toml:1:1"),
        "{}",
        markers[0].text
    );
}
