//! Each warning with a file that triggers it, and a variant of the file that does not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod counting;
mod order;

use proptest::prelude::*;

use crate::clock::Clock;
use crate::config::{self, ConfigSource, Diagnostics};

const TLS: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n";
const PLAIN: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n";

/// Returns the warnings of a file, except the one about the development certificate.
fn warnings(text: &str) -> Vec<String> {
    let source = ConfigSource::new("gateway.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = config::read(&source, &mut diagnostics);
    if let Some(file) = file.filter(|_| !diagnostics.has_errors()) {
        let now = Clock::System.now();
        config::compile(&file, &source, now, None, &mut diagnostics);
    }
    assert!(
        !diagnostics.has_errors(),
        "{text}\n{}",
        diagnostics.render(&source, false)
    );
    let found = diagnostics.sorted().into_iter();
    let found = found.inspect(|d| assert!(d.span.end <= text.len()));
    let found = found.map(|d| d.message.clone());
    found.filter(|m| !m.contains("certificate")).collect()
}

/// A rule with a limit, with these additional lines.
fn rule(lines: &str) -> String {
    format!("{TLS}[[rules]]\nname = \"r\"\nlimit = 5\nperiod = \"1m\"\n{lines}\n")
}

/// A deny rule with this expression.
fn deny(expression: &str) -> String {
    format!("{TLS}[[rules]]\nname = \"r\"\nmitigate = '{expression}'\n")
}

fn only(text: &str, message: &str) {
    assert_eq!(warnings(text), [message], "{text}");
}

fn none(text: &str) {
    assert_eq!(warnings(text), [] as [&str; 0], "{text}");
}

/// A second rule with a limit.
const GUARD: &str = "[[rules]]\nname = \"by-ip\"\nlimit = 9\nperiod = \"1m\"\n";

const PATH: &str = "mitigate = 'http.request.uri.path eq \"/a\"'\n";

#[test]
fn a_ban_on_a_shared_key() {
    let message = "a ban on this key applies to all clients that share it";
    let geo = "[geo.overrides]\n\"203.0.113.0/24\" = { asn = 1, country = \"ZZ\" }\n";
    for key in [
        "\"ip.src.asnum\"",
        "\"ip.src.country\"",
        "\"tls.ja4\"",
        "\"cf.bot_management.ja3_hash\"",
        "\"tls.ja4\", \"http.host\"",
        "\"http.user_agent\"",
        "\"http.request.uri.path\"",
    ] {
        let with = |rest: &str| rule(&format!("{PATH}key = [{key}]\n{rest}"));
        only(&(with("duration = \"1m\"") + geo), message);
        let narrower = format!("{PATH}key = [{key}, \"ip.src\"]\nduration = \"1m\"");
        let by_address = format!("{GUARD}key = [\"ip.src\"]\n{PATH}");
        none(&(rule(&narrower) + &by_address + geo));
    }
    none(&(rule(&format!("{PATH}key = [\"ip.src.asnum\"]\n")) + geo));
    only(
        &rule(&format!("{PATH}duration = \"1m\"")),
        "a ban without a key applies to all clients",
    );
    none(&rule(PATH));
}

#[test]
fn a_ban_on_all_who_lack_something() {
    let cookie = "key = ['http.request.cookies[\"s\"]', \"tls.ja4\"]\nduration = \"1m\"\n";
    let message = "clients without `http.request.cookies[\"s\"]` share one counter and one ban";
    let chosen = "clients can choose this key: each new value starts a new counter";
    let other = format!("{GUARD}key = [\"ip.src\"]\n{PATH}");
    let guarded = |lines: &str| format!("{}{other}", rule(&format!("{PATH}{lines}")));
    only(&guarded(cookie), message);
    none(&guarded(&format!("{cookie}missing = \"skip\"")));
    none(&guarded(
        "key = ['http.request.cookies[\"s\"]', \"ip.src\"]\nduration = \"1m\"",
    ));
    none(&guarded("key = ['http.request.cookies[\"s\"]']"));
    only(&rule(&format!("{PATH}{cookie}missing = \"skip\"")), chosen);
}

#[test]
fn a_key_that_the_client_chooses() {
    let message = "clients can choose this key: each new value starts a new counter";
    for key in [
        "http.request.headers[\"x-api-key\"]",
        "http.request.cookies[\"s\"][-1]",
        "http.request.uri.args[\"user\"]",
        "lower(http.user_agent)",
        "http.referer",
        "http.x_forwarded_for",
    ] {
        only(&rule(&format!("{PATH}key = ['{key}']")), message);
        // A client that changes one part gets a new counter, whatever the other part is.
        let with_address = rule(&format!("{PATH}key = ['{key}', \"ip.src\"]"));
        only(&with_address, message);
        let by_address = format!("{GUARD}key = [\"ip.src\"]\n{PATH}");
        none(&format!("{with_address}{by_address}"));
    }
    let header = rule(&format!(
        "{PATH}key = ['http.request.headers[\"x-api-key\"]']"
    ));
    let refusals = "count = 'http.response.code eq 401'\nkey = [\"ip.src\"]\n";
    none(&format!("{header}{GUARD}{refusals}{PATH}"));
    let other = "count = 'http.host eq \"b\" and http.response.code eq 401'\nkey = [\"ip.src\"]\n";
    only(&format!("{header}{GUARD}{other}{PATH}"), message);
    let elsewhere = "mitigate = 'http.host eq \"b\"'\n";
    only(&format!("{header}{GUARD}{refusals}{elsewhere}"), message);
    none(&rule(&format!("{PATH}key = ['http.request.uri.path']")));
    only(
        &rule(&format!("{PATH}key = ['ip.src', 'http.request.id']")),
        "this key differs for every request: its counters never reach the limit",
    );
}

#[test]
fn a_key_that_takes_a_client_little_to_change() {
    let message = "clients can choose this key: each new value starts a new counter";
    for part in ["tls.sni", "tls.ja3", "http.request.method"] {
        only(&rule(&format!("{PATH}key = ['ip.src', '{part}']")), message);
    }
    none(&rule(&format!("{PATH}key = ['ip.src', 'tls.ja4']")));
    none(&rule(
        "mitigate = 'http.request.method eq \"POST\"'\nkey = ['ip.src', 'http.request.method']",
    ));
    let by_host = rule(&format!("{PATH}key = ['ip.src', 'http.host']"));
    let route = |hosts: &str| format!("{by_host}[[routes]]\n{hosts}respond = {{ status = 200 }}\n");
    only(&route(""), message);
    only(&route("hosts = [\"*.example.com\"]\n"), message);
    none(&route("hosts = [\"example.com\"]\n"));
}

#[test]
fn a_key_of_which_only_some_values_are_counted() {
    let header = "http.request.headers[\"x-api-key\"]";
    let counted = |test: &str| {
        let lists = if test.contains("$gold") {
            "[lists]\ngold = [\"k1\", \"k2\"]\n"
        } else {
            ""
        };
        let rule = rule(&format!("mitigate = '{test}'\nkey = ['{header}']"));
        format!("{rule}{lists}")
    };
    none(&counted(&format!("{header}[0] in $gold")));
    none(&counted(&format!(
        "{header}[0] eq \"k1\" and http.host eq \"a\""
    )));
    let message = "clients can choose this key: each new value starts a new counter";
    for test in [
        format!("not {header}[0] in $gold"),
        format!("any({header}[*] in $gold)"),
        format!("{header}[0] in $gold or http.host eq \"a\""),
    ] {
        assert!(
            warnings(&counted(&test)).contains(&message.to_owned()),
            "{test}"
        );
    }
}

#[test]
fn a_key_behind_a_proxy() {
    let proxies = "[client_ip]\ntrusted_proxies = [\"10.0.0.0/8\"]\n";
    let peer = rule(&format!("{PATH}key = [\"ip.peer\"]\n"));
    only(
        &format!("{peer}{proxies}"),
        "`ip.peer` is the address of the trusted proxy, which all its clients share",
    );
    none(&peer);
    only(
        &format!("{TLS}[client_ip]\ntrusted_proxies = [\"0.0.0.0/0\"]\n"),
        "every host in 0.0.0.0/0 can set the client address",
    );
    let trusted = |network: &str| format!("{TLS}[client_ip]\ntrusted_proxies = [\"{network}\"]\n");
    none(&trusted("fc00::/7"));
    only(
        &trusted("fc00::/6"),
        "every host in fc00::/6 can set the client address",
    );
}

#[test]
fn a_rule_behind_another() {
    let two = |first: &str, rest: &str, second: &str| {
        format!(
            "{TLS}[[rules]]\nname = \"first\"\nmitigate = '{first}'\n{rest}\n\
             [[rules]]\nname = \"second\"\nmitigate = '{second}'\n"
        )
    };
    let hidden = "this rule never takes effect: the earlier rule `first` matches all its requests";
    let all = "this rule never takes effect: the earlier rule `first` matches every request";
    let path = "http.request.uri.path";
    for (first, second, expected) in [
        ("ssl", "ssl", Some(hidden)),
        ("true", "ssl", Some(all)),
        ("ssl or not ssl", "http.host eq \"a\"", Some(all)),
        (&format!("starts_with({path}, \"/\")"), "ssl", Some(all)),
        (
            &format!("starts_with({path}, \"/a\")"),
            &format!("{path} eq \"/ab\" and ssl"),
            Some(hidden),
        ),
        (
            &format!("starts_with({path}, \"/ab\")"),
            &format!("{path} eq \"/a\""),
            None,
        ),
        (
            &format!("{path} in {{\"/a\" \"/b\"}}"),
            &format!("{path} eq \"/b\""),
            Some(hidden),
        ),
        (
            &format!("{path} eq \"/b\""),
            &format!("{path} in {{\"/a\" \"/b\"}}"),
            None,
        ),
        (
            "ip.src in {10.0.0.0/8}",
            "ip.src in {10.1.0.0/16 10.2.3.4}",
            Some(hidden),
        ),
        ("ip.src in {10.1.0.0/16}", "ip.src in {10.0.0.0/8}", None),
        ("ssl and http.host eq \"a\"", "http.host eq \"a\"", None),
        (
            "http.host eq \"a\" or ssl",
            "ssl and http.host eq \"b\"",
            Some(hidden),
        ),
        (
            "http.request.body.size gt 10",
            "http.request.body.size in {11..20}",
            Some(hidden),
        ),
        (
            "not http.host eq \"a\"",
            "not http.host in {\"a\" \"b\"}",
            Some(hidden),
        ),
        (
            &format!("not starts_with({path}, \"/a\")"),
            &format!("{path} in {{\"/b\" \"/c\"}} and ssl"),
            Some(hidden),
        ),
        (
            &format!("not starts_with({path}, \"/a\")"),
            &format!("{path} in {{\"/ab\" \"/c\"}}"),
            None,
        ),
        (
            "not http.host in {\"a\" \"b\"}",
            "not http.host eq \"a\"",
            None,
        ),
    ] {
        let file = two(first, "action = \"allow\"", second);
        assert_eq!(
            warnings(&file),
            expected.into_iter().collect::<Vec<_>>(),
            "{file}"
        );
    }
    none(&two("ssl", "dry_run = true", "ssl"));
    none(&two("ssl", "action = \"log\"", "ssl"));
    none(&two("ssl", "enabled = false", "ssl"));
    none(&two(
        "ssl",
        "limit = 1\nperiod = \"1s\"\nkey = [\"ip.src\"]",
        "ssl",
    ));
}

#[test]
fn tests_that_exclude_each_other() {
    let never = |file: String, other: &str| {
        only(
            &file,
            &format!("this test and `{other}` are never both true"),
        );
    };
    never(
        deny(r#"http.host eq "a" and http.host eq "b""#),
        r#"http.host eq "a""#,
    );
    never(
        deny(r#"http.host in {"a" "b"} and ssl and http.host eq "c""#),
        r#"http.host in {"a" "b"}"#,
    );
    never(deny("ssl and not ssl"), "ssl");
    never(
        deny("http.request.body.size gt 10 and http.request.body.size eq 3"),
        "http.request.body.size gt 10",
    );
    never(
        deny(r#"starts_with(http.request.uri.path, "/a") and http.request.uri.path eq "/b""#),
        r#"starts_with(http.request.uri.path, "/a")"#,
    );
    for fine in [
        r#"http.host eq "a" or http.host eq "b""#,
        r#"http.host in {"a" "b"} and not http.host eq "b""#,
        "http.request.body.size gt 10 and http.request.body.size in {3..20}",
        r#"starts_with(http.request.uri.path, "/a") and starts_with(http.request.uri.path, "/a/b")"#,
        r#"any(http.request.headers["x"][*] eq "a") and any(http.request.headers["x"][*] eq "b")"#,
        r#"http.request.headers["x"][0] eq "a" and http.request.headers["x"][1] eq "b""#,
        r#"lower(http.host) eq "a" and http.host matches "b""#,
    ] {
        none(&deny(fine));
    }
}

#[test]
fn calls_with_other_arguments_are_other_values() {
    for expression in [
        r#"substring(http.host, 0, 1) eq "a" and substring(http.host, 1, 2) eq "b""#,
        r#"concat(http.host, "/") eq "a/" and concat("/", http.host) eq "/a""#,
        r#"concat(http.host, ssl) eq "a" and concat(http.host, http.referer) eq "ab""#,
        r#"split(http.host, ".")[0] eq "a" and split(http.host, "-")[0] eq "b""#,
        r#"len(concat(http.host, "a")) eq 3 and len(concat(http.host, "ab")) eq 4"#,
        r#"not has_key(http.request.headers, "a") and has_key(http.request.headers, "b")"#,
    ] {
        none(&deny(expression));
    }
    let any = |name| {
        let names = "http.request.headers.names[*]";
        format!(r#"any({names} eq "{name}" or {names} eq "x")"#)
    };
    none(&deny(&format!("{} and not {}", any("a"), any("b"))));
    only(
        &deny(r#"substring(http.host, 0, 1) eq "a" and substring(http.host, 0, 1) eq "b""#),
        "this test and `substring(http.host, 0, 1) eq \"a\"` are never both true",
    );
}

#[test]
fn nested_expressions_are_compared_in_bounded_time() {
    let nested = |name: &str| {
        let mut text = "ssl".to_owned();
        for at in 0..50 {
            let join = ["or", "and"][at % 2];
            text = format!("({text}) {join} http.host eq \"{name}{at}\"");
        }
        text
    };
    let rule = |name: &str| {
        format!(
            "[[rules]]\nname = \"{name}\"\nmitigate = '{}'\n",
            nested(name)
        )
    };
    none(&format!("{TLS}{}{}", rule("a"), rule("b")));
}

#[test]
fn values_that_never_come() {
    let geo = "[geo.overrides]\n\"203.0.113.0/24\" = { asn = 1, country = \"DE\" }\n";
    let wrong = [
        r#"ip.src.country eq "de""#,
        r#"ip.geoip.country in {"DE" "DEU"}"#,
        r#"ip.src.continent eq "Europe""#,
        r#"http.request.method eq "post""#,
        r#"http.request.version eq "1.1""#,
        r#"http.request.uri.path eq "login""#,
        r#"http.request.uri.path eq "/a//b""#,
        r#"http.request.uri.path eq "/a?b=1""#,
        r#"http.request.uri.path in {"/%61"}"#,
        r#"starts_with(http.request.uri.path, "api")"#,
        r#"starts_with(http.request.uri.path, "/%61dmin")"#,
        r#"http.request.uri.path contains "?id=""#,
        r#"http.request.uri.path wildcard "api/*""#,
        r#"http.request.uri.path strict wildcard "/a?b=*""#,
        r#"http.host eq "*.example.com""#,
        r#"http.request.uri.path.extension eq "tar.gz""#,
        r#"http.host eq "Example.com""#,
        r#"http.host eq "example.com:8443""#,
        r#"http.host ne "https://example.com""#,
        r#"tls.version eq "TLS 1.3""#,
        r#"cf.tls_cipher in {"ECDHE-RSA-AES128-GCM-SHA256"}"#,
        r#"tls.alpn eq "h3""#,
        r#"tls.ja3 eq "abc""#,
        r#"tls.ja4 eq "t13d1516h2_8daaf6152771""#,
        r#"http.request.uri.path.extension in {".php"}"#,
        r#"any(http.request.headers.names[*] eq "X-Api-Key")"#,
        r#"http.request.full_uri eq "example.com/""#,
        "ip.src.asnum eq 4294967296",
    ];
    for expression in wrong {
        let found = warnings(&(deny(expression) + geo));
        assert_eq!(found.len(), 1, "{expression}: {found:?}");
        assert!(found[0].contains("never has this value: "), "{found:?}");
    }
    let fine = [
        r#"ip.src.country in {"DE" "T1"}"#,
        r#"ip.src.continent eq "EU""#,
        r#"http.request.method eq "POST""#,
        r#"http.request.version eq "HTTP/1.1""#,
        r#"http.request.uri.path eq "/a/%2Fb""#,
        r#"starts_with(http.request.uri.path, "/.well-known/")"#,
        r#"starts_with(http.request.uri.path, "/a%2")"#,
        r#"starts_with(http.request.uri.path, "/a%2F")"#,
        r#"http.request.uri.path contains "login""#,
        r#"http.request.uri.path wildcard "*.php""#,
        r#"http.host wildcard "*.example.com""#,
        r#"http.host eq "[2001:db8::1]""#,
        r#"tls.version eq "TLSv1.3""#,
        r#"tls.cipher eq "TLS_AES_128_GCM_SHA256""#,
        r#"tls.ja4 eq "t13d1516h2_8daaf6152771_02713d6af862""#,
        r#"http.request.uri.path.extension eq "php""#,
        r#"lower(http.request.method) eq "get""#,
    ];
    for expression in fine {
        none(&(deny(expression) + geo));
    }
    let status = format!("count = 'http.response.code in {{4 401}}'\n{PATH}key = [\"ip.src\"]");
    only(
        &rule(&status),
        "`http.response.code` never has this value: its range is 100 to 599",
    );
}

#[test]
fn headers_that_are_empty_or_missing() {
    let message = "`http.user_agent` is missing, not empty, if the header was not sent";
    for test in [
        r#"http.user_agent eq """#,
        r#"not http.user_agent in {"-" ""}"#,
    ] {
        only(&deny(test), message);
    }
    for test in [
        r#"http.user_agent ne """#,
        r#"http.user_agent eq "-""#,
        "not len(http.user_agent) gt 0",
        r#"http.request.headers["x"][0] eq """#,
        r#"http.request.uri.query eq """#,
    ] {
        none(&deny(test));
    }
}

#[test]
fn fields_that_nothing_fills() {
    let asn = deny("ip.geoip.asnum eq 1");
    only(
        &asn,
        "`ip.geoip.asnum` is always missing: no database provides it",
    );
    none(&format!(
        "{asn}[geo.overrides]\n\"203.0.113.0/24\" = {{ asn = 1 }}\n"
    ));
    let key = rule(&format!("{PATH}key = [\"ip.src.country\"]"));
    only(
        &key,
        "`ip.src.country` is always missing: no database provides it",
    );
    let ja4 = deny("len(tls.ja4) gt 1");
    only(
        &ja4.replace(TLS, PLAIN),
        "`tls.ja4` is always missing: no listener uses TLS",
    );
    none(&ja4);
    let ssl = deny("ssl");
    only(
        &ssl.replace(TLS, PLAIN),
        "`ssl` is always false: no listener uses TLS",
    );
    none(&ssl);
}

#[test]
fn a_name_in_a_string_is_no_field() {
    none(&format!(
        "{PLAIN}[[rules]]\nname = \"r\"\nmitigate = 'http.host contains \"ip.src.asnum tls.ja4\"'\n"
    ));
}

#[test]
fn values_that_are_easily_changed() {
    only(
        &deny(r#"raw.http.request.uri.path eq "/a""#),
        "other spellings of the same path bypass this test, such as `/%6cogin`",
    );
    none(&deny(r#"raw.http.request.uri.path contains "//""#));
    only(
        &deny(r#"http.x_forwarded_for contains "10.""#),
        "clients can send any value in `X-Forwarded-For`",
    );
}

#[test]
fn all_but_one_value() {
    let message = "`ne` is false if the value is missing; on Cloudflare it is true";
    only(
        &deny(r#"http.request.headers["x-key"][0] ne "s3cret""#),
        message,
    );
    only(&deny(r#"http.user_agent != "curl" and ssl"#), message);
    none(&deny(r#"not http.request.headers["x-key"][0] eq "s3cret""#));
    none(&deny(r#"http.request.method ne "GET""#));
    none(&deny(r#"http.request.uri.path ne "/a""#));
}

#[test]
fn arguments_that_are_decoded_already() {
    let message = "arguments are compared decoded: `+` is a space and `%41` is `A`";
    only(
        &deny(r#"http.request.uri.args["q"][0] eq "red+apples""#),
        message,
    );
    only(
        &deny(r#"any(http.request.uri.args["q"][*] in {"a" "%41"})"#),
        message,
    );
    none(&deny(r#"http.request.uri.args["q"][0] eq "red apples""#));
}

#[test]
fn tokens_that_are_not_verified() {
    let message = "`jwt_claim` does not verify the token: any client can forge one";
    let claim = "jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")";
    only(&deny(&format!("{claim} eq \"a\"")), message);
    let chosen = "clients can choose this key: each new value starts a new counter";
    let found = warnings(&rule(&format!("{PATH}key = ['{claim}']")));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|m| m == message) && found.iter().any(|m| m == chosen));
}

#[test]
fn what_nothing_uses() {
    only(
        &format!("{TLS}[lists]\noffice = [\"192.0.2.1\"]\n"),
        "no rule or route uses the list `office`",
    );
    none(&(deny("ip.src in $office") + "[lists]\noffice = [\"192.0.2.1\"]\n"));
    only(
        &format!("{TLS}[responses.late]\nbody = \"x\"\n"),
        "no rule or route uses the response `late`",
    );
    only(
        &format!("{TLS}[[upstreams]]\nname = \"app\"\nservers = [\"127.0.0.1:1\"]\n"),
        "no rule or route uses the upstream `app`",
    );
}

#[test]
fn routes_behind_wider_ones() {
    let routes = |first: &str, second: &str| {
        format!("{TLS}[[routes]]\n{first}\nrespond = {{}}\n[[routes]]\n{second}\nrespond = {{}}\n")
    };
    let message = "no request reaches this route";
    only(&routes("", "path = \"/a\""), message);
    only(&routes("path = \"/a/*\"", "path = \"/a/b\""), message);
    only(&routes("path = \"/a/{x}\"", "path = \"/a/{x}\""), message);
    only(
        &routes("hosts = [\"a\", \"b\"]", "hosts = [\"b\"]\npath = \"/a\""),
        message,
    );
    only(&routes("path = \"/a/{x}\"", "path = \"/a/b\""), message);
    only(&routes("path = \"/a/*\"", "path = \"/a/{x}/c\""), message);
    only(&routes("path = \"/{x}/*\"", "path = \"/a/*\""), message);
    none(&routes("path = \"/{x}\"", "path = \"/a/*\""));
    none(&routes("path = \"/a/b\"", "path = \"/a/{x}\""));
    none(&routes("path = \"/x/*\"", "path = \"/{x}/a\""));
    let hosts = |first: &str, second: &str| {
        routes(
            &format!("hosts = [\"{first}\"]"),
            &format!("hosts = [\"{second}\"]"),
        )
    };
    only(&hosts("*.example.com", "api.example.com"), message);
    only(&hosts("*.example.com", "*.api.example.com:8443"), message);
    only(&hosts("example.com", "example.com:8443"), message);
    none(&hosts("*.example.com", "example.com"));
    none(&hosts("example.com:8443", "example.com"));
    none(&routes("path = \"/a/b\"", "path = \"/a/*\""));
    none(&routes("hosts = [\"a\"]", "hosts = [\"b\"]"));
    none(&routes("hosts = [\"a\"]", ""));
}

#[test]
fn the_demo_bans_by_a_shared_key_and_knows_it() {
    only(
        include_str!("../../../gateway.toml"),
        "a ban on this key applies to all clients that share it",
    );
}

proptest! {
    #[test]
    fn any_value_is_survived(value in "[ -~]{0,12}", field in 0usize..8) {
        let fields = [
            "http.host", "http.request.uri.path", "ip.src.country", "tls.version", "tls.ja4",
            "http.request.version", "http.request.uri", "http.request.uri.path.extension",
        ];
        let value = value.replace(['\'', '"', '\\'], "");
        let file = deny(&format!("{} in {{\"{value}\" \"x\"}}", fields[field]));
        warnings(&file);
    }
}

#[test]
fn a_proxy_header_without_trusted_proxies() {
    let file = |trusted: &str| {
        format!(
            "[client_ip]\ntrusted_proxies = [{trusted}]\n\
             [[listeners]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n"
        )
    };
    only(
        &file(""),
        "no client can connect: only trusted proxies can send a PROXY header",
    );
    none(&file("\"10.0.0.1\""));
}

/// A ban on a shared key, with these lines above the key.
fn shared(above: &str) -> String {
    rule(&format!(
        "{PATH}duration = \"1m\"\n{above}key = [\"tls.ja4\"]"
    ))
}

#[test]
fn a_comment_above_the_line_silences_its_warning() {
    let message = "a ban on this key applies to all clients that share it";
    none(&shared("# lockgate: allow shared-key\n"));
    none(&shared("# lockgate: allow raw-path, shared-key\n"));
    none(&shared(
        "# lockgate: allow shared-key\n# They share it on purpose.\n",
    ));
    only(&shared("# lockgate: allow chosen-key\n"), message);
    only(&shared("# lockgate: allow shared-key\n\n"), message);
    only(&(shared("") + "# lockgate: allow shared-key\n"), message);
}

#[test]
fn a_comment_covers_all_lines_of_its_setting() {
    let lines = |above: &str| {
        format!(
            "{TLS}[[rules]]\nname = \"r\"\n{above}mitigate = '''\nssl and\n\
             http.x_forwarded_for eq \"a\"'''\n"
        )
    };
    only(
        &lines(""),
        "clients can send any value in `X-Forwarded-For`",
    );
    none(&lines("# lockgate: allow unverified-value\n"));
    let key = shared("# lockgate: allow shared-key\n");
    none(&key.replace("[\"tls.ja4\"]", "[\n  \"tls.ja4\",\n]"));
}

#[test]
fn a_line_of_a_string_is_no_comment() {
    let body = "[responses.a]\nbody = '''\n# lockgate: allow unused\n'''\n";
    only(
        &format!("{TLS}{body}"),
        "no rule or route uses the response `a`",
    );
    let above = "# lockgate: allow unused\n";
    none(&format!("{TLS}{above}{body}"));
}

#[test]
fn an_unknown_code_in_a_comment_is_an_error() {
    for (comment, message) in [
        (
            "# lockgate: allow shard-key",
            "unknown warning `shard-key`; did you mean `shared-key`?",
        ),
        (
            "# lockgate: silence shared-key",
            "expected `allow` and the code of a warning after `lockgate:`",
        ),
    ] {
        let source = ConfigSource::new("gateway.toml", format!("{PLAIN}{comment}\n"));
        let mut diagnostics = Diagnostics::new();
        config::read(&source, &mut diagnostics);
        assert!(diagnostics.has_errors());
        assert_eq!(diagnostics.sorted()[0].message, message);
    }
}
