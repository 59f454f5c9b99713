//! Reads the members of the admin API's objects. A missing member has a neutral value, so that an older or a newer
//! gateway can be shown too.

use serde_json::Value;

use crate::cli::records::parse_time;
use crate::clock::Timestamp;

/// The members of an object.
pub trait ApiFields {
    /// A text. Empty if it is missing or `null`. The text may come from a client.
    fn text(&self, name: &str) -> &str;
    /// A number. `None` if it is missing or `null`.
    fn number(&self, name: &str) -> Option<f64>;
    /// A count. 0 if it is missing or `null`.
    fn count(&self, name: &str) -> u64;
    /// A list. Empty if it is missing or `null`.
    fn list(&self, name: &str) -> &[Value];
    /// A truth value. `false` if it is missing or `null`.
    fn flag(&self, name: &str) -> bool;
    /// A time. `None` if it is missing or `null`.
    fn time(&self, name: &str) -> Option<Timestamp>;
    /// An object. `null` if it is missing.
    fn object(&self, name: &str) -> &Value;
}

impl ApiFields for Value {
    fn text(&self, name: &str) -> &str {
        self.object(name).as_str().unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.object(name).as_f64()
    }

    fn count(&self, name: &str) -> u64 {
        self.object(name).as_u64().unwrap_or_default()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.object(name)
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.object(name).as_bool().unwrap_or_default()
    }

    fn time(&self, name: &str) -> Option<Timestamp> {
        parse_time(self.object(name).as_str()?)
    }

    fn object(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}
