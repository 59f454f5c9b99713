//! Warnings of limits, costs, bans and actions.

use super::{GUARD, PATH, PLAIN, TLS, none, only, rule};

/// A rule by address, with these lines beside.
fn by_address(lines: &str) -> String {
    rule(&format!("{PATH}key = [\"ip.src\"]\n{lines}"))
}

#[test]
fn bans_that_become_shorter() {
    let bans = |bans: &str| by_address(&format!("escalate = [{bans}]"));
    let message = "a later offence is banned for a shorter time";
    only(&bans("\"10m\", \"1h\", \"30m\""), message);
    none(&bans("\"10m\", \"10m\", \"1h\""));
    none(&bans("\"10m\""));
}

#[test]
fn an_escalating_ban_on_a_shared_key() {
    let key = "key = [\"tls.ja4\"]\nescalate = [\"10m\", \"1h\"]";
    let message = "a ban on this key stops everybody who shares it";
    only(&rule(&format!("{PATH}{key}")), message);
}

#[test]
fn a_jitter_that_changes_nothing() {
    let message = "this jitter is less than one request: the limit stays 5";
    only(&by_address("jitter = 0.1"), message);
    none(&by_address("jitter = 0.2"));
    none(&by_address("jitter = 0.0"));
    none(&by_address(
        "jitter = 0.1\nalgorithm = \"gcra\"\nburst = 10",
    ));
}

#[test]
fn a_cost_that_some_keys_never_pay() {
    let message = "some keys are never let in: their limit may be drawn as 4";
    only(&by_address("jitter = 0.2\ncost = 5"), message);
    none(&by_address("jitter = 0.2\ncost = 4"));
    none(&by_address("cost = 5"));
    let queue = "algorithm = \"leaky_bucket\"\nqueue = 4\nmax_delay = \"1m\"";
    none(&by_address(&format!("jitter = 0.2\ncost = 5\n{queue}")));
}

#[test]
fn a_cost_that_a_client_chooses() {
    only(
        &by_address("cost = 'http.request.body.size'"),
        "a body that is sent without its length costs 1, whatever its size",
    );
    only(
        &by_address("cost = 'lookup_json_integer(http.request.headers[\"x-work\"][0], \"units\")'"),
        "a client writes itself what it pays",
    );
    none(&by_address(
        "cost = 'lookup_json_integer(http.response.headers[\"x-work\"][0], \"units\")'",
    ));
    none(&by_address("cost = 'http.response.body.size'"));
    none(&by_address("cost = { response_header = \"x-cost\" }"));
}

#[test]
fn a_cost_reads_as_the_other_expressions_do() {
    let cost = "cost = 'len(tls.ja4)'\nkey = [\"ip.src\"]";
    let file = format!("{PLAIN}{GUARD}{PATH}{cost}\n");
    let one_by_one = format!("[[rules]]\nname = \"all\"\nlimit = 9\nperiod = \"1m\"\n{PATH}");
    let message = "`tls.ja4` is never known: no listener speaks TLS";
    only(&format!("{file}{one_by_one}"), message);
}

#[test]
fn a_queue_that_nobody_waits_out() {
    let queue = |queue: u32| {
        let lines = "algorithm = \"leaky_bucket\"\nmax_delay = \"36s\"";
        by_address(&format!("{lines}\nqueue = {queue}"))
    };
    let message = "only 3 can wait: more would take longer than `max_delay`";
    only(&queue(4), message);
    none(&queue(3));
    // The default is a bound, not a wish.
    none(&by_address("algorithm = \"leaky_bucket\""));
}

