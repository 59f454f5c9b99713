//! The values that are read from a file.

use std::path::Path;
use std::time::Duration;

use crate::config::file::{ConfigFile, ListItems, RouteTargetSettings};
use crate::config::{ConfigSource, Diagnostics, Severity, load, read};
use crate::decision::Action;

fn read_ok(text: &str) -> ConfigFile {
    let source = ConfigSource::new("t.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = read(&source, &mut diagnostics);
    assert!(
        diagnostics.is_empty(),
        "{}",
        diagnostics.render(&source, false)
    );
    file.unwrap()
}

const LISTENER: &str = "[[listeners]]\naddress = '127.0.0.1:0'\n";

#[test]
fn a_listener_is_enough_and_the_rest_has_defaults() {
    let file = read_ok(LISTENER);
    assert_eq!(file.server.drain_timeout.value, Duration::from_secs(30));
    assert_eq!(file.limits.connection.max_header_bytes, 32 << 10);
    assert_eq!(file.client_ip.ipv6_prefix.value, 64);
    assert_eq!(file.log.redact.len(), 4);
    assert!(file.admin.is_none() && file.rules.is_empty());
}

#[test]
fn the_example_of_the_contract_is_read() {
    let text = include_str!("../../../tests/data/config/ok_full.toml");
    let file = read_ok(text);
    assert_eq!(file.upstreams[0].servers.len(), 2);
    assert!(matches!(
        file.routes[0].target,
        Some(RouteTargetSettings::Upstream(_))
    ));
    assert!(matches!(
        file.routes[1].target,
        Some(RouteTargetSettings::Respond(_))
    ));
    assert!(matches!(
        file.routes[2].target,
        Some(RouteTargetSettings::Redirect(_))
    ));
    assert!(matches!(&file.lists[0].items, ListItems::Inline(items) if items.len() == 2));
    assert!(matches!(file.lists[1].items, ListItems::File(_)));
    let rule = &file.rules[0];
    assert_eq!(rule.action.value, Action::Shadow);
    assert_eq!(rule.limit.as_ref().unwrap().value, 5);
    let bans: Vec<u64> = rule.escalate.iter().map(|b| b.value.as_secs()).collect();
    assert_eq!(bans, [600, 3_600, 86_400]);
    assert_eq!(
        rule.candidate
            .as_ref()
            .unwrap()
            .burst
            .as_ref()
            .unwrap()
            .value,
        5
    );
    assert!(file.responses[0].imitate.value && file.store.snapshot.value.is_none());
}

#[test]
fn cloudflare_names_are_aliases() {
    let file = read_ok(&format!(
        "{LISTENER}[[rules]]\nname = 'a'\nexpression = 'ssl'\ncounting_expression = 'not ssl'\n\
         characteristics = ['ip.src']\nrequests_per_period = 10\nperiod = 60\n\
         mitigation_timeout = 600\n"
    ));
    let rule = &file.rules[0];
    assert_eq!(rule.mitigate.as_ref().unwrap().value, "ssl");
    assert_eq!(rule.count.as_ref().unwrap().value, "not ssl");
    assert_eq!(rule.key[0].value, "ip.src");
    assert_eq!(rule.period.as_ref().unwrap().value, Duration::from_secs(60));
    assert_eq!(rule.duration.value, Duration::from_secs(600));
}

#[test]
fn a_limit_of_zero_means_no_limit() {
    let file = read_ok(&format!(
        "{LISTENER}[[rules]]\nname = 'a'\ncount = 'ssl'\nlimit = 0\n"
    ));
    assert!(file.rules[0].limit.is_none());
}

#[test]
fn a_file_with_errors_is_still_returned() {
    let source = ConfigSource::new(
        "t.toml",
        "[[rules]]\nname = 'a'\ncount = 'ssl'\nlimit = 'x'\n",
    );
    let mut diagnostics = Diagnostics::new();
    let file = read(&source, &mut diagnostics).unwrap();
    assert!(diagnostics.has_errors());
    assert_eq!(file.rules[0].count.as_ref().unwrap().value, "ssl");
}

#[test]
fn an_unreadable_file_is_reported() {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = load(Path::new("no/such/gateway.toml"), &mut diagnostics);
    assert!(file.is_none());
    let text = diagnostics.render(&source, false);
    let start = "no/such/gateway.toml:1:1: error: cannot read: ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("`lockgate init` writes a file"), "{text}");
    assert_eq!(text.lines().count(), 2);
}

/// Returns the diagnostics of a file with these bytes.
fn refusal(name: &str, bytes: &[u8]) -> String {
    let name = format!("lockgate-{name}-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).unwrap();
    let mut diagnostics = Diagnostics::new();
    let (source, file) = load(&path, &mut diagnostics);
    std::fs::remove_file(&path).unwrap();
    assert!(file.is_none());
    diagnostics.render(&source, false)
}

#[test]
fn invalid_utf8_is_marked_at_its_first_byte() {
    let text = refusal("config", b"# \xc3\xa4\nx = \"\xff\"\n");
    assert!(
        text.contains(":2:6: error: cannot read: not UTF-8\n"),
        "{text}"
    );
}

#[test]
fn a_binary_file_is_refused_without_an_excerpt() {
    let text = refusal("program", b"\x7fELF\x02\x01\x00\x00\xff\xfe");
    assert!(
        text.contains("cannot read: this is not a text file\n"),
        "{text}"
    );
    assert!(!text.contains("ELF"), "{text}");
}

#[test]
fn colour_does_not_change_the_text() {
    let source = ConfigSource::new("t.toml", "lsteners = 1\n");
    let mut diagnostics = Diagnostics::new();
    read(&source, &mut diagnostics);
    let text = diagnostics.render(&source, true);
    assert!(text.contains("\u{1b}["));
    assert!(text.contains("did you mean `listeners`?"));
}

#[test]
fn diagnostics_can_be_read_as_data() {
    let source = ConfigSource::new("t.toml", "# ü\n[[listeners]]\nprotcols = ['h2']\n");
    let mut diagnostics = Diagnostics::new();
    read(&source, &mut diagnostics);
    let list = diagnostics.sorted();
    assert_eq!(list[0].message, "`address` is missing");
    assert_eq!(
        list[1].message,
        "unknown setting `protcols`; did you mean `protocols`?"
    );
    assert!(list.iter().all(|d| d.severity == Severity::Error));
    assert_eq!(source.position(list[1].span.start).line, 3);
}

#[test]
fn an_error_in_an_expression_is_marked_inside_it() {
    let text = format!("# ü\n{LISTENER}[[rules]]\nname = 'a'\ncount = \"ä eq \\\"x\\\" or pth\"\n");
    let source = ConfigSource::new("t.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = read(&source, &mut diagnostics).unwrap();
    let count = file.rules[0].count.as_ref().unwrap();
    let at = count.value.find("pth").unwrap();
    diagnostics.error(count.inner(&source, at..at + 3), "unknown field `pth`");
    let expected = [
        "t.toml:6:24: error: unknown field `pth`",
        "  |",
        "6 | count = \"ä eq \\\"x\\\" or pth\"",
        "  |                        ^^^",
        "",
    ];
    assert_eq!(diagnostics.render(&source, false), expected.join("\n"));
}
