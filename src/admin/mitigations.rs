//! `/api/mitigations`: active bans, with search, views and pages.
//!
//! A listing reads every ban, so it runs on a blocking thread, one at a time.

mod common_parts;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use tokio::task::spawn_blocking;

use self::common_parts::common_parts;
use super::api_error::ApiError;
use super::objects::{MitigationObject, MitigationPage};
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::rules;
use super::state::AdminState;
use crate::observe::activity::{ActivityHub, BanFigures};
use crate::process::RunningGateway;
use crate::rules::{BanId, Rule, RuleId};
use crate::snapshot::Snapshot;
use crate::store::ban_page::{self, MAX_PAGE, PagePosition};
use crate::store::{AdminError, BanAuthor, ListedBan, ListedKey};

/// The number of bans in a page without `limit`.
const USUAL_PAGE: usize = 100;
/// How the cause of a ban by hand starts.
pub(super) const BY_HAND: &str = "by hand";
/// The number of requests that a likely false positive has mitigated at most.
const FEW_REQUESTS: u64 = 5;

/// All bans of the rules of a configuration.
pub(super) struct BanListing {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) bans: Vec<KnownBan>,
    hub: Arc<ActivityHub>,
    _one_at_a_time: OwnedMutexGuard<()>,
}

/// A ban in a listing.
#[derive(Clone, Debug)]
pub(super) struct KnownBan {
    pub(super) ban: ListedBan,
    /// The readable key.
    pub(super) key: String,
    is_likely_false_positive: bool,
}

/// Which bans a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BanFilter {
    /// `None` for bans of all rules.
    pub(super) rule: Option<RuleId>,
    /// A part of the key or of the rule's name, in lower case.
    pub(super) text: Option<String>,
    pub(super) view: BanView,
}

/// A view of the bans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BanView {
    #[default]
    All,
    LikelyFalsePositives,
    Manual,
}

/// `GET /api/mitigations`: a page of bans.
pub(super) async fn list(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let limit = query.number("limit", 1..=MAX_PAGE, USUAL_PAGE)?;
    let cursor = query.get("cursor").map(PagePosition::parse).transpose();
    let cursor = cursor.map_err(|wrong| ApiError::invalid(format!("`cursor`: {wrong}")))?;
    let filter = BanFilter::read(&state.snapshot(), query)?;
    let listing = listing(state).await?;
    let page = spawn_blocking(move || listing.page(&filter, cursor, limit)).await;
    Ok(ApiReply::json(&page.map_err(|_| ApiError::internal())??))
}

/// Returns all bans. Only one listing exists at a time, because one can need a lot of memory.
pub(super) async fn listing(state: &AdminState) -> Result<BanListing, ApiError> {
    let guard = state.listing.clone().lock_owned().await;
    let snapshot = state.snapshot();
    let rules = snapshot.rules.iter().map(|(_, rule)| rule.id).collect();
    let bans = state.store.list_bans(rules).await.map_err(refused)?;
    let hub = state.hub().clone();
    let listing = spawn_blocking(move || BanListing::new(snapshot, bans, hub, guard)).await;
    listing.map_err(|_| ApiError::internal())
}

/// Counts the bans of this gateway that are likely false positives. Reads every ban.
pub(super) fn count_likely_false_positives(live: &RunningGateway) -> usize {
    let (process, snapshot) = (&live.process, live.current.load());
    let quiet = process.activity.quiet_bans(FEW_REQUESTS);
    if quiet.is_empty() {
        return 0;
    }
    let bans = process.store.local().list_bans(None, process.clock.now());
    let rules: HashSet<RuleId> = snapshot.rules.iter().map(|(_, rule)| rule.id).collect();
    let likely = bans.iter().filter(|ban| {
        let is_first = is_first_offence(ban.offence, &ban.by);
        is_first && rules.contains(&ban.id) && quiet.contains(&ban.ban_id)
    });
    likely.count()
}

fn is_first_offence(offence: u32, by: &BanAuthor) -> bool {
    offence == 1 && *by == BanAuthor::Rule
}

/// Returns the response to a change that the store has refused.
pub(super) fn refused(error: AdminError) -> ApiError {
    let message = error.to_string();
    match error {
        AdminError::NotFound => ApiError::not_found(message),
        AdminError::NoCapacity | AdminError::Unavailable => ApiError::unavailable(message),
        AdminError::AlreadyEnded
        | AdminError::LongNote
        | AdminError::TooLong
        | AdminError::ListFull => ApiError::invalid(message),
    }
}

/// Returns the object of a ban.
pub(super) fn object(
    rule: &Rule,
    ban: &ListedBan,
    key: String,
    figures: Option<&BanFigures>,
) -> MitigationObject {
    let own_cause = figures.and_then(|figures| figures.cause.as_deref());
    let cause = match ban.by.note() {
        Some("") => Some(BY_HAND.to_owned()),
        Some(note) => Some(format!("{BY_HAND}: {note}")),
        None => ban.cause.as_deref().or(own_cause).map(str::to_owned),
    };
    MitigationObject {
        id: ban.ban_id.to_string(),
        rule: rule.name.to_string(),
        key,
        action: rule.action.name(),
        until: ban.until.into(),
        offence: ban.offence,
        since: Some(ban.since.into()),
        by: ban.by.name(),
        mitigated: figures.map_or(0, |figures| figures.mitigated),
        last_seen: figures.and_then(|figures| figures.last_seen.map(Into::into)),
        addresses: figures.map_or(0, BanFigures::addresses),
        cause,
        scope: ban.scope.name(),
    }
}

