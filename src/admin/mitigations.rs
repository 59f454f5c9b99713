//! `/api/mitigations`: active bans, with search, views and pages.

use std::collections::{HashMap, HashSet};

use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::ban_listing::listing;
use super::objects::MitigationObject;
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::rules;
use super::state::AdminState;
use crate::observe::activity::BanFigures;
use crate::process::RunningGateway;
use crate::rules::{Rule, RuleId};
use crate::snapshot::Snapshot;
use crate::store::ban_page::{MAX_PAGE, PagePosition};
use crate::store::{AdminError, BanAuthor, ListedBan, ListedKey};

/// The number of bans in a page without `limit`.
const USUAL_PAGE: usize = 100;
/// How the cause of a ban by hand starts.
pub(super) const BY_HAND: &str = "by hand";
/// The number of requests that a likely false positive has mitigated at most.
pub(super) const FEW_REQUESTS: u64 = 5;

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
    let (listing, now) = (listing(state).await?, state.now());
    let page = spawn_blocking(move || listing.page(&filter, cursor, limit, now)).await;
    Ok(ApiReply::json(&page.map_err(|_| ApiError::internal())??))
}

/// Counts the bans of this gateway that are likely false positives. Reads every ban.
pub(super) fn count_likely_false_positives(live: &RunningGateway) -> usize {
    let (process, snapshot) = (&live.process, live.current.load());
    let quiet = process.activity.quiet_bans(FEW_REQUESTS);
    if quiet.is_empty() {
        return 0;
    }
    let bans = process.store.local().list_bans(None, process.clock.now());
    let rules = acting_rules(&snapshot);
    let likely = bans.iter().filter(|ban| {
        let is_first = is_first_offence(ban.offence, &ban.by);
        is_first && rules.contains(&ban.id) && quiet.contains(&ban.ban_id)
    });
    likely.count()
}

/// Returns the rules whose bans mitigate requests: not those of dry runs.
pub(super) fn acting_rules(snapshot: &Snapshot) -> HashSet<RuleId> {
    let rules = snapshot.rules.iter().filter(|(_, rule)| !rule.dry_run);
    rules.map(|(_, rule)| rule.id).collect()
}

pub(super) fn is_first_offence(offence: u32, by: &BanAuthor) -> bool {
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
        dry_run: rule.dry_run,
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

pub(super) fn rules_by_id(snapshot: &Snapshot) -> HashMap<RuleId, &Rule> {
    let rules = snapshot.rules.iter();
    rules.map(|(_, rule)| (rule.id, rule)).collect()
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
}
