//! What a client, an origin and an operator see of each action, over real sockets.

mod held;
mod places;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Answer, END, Folder, Frames, Heard, Origin, Running, Wire, wait_until};

/// A body that the gateway reads on though nobody wants it.
const SMALL: usize = 1 << 10;
/// A body that it does not.
const LARGE: usize = 512 << 10;

/// Every action, with who answers and how.
const ACTIONS: [(&str, By, u16); 9] = [
    ("block", By::Gateway, 429),
    ("shadow", By::Gateway, 200),
    ("divert", By::Pot, 200),
    ("delay", By::Origin, 200),
    ("tarpit", By::Gateway, 429),
    ("close", By::Nobody, 0),
    ("tag", By::Origin, 200),
    ("log", By::Origin, 200),
    ("allow", By::Origin, 200),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Gateway,
    Origin,
    Pot,
    Nobody,
}

/// A gateway whose rules are named like their actions, each for the paths below its name, in
/// front of an origin and of a pot that `divert` leads to.
struct Site {
    gateway: Running,
    pot: Origin,
    /// What the origin and the pot had seen before.
    before: (usize, usize),
}

impl Site {
    fn open(log: &str) -> Self {
        let pot = Origin::start();
        let config = format!("{}{}{}", beginning(log), upstream("pot", &pot), rules());
        let gateway = Running::on(&config);
        let before = (0, 0);
        Self {
            gateway,
            pot,
            before,
        }
    }

    /// Who got the last request.
    fn asked(&mut self) -> By {
        let now = (self.gateway.origin.count(), self.pot.count());
        let before = std::mem::replace(&mut self.before, now);
        match (now.0 - before.0, now.1 - before.1) {
            (0, 0) => By::Gateway,
            (1, 0) => By::Origin,
            (0, 1) => By::Pot,
            more => panic!("{more:?} requests for one"),
        }
    }

    /// The answer came from where it should, and the connection goes on.
    #[track_caller]
    fn check(&mut self, (action, by, status): (&str, By, u16), answer: &Answer) {
        assert_eq!(answer.status, status, "{action}");
        assert_eq!(self.asked(), by, "{action}");
        let tells = ["retry-after", "ratelimit", "ratelimit-policy"];
        let told = tells.map(|name| answer.header(name).is_some());
        // A plain deny rule has no wait to tell, and no quota.
        assert_eq!(told, [false; 3], "{action}");
    }
}

fn beginning(log: &str) -> String {
    format!(
        r#"
        [server]
        workers = 2
        drain_timeout = "5s"
        [log]
        access = {log:?}
        [[listeners]]
        address = "127.0.0.1:0"
        [[listeners]]
        address = "127.0.0.1:0"
        [listeners.tls]
        [[upstreams]]
        name = "origin"
        servers = ["{{origin}}"]
        [[routes]]
        upstream = "origin"
        "#
    )
}

fn upstream(name: &str, origin: &Origin) -> String {
    let address = origin.address;
    format!("[[upstreams]]\nname = \"{name}\"\nservers = [\"{address}\"]\n")
}

fn rules() -> String {
    let rules = ACTIONS.map(|(action, _, _)| {
        let more = match action {
            "divert" => "upstream = \"pot\"",
            "delay" | "tarpit" => "max_delay = \"20ms\"",
            _ => "",
        };
        deny(action, &format!("/{action}"), action, more)
    });
    rules.concat()
}

/// A rule that acts on every request below a path.
fn deny(name: &str, path: &str, action: &str, more: &str) -> String {
    format!(
        "[[rules]]\nname = \"{name}\"\naction = \"{action}\"\n{more}\n\
         mitigate = 'starts_with(http.request.uri.path, \"{path}\")'\n"
    )
}

fn head(method: &str, path: &str, version: &str, length: usize) -> String {
    let length = match length {
        0 => String::new(),
        length => format!("content-length: {length}\r\n"),
    };
    format!("{method} {path} HTTP/{version}\r\nhost: example.com\r\n{length}\r\n")
}

