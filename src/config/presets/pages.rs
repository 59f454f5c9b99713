//! `kind = "pages"`: scraping.

use super::conditions::{ADDRESS, CLEARANCE, ClientTest};
use super::draft::RuleDraft;
use super::draft::Span::{Days, Hours, Minutes};
use crate::config::Spanned;
use crate::config::file::ProtectSettings;

/// The share of pages among all requests above which an address loads nothing else, unless the
/// preset says otherwise.
const ONLY_PAGES: f64 = 0.8;

/// Returns the rules for pages, in order.
pub fn rules(preset: &ProtectSettings) -> Vec<RuleDraft> {
    if preset.strict.value {
        vec![strict(preset), clearance(preset)]
    } else {
        vec![only(preset), clearance(preset)]
    }
}

/// Every new client is challenged, always.
fn strict(preset: &ProtectSettings) -> RuleDraft {
    let new = preset.page().and_client(ClientTest::NeverKnown, preset);
    RuleDraft::new(preset, "strict", new.into_text()).challenge()
}

/// Addresses that load pages and nothing else.
fn only(preset: &ProtectSettings) -> RuleDraft {
    let new = preset.page().and_client(ClientTest::NeverKnown, preset);
    let all = preset.any_page().and_client(ClientTest::NeverKnown, preset);
    let own = preset.ratio.clone();
    let ratio = own.unwrap_or_else(|| Spanned::new(ONLY_PAGES, preset.span.clone()));
    let rule = RuleDraft::new(preset, "only", new.into_text()).counting_only();
    let rule = rule.share(ratio, all.into_text()).by(ADDRESS);
    rule.limit(4, Minutes(10)).ban(&[Days(1)]).challenge()
}

/// 120 pages per clearance and hour, then the next challenge.
fn clearance(preset: &ProtectSettings) -> RuleDraft {
    let rule = RuleDraft::new(preset, "clearance", preset.page().into_text());
    let rule = rule.by(CLEARANCE).skip_missing();
    rule.limit(120, Hours(1)).ban(&[Hours(1)]).challenge()
}
