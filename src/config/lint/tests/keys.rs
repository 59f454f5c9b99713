//! Warnings of keys that clients share or choose.

use super::{GUARD, PATH, none, only, rule, warnings};

#[test]
fn a_ban_on_a_shared_key() {
    let message = "a ban on this key applies to all clients that share it";
    let geo = "[geo.overrides]\n\"203.0.113.0/24\" = { asn = 1, country = \"ZZ\" }\n";
    for key in [
        "\"ip.src.asnum\"",
        "\"ip.src.country\"",
        "\"tls.ja4\"",
        "\"tls.ja4\", \"http.host\"",
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
fn a_shared_key_that_clients_choose_has_both_warnings() {
    let shared = "a ban on this key applies to all clients that share it";
    let chosen = "clients can choose this key: each new value starts a new counter";
    let geo = "[geo.overrides]\n\"203.0.113.0/24\" = { asn = 1 }\n";
    let guard = format!("{GUARD}key = [\"ip.src\"]\n{PATH}");
    for key in [
        "\"tls.ja4\", \"ip.src.asnum\", \"http.user_agent\"",
        "\"cf.bot_management.ja3_hash\"",
        "\"http.user_agent\"",
    ] {
        let with = |rest: &str| rule(&format!("{PATH}key = [{key}]\n{rest}"));
        only(&(with("") + geo), chosen);
        let ban = with("duration = \"1m\"") + geo;
        assert_eq!(warnings(&ban), [shared, chosen], "{key}");
        only(&(ban + &guard), shared);
        let own = format!("{PATH}key = [{key}, \"ip.src\"]\nduration = \"1m\"");
        none(&(rule(&own) + &guard + geo));
    }
}

#[test]
fn a_ban_shared_by_all_clients_without_a_key_part() {
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
fn a_key_that_clients_choose() {
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
    let refusals = "count = 'http.response.code eq 401'\nheaders = \"none\"\nkey = [\"ip.src\"]\n";
    none(&format!("{header}{GUARD}{refusals}{PATH}"));
    let other = "count = 'http.host eq \"b\" and http.response.code eq 401'\nheaders = \"none\"\nkey = [\"ip.src\"]\n";
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
fn a_key_that_clients_can_change_easily() {
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
fn a_peer_address_is_shared_behind_a_trusted_proxy() {
    let proxies = "[client_ip]\ntrusted_proxies = [\"10.0.0.0/8\"]\n";
    let peer = rule(&format!("{PATH}key = [\"ip.peer\"]\n"));
    only(
        &format!("{peer}{proxies}"),
        "`ip.peer` is the address of the trusted proxy, which all its clients share",
    );
    none(&peer);
}

#[test]
fn the_example_configuration_has_two_known_warnings() {
    let known = [
        "a ban on this key applies to all clients that share it",
        "clients can choose this key: each new value starts a new counter",
    ];
    assert_eq!(warnings(include_str!("../../../../gateway.toml")), known);
}
