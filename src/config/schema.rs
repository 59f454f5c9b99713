//! What gateway.toml may hold, in the words of its readers: they are run over nothing and note each
//! key that they ask for. Knows no form in which it is printed, and nothing of the text of a file.

use std::time::Duration;

use super::file;

/// What a table may hold.
#[derive(Clone, Debug, Default)]
pub struct TableSchema {
    /// Its keys, in the order in which they are read.
    pub keys: Vec<SettingSchema>,
    /// Keys of the user's own, in a table that has them instead.
    pub names: Option<UserNames>,
    /// Two names of one key each, ours first; a table has at most one of the two.
    pub aliases: Vec<(&'static str, &'static str)>,
    /// Of each of these sets there is exactly one key.
    pub exactly_one: Vec<&'static [&'static str]>,
    /// Of each of these sets there is a key.
    pub at_least_one: Vec<&'static [&'static str]>,
    /// Two keys each that a table does not have together.
    pub apart: Vec<(&'static str, &'static str)>,
    /// Keys with a meaning that is settled, but nothing behind it: each is refused.
    pub later: Vec<&'static str>,
}

/// One key of a table.
#[derive(Clone, Debug)]
pub struct SettingSchema {
    /// Its name.
    pub name: &'static str,
    /// What its value may be.
    pub shape: ValueSchema,
    /// Whether it must be there.
    pub required: bool,
    /// What it is if it is not there.
    pub default: Option<ExampleValue>,
}

/// Keys that the user chooses.
#[derive(Clone, Debug)]
pub struct UserNames {
    /// A regular expression for them.
    pub pattern: &'static str,
    /// What each value may be: one of these.
    pub shapes: Vec<ValueSchema>,
}

/// What a value may be.
#[derive(Clone, Debug)]
pub enum ValueSchema {
    /// A string.
    Text {
        /// A regular expression for all of it; some strings that match are still refused.
        pattern: Option<&'static str>,
        /// Characters that it has at least.
        least: u32,
        /// What it may look like.
        examples: &'static [&'static str],
    },
    /// A whole number.
    Integer {
        /// The smallest.
        low: i64,
        /// The largest.
        high: i64,
    },
    /// A number, whole or not.
    Number {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// True or false.
    Boolean,
    /// One of these strings.
    Words(Vec<&'static str>),
    /// A string as `"10s"`.
    Duration {
        /// The shortest.
        low: Duration,
        /// The longest.
        high: Duration,
        /// Whether whole seconds are accepted, as a number.
        seconds: bool,
    },
    /// A string as `"64KiB"`.
    Size {
        /// The smallest, in bytes.
        low: u64,
        /// The largest, in bytes.
        high: u64,
    },
    /// An array.
    List {
        /// What each element may be.
        item: Box<ValueSchema>,
        /// Elements that it has at least.
        least: u32,
        /// Whether an element may stand there only once.
        unique: bool,
    },
    /// A table.
    Table(TableSchema),
    /// Any of these.
    Either(Vec<ValueSchema>),
}

/// A value as a user would write it.
#[derive(Clone, Debug, PartialEq)]
pub enum ExampleValue {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// An array.
    List(Vec<ExampleValue>),
}

/// A name of the user's own: a rule, a list, an upstream, a response.
pub const NAME: &str = "^[A-Za-z0-9_-]{1,64}$";
/// A duration.
pub const DURATION: &str = "^[0-9]+(ms|s|m|h|d)$";
/// A size; only zero needs no unit.
pub const SIZE: &str = "^(0|[0-9]+(B|KiB|MiB|GiB))$";
/// An address and a port.
pub const SOCKET: &str = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+$";
/// An address or a name with a port, or a socket in the file system.
pub const SERVER: &str =
    r"^(unix:[^\x00-\x1F\x7F]+|([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+)$";
/// The target of a request.
pub const TARGET: &str = r"^/[\x21-\x22\x24-\x7E]*$";
/// A network or an address.
pub const NETWORK: &str = "^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$";
/// The name of a header: a token (RFC 9110, section 5.6.2).
pub const HEADER_NAME: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
/// The value of a header: no control character but the tab.
pub const HEADER_VALUE: &str = r"^[^\x00-\x08\x0A-\x1F\x7F]*$";
/// A country.
pub const COUNTRY: &str = "^([A-Z]{2}|T1)$";

/// What a whole file may hold. Keys that do not work yet are left out: a file with one is refused.
pub fn root() -> TableSchema {
    file::describe()
}

// === impl ValueSchema ===

impl ValueSchema {
    /// Any string.
    pub(super) const fn text() -> Self {
        ValueSchema::Text {
            pattern: None,
            least: 0,
            examples: &[],
        }
    }

    /// A string that is not empty.
    pub(super) const fn filled() -> Self {
        ValueSchema::Text {
            pattern: None,
            least: 1,
            examples: &[],
        }
    }

    /// A string of a form.
    pub(super) const fn string_of_form(
        pattern: &'static str,
        examples: &'static [&'static str],
    ) -> Self {
        ValueSchema::Text {
            pattern: Some(pattern),
            least: 0,
            examples,
        }
    }

    /// An array of any length.
    pub(super) fn list(item: ValueSchema) -> Self {
        ValueSchema::List {
            item: Box::new(item),
            least: 0,
            unique: false,
        }
    }
}