fn stream(method: &str, path: &str) -> [(&'static str, String); 4] {
    [
        (":method", method.to_owned()),
        (":scheme", "http".to_owned()),
        (":authority", "example.com".to_owned()),
        (":path", path.to_owned()),
    ]
}

fn frames(method: &str, path: &str, body: usize) -> Frames {
    let fields = stream(method, path);
    let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    match body {
        0 => Frames::default().headers(&fields, END),
        _ => Frames::default()
            .headers(&fields, 0)
            .data(&vec![b'x'; body], END),
    }
}

#[test]
fn requests_without_a_body_get_a_response_and_the_connection_stays_open() {
    let mut site = Site::open("off");
    for method in ["GET", "HEAD", "OPTIONS"] {
        for row @ (action, by, _) in ACTIONS {
            let mut wire = site.gateway.client().connect();
            wire.send(head(method, &format!("/{action}/x"), "1.1", 0).as_bytes());
            if by == By::Nobody {
                assert_eq!(wire.rest(), b"", "{method} {action}");
                assert_eq!(site.asked(), By::Gateway);
                continue;
            }
            let answer = match method {
                "HEAD" => Answer::parse(&wire.head()),
                _ => wire.answer(),
            };
            site.check(row, &answer);
            assert!(
                answer.header("content-length").is_some(),
                "{method} {action}"
            );
            assert_eq!(answer.header("connection"), None, "{method} {action}");
            // Nothing of an answer to HEAD is left over.
            assert_eq!(wire.get("/next").text(), "origin GET /next HTTP/1.1");
            assert_eq!(site.asked(), By::Origin);
        }
    }
}

#[test]
fn a_small_unused_body_is_drained_and_the_connection_stays_open() {
    let mut site = Site::open("off");
    for row @ (action, by, _) in ACTIONS {
        let mut wire = site.gateway.client().connect();
        let head = head("POST", &format!("/{action}/x"), "1.1", SMALL);
        wire.send(&[head.as_bytes(), &[b'x'; SMALL]].concat());
        if by == By::Nobody {
            assert_eq!(wire.rest(), b"");
            assert_eq!(site.asked(), By::Gateway);
            continue;
        }
        let answer = wire.answer();
        site.check(row, &answer);
        assert_eq!(answer.header("connection"), None, "{action}");
        if by != By::Gateway {
            assert_eq!(answer.body, [b'x'; SMALL], "{action}");
        }
        assert_eq!(wire.get("/next").status, 200, "{action}");
        assert_eq!(site.asked(), By::Origin);
    }
}

#[test]
fn a_large_unused_body_closes_the_connection() {
    let mut site = Site::open("off");
    for row @ (action, by, _) in ACTIONS {
        let head = head("POST", &format!("/{action}/x"), "1.1", LARGE);
        let next = b"GET /next HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n";
        let bytes = [head.as_bytes(), &vec![b'x'; LARGE], next].concat();
        let came = site.gateway.client().raw(&bytes);
        if by == By::Nobody {
            assert_eq!(came, b"");
            assert_eq!(site.asked(), By::Gateway);
            continue;
        }
        let answers = came.windows(9).filter(|w| w == b"HTTP/1.1 ").count();
        let answer = Answer::parse(&came);
        if ["block", "tarpit"].contains(&action) {
            site.check(row, &answer);
            assert_eq!(answers, 1, "{action}");
            assert_eq!(answer.header("connection"), Some("close"), "{action}");
        } else {
            // Read to its end, by the origin or as the origin would.
            assert_eq!((answer.status, answers), (200, 2), "{action}");
            let seen = site.gateway.origin.seen();
            assert_eq!(seen.last().unwrap().line, "GET /next HTTP/1.1");
            site.before = (site.gateway.origin.count(), site.pot.count());
        }
    }
}

#[test]
fn an_http_1_0_request_gets_a_response_and_a_close() {
    let mut site = Site::open("off");
    for row @ (action, by, _) in ACTIONS {
        for length in [0, SMALL] {
            let head = head("POST", &format!("/{action}/x"), "1.0", length);
            let bytes = [head.as_bytes(), &vec![b'x'; length]].concat();
            let came = site.gateway.client().raw(&bytes);
            match by {
                By::Nobody => assert_eq!((came, site.asked()), (vec![], By::Gateway)),
                _ => site.check(row, &Answer::parse(&came)),
            }
        }
    }
}

#[test]
fn http_2_streams_get_a_response_or_a_reset() {
    let mut site = Site::open("off");
    for (method, body) in [
        ("GET", 0),
        ("HEAD", 0),
        ("OPTIONS", 0),
        ("POST", SMALL),
        // More than one frame may carry.
        ("POST", 16 << 10),
    ] {
        for (action, by, status) in ACTIONS {
            let frames = frames(method, &format!("/{action}/x"), body);
            let heard = frames.heard(site.gateway.client().connect());
            let case = format!("{method} {body} {action}");
            match by {
                // INTERNAL_ERROR: unlike REFUSED_STREAM it does not ask for another try.
                By::Nobody => assert_eq!(heard, Heard::Reset(2), "{case}"),
                _ => assert_eq!(heard, Heard::Status(status), "{case}"),
            }
            let asked = site.asked();
            assert!(
                asked == by || by == By::Nobody && asked == By::Gateway,
                "{case}"
            );
        }
    }
}

#[test]
fn every_action_is_counted_and_logged() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let site = Site::open(log.to_str().unwrap());
    for (action, _, _) in ACTIONS {
        let client = site.gateway.client();
        client.get(&format!("/{action}/x")).send();
    }
    let lines = logged(&log, ACTIONS.len());
    for ((action, by, status), line) in ACTIONS.into_iter().zip(&lines) {
        let upstream = match by {
            By::Pot => Value::from("pot"),
            By::Origin => Value::from("origin"),
            By::Gateway | By::Nobody => Value::Null,
        };
        let status = if by == By::Nobody { 444 } else { status };
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(
            (&line["rule"], &line["action"]),
            (&action.into(), &action.into())
        );
        assert_eq!(line["upstream"], upstream, "{action}");
        if ["delay", "tarpit"].contains(&action) {
            assert!(line["duration_ms"].as_f64().unwrap() >= 20.0, "{line}");
        }
    }
    let metrics = site.gateway.metrics();
    for (action, _, _) in ACTIONS {
        let series =
            format!("lockgate_rule_mitigated_total{{rule=\"{action}\",action=\"{action}\"}} 1\n");
        assert!(metrics.contains(&series), "{series}");
    }
    let errors = metrics
        .lines()
        .filter(|l| l.contains("protocol_errors_total{"));
    assert!(errors.clone().count() > 0);
    assert!(errors.clone().all(|line| line.ends_with(" 0")), "{metrics}");
}

