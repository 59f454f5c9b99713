//! What explain says of each algorithm, of costs, candidates and limits of a key.

use super::{human, json};

/// The line of each of `times` requests, without its number.
fn lines(rule: &str, times: &str, more: &[&str]) -> Vec<String> {
    let rule = format!(
        "[[rules]]\nname = \"r\"\nmitigate = 'http.request.uri.path eq \"/a\"'\nkey = [\"ip.src\"]\n{rule}"
    );
    let ask = ["GET", "http://example.com/a", "--repeat", times];
    let text = human(&rule, &[&ask[..], more].concat());
    let lines = text.lines().take_while(|line| !line.is_empty());
    let words = |line: &str| {
        let (_, what) = line.split_once("s  ").unwrap();
        what.replace("forwarded to upstream app", "forwarded")
    };
    lines.map(words).collect()
}

#[test]
fn a_ratio_shows_the_share() {
    let settings = "total = 'true'\nratio = 0.4\nlimit = 1\nperiod = \"1m\"";
    let throttled = [
        "forwarded (r: 1 of 1 (100 %), ratio 0.4)",
        "429 by rule r (r: 1 of 1 (100 %), ratio 0.4)",
    ];
    assert_eq!(lines(settings, "2", &[]), throttled);
    let rule = format!(
        "[[rules]]\nname = \"r\"\ncount = 'http.response.code eq 401'\nmitigate = 'true'\n{settings}\ncandidate = {{ ratio = 0.9 }}"
    );
    let ask = ["POST", "http://example.com/a", "--repeat", "2"];
    let text = human(&rule, &[&ask[..], &["--status", "401"]].concat());
    for line in [
        "  used      2 of 2 (100 %), ratio 0.4",
        "  candidate counted, 2 of 2 (100 %), ratio 0.9",
        "the response counted 2 of 2 (100 %), ratio 0.4, above the limit of 1 and the ratio of 0.4",
        "  total:",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let found = json(&rule, &[&ask[..], &["--status", "200"]].concat());
    let rule = &found["rules"][0];
    assert_eq!(
        (&rule["value"], &rule["total"]),
        (&0.into(), &2.into()),
        "{found}"
    );
    assert_eq!(rule["ratio"], 0.4);
}

#[test]
fn every_algorithm_reaches_its_limit() {
    let cases: [(&str, &[&str]); 7] = [
        (
            "algorithm = \"sliding_window\"\nlimit = 1\nperiod = \"1m\"\nslices = 6",
            &[
                "forwarded (r: 1 of 1)",
                "429 by rule r, Retry-After 70 (r: 1 of 1)",
            ],
        ),
        (
            "algorithm = \"fixed_window\"\nlimit = 1\nperiod = \"1m\"",
            &[
                "forwarded (r: 1 of 1)",
                "429 by rule r, Retry-After 60 (r: 1 of 1)",
            ],
        ),
        (
            "algorithm = \"sliding_log\"\nlimit = 1\nperiod = \"1m\"",
            &[
                "forwarded (r: 1 of 1)",
                "429 by rule r, Retry-After 60 (r: 1 of 1)",
            ],
        ),
        (
            "algorithm = \"token_bucket\"\nlimit = 6\nperiod = \"1m\"\nburst = 1",
            &[
                "forwarded (r: 1 of 1)",
                "429 by rule r, Retry-After 10 (r: 1 of 1)",
            ],
        ),
        (
            "algorithm = \"gcra\"\nlimit = 6\nperiod = \"1m\"\nburst = 1",
            &[
                "forwarded (r: 1 of 1)",
                "429 by rule r, Retry-After 10 (r: 1 of 1)",
            ],
        ),
        (
            "algorithm = \"leaky_bucket\"\nlimit = 1\nperiod = \"3s\"\nqueue = 1",
            &[
                "forwarded (r: 1 of 2)",
                "held for 3s, then forwarded (r: 2 of 2)",
                "429 by rule r, Retry-After 3 (r: 2 of 2)",
            ],
        ),
        // Who finds the queue full and is forwarded all the same comes behind it.
        (
            "algorithm = \"leaky_bucket\"\nlimit = 2\nperiod = \"1s\"\nqueue = 1\naction = \"delay\"\n\
             max_delay = \"1900ms\"",
            &[
                "forwarded (r: 1 of 2)",
                "held for 500ms, then forwarded (r: 2 of 2)",
                "held for 1s, then forwarded; rule r: delay (r: 2 of 2)",
                "held for 1500ms, then forwarded; rule r: delay (r: 2 of 2)",
                "held for 1900ms, then forwarded; rule r: delay (r: 2 of 2)",
                "held for 1900ms, then forwarded; rule r: delay (r: 2 of 2)",
            ],
        ),
    ];
    for (rule, expected) in cases {
        let times = expected.len().to_string();
        assert_eq!(lines(rule, &times, &[]), expected, "{rule}");
    }
}

#[test]
fn time_between_requests_restores_the_quota() {
    let bucket = "algorithm = \"token_bucket\"\nlimit = 6\nperiod = \"1m\"\nburst = 1";
    let told = lines(bucket, "3", &["--every", "10s"]);
    assert_eq!(told, ["forwarded (r: 1 of 1)"; 3]);
    let queue = "algorithm = \"leaky_bucket\"\nlimit = 1\nperiod = \"3s\"\nqueue = 1";
    let told = lines(queue, "3", &["--every", "2s"]);
    let expected = [
        "forwarded (r: 1 of 2)",
        "held for 1s, then forwarded (r: 2 of 2)",
        "held for 2s, then forwarded (r: 2 of 2)",
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_rest_of_a_ban_is_shown_like_retry_after() {
    let ban = "limit = 1\nperiod = \"1m\"\nduration = \"1h\"";
    let told = lines(ban, "3", &["--every", "500ms"]);
    let expected = [
        "forwarded (r: 1 of 1)",
        "429 by rule r, Retry-After 3600 (r: banned for 3600s)",
        "429 by rule r, Retry-After 3600 (r: banned for 3600s)",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_simulated_request_frees_its_slot_before_the_next() {
    let told = lines("algorithm = \"concurrency\"\nlimit = 1", "3", &[]);
    assert_eq!(told, ["forwarded (r: 1 of 1)"; 3]);
}

#[test]
fn a_candidate_and_a_cost_are_shown_and_change_nothing() {
    let rule = r#"
[[rules]]
name = "r"
mitigate = 'http.request.uri.path eq "/a"'
key = ["ip.src"]
algorithm = "fixed_window"
limit = 10
period = "1m"
cost = 3
candidate = { limit = 4 }
"#;
    let ask = ["GET", "http://example.com/a", "--repeat", "2"];
    let text = human(rule, &ask);
    let shown = "\
r: counted
  why       cost 3 and counted 6 of 10: within the limit
  count     yes
  mitigate  yes
  key       ip.src is 127.0.0.1
  cost      3
  used      6 of 10
  candidate would_block, 3 of 4
";
    assert!(text.contains(shown), "{text}");
    let report = json(rule, &ask);
    let rule = &report["rules"][0];
    assert_eq!(rule["cost"], 3);
    assert_eq!(rule["candidate"]["verdict"], "would_block");
    assert_eq!(rule["candidate"]["remaining"], 1);
    assert_eq!(report["decision"], "forward");
}

#[test]
fn a_limit_per_key_is_shown_with_that_of_the_rule() {
    let rule = r#"
[[rules]]
name = "r"
mitigate = 'http.request.uri.path eq "/a"'
key = ["ip.src"]
limit = 1000
period = "1m"
jitter = 0.5
"#;
    let limit = |ip: &str| {
        let report = json(rule, &["GET", "http://example.com/a", "--ip", ip]);
        let (limit, from) = (
            &report["rules"][0]["limit"],
            &report["rules"][0]["drawn_from"],
        );
        let limit = limit.as_u64().unwrap();
        assert!((500..=1_500).contains(&limit), "{limit}");
        assert!(from == 1_000 || limit == 1_000);
        limit
    };
    let addresses = ["203.0.113.1", "203.0.113.2", "203.0.113.3"];
    let drawn = addresses.map(limit);
    assert!(drawn.iter().any(|limit| *limit != drawn[0]), "{drawn:?}");
    assert_eq!(drawn, addresses.map(limit));
}

#[test]
fn a_shadow_response_shows_the_quota_headers_of_later_rules() {
    let rule = |name: &str, action: &str, more: &str| {
        format!(
            "[[rules]]\nname = \"{name}\"\naction = \"{action}\"\nkey = [\"ip.src\"]\n\
             limit = 2\nperiod = \"1m\"\nalgorithm = \"fixed_window\"\n{more}\n"
        )
    };
    let path = "mitigate = 'http.request.uri.path eq \"/a\"'";
    let late = format!("{path}\ncount = 'http.response.code eq 200'");
    let seen = "mitigate = 'http.request.uri.path eq \"/a\"'\ncost = 2";
    let rules = [
        rule("ban", "shadow", path),
        rule("told", "block", seen).replace("limit = 2", "limit = 100"),
        rule("late", "block", &late).replace("limit = 2", "limit = 100"),
    ]
    .concat();
    let ask = |times| json(&rules, &["GET", "http://example.com/a", "--repeat", times]);
    let report = ask("3");
    assert_eq!(report["decision"], "shadow");
    let headers = &report["response"]["headers"];
    // Two were forwarded: the third would be told of six units and of what was answered before it.
    assert_eq!(
        headers["ratelimit"],
        "\"told\";r=94;t=60, \"late\";r=97;t=60"
    );
    assert_eq!(
        headers["ratelimit-policy"],
        "\"told\";q=100;w=60, \"late\";q=100;w=60"
    );
    // Nothing is charged to them meanwhile.
    assert_eq!(ask("5")["response"]["headers"], *headers);
    let why = report["rules"][1]["why"].as_str().unwrap();
    assert_eq!(
        why,
        "not reached: rule ban ended the evaluation; its counter was read for the quota headers"
    );
}
