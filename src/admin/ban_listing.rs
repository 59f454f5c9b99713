//! A listing of all bans. Making one reads every ban, so it runs on a blocking thread, and clients share the newest one.

mod common_parts;
mod listing_cache;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use self::common_parts::common_parts;
pub(super) use self::listing_cache::{ListingCache, fresh_listing, listing};
use super::api_error::ApiError;
use super::mitigations::{
    self, BanFilter, BanView, FEW_REQUESTS, acting_rules, is_first_offence, key_text, rules_by_id,
};
use super::objects::{CommonPartObject, MitigationObject, MitigationPage};
use crate::clock::Timestamp;
use crate::observe::activity::ActivityHub;
use crate::rules::{BanId, Rule, RuleId};
use crate::snapshot::Snapshot;
use crate::store::ban_page::{self, PagePosition};
use crate::store::{BanAuthor, ListedBan, ListedKey};

/// All bans of the rules of a configuration.
pub(super) struct BanListing {
    pub(super) snapshot: Arc<Snapshot>,
    bans: Vec<KnownBan>,
    hub: Arc<ActivityHub>,
    /// Computed for the first page.
    common: OnceLock<Vec<CommonPartObject>>,
}

/// A ban in a listing.
#[derive(Clone, Debug)]
pub(super) struct KnownBan {
    pub(super) ban: ListedBan,
    is_likely_false_positive: bool,
}

/// A text to look for, in lower case.
struct SearchedText<'a> {
    text: &'a str,
    /// The rules whose names contain it.
    rules: HashSet<RuleId>,
}

// === impl BanListing ===

impl BanListing {
    fn new(snapshot: Arc<Snapshot>, bans: Vec<ListedBan>, hub: Arc<ActivityHub>) -> Self {
        let quiet = hub.quiet_bans(FEW_REQUESTS);
        let acting = acting_rules(&snapshot);
        let known = bans.into_iter().map(|ban| KnownBan {
            is_likely_false_positive: acting.contains(&ban.rule)
                && is_first_offence(ban.offence, &ban.by)
                && quiet.contains(&ban.ban_id),
            ban,
        });
        Self {
            bans: known.collect(),
            snapshot,
            hub,
            common: OnceLock::new(),
        }
    }

    /// The number of bans.
    fn len(&self) -> usize {
        self.bans.len()
    }

    /// Returns the bans that have not ended.
    pub(super) fn live(&self, now: Timestamp) -> impl Iterator<Item = &KnownBan> {
        self.bans.iter().filter(move |known| known.ban.until > now)
    }

    /// Returns the ban with an id.
    pub(super) fn by_id(&self, id: BanId) -> Option<&KnownBan> {
        self.bans.iter().find(|known| known.ban.ban_id == id)
    }

    /// Returns the bans of a rule whose key has this text.
    pub(super) fn with_text(&self, rule: &Rule, text: &str) -> impl Iterator<Item = &KnownBan> {
        let of_rule = self.bans.iter().filter(|known| known.ban.rule == rule.id);
        of_rule.filter(move |known| key_text(&self.snapshot, rule, &known.ban.key) == text)
    }

    /// Returns the readable key of a ban.
    pub(super) fn key_text(&self, known: &KnownBan) -> String {
        let rule = self.rule_of(known);
        rule.map_or_else(String::new, |rule| {
            key_text(&self.snapshot, rule, &known.ban.key)
        })
    }

    /// Returns the bans that a filter selects.
    pub(super) fn selected(&self, filter: &BanFilter, now: Timestamp) -> Vec<&KnownBan> {
        let of_view = self.live(now).filter(|known| {
            filter.rule.is_none_or(|rule| known.ban.rule == rule) && known.is_in(filter.view)
        });
        let Some(text) = &filter.text else {
            return of_view.collect();
        };
        let searched = SearchedText::new(text, &self.snapshot);
        let rules = rules_by_id(&self.snapshot);
        let has_text = |known: &&KnownBan| {
            let rule = rules.get(&known.ban.rule);
            let key = || rule.map(|rule| key_text(&self.snapshot, rule, &known.ban.key));
            searched.is_in(known.ban.rule, key)
        };
        of_view.filter(has_text).collect()
    }

    /// Returns the object of a ban.
    pub(super) fn object(&self, known: &KnownBan) -> Option<MitigationObject> {
        let rule = self.rule_of(known)?;
        let figures = self.hub.ban_figures(known.ban.ban_id);
        let key = key_text(&self.snapshot, rule, &known.ban.key);
        Some(mitigations::object(rule, &known.ban, key, figures.as_ref()))
    }

    /// Returns the bans that follow `cursor`, or the first ones.
    pub(super) fn page(
        &self,
        filter: &BanFilter,
        cursor: Option<PagePosition>,
        limit: usize,
        now: Timestamp,
    ) -> Result<MitigationPage, ApiError> {
        let position = |known: &&KnownBan| PagePosition::new(known.ban.until, known.ban.ban_id);
        let page = ban_page::page(self.selected(filter, now), position, cursor, limit);
        let page = page.map_err(|wrong| ApiError::invalid(wrong.to_string()))?;
        let (mut all, mut likely_false_positives, mut manual) = (0, 0, 0);
        for known in self.live(now) {
            all += 1;
            likely_false_positives += usize::from(known.is_in(BanView::LikelyFalsePositives));
            manual += usize::from(known.is_in(BanView::Manual));
        }
        let items = page.items.into_iter();
        let common = || common_parts(&self.snapshot, &self.bans);
        Ok(MitigationPage {
            items: items.filter_map(|known| self.object(known)).collect(),
            total: page.total,
            next: page.next.map(|next| next.to_string()),
            all,
            likely_false_positives,
            manual,
            common: self.common.get_or_init(common).clone(),
        })
    }

    fn rule_of(&self, known: &KnownBan) -> Option<&Rule> {
        let mut rules = self.snapshot.rules.iter();
        let found = rules.find(|(_, rule)| rule.id == known.ban.rule);
        found.map(|(_, rule)| rule)
    }
}

// === impl KnownBan ===

impl KnownBan {
    fn is_in(&self, view: BanView) -> bool {
        match view {
            BanView::All => true,
            BanView::LikelyFalsePositives => self.is_likely_false_positive,
            BanView::Manual => self.ban.by != BanAuthor::Rule,
        }
    }

    /// The key as the store has it.
    fn key_bytes(&self) -> (&[u8], bool) {
        match &self.ban.key {
            ListedKey::Bytes(bytes) => (bytes, false),
            ListedKey::Text(text) => (text.as_bytes(), true),
        }
    }
}

// === impl SearchedText ===

impl<'a> SearchedText<'a> {
    fn new(text: &'a str, snapshot: &Snapshot) -> Self {
        let rules = snapshot.rules.iter();
        let named = rules.filter(|(_, rule)| rule.name.to_lowercase().contains(text));
        Self {
            text,
            rules: named.map(|(_, rule)| rule.id).collect(),
        }
    }

    /// Returns whether the name of the rule or the key contains the text.
    fn is_in(&self, rule: RuleId, key: impl FnOnce() -> Option<String>) -> bool {
        let has_text = |mut key: String| {
            if key.is_ascii() {
                key.make_ascii_lowercase();
            } else {
                key = key.to_lowercase();
            }
            key.contains(self.text)
        };
        self.rules.contains(&rule) || key().is_some_and(has_text)
    }
}
