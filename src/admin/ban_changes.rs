//! Changes of bans: by hand, unban, and undo.

use http::StatusCode;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::ban_listing::fresh_listing;
use super::body_members::{BodyMembers, invalid};
use super::known_keys::{UnknownKey, ban_with_text};
use super::mitigations::{self, BY_HAND, BanFilter, key_text, refused};
use super::objects::{ApiTime, RemovedObject};
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::rules;
use super::state::AdminState;
use crate::rules::{BanId, Rule};
use crate::snapshot::Snapshot;
use crate::store::{
    AdminError, AdminNote, BanAuthor, BanKey, BanRequest, BanTerms, ListedBan, ListedKey,
};

/// The parameters that select several bans.
const FILTERS: [&str; 3] = ["rule", "q", "view"];

/// The members of a new ban, and those of a ban that `DELETE` returned.
const MEMBERS: [&str; 16] = [
    "rule",
    "key",
    "id",
    "duration",
    "note",
    "until",
    "action",
    "dry_run",
    "offence",
    "since",
    "by",
    "mitigated",
    "last_seen",
    "addresses",
    "cause",
    "scope",
];

/// `POST /api/mitigations`: bans a key by hand, or restores a ban that `DELETE` returned.
pub(super) async fn add(state: &AdminState, body: &Map<String, Value>) -> ApiResult {
    let body = BodyMembers(body);
    body.allow(&MEMBERS)?;
    let snapshot = state.snapshot();
    let rule = rules::find_or_404(&snapshot, body.required("rule")?)?;
    if !snapshot.rules.iter().any(|(_, own)| own.id == rule.id) {
        return Err(invalid("rule", "it is disabled"));
    }
    if rule.limiter.is_none() {
        return Err(invalid("rule", "it has no limit, so it bans no keys"));
    }
    let is_undo = body.get("until").is_some();
    let terms = if is_undo {
        restored(body)?
    } else {
        let now = state.now();
        let until = now.plus(body.duration("duration")?);
        let note = AdminNote::new(body.text("note")?.unwrap_or_default());
        BanTerms::by_hand(now, until, note.map_err(refused)?)
    };
    let (key, text) = key(state, &snapshot, rule, body).await?;
    let request = BanRequest {
        rule: rule.id,
        key,
        text: text.as_str().into(),
        cause: body.text("cause")?.filter(|_| is_undo).unwrap_or("").into(),
        terms,
    };
    let ban = state.store.ban(request).await;
    state.listings.note_change();
    let ban = ban.map_err(unknown_id)?.record;
    if is_undo {
        state.hub().restore_ban(ban.ban_id, ban.until);
    } else {
        // The figures are those of the ban that it replaces.
        state.hub().forget_ban(ban.ban_id);
    }
    let figures = state.hub().ban_figures(ban.ban_id);
    let object = mitigations::object(rule, &ban, text, figures.as_ref());
    let verb = if is_undo { "restore the ban of" } else { "ban" };
    let key = audited(&object.key);
    let change = format!("{verb} {key} by {} until {}", rule.name, object.until);
    let reply = ApiReply::json(&object).with_status(StatusCode::CREATED);
    Ok(reply.with_change(change))
}

/// Reads the terms of a ban that was removed.
fn restored(body: BodyMembers<'_>) -> Result<BanTerms, ApiError> {
    let time = |name: &str| {
        let text = body.text(name)?;
        let wrong = || invalid(name, "it must be a time such as 2026-11-18T03:14:07.480Z");
        let time = text.map(|text| ApiTime::parse(text).ok_or_else(wrong));
        Ok::<_, ApiError>(time.transpose()?.map(|time| time.0))
    };
    let until = time("until")?.unwrap_or_default();
    let offence = body.number("offence")?.map(u32::try_from).transpose();
    let offence = offence.map_err(|_| invalid("offence", "it is too large"))?;
    let by = match body.text("by")? {
        Some("manual") => {
            let cause = body.text("cause")?.unwrap_or_default();
            let note = cause.strip_prefix(BY_HAND).unwrap_or_default();
            let note = note.strip_prefix(": ").unwrap_or_default();
            BanAuthor::Manual(AdminNote::new(note).map_err(refused)?)
        }
        None | Some("rule") => BanAuthor::Rule,
        Some(_) => return Err(invalid("by", "it must be rule or manual")),
    };
    Ok(BanTerms {
        until,
        since: time("since")?.unwrap_or(until),
        by,
        offence: offence.or(Some(1)),
    })
}

