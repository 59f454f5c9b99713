//! Types of single values. A [`SettingType`] parses one value, or returns an error with an example
//! of a correct value; the schema reads from it what it accepts.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use toml::de::DeValue;

use super::schema::{self, ExampleValue, ValueSchema};
use super::suggest::{did_you_mean, either};
use super::vocabulary::foreign_value;

mod address;
mod units;
pub(super) use address::{
    header_name, header_value, host_or_none, method, network, parse_header_name, parse_network,
    redirect_status, server, socket, status, status_range, target_path, warn_of_host_bits,
};
pub(super) use units::{
    between, duration, duration_or_seconds, duration_text, rate, size, size_between,
};

/// The parser and the schema of one value.
pub(super) struct SettingType<T> {
    shape: ValueSchema,
    parse: Parse<T>,
    show: Option<Show<T>>,
}

type Parse<T> = Box<dyn Fn(&DeValue<'_>) -> Parsed<T>>;
type Show<T> = Box<dyn Fn(&T) -> ExampleValue>;

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueError {
    /// The message, without a final full stop.
    pub(super) message: String,
    /// A suggested fix.
    pub(super) help: Option<String>,
}

/// The result of parsing a value.
pub(super) type Parsed<T> = Result<T, ValueError>;

// === impl SettingType ===

impl<T: 'static> SettingType<T> {
    /// Creates a type that `parse` reads and `shape` describes.
    pub(super) fn new(
        shape: ValueSchema,
        parse: impl Fn(&DeValue<'_>) -> Parsed<T> + 'static,
    ) -> Self {
        Self {
            shape,
            parse: Box::new(parse),
            show: None,
        }
    }

    /// Adds the inverse of parsing, which renders a default value as a user would write it.
    pub(super) fn shown(mut self, show: impl Fn(&T) -> ExampleValue + 'static) -> Self {
        self.show = Some(Box::new(show));
        self
    }

    /// Adds example values.
    pub(super) fn examples(mut self, values: &'static [&'static str]) -> Self {
        if let ValueSchema::Text { examples, .. } = &mut self.shape {
            *examples = values;
        }
        self
    }

    /// Converts the parsed values with `f`.
    pub(super) fn map<U: 'static>(self, f: impl Fn(T) -> U + 'static) -> SettingType<U> {
        SettingType::new(self.shape, move |value| (self.parse)(value).map(&f))
    }

    /// Parses a value.
    pub(super) fn parse(&self, value: &DeValue<'_>) -> Parsed<T> {
        (self.parse)(value)
    }

    /// Returns the schema of accepted values.
    pub(super) fn shape(&self) -> ValueSchema {
        self.shape.clone()
    }

    /// Renders a value as a user would write it. `None` if there is no renderer.
    pub(super) fn show(&self, value: &T) -> Option<ExampleValue> {
        self.show.as_ref().map(|show| show(value))
    }
}

// === impl ValueError ===

impl ValueError {
    /// Creates an error without help.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }

    /// Adds a suggested fix.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Returns the error for a value of the wrong TOML type.
pub(super) fn kind(expected: &str, found: &DeValue<'_>) -> ValueError {
    let found = match found {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    ValueError::new(format!("expected {expected}, found {found}"))
}

/// Any string.
pub(super) fn text() -> SettingType<String> {
    SettingType::new(ValueSchema::text(), |value| {
        string(value, "a string").map(str::to_owned)
    })
    .shown(|text| ExampleValue::Text(text.clone()))
}

/// A string that is not empty.
pub(super) fn filled() -> SettingType<String> {
    SettingType::new(ValueSchema::filled(), |value| {
        match string(value, "a string")? {
            "" => Err(ValueError::new("this string must not be empty")),
            text => Ok(text.to_owned()),
        }
    })
    .shown(|text| ExampleValue::Text(text.clone()))
}

/// A name. Accepts any string; [`check_name`] checks it later, so that a wrong name is still known.
pub(super) fn name() -> SettingType<String> {
    SettingType::new(ValueSchema::string_of_form(schema::NAME, &[]), |value| {
        text().parse(value)
    })
}

/// A path to a file. The caller resolves relative paths.
pub(super) fn path() -> SettingType<PathBuf> {
    SettingType::new(ValueSchema::filled(), |value| {
        match string(value, "a path")? {
            "" => Err(ValueError::new("this path is empty")
                .help("write the path of a file, or remove the setting")),
            path => Ok(PathBuf::from(path)),
        }
    })
}

/// A path to a file. An empty string means no file.
pub(super) fn path_or_none() -> SettingType<Option<PathBuf>> {
    SettingType::new(ValueSchema::text(), |value| {
        match string(value, "a path")? {
            "" => Ok(None),
            path => Ok(Some(PathBuf::from(path))),
        }
    })
    .shown(|path| {
        let text = path.as_ref().map(|path| path.display().to_string());
        ExampleValue::Text(text.unwrap_or_default())
    })
}

/// A boolean.
pub(super) fn boolean() -> SettingType<bool> {
    let help = "write `true` or `false`, without quotes";
    let parse = move |value: &DeValue<'_>| {
        let found = value.as_bool();
        found.ok_or_else(|| kind("a boolean", value).help(help))
    };
    SettingType::new(ValueSchema::Boolean, parse).shown(|value| ExampleValue::Boolean(*value))
}

/// An integer within bounds.
pub(super) fn integer<T>(bounds: RangeInclusive<T>) -> SettingType<T>
where
    T: TryFrom<i128> + Into<i128> + PartialOrd + Copy + std::fmt::Display + 'static,
{
    let shape = ValueSchema::Integer {
        low: short((*bounds.start()).into()),
        high: short((*bounds.end()).into()),
    };
    let parse = move |value: &DeValue<'_>| {
        let number = whole(value)?;
        let fits = T::try_from(number).ok().filter(|n| bounds.contains(n));
        fits.ok_or_else(|| {
            let (low, high) = (bounds.start(), bounds.end());
            ValueError::new(format!("{number} is not between {low} and {high}"))
        })
    };
    SettingType::new(shape, parse).shown(|number| ExampleValue::Integer(short((*number).into())))
}

/// An integer or a float within bounds.
pub(super) fn number(low: f64, high: f64) -> SettingType<f64> {
    let parse = move |value: &DeValue<'_>| {
        let number = match value {
            DeValue::Integer(_) => whole(value)? as f64,
            DeValue::Float(float) => float
                .as_str()
                .parse()
                .map_err(|_| kind("a number", value))?,
            _ => {
                return Err(kind("a number", value)
                    .help(format!("write a number from {low:?} to {high:?}")));
            }
        };
        if (low..=high).contains(&number) {
            return Ok(number);
        }
        Err(ValueError::new(format!(
            "{number} is not between {low:?} and {high:?}"
        )))
    };
    SettingType::new(ValueSchema::Number { low, high }, parse)
        .shown(|number| ExampleValue::Number(*number))
}

/// One of several words. `later` are documented words that are not implemented yet.
pub(super) fn choice<T: Copy + PartialEq>(
    words: &'static [(&'static str, T)],
    later: &'static [&'static str],
) -> SettingType<T> {
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    let shape = ValueSchema::Words(known.clone());
    let parse = move |value: &DeValue<'_>| {
        let help = format!("write {}", either(&known));
        let Some(written) = value.as_str() else {
            return Err(kind("a string", value).help(help));
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == written) {
            return Ok(*meaning);
        }
        if later.contains(&written) {
            return Err(ValueError::new(format!("`{written}` is not supported yet")).help(help));
        }
        let all = known.iter().chain(later).copied();
        let guess = match foreign_value(written, &known) {
            Some(word) => format!("; did you mean `{word}`?"),
            None => did_you_mean(written, all),
        };
        Err(ValueError::new(format!("unknown value `{written}`{guess}")).help(help))
    };
    SettingType::new(shape, parse).shown(move |meaning| {
        let word = words.iter().find(|(_, m)| m == meaning);
        ExampleValue::Text(word.map_or(String::new(), |(word, _)| (*word).to_owned()))
    })
}