/// The lines of an access log, once it has so many.
fn logged(log: &Path, count: usize) -> Vec<Value> {
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(log).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        whole
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    wait_until("the lines are written", || lines().len() >= count);
    let lines = lines();
    assert_eq!(lines.len(), count);
    lines
}

#[test]
fn a_tag_header_names_all_rules_in_order_and_clients_cannot_forge_it() {
    let pot = Origin::start();
    let rules = [
        deny("first", "/", "tag", ""),
        deny("second", "/a", "tag", ""),
        deny("away", "/a/pot", "divert", "upstream = \"pot\""),
        deny("third", "/a", "tag", ""),
    ];
    let config = format!(
        "{}{}{}",
        beginning("off"),
        upstream("pot", &pot),
        rules.concat()
    );
    let gateway = Running::on(&config);
    let client = gateway.client().header("x-lockgate-rule", "mine");
    for (path, origin, tags) in [
        ("/b", &gateway.origin, "first"),
        ("/a", &gateway.origin, "first, second, third"),
        // What a rule diverts no later rule sees.
        ("/a/pot", &pot, "first, second"),
    ] {
        assert_eq!(client.clone().get(path).send().status, 200);
        let seen = origin.seen();
        let fields = seen.last().unwrap().headers.iter();
        let tagged: Vec<_> = fields.filter(|(n, _)| n.contains("lockgate")).collect();
        assert_eq!(tagged, [&("x-lockgate-rule".to_owned(), tags.to_owned())]);
    }
}

