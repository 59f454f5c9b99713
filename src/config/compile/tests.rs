//! The compiled keys of rules, and key errors that only compilation detects.

mod routes;

use std::path::Path;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{self, ConfigSource, Diagnostics};
use crate::limit::Algorithm;
use crate::observe::LogHandle;
use crate::process::ProcessState;
use crate::rules::{BanLength, Rule, RuleCost};
use crate::snapshot::{RouteTarget, Snapshot};
use crate::store::StoreBounds;

const BASE: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n\
                    [[upstreams]]\nname = \"honeypot\"\nservers = [\"127.0.0.1:9\"]\n";

/// Compiles the text and installs it in a separate process state.
fn compile(text: &str) -> Result<Snapshot, String> {
    let source = ConfigSource::new("folder/gateway.toml", format!("{text}\n{BASE}"));
    let mut diagnostics = Diagnostics::new();
    let file = config::read(&source, &mut diagnostics).unwrap();
    let now = Clock::System.now();
    let blueprint = config::compile(&file, &source, now, None, &mut diagnostics);
    let blueprint = blueprint.ok_or_else(|| diagnostics.render(&source, false))?;
    let process =
        ProcessState::new(Clock::System, LogHandle::off(), StoreBounds::keys(1000)).unwrap();
    Ok(process.install(blueprint, None, None))
}

/// A rule that counts by address, with these additional lines.
fn rule(lines: &str) -> String {
    format!("[[rules]]\nname = \"r\"\nmitigate = 'ssl'\nkey = [\"ip.src\"]\nlimit = 10\n{lines}\n")
}

