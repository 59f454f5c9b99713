//! `POST /api/explain`: what the rules would do with a request, read from the live counters. Nothing is counted.
//!
//! The options and the report are those of `lockgate explain`.

use std::fmt::Display;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::ban_listing::fresh_listing;
use super::body_members::{BodyMembers, invalid};
use super::known_keys::{KnownKeys, UnknownKey};
use super::reply::{ApiReply, ApiResult};
use super::state::AdminState;
use crate::cli::explain::request::{self, RequestOptions};
use crate::cli::explain::{json as report, parse};
use crate::process::RunningGateway;
use crate::rules::FixedKeys;
use crate::snapshot::Snapshot;
use crate::store::StoreHandle;

/// The members of a request.
const MEMBERS: [&str; 15] = [
    "method",
    "url",
    "headers",
    "ip",
    "asn",
    "country",
    "ja3",
    "ja4",
    "status",
    "response_headers",
    "form",
    "known",
    "age_s",
    "clearance",
    "keys",
];

/// The note during an outage of the shared store.
const FALLEN_BACK: &str =
    "the shared store does not reply: the counters are those of this gateway alone";

/// Explains the request in `body`.
pub(super) async fn explain(state: &AdminState, body: &Map<String, Value>) -> ApiResult {
    let options = options(body)?;
    let (live, snapshot) = (state.live.clone(), state.snapshot());
    let keys = fixed_keys(state, &snapshot, BodyMembers(body)).await?;
    // Evaluation can take a while for a large request, and its futures belong to one thread.
    let explained = spawn_blocking(move || run(&live, &snapshot, &options, keys)).await;
    let explained = explained.map_err(|_| ApiError::internal())??;
    Ok(ApiReply::json(&explained))
}

fn run(
    live: &RunningGateway,
    snapshot: &Snapshot,
    options: &RequestOptions,
    keys: FixedKeys,
) -> Result<Value, ApiError> {
    let process = &live.process;
    let simulation = request::simulation(options, snapshot);
    let (mut simulation, mut notes) = simulation.map_err(ApiError::invalid)?;
    notes.extend(request::unused_credentials(options, snapshot));
    let (store, clock) = (process.store.clone(), process.clock.clone());
    let store = StoreHandle::read_only(store, clock, keys.clone());
    simulation.keys = keys;
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|_| ApiError::internal())?;
    let simulated = simulation.run(snapshot, &store, process.clock.now(), true);
    let mut explained = report::report(&runtime.block_on(simulated), &snapshot.redactor);
    if store.has_fallen_back() {
        notes.push(FALLEN_BACK.to_owned());
    }
    if let Some(object) = explained.as_object_mut() {
        let words = request::words(options, &simulation);
        object.insert("request".to_owned(), json!(words));
        object.insert("notes".to_owned(), json!(notes));
    }
    Ok(explained)
}

/// Finds the keys that `keys` names, by rule.
async fn fixed_keys(
    state: &AdminState,
    snapshot: &Snapshot,
    body: BodyMembers<'_>,
) -> Result<FixedKeys, ApiError> {
    let keys = body.object("keys")?.filter(|keys| !keys.is_empty());
    let Some(keys) = keys else {
        return Ok(FixedKeys::default());
    };
    let listing = fresh_listing(state).await?;
    let mut fixed = FixedKeys::default();
    for (name, text) in keys {
        let wrong = |wrong: &dyn Display| invalid("keys", format!("rule {name}: {wrong}"));
        let text = text.as_str().ok_or_else(|| wrong(&"it must be a string"))?;
        let mut rules = snapshot.rules.iter();
        let rule = rules.find(|(_, rule)| *rule.name == **name);
        let (index, rule) =
            rule.ok_or_else(|| wrong(&"there is no such rule, or it is disabled"))?;
        if rule.limiter.is_none() {
            return Err(wrong(&"it has no limit, so it has no keys"));
        }
        let known = KnownKeys {
            state,
            snapshot,
            listing: &listing,
            index,
            rule,
        };
        let key = known.find(text).map_err(|unknown| match unknown {
            UnknownKey::Unlisted => wrong(&"none of its bans and hottest keys has this text"),
            UnknownKey::Ambiguous => wrong(&"several keys have this text; use the id of a ban"),
            UnknownKey::Invalid(error) => wrong(&error),
        })?;
        fixed.0.push(key);
    }
    Ok(fixed)
}