/// Returns the readable key of a ban.
pub(super) fn key_text(snapshot: &Snapshot, rule: &Rule, key: &ListedKey) -> String {
    match key {
        ListedKey::Bytes(bytes) => rule
            .key
            .list(bytes, &|secret| snapshot.redactor.hash(secret)),
        ListedKey::Text(text) => text.to_string(),
    }
}

// === impl BanListing ===

impl BanListing {
    fn new(
        snapshot: Arc<Snapshot>,
        bans: Vec<ListedBan>,
        hub: Arc<ActivityHub>,
        guard: OwnedMutexGuard<()>,
    ) -> Self {
        let quiet = hub.quiet_bans(FEW_REQUESTS);
        let rules = rules_by_id(&snapshot);
        let known = bans.into_iter().filter_map(|ban| {
            let rule = rules.get(&ban.rule)?;
            Some(KnownBan {
                key: key_text(&snapshot, rule, &ban.key),
                is_likely_false_positive: is_first_offence(ban.offence, &ban.by)
                    && quiet.contains(&ban.ban_id),
                ban,
            })
        });
        let bans = known.collect();
        Self {
            snapshot,
            bans,
            hub,
            _one_at_a_time: guard,
        }
    }

    /// Returns the ban with an id.
    pub(super) fn by_id(&self, id: BanId) -> Option<&KnownBan> {
        self.bans.iter().find(|known| known.ban.ban_id == id)
    }

    /// Returns the bans of a rule whose key has this text.
    pub(super) fn with_text(&self, rule: &Rule, text: &str) -> impl Iterator<Item = &KnownBan> {
        let (rule, bans) = (rule.id, self.bans.iter());
        bans.filter(move |known| known.ban.rule == rule && known.key == text)
    }

    /// Returns the readable key of a ban.
    pub(super) fn key_text(&self, known: &KnownBan) -> String {
        known.key.clone()
    }

    /// Returns the bans that a filter selects.
    pub(super) fn selected(&self, filter: &BanFilter) -> Vec<&KnownBan> {
        let rules = rules_by_id(&self.snapshot);
        let selected = self.bans.iter().filter(|known| {
            let rule = rules.get(&known.ban.rule);
            filter.selects(known, rule.map_or("", |rule| &rule.name))
        });
        selected.collect()
    }

    /// Returns the object of a ban.
    pub(super) fn object(&self, known: &KnownBan) -> Option<MitigationObject> {
        let mut rules = self.snapshot.rules.iter();
        let (_, rule) = rules.find(|(_, rule)| rule.id == known.ban.rule)?;
        let figures = self.hub.ban_figures(known.ban.ban_id);
        let key = known.key.clone();
        Some(object(rule, &known.ban, key, figures.as_ref()))
    }

    fn page(
        &self,
        filter: &BanFilter,
        cursor: Option<PagePosition>,
        limit: usize,
    ) -> Result<MitigationPage, ApiError> {
        let position = |known: &&KnownBan| PagePosition::new(known.ban.until, known.ban.ban_id);
        let page = ban_page::page(self.selected(filter), position, cursor, limit);
        let page = page.map_err(|wrong| ApiError::invalid(wrong.to_string()))?;
        let count = |view| self.bans.iter().filter(|known| known.is_in(view)).count();
        let items = page.items.into_iter();
        Ok(MitigationPage {
            items: items.filter_map(|known| self.object(known)).collect(),
            total: page.total,
            next: page.next.map(|next| next.to_string()),
            all: self.bans.len(),
            likely_false_positives: count(BanView::LikelyFalsePositives),
            manual: count(BanView::Manual),
            common: common_parts(&self.snapshot, &self.bans),
        })
    }
}

pub(super) fn rules_by_id(snapshot: &Snapshot) -> HashMap<RuleId, &Rule> {
    let rules = snapshot.rules.iter();
    rules.map(|(_, rule)| (rule.id, rule)).collect()
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
}

// === impl BanFilter ===

impl BanFilter {
    /// Reads `rule`, `q` and `view`.
    pub(super) fn read(snapshot: &Snapshot, query: &QueryParameters) -> Result<Self, ApiError> {
        let rule = query.get("rule");
        let rule = rule.map(|name| rules::find_or_404(snapshot, name));
        let view = match query.get("view") {
            None | Some("all") => BanView::All,
            Some("likely_false_positives") => BanView::LikelyFalsePositives,
            Some("manual") => BanView::Manual,
            Some(_) => {
                let views = "`view` must be all, likely_false_positives or manual";
                return Err(ApiError::invalid(views));
            }
        };
        Ok(Self {
            rule: rule.transpose()?.map(|rule| rule.id),
            text: query.get("q").map(str::to_lowercase),
            view,
        })
    }

    fn selects(&self, known: &KnownBan, rule: &str) -> bool {
        let has_text = |text: &String| {
            known.key.to_lowercase().contains(text) || rule.to_lowercase().contains(text)
        };
        self.rule.is_none_or(|rule| known.ban.rule == rule)
            && known.is_in(self.view)
            && self.text.as_ref().is_none_or(has_text)
    }
}
