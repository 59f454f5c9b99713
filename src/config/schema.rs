//! The schema of gateway.toml, described by its readers: they run over an empty table and record
//! each setting that they read. Independent of any output format and of the text of a file.

use std::time::Duration;

use super::file;

/// The schema of a table.
#[derive(Clone, Debug, Default)]
pub struct TableSchema {
    /// Its settings, in the order in which they are read.
    pub keys: Vec<SettingSchema>,
    /// The schema of names that the user chooses, in a table that has them instead of settings.
    pub names: Option<UserNames>,
    /// Pairs of a lockgate name and its alias; a table has at most one of the two.
    pub aliases: Vec<(&'static str, &'static str)>,
    /// Sets of settings of which exactly one is required.
    pub exactly_one: Vec<&'static [&'static str]>,
    /// Sets of settings of which at least one is required.
    pub at_least_one: Vec<&'static [&'static str]>,
    /// Pairs of settings that exclude each other.
    pub apart: Vec<(&'static str, &'static str)>,
    /// Documented settings that are not implemented yet; each is refused.
    pub later: Vec<&'static str>,
}

/// The schema of one setting.
#[derive(Clone, Debug)]
pub struct SettingSchema {
    /// Its name.
    pub name: &'static str,
    /// The schema of its value.
    pub shape: ValueSchema,
    /// Whether it is required.
    pub required: bool,
    /// Its default. `None` if it has no default.
    pub default: Option<ExampleValue>,
}

/// The schema of names that the user chooses.
#[derive(Clone, Debug)]
pub struct UserNames {
    /// A regular expression for the names.
    pub pattern: &'static str,
    /// The alternatives for each value.
    pub shapes: Vec<ValueSchema>,
}

/// The schema of a value.
#[derive(Clone, Debug)]
pub enum ValueSchema {
    /// A string.
    Text {
        /// A regular expression for the whole string; some matching strings are still refused.
        pattern: Option<&'static str>,
        /// The minimum length in characters.
        least: u32,
        /// Example values.
        examples: &'static [&'static str],
    },
    /// An integer.
    Integer {
        /// The minimum.
        low: i64,
        /// The maximum.
        high: i64,
    },
    /// An integer or a float.
    Number {
        /// The minimum.
        low: f64,
        /// The maximum.
        high: f64,
    },
    /// A boolean.
    Boolean,
    /// One of these strings.
    Words(Vec<&'static str>),
    /// A string such as `"10s"`.
    Duration {
        /// The minimum.
        low: Duration,
        /// The maximum.
        high: Duration,
        /// Whether an integer number of seconds is also accepted.
        seconds: bool,
    },
    /// A string such as `"64KiB"`.
    Size {
        /// The minimum in bytes.
        low: u64,
        /// The maximum in bytes.
        high: u64,
    },
    /// An array.
    List {
        /// The schema of each element.
        item: Box<ValueSchema>,
        /// The minimum number of elements.
        least: u32,
        /// Whether elements must be unique.
        unique: bool,
    },
    /// A table.
    Table(TableSchema),
    /// Any of these alternatives.
    Either(Vec<ValueSchema>),
}

/// A value as a user would write it.
#[derive(Clone, Debug, PartialEq)]
pub enum ExampleValue {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A float.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// An array.
    List(Vec<ExampleValue>),
}

/// A name that the user chooses: of a list, an upstream or a response.
pub const NAME: &str = "^[A-Za-z0-9_-]{1,64}$";
/// The name of a rule: that of a rule of a preset contains a `/`.
pub const RULE_NAME: &str = "^([A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{1,40}/[A-Za-z0-9_-]{1,23})$";
/// The name of a preset.
pub const PRESET_NAME: &str = "^[A-Za-z0-9_-]{1,40}$";
/// A path of a preset; a `*` at the end makes it a prefix.
pub const PRESET_PATH: &str = r##"^/[^\x00-\x20"#*?\\\x7F-\x9F]*\*?$"##;
/// A path of a preset, or an empty string.
pub const PRESET_PATH_OR_NONE: &str = r##"^(/[^\x00-\x20"#*?\\\x7F-\x9F]*\*?)?$"##;
/// The status of an error, or a class of them.
pub const ERROR_STATUS: &str = "^([45][0-9]{2}|[45]xx)$";
/// The method of a request.
pub const METHOD: &str = "^[A-Z]+$";
/// A duration.
pub const DURATION: &str = "^[0-9]+(ms|s|m|h|d)$";
/// A size; only zero may omit the unit.
pub const SIZE: &str = "^(0|[0-9]+(B|KiB|MiB|GiB))$";
/// An IP address and a port.
pub const SOCKET: &str = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+$";
/// An IP address or a name with a port, or a Unix socket.
pub const SERVER: &str =
    r"^(unix:[^\x00-\x1F\x7F]+|([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+)$";
/// The URL of a shared store.
pub const STORE_URL: &str = "^(rediss?(-cluster|-sentinel)?|unix)://.+$";
/// The start of the keys in a shared store.
pub const STORE_PREFIX: &str = "^[!-z|~]{0,64}$";
/// The target of a request.
pub const TARGET: &str = r"^/[\x21-\x22\x24-\x7E]*$";
/// A network or an address.
pub const NETWORK: &str = "^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$";
/// A path prefix that the gateway serves itself.
pub const RESERVED_PATH: &str = "^/([A-Za-z0-9._~-]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)+$";
/// An origin with https.
pub const ORIGIN: &str =
    r"^https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?$";
/// A host with or without a port, or an empty string.
pub const HOST_OR_NONE: &str = r"^([A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?)?$";
/// A status, or a range of statuses.
pub const STATUS_RANGE: &str = "^[2-5][0-9]{2}(-[2-5][0-9]{2})?$";
/// The name of a header: a token (RFC 9110, section 5.6.2).
pub const HEADER_NAME: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
/// The name of a header, or nothing.
pub const HEADER_NAME_OR_EMPTY: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]*$";
/// The value of a header: no control characters except HTAB (0x09).
pub const HEADER_VALUE: &str = r"^[^\x00-\x08\x0A-\x1F\x7F]*$";
/// A country.
pub const COUNTRY: &str = "^([A-Z]{2}|T1)$";

/// Describes a whole file. Omits settings that are not implemented yet, because a file with one is refused.
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

    /// A string that matches a pattern.
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
