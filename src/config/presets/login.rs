//! `kind = "login"`: credential stuffing and password guessing.

use super::conditions::{ADDRESS, CLEARANCE, CLIENT, ClientTest, FINGERPRINT};
use super::draft::RuleDraft;
use super::draft::Span::{Hours, Minutes};
use crate::config::Spanned;
use crate::config::expr_text::ExprText;
use crate::config::file::ProtectSettings;

/// The share of failures above which an address or a fingerprint does nothing but fail.
const ONLY_FAILURES: f64 = 0.8;
/// The share of failures above which the alarm starts, unless the preset says otherwise.
const ALARM: f64 = 0.4;

/// Returns the rules of a login, in order.
pub fn rules(preset: &ProtectSettings) -> Vec<RuleDraft> {
    let login = Login { preset };
    if !preset.challenge.value {
        return login.refusals();
    }
    let strict = preset.strict.value.then(|| login.strict());
    let mut rules = Vec::from_iter(strict);
    rules.extend(login.refusals());
    rules.extend(login.account_check());
    if !preset.strict.value {
        rules.extend([login.at_once(), login.tool(), login.site()]);
        rules.extend(login.ceiling());
    }
    rules.extend([login.clearance(), login.clearance_logins()]);
    rules
}

struct Login<'a> {
    preset: &'a ProtectSettings,
}

// === impl Login ===

impl Login<'_> {
    /// The rules that refuse. They need no challenge.
    fn refusals(&self) -> Vec<RuleDraft> {
        let mut rules = vec![self.known_device()];
        rules.extend(self.account());
        rules.push(self.address());
        rules
    }

    /// A known device may fail, but not for ever: bounds a stolen cookie.
    fn known_device(&self) -> RuleDraft {
        let known = self
            .preset
            .request()
            .and_client(ClientTest::Known, self.preset);
        let failed = self
            .preset
            .failure()
            .and_client(ClientTest::Known, self.preset);
        let rule = RuleDraft::new(self.preset, "known-device", known.into_text());
        let rule = rule.counting(failed.into_text()).by(CLIENT);
        rule.limit(10, Minutes(15)).ban(&[Minutes(15)])
    }

    /// One account, many guesses that solve challenges. Known devices do not notice.
    fn account(&self) -> Option<RuleDraft> {
        let user = self.preset.user_key()?;
        let rule = self
            .rule("account")
            .counting(self.new_failures())
            .by_user(user);
        Some(rule.limit(30, Hours(1)).ban(&[Hours(1), Hours(6)]))
    }

    /// One address that does nothing but fail. The ratio spares offices and mobile networks.
    fn address(&self) -> RuleDraft {
        let rule = self.share("address", ONLY_FAILURES).by(ADDRESS);
        rule.limit(10, Minutes(10)).ban(&[Minutes(10), Hours(1)])
    }

    /// Many logins to one account, successful or not: also keeps an attacker's own accounts from
    /// diluting the ratio.
    fn account_check(&self) -> Option<RuleDraft> {
        let rule = self.rule("account-check").by_user(self.preset.user_key()?);
        Some(rule.limit(10, Minutes(15)).ban(&[Hours(1)]).challenge())
    }

    /// A burst before the first response is known.
    fn at_once(&self) -> RuleDraft {
        self.rule("at-once").in_flight(30).challenge()
    }

    /// A fingerprint that does nothing but fail: a tool.
    fn tool(&self) -> RuleDraft {
        let rule = self.share("tool", ONLY_FAILURES).by(FINGERPRINT);
        self.alarm(rule, 10)
    }

    /// The alarm: no key, so that addresses and fingerprints do not matter. New clients solve on the
    /// page with the form, before they type a password.
    fn site(&self) -> RuleDraft {
        let own = self.preset.ratio.clone();
        let ratio = own.unwrap_or_else(|| Spanned::new(ALARM, self.preset.span.clone()));
        let mut rule = self.share("site", ALARM);
        rule.settings.ratio = Some(ratio);
        if let Some(form) = self.preset.form_page() {
            let form = form.and_client(ClientTest::NeverKnown, self.preset);
            let new = self
                .preset
                .request()
                .and_client(ClientTest::New, self.preset);
            rule.settings.mitigate = Some(new.or(form));
        }
        self.alarm(rule, 30)
    }

    /// Against an attacker who dilutes the ratio with accounts of its own. `None` if it is off.
    fn ceiling(&self) -> Option<RuleDraft> {
        let ceiling = &self.preset.ceiling;
        let rule = self.rule("ceiling").counting(self.new_failures());
        let mut rule = self.alarm(rule, ceiling.value);
        rule.settings.limit = Some(ceiling.clone());
        (ceiling.value > 0).then_some(rule)
    }

    /// Three failures per clearance, then the next challenge.
    fn clearance(&self) -> RuleDraft {
        let rule = self.rule("clearance").counting(self.new_failures());
        let rule = rule.by(CLEARANCE).skip_missing();
        rule.limit(3, Hours(1)).ban(&[Hours(1)]).challenge()
    }

    /// Five logins per clearance: a burst is not stopped by failures, which are known only after the responses.
    fn clearance_logins(&self) -> RuleDraft {
        let rule = self.rule("clearance-logins").by(CLEARANCE).skip_missing();
        rule.limit(5, Hours(1)).ban(&[Hours(1)]).challenge()
    }

    /// Every new client is challenged, always. First, so that an unsolved request costs no store call.
    fn strict(&self) -> RuleDraft {
        self.rule("strict").challenge()
    }

    /// A rule that mitigates the logins of new clients.
    fn rule(&self, sub: &'static str) -> RuleDraft {
        RuleDraft::new(self.preset, sub, self.new_logins())
    }

    /// A rule that mitigates the logins of new clients if most of them fail.
    fn share(&self, sub: &'static str, ratio: f64) -> RuleDraft {
        let ratio = Spanned::new(ratio, self.preset.span.clone());
        let rule = self.rule(sub).counting(self.new_failures());
        rule.share(ratio, self.new_logins())
    }

    /// Adds the window and the bans of an alarm.
    fn alarm(&self, rule: RuleDraft, limit: u32) -> RuleDraft {
        let rule = rule.limit(limit, Minutes(1));
        rule.ban(&[Minutes(10), Hours(1), Hours(6)]).challenge()
    }

    fn new_logins(&self) -> ExprText {
        let new = self
            .preset
            .request()
            .and_client(ClientTest::New, self.preset);
        new.into_text()
    }

    fn new_failures(&self) -> ExprText {
        let failed = self
            .preset
            .failure()
            .and_client(ClientTest::New, self.preset);
        failed.into_text()
    }
}