#[test]
fn a_websocket_is_tagged_and_diverted() {
    let echo = || {
        Origin::scripted(|stream| {
            let mut wire = Wire::new(stream.try_clone().unwrap());
            let Some(head) = wire.try_head() else { return };
            let head = String::from_utf8(head).unwrap();
            assert!(head.contains("\r\nx-lockgate-rule: tagged\r\n"), "{head}");
            wire.send(
                b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\
                  connection: upgrade\r\n\r\nfirst",
            );
            let _ = std::io::copy(&mut &stream, &mut &stream);
        })
    };
    let (origin, pot) = (echo(), echo());
    let rules = [
        deny("tagged", "/", "tag", ""),
        deny("away", "/pot", "divert", "upstream = \"pot\""),
    ];
    let config = format!(
        "{}{}{}",
        beginning("off"),
        upstream("pot", &pot),
        rules.concat()
    );
    let gateway = Running::on(&config.replace("{origin}", &origin.address.to_string()));
    for path in ["/chat", "/pot"] {
        let mut wire = gateway.client().connect();
        wire.send(upgrade(path).as_bytes());
        assert_eq!(wire.answer().status, 101);
        assert_eq!(wire.exactly(5), b"first");
        wire.send(b"again");
        assert_eq!(wire.exactly(5), b"again");
    }
}

fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: example.com\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n"
    )
}

#[test]
fn a_diverted_response_shows_other_quotas_and_is_not_counted() {
    let pot = Origin::start();
    let rules = r#"
        [[rules]]
        name = "all"
        mitigate = 'true'
        key = ["ip.src"]
        limit = 9
        period = "1h"
        [[rules]]
        name = "answers"
        count = 'http.response.code in {200 502}'
        mitigate = 'http.request.uri.path eq "/"'
        key = ["ip.src"]
        limit = 1
        period = "1h"
    "#;
    let rules = rules.replace("'true'", "'starts_with(http.request.uri.path, \"/\")'");
    let away = deny("away", "/pot", "divert", "upstream = \"pot\"");
    let down = deny("down", "/down", "divert", "upstream = \"down\"");
    let nobody = "[[upstreams]]\nname = \"down\"\nservers = [\"127.0.0.1:1\"]\n";
    let pots = upstream("pot", &pot);
    let config = format!("{}{pots}{nobody}{rules}{away}{down}", beginning("off"));
    let gateway = Running::on(&config);
    let answers = gateway.client().get("/pot").times(3);
    let quota = answers.all_are(200).header("ratelimit").map(str::to_owned);
    assert_eq!(
        quota.as_deref(),
        Some("\"all\";r=6;t=6360, \"answers\";r=0;t=6360")
    );
    assert_eq!(pot.count(), 3);
    gateway.client().get("/down").times(3).all_are(502);
    // Had any of them counted, this would be refused.
    gateway.client().get("/").times(2).then(200, 429);
}

#[test]
fn a_candidate_mitigates_no_request_and_differences_are_counted() {
    let rule = |candidate: u32| {
        format!(
            "[[rules]]\nname = \"tried\"\nkey = [\"ip.src\"]\nlimit = 2\nperiod = \"1h\"\n\
             mitigate = 'starts_with(http.request.uri.path, \"/\")'\n\
             candidate = {{ limit = {candidate} }}\n"
        )
    };
    for (candidate, acts, passes) in [(1, 1, 0), (2, 0, 0), (3, 0, 1)] {
        let gateway = Running::on(&format!("{}{}", beginning("off"), rule(candidate)));
        gateway.client().get("/").times(3).then(200, 429);
        let metrics = gateway.metrics();
        for (live, tried, count) in [("pass", "act", acts), ("act", "pass", passes)] {
            let labels = format!("rule=\"tried\",live=\"{live}\",candidate=\"{tried}\"");
            let series = format!("lockgate_rule_divergence_total{{{labels}}} {count}\n");
            assert!(metrics.contains(&series), "limit = {candidate}: {series}");
        }
    }
}