#[test]
fn a_log_that_fills_the_room() {
    let message = "one key can fill all of `store.max_log_bytes` with a limit like this";
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
fn a_candidate_that_is_the_rule() {
    let message = "the candidate is the rule itself: the two never differ";
    only(&by_address("candidate = {}"), message);
    only(
        &by_address("candidate = { limit = 5, period = \"60s\", algorithm = \"sliding_window\" }"),
        message,
    );
    none(&by_address("candidate = { limit = 6 }"));
    none(&by_address("candidate = { algorithm = \"gcra\" }"));
}

#[test]
fn an_exemption_of_whoever_is_over_the_limit() {
    let message = "`allow` with a limit exempts whoever is over it";
    only(&by_address("action = \"allow\""), message);
    none(&format!(
        "{TLS}[[rules]]\nname = \"r\"\n{PATH}action = \"allow\"\n"
    ));
}

#[test]
fn a_wait_that_nobody_waits() {
    let message = "most clients and load balancers give up after a minute";
    let held = |action: &str| {
        by_address(&format!(
            "algorithm = \"gcra\"\naction = \"{action}\"\nmax_delay = \"61s\""
        ))
    };
    only(&held("delay"), message);
    // Whoever is to be kept waiting may give up.
    none(&held("tarpit"));
    let queue = "algorithm = \"leaky_bucket\"\nmax_delay";
    only(&by_address(&format!("{queue} = \"61s\"")), message);
    none(&by_address(&format!("{queue} = \"60s\"")));
}

#[test]
fn a_queue_past_which_everybody_goes() {
    let message = "`delay` forwards what the queue has no place for: nobody is ever stopped";
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
fn a_wait_that_ends_for_all_at_once() {
    let message = "those who wait for a window leave it together";
    let rule =
        |algorithm: &str, more: &str| by_address(&format!("algorithm = \"{algorithm}\"\n{more}"));
    for window in ["sliding_window", "fixed_window", "sliding_log"] {
        only(&rule(window, "action = \"delay\""), message);
        none(&rule(window, "action = \"tarpit\""));
        // Who is banned waits for the end of the ban.
        none(&rule(window, "action = \"delay\"\nduration = \"1m\""));
    }
    none(&rule("token_bucket", "action = \"delay\""));
}

#[test]
fn a_wait_that_is_not_allowed() {
    let message = "with `max_held = 0` no rule can hold a request";
    let file = |action: &str| format!("[server]\nmax_held = 0\n{}", by_address(action));
    only(&file("action = \"tarpit\""), message);
    only(&file("algorithm = \"gcra\"\naction = \"delay\""), message);
    only(&file("algorithm = \"leaky_bucket\""), message);
    none(&file("action = \"close\""));
    none(&by_address("action = \"tarpit\""));
}

#[test]
fn an_imitation_of_nothing() {
    let message = "there is nothing to imitate: no route leads to an upstream";
    let shadow = by_address("action = \"shadow\"\nresponse = \"ok\"\n[responses.ok]");
    let route = "[[routes]]\nrespond = {}\n";
    let origin = "[[upstreams]]\nname = \"app\"\nservers = [\"127.0.0.1:9\"]\n\
                  [[routes]]\nupstream = \"app\"\n";
    only(&format!("{shadow}imitate = true\n{route}"), message);
    none(&format!("{shadow}imitate = true\n{origin}"));
    none(&format!("{shadow}{route}"));
}

#[test]
fn a_shadow_answer_that_tells() {
    let shadow = |lines: &str| {
        let action = "action = \"shadow\"\nresponse = \"ok\"";
        by_address(&format!("{action}\n[responses.ok]\n{lines}"))
    };
    let header = |name: &str| shadow(&format!("headers = {{ \"{name}\" = \"1\" }}"));
    let tells =
        |what: &str| format!("{what} tells that there is a limit, in the answer of a shadow ban");
    only(&shadow("status = 429"), &tells("the status 429"));
    only(&header("Retry-After"), &tells("`retry-after`"));
    only(&header("RateLimit-Policy"), &tells("`ratelimit-policy`"));
    only(&header("X-RateLimit-Limit"), &tells("`x-ratelimit-limit`"));
    none(&header("x-request-id"));
    none(&header("x-ratelimit-limit").replace("shadow", "block"));
}

#[test]
fn a_body_that_is_never_sent() {
    let file = |status: u16, body: &str| {
        let response = format!("[responses.ok]\nstatus = {status}\nbody = \"{body}\"");
        by_address(&format!("response = \"ok\"\n{response}"))
    };
    for status in [204, 205, 304] {
        let message = format!("an answer with the status {status} has no body");
        only(&file(status, "x"), &message);
        none(&file(status, ""));
    }
    none(&file(200, "x"));
}

#[test]
fn counters_that_cannot_be_saved() {
    let file = |path: &str| format!("[store]\nsnapshot = \"{path}\"\n{PLAIN}");
    only(
        &file("/dev/null/a/counters"),
        "counters cannot be saved here: there is no folder `/dev/null/a`",
    );
    none(&file("/dev/counters"));
    none(&file("counters"));
    none(PLAIN);
}

#[test]
fn a_ban_that_is_shorter_than_the_period() {
    let message =
        "a ban clears the counter: with one as short as this more gets through than without";
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
    let places = "limit = 2\nalgorithm = \"concurrency\"\nduration = \"1s\"";
    none(&format!(
        "{TLS}[[rules]]\nname = \"r\"\nkey = [\"ip.src\"]\n{PATH}{places}\n"
    ));
}

#[test]
fn a_cost_that_can_be_nothing() {
    let priced = |cost: &str| by_address(&format!("cost = '{cost}'"));
    let message = "what is empty costs nothing, and is never limited";
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
