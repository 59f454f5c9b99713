//! The members of a JSON object that a client has sent, by type.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Map, Value};

use super::api_error::ApiError;
use crate::config;

/// The members of an object. An absent member and `null` are the same.
#[derive(Clone, Copy)]
pub struct BodyMembers<'a>(pub &'a Map<String, Value>);

/// An error about a member.
pub fn invalid(name: &str, wrong: impl Display) -> ApiError {
    ApiError::invalid(format!("`{name}`: {wrong}"))
}

// === impl BodyMembers ===

impl<'a> BodyMembers<'a> {
    /// Fails if there is a member with another name.
    pub fn allow(self, names: &[&str]) -> Result<(), ApiError> {
        match self.0.keys().find(|name| !names.contains(&name.as_str())) {
            Some(unknown) => {
                let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                let known = known.join(", ");
                let message = format!("unknown member `{unknown}`; known here: {known}");
                Err(ApiError::invalid(message))
            }
            None => Ok(()),
        }
    }

    /// Returns a member.
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a string.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.typed(name, "a string", Value::as_str)
    }

    /// Returns a string that must be present.
    pub fn required(self, name: &str) -> Result<&'a str, ApiError> {
        let missing = || ApiError::invalid(format!("`{name}` is required"));
        self.text(name)?.ok_or_else(missing)
    }

    /// Returns a duration that must be present, such as `10m`.
    pub fn duration(self, name: &str) -> Result<Duration, ApiError> {
        let duration = config::duration(self.required(name)?);
        let duration = duration.map_err(|wrong| invalid(name, wrong))?;
        if duration.is_zero() {
            return Err(invalid(name, "it must be longer than 0"));
        }
        Ok(duration)
    }

    /// Returns a number.
    pub fn number(self, name: &str) -> Result<Option<u64>, ApiError> {
        self.typed(name, "a whole number", Value::as_u64)
    }

    /// Returns a flag, `false` if it is absent.
    pub fn flag(self, name: &str) -> Result<bool, ApiError> {
        let flag = self.typed(name, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or_default())
    }

    /// Returns an object.
    pub fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, ApiError> {
        self.typed(name, "an object", Value::as_object)
    }

    fn typed<T>(
        self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let wrong = || invalid(name, format!("it must be {expected}"));
        read(value).map(Some).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_have_types() {
        let value = json!({ "a": "x", "b": null, "c": "10m", "d": "0s", "e": 1 });
        let body = BodyMembers(value.as_object().unwrap());
        assert_eq!(body.text("a"), Ok(Some("x")));
        assert_eq!((body.text("b"), body.text("z")), (Ok(None), Ok(None)));
        assert_eq!(body.duration("c"), Ok(Duration::from_secs(600)));
        for (name, message) in [
            ("a", "`a`: "),
            ("b", "`b` is required"),
            ("d", "`d`: it must be longer than 0"),
            ("e", "`e`: it must be a string"),
        ] {
            let error = body.duration(name).unwrap_err();
            assert!(error.message.starts_with(message), "{}", error.message);
        }
        assert!(body.allow(&["a", "b", "c", "d", "e"]).is_ok());
        let error = body.allow(&["a"]).unwrap_err();
        assert_eq!(error.message, "unknown member `b`; known here: `a`");
    }
}