/// The name of a rule. Accepts any string; [`check_rule_name`] checks it later.
pub(super) fn rule_name() -> SettingType<String> {
    let shape = ValueSchema::string_of_form(schema::RULE_NAME, &[]);
    SettingType::new(shape, |value| text().parse(value))
}

/// Checks the name of a rule, which may contain one `/`: up to 40 characters before and 23 after it.
pub(super) fn check_rule_name(written: &str) -> Parsed<()> {
    let Some((preset, rule)) = written.split_once('/') else {
        return check_name(written);
    };
    let lengths = preset.len() <= 40 && rule.len() <= 23;
    if lengths && check_name(preset).is_ok() && check_name(rule).is_ok() {
        return Ok(());
    }
    Err(ValueError::new(format!("`{written}` is not a valid name"))
        .help("a name with a `/` has 1 to 40 characters before it and 1 to 23 after it"))
}

/// Checks the name of a list, upstream or response: `[A-Za-z0-9_-]{1,64}`.
pub(super) fn check_name(written: &str) -> Parsed<()> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=64).contains(&written.len()) && written.bytes().all(legal) {
        return Ok(());
    }
    Err(ValueError::new(format!("`{written}` is not a valid name"))
        .help("a name has 1 to 64 letters, digits, `_` and `-`, for example `login-stuffing`"))
}

/// A country: two capital letters (ISO 3166-1 alpha-2), or `T1`, Cloudflare's code for Tor.
pub(super) fn country() -> SettingType<[u8; 2]> {
    SettingType::new(
        ValueSchema::string_of_form(schema::COUNTRY, &["DE"]),
        |value| {
            let written = string(value, "a country")?;
            let code = <[u8; 2]>::try_from(written.as_bytes()).ok();
            let known = |code: &[u8; 2]| code.iter().all(u8::is_ascii_uppercase) || code == b"T1";
            code.filter(known).ok_or_else(|| {
                let wrong = ValueError::new(format!("`{written}` is not a country code"));
                wrong.help("write two capital letters, for example \"DE\"")
            })
        },
    )
}

/// A continent, in two capital letters.
pub(super) fn continent() -> SettingType<[u8; 2]> {
    const ALL: [&str; 7] = ["AF", "AN", "AS", "EU", "NA", "OC", "SA"];
    SettingType::new(ValueSchema::Words(ALL.to_vec()), |value| {
        let written = string(value, "a continent")?;
        let known = Some(written).filter(|written| ALL.contains(written));
        let code = known.and_then(|code| code.as_bytes().try_into().ok());
        code.ok_or_else(|| {
            let wrong = ValueError::new(format!("`{written}` is not a continent code"));
            wrong.help(format!("write one of {}", ALL.join(", ")))
        })
    })
}

/// Parses a whole number of any size that TOML can represent.
fn whole(value: &DeValue<'_>) -> Parsed<i128> {
    let Some(integer) = value.as_integer() else {
        let wrong = kind("an integer", value);
        return Err(match value.as_str() {
            Some(text) => match rate(text) {
                Some((number, period)) => {
                    wrong.help(format!("write {number}, and `period = \"{period}\"`"))
                }
                None => wrong.help("write the number without quotes"),
            },
            None => wrong,
        });
    };
    if !integer.as_str().contains(|c: char| c.is_ascii_hexdigit()) {
        return Err(ValueError::new("this is not a number").help("digits are missing"));
    }
    i128::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| ValueError::new("this number is too large"))
}

pub(in crate::config) fn string<'v>(value: &'v DeValue<'_>, expected: &str) -> Parsed<&'v str> {
    value.as_str().ok_or_else(|| kind(expected, value))
}

/// Clamps a bound to the integers that TOML can represent.
fn short(number: i128) -> i64 {
    let clamped = number.clamp(i64::MIN.into(), i64::MAX.into());
    i64::try_from(clamped).unwrap_or(i64::MAX)
}
