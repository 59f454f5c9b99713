//! Warnings of limits, costs, bans and actions.

use super::{GUARD, PATH, PLAIN, TLS, none, only, rule};

/// A rule by address, with these additional lines.
fn by_address(lines: &str) -> String {
    rule(&format!("{PATH}key = [\"ip.src\"]\n{lines}"))
}

#[test]
fn an_escalating_ban_on_a_shared_key() {
    let key = "key = [\"tls.ja4\"]\nescalate = [\"10m\", \"1h\"]";
    let message = "a ban on this key applies to all clients that share it";
    only(&rule(&format!("{PATH}{key}")), message);
}

#[test]
fn a_cost_that_a_client_chooses() {
    only(
        &by_address("cost = 'http.request.body.size'"),
        "a request body without `Content-Length` costs 1, regardless of its size",
    );
    only(
        &by_address("cost = 'lookup_json_integer(http.request.headers[\"x-work\"][0], \"units\")'"),
        "clients can choose this cost",
    );
    none(&by_address(
        "cost = 'lookup_json_integer(http.response.headers[\"x-work\"][0], \"units\")'",
    ));
    none(&by_address("cost = 'http.response.body.size'"));
    none(&by_address("cost = { response_header = \"x-cost\" }"));
}

#[test]
fn a_cost_is_checked_like_other_expressions() {
    let cost = "cost = 'len(tls.ja4)'\nkey = [\"ip.src\"]";
    let file = format!("{PLAIN}{GUARD}{PATH}{cost}\n");
    let one_by_one = format!("[[rules]]\nname = \"all\"\nlimit = 9\nperiod = \"1m\"\n{PATH}");
    let message = "`tls.ja4` is always missing: no listener uses TLS";
    only(&format!("{file}{one_by_one}"), message);
}

#[test]
fn a_log_that_uses_all_of_max_log_bytes() {
    let message = "with this limit, one key can use all of `store.max_log_bytes`";
    let file = |limit: u32, algorithm: &str| {
        let store = "[store]\nmax_log_bytes = \"120000B\"\n";
        let counted = format!("limit = {limit}\nperiod = \"1m\"\nalgorithm = \"{algorithm}\"");
        format!("{TLS}{store}[[rules]]\nname = \"r\"\n{counted}\nkey = [\"ip.src\"]\n{PATH}")
    };
    only(&file(10_001, "sliding_log"), message);
    none(&file(10_000, "sliding_log"));
    none(&file(10_001, "fixed_window"));
    let candidate = "candidate = { algorithm = \"sliding_log\" }\n";
    only(&(file(10_001, "fixed_window") + candidate), message);
}

#[test]
fn an_exemption_of_the_requests_over_the_limit() {
    let message = "`allow` with a limit exempts the requests over the limit";
    only(&by_address("action = \"allow\""), message);
    none(&format!(
        "{TLS}[[rules]]\nname = \"r\"\n{PATH}action = \"allow\"\n{GUARD}key = [\"ip.src\"]\nmitigate = 'http.host eq \"b\"'\n"
    ));
}

#[test]
fn a_queue_that_forwards_the_excess() {
    let message = "`delay` forwards the requests for which the queue is full";
    let queue = |action: &str| {
        by_address(&format!(
            "algorithm = \"leaky_bucket\"\naction = \"{action}\""
        ))
    };
    only(&queue("delay"), message);
    none(&queue("block"));
    none(&by_address("algorithm = \"gcra\"\naction = \"delay\""));
}

#[test]
fn a_shadow_response_that_reveals_a_limit() {
    let shadow = |lines: &str| {
        let action = "action = \"shadow\"\nresponse = \"ok\"";
        by_address(&format!("{action}\n[responses.ok]\n{lines}"))
    };
    let header = |name: &str| shadow(&format!("headers = {{ \"{name}\" = \"1\" }}"));
    let reveals = |what: &str| format!("{what} reveals a limit in a shadow response");
    only(&shadow("status = 429"), &reveals("status 429"));
    only(&header("Retry-After"), &reveals("`retry-after`"));
    only(&header("RateLimit-Policy"), &reveals("`ratelimit-policy`"));
    only(
        &header("X-RateLimit-Limit"),
        &reveals("`x-ratelimit-limit`"),
    );
    none(&header("x-request-id"));
    none(&header("x-ratelimit-limit").replace("shadow", "block"));
}

#[test]
fn counters_that_cannot_be_saved() {
    let file = |path: &str| format!("[store]\nsnapshot = \"{path}\"\n{PLAIN}");
    only(
        &file("/dev/null/a/counters"),
        "cannot save counters: the folder `/dev/null/a` does not exist",
    );
    none(&file("/dev/counters"));
    none(&file("counters"));
    none(PLAIN);
}

#[test]
fn a_ban_that_is_shorter_than_the_period() {
    let message = "a ban resets the counter: one this short lets through more requests than no ban";
    let keyed = |lines: &str| rule(&format!("key = [\"ip.src\"]\n{PATH}{lines}"));
    for short in [
        "duration = \"59s\"",
        "escalate = [\"10s\", \"59s\"]",
        "algorithm = \"token_bucket\"\nduration = \"10s\"",
        "algorithm = \"gcra\"\nburst = 10\nduration = \"1m\"",
    ] {
        only(&keyed(short), message);
    }
    for long in [
        "duration = \"1m\"",
        "escalate = [\"10s\", \"1m\"]",
        "algorithm = \"gcra\"\nburst = 1\nduration = \"12s\"",
    ] {
        none(&keyed(long));
    }
    none(&keyed("duration = \"10s\"\naction = \"log\""));
    let slots = "limit = 2\nalgorithm = \"concurrency\"\nduration = \"1s\"";
    none(&format!(
        "{TLS}[[rules]]\nname = \"r\"\nkey = [\"ip.src\"]\n{PATH}{slots}\n"
    ));
}

#[test]
fn a_cost_that_can_be_zero() {
    let priced = |cost: &str| by_address(&format!("cost = '{cost}'"));
    let message = "an empty value costs 0, so such requests are never limited";
    for cost in [
        "len(http.request.uri.query)",
        "len(http.request.uri.args[\"id\"][0])",
    ] {
        only(&priced(cost), message);
        none(&format!("{}{GUARD}{PATH}", priced(cost)));
    }
    none(&priced("len(http.request.uri.args[\"id\"])"));
    none(&priced("len(http.request.uri.path)"));
}
