//! The scripts that run in Redis.

use std::fmt;

use redis::{Cmd, Script};

/// A script with its hash.
pub(super) struct LuaScript {
    source: String,
    hash: String,
}

// === impl LuaScript ===

impl LuaScript {
    /// Applies a plan.
    pub(super) fn plan() -> Self {
        Self::new(concat!(include_str!("limiters.lua"), include_str!("plan.lua")).to_owned())
    }

    /// Renews leases.
    pub(super) fn renew() -> Self {
        Self::new(include_str!("renew.lua").to_owned())
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

    fn new(source: String) -> Self {
        let hash = Script::new(&source).get_hash().to_owned();
        Self { source, hash }
    }

    /// The script with the time from its last two arguments, and with records that outlive a test.
    #[cfg(test)]
    pub(super) fn with_manual_time(self) -> Self {
        let swap = |source: &str, from: &str, to: &str| {
            assert_eq!(source.matches(from).count(), 1, "{from}");
            source.replacen(from, to, 1)
        };
        let source = swap(
            &self.source,
            "redis.call('TIME')",
            "{ ARGV[#ARGV - 1], ARGV[#ARGV] }",
        );
        Self::new(swap(
            &source,
            "local EXTRA_TTL = 0",
            "local EXTRA_TTL = 3600000",
        ))
    }
}

impl fmt::Debug for LuaScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LuaScript").field(&self.hash).finish()
    }
}