fn compiled(lines: &str) -> Snapshot {
    compile(&rule(lines)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(lines: &str, message: &str) {
    let errors = compile(&rule(lines)).err().unwrap();
    assert!(errors.contains(message), "{errors}");
    assert_eq!(errors.matches("error:").count(), 1, "{errors}");
}

fn first(snapshot: &Snapshot) -> &Rule {
    snapshot.rules.iter().next().unwrap().1
}

#[test]
fn every_setting_reaches_its_rule() {
    let lines = "period = \"1m\"\nalgorithm = \"gcra\"\nburst = 20\njitter = 0.25\ncost = 2\n\
                 escalate = [\"10m\", \"1h\"]\naction = \"tarpit\"\nmax_delay = \"3s\"";
    let snapshot = compiled(lines);
    let rule = first(&snapshot);
    let limiter = rule.limiter.unwrap();
    assert_eq!(limiter.algorithm, Algorithm::Gcra);
    assert_eq!((limiter.limit, limiter.burst), (10, 20));
    assert_eq!(rule.jitter.0, 250_000);
    assert!(matches!(rule.cost, RuleCost::Fixed(2)));
    assert_eq!(rule.ban.length(0), Duration::from_secs(600));
    assert_eq!(rule.ban.length(9), Duration::from_secs(3_600));
    assert_eq!(rule.max_delay, Duration::from_secs(3));
    assert!(rule.candidate.is_none());
}

#[test]
fn absent_settings_have_their_defaults() {
    let snapshot = compiled("period = \"1m\"\nalgorithm = \"token_bucket\"");
    let rule = first(&snapshot);
    assert_eq!(rule.limiter.unwrap().burst, 10);
    assert_eq!(rule.ban, BanLength::Never);
    let snapshot = compiled("period = \"1m\"\nalgorithm = \"leaky_bucket\"");
    let limiter = first(&snapshot).limiter.unwrap();
    assert_eq!(
        (limiter.queue, limiter.max_wait),
        (100, Duration::from_secs(5))
    );
    let snapshot = compiled("algorithm = \"concurrency\"");
    assert_eq!(first(&snapshot).limiter.unwrap().period, Duration::ZERO);
}

#[test]
fn a_candidate_inherits_absent_settings_from_its_rule() {
    let snapshot = compiled("period = \"1m\"\nslices = 60\ncandidate = { limit = 20 }");
    let tried = first(&snapshot).candidate.unwrap().limiter;
    assert_eq!((tried.limit, tried.slices), (20, 60));
    assert_eq!(tried.period, Duration::from_secs(60));
    // GCRA has no sub-windows. The rule sets no `burst`, so it equals the limit.
    let snapshot = compiled("period = \"1m\"\nslices = 60\ncandidate = { algorithm = \"gcra\" }");
    let tried = first(&snapshot).candidate.unwrap().limiter;
    assert_eq!((tried.slices, tried.burst), (1, 10));
}

#[test]
fn a_candidate_has_its_own_identity() {
    let text = rule("period = \"1m\"\ncandidate = { limit = 20 }");
    let snapshot = compile(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let rule = first(&snapshot);
    let candidate = rule.candidate.unwrap().id;
    assert_ne!(candidate.identity, rule.id.identity);
    assert_ne!(candidate.slot, rule.id.slot);
    let identities = snapshot.rules.identities();
    assert_eq!(identities, [rule.id.identity, candidate.identity]);
}

/// Returns the identities of the rule and of its candidate.
fn identities(lines: &str) -> Vec<u64> {
    compiled(lines).rules.identities()
}

#[test]
fn a_rule_keeps_its_identity_while_its_counting_settings_stay() {
    let plain = "period = \"1m\"";
    let same = [
        "period = \"60s\"\nslices = 1",
        "period = \"1m\"\ncost = 2\njitter = 0.5\naction = \"close\"",
        "period = \"1m\"\nescalate = [\"1m\"]",
    ];
    for lines in same {
        assert_eq!(identities(lines), identities(plain), "{lines}");
    }
    let other = [
        "period = \"2m\"",
        "period = \"1m\"\nslices = 60",
        "period = \"1m\"\nalgorithm = \"fixed_window\"",
        "period = \"1m\"\nmissing = \"skip\"",
    ];
    for lines in other {
        assert_ne!(identities(lines), identities(plain), "{lines}");
    }
    let bucket = |burst: &str| format!("period = \"1m\"\nalgorithm = \"gcra\"\nburst = {burst}");
    assert_eq!(identities(&bucket("1")), identities(&bucket("2")));
    let tried = |limit: &str| format!("{plain}\ncandidate = {{ limit = {limit} }}");
    assert_eq!(identities(&tried("1")), identities(&tried("2")));
    let tried = |period: &str| format!("{plain}\ncandidate = {{ period = \"{period}\" }}");
    assert_eq!(identities(&tried("1s"))[0], identities(&tried("2s"))[0]);
    assert_ne!(identities(&tried("1s"))[1], identities(&tried("2s"))[1]);
}

#[test]
fn a_named_key_has_the_identity_of_its_definition() {
    let keyed = |part: &str| {
        let names = "[expressions]\nhost = 'lower(http.host)'\nalias = '@host'\n";
        let rule = rule("period = \"1m\"").replace("\"ip.src\"", &format!("'{part}'"));
        compile(&format!("{names}{rule}"))
            .unwrap()
            .rules
            .identities()
    };
    assert_eq!(keyed("@host"), keyed("lower(http.host)"));
    assert_eq!(keyed("@alias"), keyed("lower(http.host)"));
    assert_ne!(keyed("@host"), keyed("http.host"));
}

/// If an identity changes, the rule loses every counter and ban at the next start.
#[test]
fn identities_never_change() {
    let limited = |lines: &str| format!("period = \"1m\"\n{lines}");
    let algorithm = |name: &str| limited(&format!("algorithm = \"{name}\""));
    let known: [(String, &[u64]); 12] = [
        (limited(""), &[934_469_654_076_227_907]),
        (limited("missing = \"skip\""), &[5_722_941_315_969_916_818]),
        (limited("slices = 60"), &[16_715_957_019_990_813_550]),
        (
            limited("[client_ip]\nipv4_prefix = 24\nipv6_prefix = 48"),
            &[4_329_635_167_530_197_385],
        ),
        (algorithm("fixed_window"), &[17_627_594_218_551_337_164]),
        (algorithm("sliding_log"), &[2_364_598_669_789_351_346]),
        (algorithm("token_bucket"), &[10_180_406_171_415_658_618]),
        (algorithm("leaky_bucket"), &[3_132_573_894_376_725_385]),
        (algorithm("gcra"), &[15_889_456_178_986_153_212]),
        (
            "algorithm = \"concurrency\"".to_owned(),
            &[8_046_234_583_044_515_287],
        ),
        (
            limited("candidate = { algorithm = \"gcra\" }"),
            &[934_469_654_076_227_907, 18_432_974_999_158_676_778],
        ),
        (
            limited("candidate = { limit = 5, period = \"10s\" }"),
            &[934_469_654_076_227_907, 14_671_112_437_649_865_300],
        ),
    ];
    for (lines, identities) in known {
        assert_eq!(self::identities(&lines), identities, "{lines}");
    }
    let text = "[[rules]]\nname = \"deny\"\nmitigate = 'ssl'\n\
                [[rules]]\nname = \"two-parts\"\nmitigate = 'ssl'\n\
                key = [\"ip.src\", \" http.host \"]\nlimit = 1\nperiod = \"1h\"";
    let snapshot = compile(text).unwrap_or_else(|errors| panic!("{errors}"));
    let known = [7_054_345_657_587_183_300, 11_100_932_586_709_290_729];
    assert_eq!(snapshot.rules.identities(), known);
}

#[test]
fn divert_uses_the_upstream_of_the_rule() {
    let snapshot = compiled("period = \"1m\"\naction = \"divert\"\nupstream = \"honeypot\"");
    let target = snapshot.rule_resources[0].divert.as_ref();
    assert!(
        matches!(target, Some(RouteTarget::Upstream { upstream, .. }) if &*upstream.name == "honeypot")
    );
    let snapshot = compiled("period = \"1m\"");
    assert!(snapshot.rule_resources[0].divert.is_none());
}

#[test]
fn a_route_without_header_changes_compiles_to_none() {
    let edits = |lines: &str| {
        let text = format!("[[routes]]\nupstream = \"honeypot\"\n{lines}");
        let snapshot = compile(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let (_, route) = snapshot.routes.iter().next().unwrap();
        route.edits.clone()
    };
    assert!(edits("request_headers = { set = {} }\nforward_path = \"normalized\"").is_none());
    assert!(edits("strip_prefix = \"/api\"").is_some());
    assert!(edits("response_headers = { remove = [\"server\"] }").is_some());
    let text = "[[routes]]\nupstream = \"honeypot\"\nstrip_prefix = \"/api/\"";
    let errors = compile(text).err().unwrap();
    assert!(
        errors.contains(":3:16: error: `/api/` ends with `/`; write `/api`"),
        "{errors}"
    );
}

#[test]
fn only_shadow_responses_imitate() {
    for (action, imitates) in [("shadow", true), ("block", false), ("tarpit", false)] {
        let lines = format!("period = \"1m\"\naction = \"{action}\"\nresponse = \"ok\"");
        let snapshot = compiled(&format!("{lines}\n[responses.ok]\nimitate = true"));
        let response = snapshot.rule_resources[0].response.as_ref().unwrap();
        assert_eq!(response.imitate, imitates);
        let status = if imitates { 200 } else { 429 };
        assert_eq!(response.status.as_u16(), status);
    }
}

#[test]
fn paths_are_relative_to_the_file() {
    let server = "[server]\nsecret_file = \"secret\"\nmax_held = 7\n";
    let store = "[store]\nsnapshot = \"/var/counters\"\nmax_log_bytes = \"1MiB\"\n";
    let source = ConfigSource::new("folder/gateway.toml", format!("{server}{store}{BASE}"));
    let file = config::read(&source, &mut Diagnostics::new()).unwrap();
    let startup = config::startup_settings(&file, &source);
    assert_eq!(
        startup.secret_file.as_deref(),
        Some(Path::new("folder/secret"))
    );
    assert_eq!(
        startup.snapshot.as_deref(),
        Some(Path::new("/var/counters"))
    );
    assert_eq!(startup.bounds.max_log_bytes, 1 << 20);
    assert_eq!(file.server.max_held.value, 7);
}

#[test]
fn a_cost_is_an_integer() {
    let cost = |cost: &str| format!("period = \"1m\"\ncost = '{cost}'");
    let is = |kind: &str| format!("a cost is an integer; this expression is {kind}");
    refused(&cost("http.host"), &is("a string"));
    refused(&cost("ip.src"), &is("an address"));
    refused(&cost("ssl"), &is("true or false"));
    refused(
        &cost("len(http.hst)"),
        "gateway.toml:7:13: error: unknown field `http.hst`",
    );
    compiled(&cost("http.response.duration_ms"));
    let help = "for a response header, write `cost = { response_header = \"x-complexity\" }`";
    for header in [
        "x-complexity",
        "http.response.headers.x-complexity",
        "http.response.headers[\"X-Complexity\"]",
        "http.response.headers[\"x-complexity\"][0]",
    ] {
        refused(&cost(header), help);
    }
    let neither = "a cost is an integer or an expression; `complexity` is neither";
    refused(&cost("complexity"), neither);
    refused(&cost("status"), "did you mean `http.response.code`?");
}

#[test]
fn a_number_in_quotes_is_not_an_expression() {
    let message = "gateway.toml:7:8: error: a constant cost is written without quotes";
    refused("period = \"1m\"\ncost = '5'", message);
}

#[test]
fn every_template_error_in_a_body_is_reported() {
    let body = "{{uid}} {{uuid}} {{int 5 1}} {{";
    let text = format!("[responses.r]\nbody = \"{body}\"");
    let errors = compile(&text).err().unwrap();
    for error in [
        ":2:9: error: unknown template value `uid`",
        ":2:26: error: `int` takes two whole numbers",
        ":2:38: error: `{{` without `}}`",
    ] {
        assert!(errors.contains(error), "{errors}");
    }
    assert_eq!(errors.matches("error:").count(), 3, "{errors}");
}

#[test]
fn header_templates_are_checked_like_the_body() {
    let shadow = |value: &str| {
        let response = format!("[responses.a]\nheaders = {{ x-a = \"{value}\" }}\n");
        format!("period = \"1m\"\naction = \"shadow\"\nresponse = \"a\"\n{response}")
    };
    compiled(&shadow("{{uuid}}; {{request.id}}"));
    refused(&shadow("a {{uid}}"), "unknown template value `uid`");
    let message = "a shadow response must not contain the rule name or a retry delay";
    refused(&shadow("{{rule}}"), message);
    compiled(&shadow("{{rule}}").replace("shadow", "block"));
}

#[test]
fn algorithms_with_slots_cannot_read_the_response() {
    let count = "count = 'http.response.code eq 401'";
    let header = "cost = { response_header = \"x-cost\" }";
    let late = "cost = 'http.response.duration_ms'";
    for (algorithm, period) in [("concurrency", ""), ("leaky_bucket", "period = \"1m\"\n")] {
        let with = |line: &str| format!("{period}algorithm = \"{algorithm}\"\n{line}");
        let message = |key: &str| {
            format!("`{algorithm}` takes a slot in the request phase: `{key}` cannot read")
        };
        refused(&with(count), &message("count"));
        refused(&with(header), &message("cost"));
        refused(&with(late), &message("cost"));
        compiled(&with("cost = 'len(http.request.uri.path)'"));
    }
    let tried = "period = \"1m\"\ncandidate = { algorithm = \"concurrency\" }";
    refused(
        &format!("{tried}\n{count}"),
        "a candidate `concurrency` takes a slot in the request phase: `count` cannot read",
    );
}

#[test]
fn the_access_log_contains_fields_that_rules_read() {
    let labels = |lines: &str| -> Vec<String> {
        let fields = compiled(&format!("period = \"1m\"\n{lines}"))
            .settings
            .logged
            .key_fields;
        fields.into_iter().map(|field| field.label).collect()
    };
    assert_eq!(
        labels("cost = 'len(http.request.headers[\"x-work\"][0])'"),
        ["http.request.headers[\"x-work\"]"]
    );
    assert_eq!(
        labels("cost = { response_header = \"X-Cost\" }"),
        ["http.response.headers[\"x-cost\"]"]
    );
    assert_eq!(
        labels("count = 'http.response.code eq 401 and upstream.error eq \"timeout\"'"),
        ["upstream.error"]
    );
    assert_eq!(
        labels(
            "count = 'http.request.body.raw contains \"x\" and http.request.body.mime eq \"text/x\"'"
        ),
        ["http.request.body.mime"],
        "not the whole body, which may contain a password"
    );
}
