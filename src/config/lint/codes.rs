//! The codes of all warnings, used by `--allow` and `# lockgate: allow` and listed in
//! docs/check.md.

use crate::config::suggest::nearest;

/// Declares [`LintCode`] and [`LintCode::TABLE`] from one list of variant, code and meaning.
macro_rules! lint_codes {
    ($($variant:ident $name:literal $meaning:literal)*) => {
        /// A kind of warning. Its code is stable; its messages may change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LintCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl LintCode {
            /// Every warning with its code and its meaning.
            pub const TABLE: &[(LintCode, &str, &str)] =
                &[$((LintCode::$variant, $name, $meaning)),*];
        }
    };
}

lint_codes! {
    SharedKey "shared-key"
        "Many unrelated clients share the key of a ban, or the key is a trusted proxy."
    SharedKeyKnownClients "shared-key-known-clients"
        "A ban or shadow on a shared key refuses known clients too."
    MissingKey "missing-key"
        "All clients without a part of the key share one counter and one ban."
    ChosenKey "chosen-key"
        "Clients choose the key freely: each new value starts with a new counter."
    UniqueKey "unique-key"
        "The key differs for every request, so its counters never reach the limit."
    ProtectNoUser "protect-no-user"
        "A login preset does not know the users, so it cannot count guesses at one account."
    ProtectKnownBySignup "protect-known-by-signup"
        "A registration makes a client known to a login preset without proof that the account is its own."
    ProtectWholeSite "protect-whole-site"
        "A pages preset counts every request as a page, so it challenges every new client."
    ProtectOverlap "protect-overlap"
        "Two presets count the same requests."
    ProtectShadowed "protect-shadowed"
        "A rule before a preset refuses the requests of the preset by a shared key."
    UserKeyNoMissing "user-key-no-missing"
        "A key by user does not say what happens to requests without a user."
    UnreachableRule "unreachable-rule"
        "An earlier rule ends the evaluation for every request that this rule would mitigate."
    DeniesEverything "denies-everything"
        "A deny rule matches every request, and no `allow` rule comes before it."
    AdmitsExcess "admits-excess"
        "The action lets through every request that is over the limit."
    RevealedLimit "revealed-limit"
        "The quota headers of failed logins tell an attacker the limit and how many guesses remain."
    RevealedShadow "revealed-shadow"
        "A header or status reveals that responses are shadow responses."
    Contradiction "contradiction"
        "Two tests joined by `and` never hold for the same request."
    ImpossibleValue "impossible-value"
        "An expression compares a field with a value that the field never has."
    MissingValue "missing-value"
        "A comparison is false when the value is missing, unlike on Cloudflare."
    UnfilledField "unfilled-field"
        "A rule reads a field that no database and no listener provides."
    UnverifiedValue "unverified-value"
        "A rule trusts a value that every client can forge."
    RawPath "raw-path"
        "A rule compares the path as sent, which has several spellings."
    ShortBan "short-ban"
        "The ban is so short that more requests get through than without it."
    FreeCost "free-cost"
        "Clients can send requests at a lower cost than the rule intends."
    LargeLog "large-log"
        "One `sliding_log` key can use all of `store.max_log_bytes`."
    HostBits "host-bits"
        "An address with a prefix length means the whole network."
    WideTrust "wide-trust"
        "`client_ip.trusted_proxies` includes unknown hosts, which can then forge client addresses."
    NoTrustedProxy "no-trusted-proxy"
        "A setting takes effect only for trusted proxies, but there are none."
    CertificateExpiry "certificate-expiry"
        "A certificate has expired, expires within 14 days or is not valid yet."
    DevelopmentCertificate "development-certificate"
        "A listener uses a self-signed development certificate."
    UnverifiedOrigin "unverified-origin"
        "`verify = false`: the gateway accepts any certificate of the origin server."
    UnresolvedServer "unresolved-server"
        "The name of a server cannot be resolved now."
    ProxyLoop "proxy-loop"
        "A server of an upstream is a listener of this gateway."
    UnreachableRoute "unreachable-route"
        "An earlier route matches every request of this route."
    ForeignRoute "foreign-route"
        "A host or path uses the syntax of another gateway and has another meaning here."
    Unused "unused"
        "No rule or route uses a list, response or upstream, or a setting or an `allow` rule has no effect."
    IgnoredKeyPart "ignored-key-part"
        "A key part exists only on Cloudflare and is ignored."
    EmptyInclude "empty-include"
        "A pattern of `include` matches no file."
    OpenSecret "open-secret"
        "Other users of the machine can read or write the file with the secret or with the password of the store."
    FleetSecret "fleet-secret"
        "Gateways share a store but have no `server.secret_file` in common."
    KnownSuccessCacheable "known-success-cacheable"
        "The success that makes a client known includes responses to GET."
    KnownNoLimit "known-no-limit"
        "There are known clients, but no rule limits what one cookie can do."
    CookiesNoSecretFile "cookies-no-secret-file"
        "The gateway gives clients cookies without `server.secret_file`, so a restart ends them."
    UnsavedCounters "unsaved-counters"
        "The folder of `store.snapshot` does not exist, so a restart loses all counters."
    ChallengeNoClearanceLimit "challenge-no-clearance-limit"
        "No rule limits what a client can do with the clearance of one solution."
    ChallengeApi "challenge-api"
        "A challenge applies to an API, whose clients see no page."
    ChallengePlainListener "challenge-plain-listener"
        "Clients of a listener without TLS cannot solve challenges and are blocked."
    RestartNeeded "restart-needed"
        "A reload cannot change this setting."
}

// === impl LintCode ===

impl LintCode {
    /// Returns the code that users write.
    pub fn name(self) -> &'static str {
        let row = Self::TABLE.iter().find(|(code, ..)| *code == self);
        row.map_or("", |(_, name, _)| name)
    }

    /// Returns the warning with this code. The error suggests a code, or lists all codes.
    pub fn from_name(written: &str) -> Result<Self, String> {
        let mut rows = Self::TABLE.iter();
        if let Some((code, ..)) = rows.find(|(_, name, _)| *name == written) {
            return Ok(*code);
        }
        let names: Vec<_> = Self::TABLE.iter().map(|(_, name, _)| *name).collect();
        Err(match nearest(written, names.iter().copied()) {
            Some(near) => format!("unknown warning `{written}`; did you mean `{near}`?"),
            None => format!(
                "unknown warning `{written}`: use one of {}",
                names.join(", ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LintCode;

    #[test]
    fn every_code_is_short_stable_and_found() {
        let table = LintCode::TABLE;
        assert!(table.len() < 50, "{} warnings are too many", table.len());
        for (code, name, meaning) in table {
            assert_eq!(LintCode::from_name(name), Ok(*code));
            assert!(meaning.ends_with('.'), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
        }
    }

    #[test]
    fn an_unknown_code_is_refused_with_a_suggestion() {
        let near = LintCode::from_name("shard-key").unwrap_err();
        assert!(near.ends_with("did you mean `shared-key`?"), "{near}");
        let far = LintCode::from_name("x").unwrap_err();
        assert!(
            far.contains("shared-key") && far.contains("restart-needed"),
            "{far}"
        );
    }
}