/// Reads the key of a ban from `id` and `key`. Returns it with its text in listings.
async fn key(
    state: &AdminState,
    snapshot: &Snapshot,
    rule: &Rule,
    body: BodyMembers<'_>,
) -> Result<(BanKey, String), ApiError> {
    let id = body.text("id")?.map(parsed_id);
    let (id, text) = (id.transpose()?, body.text("key")?);
    let hash = |secret: &[u8]| snapshot.redactor.hash(secret);
    let read = text.map(|text| rule.key.read(text));
    match (read, id) {
        (None, None) => Err(ApiError::invalid("`key` or `id` is required")),
        (Some(Ok(bytes)), id) if id.is_none_or(|id| id == BanId::of(rule.id, &bytes)) => {
            let text = rule.key.list(&bytes, &hash);
            Ok((BanKey::Bytes(bytes.into()), text))
        }
        (read, Some(id)) => {
            let known = known_text(state, snapshot, rule, id).await?;
            // Text that is hashed or cut can only be compared with that of the ban.
            let differs = match (&known, text) {
                (Some(known), Some(text)) => known != text,
                _ => matches!(read, Some(Ok(_))),
            };
            if differs {
                let message = "`key` and `id` are of different keys: use one of them";
                return Err(ApiError::invalid(message));
            }
            let text = known.or(text.map(str::to_owned)).unwrap_or_default();
            Ok((BanKey::Id(id), text))
        }
        (Some(Ok(_)), None) => Err(ApiError::internal()),
        (Some(Err(wrong)), None) => Err(invalid("key", wrong)),
    }
}

/// Returns the text of the key that a ban in force or a removed one has. `None` if this gateway knows neither.
async fn known_text(
    state: &AdminState,
    snapshot: &Snapshot,
    rule: &Rule,
    id: BanId,
) -> Result<Option<String>, ApiError> {
    let listing = fresh_listing(state).await?;
    if let Some(known) = listing.by_id(id) {
        return Ok(Some(listing.key_text(known)));
    }
    let removed = state.live.process.store.local().removed_ban(id);
    Ok(removed.map(|ban| key_text(snapshot, rule, &ListedKey::Bytes(ban.key))))
}

/// `DELETE /api/mitigations`: unbans one key, or all bans that the filters select.
pub(super) async fn remove(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let has_key = query.has("key") || query.has("id");
    if !has_key && FILTERS.iter().all(|name| query.get(name).is_none()) {
        let message = "say which bans: `id`, `rule` and `key`, or a filter";
        return Err(ApiError::invalid(message));
    }
    let name = if query.has("id") { "id" } else { "key" };
    let filter = ["q", "view"]
        .into_iter()
        .find(|name| query.get(name).is_some());
    if let Some(filter) = filter.filter(|_| has_key) {
        let message = format!("`{name}` selects one ban and `{filter}` several: use one of them");
        return Err(ApiError::invalid(message));
    }
    if query.has("key") && query.has("id") {
        let message = "`key` and `id` both select one ban: use one of them";
        return Err(ApiError::invalid(message));
    }
    if has_key {
        remove_one(state, query).await
    } else {
        remove_selected(state, query).await
    }
}

async fn remove_one(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let snapshot = state.snapshot();
    let rule = query
        .get("rule")
        .map(|name| rules::find_or_404(&snapshot, name));
    let rule = rule.transpose()?;
    let (rule, key) = match (query.any("id"), rule) {
        (Some(id), rule) => find_id(state, &snapshot, rule, id).await?,
        (None, Some(rule)) => {
            let text = query.any("key").unwrap_or_default();
            (rule, find_key(state, rule, text).await?)
        }
        (None, None) => return Err(ApiError::invalid("`rule` is required with `key`")),
    };
    let removed = state.store.unban(rule.id, key).await;
    state.listings.note_change();
    let removed = removed.map_err(refused)?;
    let ban = ListedBan {
        scope: removed.scope,
        ..removed.record
    };
    let figures = state.hub().forget_ban(ban.ban_id);
    let text = key_text(&snapshot, rule, &ban.key);
    let object = mitigations::object(rule, &ban, text, figures.as_ref());
    let change = format!("unban {} of {}", audited(&object.key), rule.name);
    Ok(ApiReply::json(&object).with_change(change))
}