/// Reads the options of a request. An absent member and `null` have the default.
fn options(body: &Map<String, Value>) -> Result<RequestOptions, ApiError> {
    let body = BodyMembers(body);
    body.allow(&MEMBERS)?;
    let known = body.known()?;
    let age = body.number("age_s")?;
    if age.is_some() && known.is_none() {
        return Err(ApiError::invalid("`age_s` needs `known`"));
    }
    Ok(RequestOptions {
        method: parse::method(body.required("method")?)
            .map_err(|wrong| invalid("method", wrong))?,
        url: parse::url(body.required("url")?).map_err(|wrong| invalid("url", wrong))?,
        headers: body.headers("headers")?,
        form: body.pairs("form")?,
        ip: body.parsed("ip", parse::address)?,
        peer: None,
        asn: match body.number("asn")?.map(u32::try_from) {
            Some(Err(_)) => return Err(ApiError::invalid("`asn`: it is too large")),
            Some(Ok(asn)) => Some(asn),
            None => None,
        },
        country: body.parsed("country", parse::country)?,
        ja3: body.parsed("ja3", parse::ja3)?,
        ja4: body.parsed("ja4", parse::ja4)?,
        http: None,
        status: match body.number("status")? {
            Some(code) => {
                let status = parse::status(&code.to_string());
                Some(status.map_err(|wrong| invalid("status", wrong))?)
            }
            None => None,
        },
        response_header: body.headers("response_headers")?,
        known,
        age: age.map(Duration::from_secs),
        clearance: body.flag("clearance")?,
    })
}

// === impl BodyMembers ===

impl BodyMembers<'_> {
    fn parsed<T>(
        self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ApiError> {
        let parsed = self.text(name)?.map(parse).transpose();
        parsed.map_err(|wrong| invalid(name, wrong))
    }

    /// Returns the members of an object. A list of strings stands for several members of one name.
    fn pairs(self, name: &str) -> Result<Vec<(String, String)>, ApiError> {
        let mut pairs = Vec::new();
        for (own, value) in self.object(name)?.into_iter().flatten() {
            let values = match value {
                Value::Array(values) => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            for value in values {
                let text = value.as_str();
                let wrong = || invalid(name, format!("`{own}` must be a string"));
                pairs.push((own.clone(), text.ok_or_else(wrong)?.to_owned()));
            }
        }
        Ok(pairs)
    }

    fn headers(self, name: &str) -> Result<Vec<(HeaderName, HeaderValue)>, ApiError> {
        let pairs = self.pairs(name)?.into_iter();
        let headers = pairs.map(|(own, value)| parse::header(&format!("{own}: {value}")));
        let headers: Result<Vec<_>, String> = headers.collect();
        headers.map_err(|wrong| invalid(name, wrong))
    }

    /// Returns the known client: `true`, or the name of a user.
    fn known(self) -> Result<Option<Option<String>>, ApiError> {
        match self.get("known") {
            None | Some(Value::Bool(false)) => Ok(None),
            Some(Value::Bool(true)) => Ok(Some(None)),
            Some(Value::String(user)) => Ok(Some(Some(user.clone()))),
            Some(_) => Err(invalid("known", "it must be true or a user")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<RequestOptions, String> {
        options(body.as_object().unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn every_member_is_read() {
        let options = read(json!({
            "method": "POST", "url": "https://shop.example/login", "ip": "203.0.113.7", "asn": 64500, "country": "de",
            "headers": {"accept": ["text/html", "text/plain"], "user-agent": "x"}, "form": {"user": "alice"},
            "ja3": null, "ja4": "t13d1516h2_8daaf6152771_b186095e22b6", "status": 401, "response_headers": {"x-a": "1"},
            "known": "alice", "age_s": 60, "clearance": true, "keys": {},
        }));
        let options = options.unwrap();
        assert_eq!(options.headers.len(), 3);
        assert_eq!(options.form, [("user".to_owned(), "alice".to_owned())]);
        assert_eq!(options.country, Some(*b"DE"));
        assert_eq!(options.status.map(|status| status.as_u16()), Some(401));
        assert_eq!(options.known, Some(Some("alice".to_owned())));
        assert_eq!(options.age, Some(Duration::from_secs(60)));
        assert!(options.clearance);
    }

    #[test]
    fn invalid_members_are_named() {
        let with = |name: &str, value: Value| {
            let mut body = json!({ "method": "GET", "url": "/" });
            body[name] = value;
            read(body).unwrap_err()
        };
        assert_eq!(with("method", Value::Null), "`method` is required");
        let unknown = with("path", json!("/"));
        assert!(
            unknown.starts_with("unknown member `path`; known here: `method`, "),
            "{unknown}"
        );
        assert_eq!(with("asn", json!(-1)), "`asn`: it must be a whole number");
        assert_eq!(
            with("headers", json!({"a": 1})),
            "`headers`: `a` must be a string"
        );
        assert!(with("headers", json!({"a b": "c"})).starts_with("`headers`: "));
        assert!(with("ip", json!("example.com")).starts_with("`ip`: "));
        assert_eq!(with("age_s", json!(1)), "`age_s` needs `known`");
    }
}
