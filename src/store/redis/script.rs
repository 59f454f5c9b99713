//! The scripts that run in Redis.

use std::fmt;

use redis::{Cmd, Script};

/// Applies a plan.
const PLAN: &str = concat!(
    include_str!("limiters.lua"),
    include_str!("records.lua"),
    include_str!("plan.lua")
);

/// Merges reports and exchanges events.
const SYNC: &str = concat!(
    include_str!("limiters.lua"),
    include_str!("records.lua"),
    include_str!("sync.lua")
);

/// Renews leases.
const RENEW: &str = include_str!("renew.lua");

/// Changes the index of bans.
const INDEX: &str = include_str!("ban_index.lua");

/// A script with its hash.
pub(super) struct LuaScript {
    source: String,
    hash: String,
}

// === impl LuaScript ===

impl LuaScript {
    /// Applies a plan.
    pub(super) fn plan() -> Self {
        Self::new(PLAN)
    }

    /// Renews leases.
    pub(super) fn renew() -> Self {
        Self::new(RENEW)
    }

    /// Merges reports and exchanges events.
    pub(super) fn sync() -> Self {
        Self::new(SYNC)
    }

    /// Changes the index of bans.
    pub(super) fn index() -> Self {
        Self::new(INDEX)
    }

    /// A call of the script by its hash, which the server may not know.
    pub(super) fn call(&self) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash);
        command
    }

    /// A call that also sends the script. The server then knows its hash.
    pub(super) fn call_with_source(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.source);
        command
    }

    fn new(source: &str) -> Self {
        let source = with_literals(source);
        let hash = Script::new(&source).get_hash().to_owned();
        Self { source, hash }
    }

    /// The scripts for plans, renewals and syncs with the time from their last two arguments, and with records that outlive
    /// a test.
    #[cfg(test)]
    pub(super) fn with_manual_time() -> [Self; 3] {
        [PLAN, RENEW, SYNC].map(|source| {
            let (time, lifetime) = ("redis.call('TIME')", "local EXTRA_TTL = 0");
            assert_eq!(source.matches(time).count(), 1);
            assert_eq!(source.matches(lifetime).count(), 1);
            let source = source.replace(time, "{ ARGV[#ARGV - 1], ARGV[#ARGV] }");
            Self::new(&source.replace(lifetime, "local EXTRA_TTL = 3600000"))
        })
    }
}

impl fmt::Debug for LuaScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LuaScript").field(&self.hash).finish()
    }
}

/// Replaces each constant of a script, a line like `local LIMIT, PERIOD = 5, 60`, by its value wherever it is used. A
/// Lua function pays for every outer variable that it uses at each run of the script, but not for a literal.
fn with_literals(source: &str) -> String {
    let mut constants: Vec<(&str, &str)> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in source.lines() {
        let found = constants_of(line);
        if found.is_empty() {
            lines.push(line);
        }
        constants.extend(found);
    }
    let mut text = lines.join("\n");
    // A longer name may contain a shorter one.
    constants.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in constants {
        text = text.replace(name, value);
    }
    text
}

/// The names and values that a line declares. Empty if it declares anything but constants.
fn constants_of(line: &str) -> Vec<(&str, &str)> {
    let declared = line
        .strip_prefix("local ")
        .and_then(|rest| rest.split_once(" = "));
    let Some((names, values)) = declared else {
        return Vec::new();
    };
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let is_value = |value: &str| value.bytes().all(|b| b.is_ascii_digit());
    let pairs: Vec<_> = names.split(", ").zip(values.split(", ")).collect();
    let all_constant = pairs
        .iter()
        .all(|(name, value)| is_name(name) && is_value(value));
    if all_constant { pairs } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_literals() {
        let source = "local NEVER, LATE = 9, 7\nlocal now = time\nlocal NEVER_LATE = 1\nreturn NEVER_LATE + NEVER + now";
        assert_eq!(
            with_literals(source),
            "local now = time\nreturn 1 + 9 + now"
        );
        assert_eq!(
            with_literals("local now, then = 1, 2"),
            "local now, then = 1, 2"
        );
    }

    #[test]
    fn no_constant_is_left_in_a_script() {
        for script in [
            LuaScript::plan(),
            LuaScript::renew(),
            LuaScript::sync(),
            LuaScript::index(),
        ] {
            let code = script
                .source
                .lines()
                .filter(|line| !line.trim_start().starts_with("--"));
            for word in
                code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
            {
                let known = ["KEYS", "ARGV", "ALGORITHMS", "RECORD_BYTES", "TIME"];
                let is_constant =
                    word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
                let is_command = script.source.contains(&format!("'{word}'"));
                assert!(
                    !is_constant || is_command || known.contains(&word),
                    "{word}"
                );
            }
        }
    }
}