/// Finds the rule of a ban by its id.
async fn find_id<'a>(
    state: &AdminState,
    snapshot: &'a Snapshot,
    rule: Option<&'a Rule>,
    id: &str,
) -> Result<(&'a Rule, BanKey), ApiError> {
    let id = parsed_id(id)?;
    if let Some(rule) = rule {
        return Ok((rule, BanKey::Id(id)));
    }
    let listing = fresh_listing(state).await?;
    let rules = mitigations::rules_by_id(snapshot);
    let known = listing.by_id(id);
    let rule = known.and_then(|known| rules.get(&known.ban.rule).copied());
    rule.map(|rule| (rule, BanKey::Id(id))).ok_or_else(no_ban)
}

/// Finds the key of a ban by its text in listings. Text that is hashed or cut must be that of one ban.
async fn find_key(state: &AdminState, rule: &Rule, text: &str) -> Result<BanKey, ApiError> {
    let wrong = match rule.key.read(text) {
        Ok(bytes) => return Ok(BanKey::Bytes(bytes.into())),
        Err(wrong) => wrong,
    };
    let listing = fresh_listing(state).await?;
    match ban_with_text(&listing, rule, text, wrong) {
        Ok(known) => Ok(BanKey::Id(known.ban.ban_id)),
        Err(UnknownKey::Unlisted) => Err(no_ban()),
        Err(UnknownKey::Invalid(wrong)) => Err(invalid("key", wrong)),
        Err(UnknownKey::Ambiguous) => Err(invalid("key", "several bans have this text; use `id`")),
    }
}

async fn remove_selected(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let filter = BanFilter::read(&state.snapshot(), query)?;
    let listing = fresh_listing(state).await?;
    let now = state.now();
    let selected = spawn_blocking(move || {
        let selected = listing.selected(&filter, now).into_iter();
        selected
            .map(|known| (known.ban.rule, known.ban.ban_id))
            .collect::<Vec<_>>()
    });
    let selected = selected.await.map_err(|_| ApiError::internal())?;
    let ids: Vec<BanId> = selected.iter().map(|(_, id)| *id).collect();
    let removed = state.store.unban_all(selected).await;
    state.listings.note_change();
    let removed = removed.map_err(refused)?;
    for id in ids {
        state.hub().forget_ban(id);
    }
    let object = RemovedObject {
        removed: removed.record,
        scope: removed.scope.name(),
    };
    let filters = FILTERS.iter().filter_map(|name| {
        let value = query.get(name)?;
        Some(format!(" {name}={value}"))
    });
    let filters: String = filters.collect();
    let change = format!("unban {} keys with{filters}", removed.record);
    Ok(ApiReply::json(&object).with_change(change))
}

/// Returns a key for the audit line. That of a rule which counts all requests together is empty.
fn audited(key: &str) -> &str {
    if key.is_empty() { "all requests" } else { key }
}

fn parsed_id(text: &str) -> Result<BanId, ApiError> {
    BanId::parse(text).ok_or_else(invalid_id)
}

fn invalid_id() -> ApiError {
    invalid("id", "it must have 32 hexadecimal digits")
}

/// Returns the response to a ban that the store has refused. Only an id can be unknown.
fn unknown_id(error: AdminError) -> ApiError {
    if error != AdminError::NotFound {
        return refused(error);
    }
    ApiError::not_found(
        "no ban in force has this `id`, and none of the last 1,024 that were unbanned one by one here; use `key` if its text is neither hashed nor cut",
    )
}

fn no_ban() -> ApiError {
    ApiError::not_found("there is no such ban")
}
