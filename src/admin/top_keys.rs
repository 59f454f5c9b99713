//! `/api/rules/NAME/top`: the hottest keys of a rule, readable, with their counters.

use serde_json::Value;

use super::key_views::{candidate, inspected, refuses, usage};
use super::objects::{KeyPartObject, TopKeyObject, raw_json};
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::rules;
use super::state::AdminState;
use crate::observe::activity::HotKey;
use crate::rules::{Key, ShownPart};
use crate::store::KeyUsage;

/// The maximum number of keys.
const MOST: usize = 100;
/// The number of keys without `n`.
const USUAL: usize = 20;

/// Returns the hottest keys of a rule, hottest first.
pub(super) async fn top_keys(state: &AdminState, name: &str, query: &QueryParameters) -> ApiResult {
    let most = query.number("n", 1..=MOST, USUAL)?;
    let snapshot = state.snapshot();
    let rule = rules::find_or_404(&snapshot, name)?;
    let Some(live) = inspected(rule) else {
        return Ok(ApiReply::json(&Vec::<TopKeyObject>::new()));
    };
    let hottest = state.hub().hottest(rule.id, most);
    let keys: Vec<Vec<u8>> = hottest.iter().map(|hot| hot.key.to_vec()).collect();
    let counters = usage(state, live, &keys).await;
    let mut refused = vec![None; keys.len()];
    if let Some(candidate) = candidate(rule) {
        let counters = usage(state, candidate, &keys).await;
        let refuses = |usage| Some(refuses(usage, &candidate.limiter));
        refused = counters.iter().map(refuses).collect();
    }
    let hash = |bytes: &[u8]| snapshot.redactor.hash(bytes);
    let limit = live.limiter.capacity();
    let all = hottest.iter().zip(&counters).zip(refused);
    let objects = all.map(|((hot, usage), refused)| TopKeyObject {
        note: note(hot, refused),
        sample: hot.sample.as_deref().and_then(raw_json),
        ..object(&rule.key, hot, usage, limit, &hash)
    });
    Ok(ApiReply::json(&objects.collect::<Vec<_>>()))
}

fn object(
    key: &Key,
    hot: &HotKey,
    usage: &KeyUsage,
    limit: u64,
    hash: &dyn Fn(&[u8]) -> String,
) -> TopKeyObject {
    let parts = key.shown_parts(&key.describe(&hot.key, hash)).into_iter();
    let part = |part: ShownPart<'_>| KeyPartObject {
        field: part.field.to_owned(),
        value: part.value,
    };
    TopKeyObject {
        key: key.list(&hot.key, hash),
        parts: parts.map(part).collect(),
        count: usage.count,
        limit,
        banned_until: usage.banned_until.map(Into::into),
        note: String::new(),
        sample: None,
    }
}

/// Describes a key: country and network of its newest request, rate, and whether the candidate would refuse it.
fn note(hot: &HotKey, refused: Option<bool>) -> String {
    let sample = hot.sample.as_deref().map(serde_json::from_str::<Value>);
    let sample = sample.and_then(Result::ok).unwrap_or_default();
    let country = sample.get("country").and_then(Value::as_str);
    let country = country.map(str::to_owned);
    let network = sample.get("asn").and_then(Value::as_u64);
    let network = network.map(|asn| format!("AS{asn}"));
    let rate = match hot.per_s {
        rate if rate >= 0.95 => format!("{rate:.0} requests/s"),
        rate if rate * 60.0 >= 1.5 => format!("{:.0} requests/min", rate * 60.0),
        _ => "1 request/min".to_owned(),
    };
    let candidate = refused.filter(|refused| *refused);
    let candidate = candidate.map(|_| "the candidate would refuse it".to_owned());
    let parts = [country, network, Some(rate), candidate];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_what_is_known() {
        let mut hot = HotKey {
            key: [].into(),
            per_s: 12.3,
            sample: Some(r#"{"country":"ZZ","asn":64500}"#.into()),
        };
        assert_eq!(
            note(&hot, Some(true)),
            "ZZ, AS64500, 12 requests/s, the candidate would refuse it"
        );
        hot.sample = Some(r#"{"country":null,"asn":null}"#.into());
        hot.per_s = 0.1;
        assert_eq!(note(&hot, Some(false)), "6 requests/min");
        hot.sample = None;
        hot.per_s = 0.0;
        assert_eq!(note(&hot, None), "1 request/min");
    }
}
