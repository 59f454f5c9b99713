//! Notes about async mode.

use super::{PATH, PLAIN, none, only};

const SMALL: &str = "in async mode, a fleet can exceed this small limit by several requests";

/// A rule in a fleet whose rules are counted in `mode`.
fn in_fleet(mode: &str, lines: &str) -> String {
    format!(
        "{PLAIN}[store]\n# lockgate: allow fleet-secret\nkind = \"redis\"\n[store.redis]\nmode = \"{mode}\"\n\
         [[rules]]\nname = \"r\"\nkey = [\"ip.src\"]\n{PATH}{lines}\n"
    )
}

#[test]
fn a_small_limit_in_async_mode() {
    let limit = |count: u32| format!("limit = {count}\nperiod = \"1m\"\n");
    only(&in_fleet("async", &limit(19)), SMALL);
    none(&in_fleet("async", &limit(20)));
    none(&in_fleet("exact", &limit(5)));
    for chosen in ["exact", "async"] {
        let mode = format!("store_mode = \"{chosen}\"");
        none(&in_fleet("async", &(limit(5) + &mode)));
    }
}

#[test]
fn an_algorithm_that_is_always_exact() {
    let cases = [
        (
            "algorithm = \"sliding_log\"\nlimit = 50\nperiod = \"1m\"",
            "`sliding_log` is counted in exact mode: it needs the time of every unit",
        ),
        (
            "algorithm = \"leaky_bucket\"\nlimit = 50\nperiod = \"1m\"\nqueue = 10",
            "`leaky_bucket` is counted in exact mode: it needs the exact order of requests",
        ),
        (
            "slices = 61\nlimit = 50\nperiod = \"1m\"",
            "`sliding_window` is counted in exact mode: more than 60 sub-windows are too large to be exchanged",
        ),
        (
            "algorithm = \"concurrency\"\nlimit = 5",
            "`concurrency` is counted in exact mode: it needs the exact number of requests in flight",
        ),
    ];
    for (lines, note) in cases {
        only(&in_fleet("async", lines), note);
        none(&in_fleet(
            "async",
            &format!("{lines}\nstore_mode = \"exact\""),
        ));
        none(&in_fleet("exact", lines));
    }
}
