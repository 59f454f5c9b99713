//! The parameters in the query of a request, and percent-decoded parts of a path.

use std::ops::RangeInclusive;

use super::api_error::ApiError;
use crate::expr::percent_decode;

/// The parameters of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryParameters(Vec<(String, String)>);

// === impl QueryParameters ===

impl QueryParameters {
    /// Parses a query as the URL standard writes forms. `None` means no query.
    pub fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let pairs = query.unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name, true)?, decoded(value, true)?))
        });
        let pairs: Option<Vec<_>> = pairs.collect();
        let wrong = || ApiError::invalid("the query is not percent-encoded UTF-8");
        pairs.map(Self).ok_or_else(wrong)
    }

    /// Fails if a parameter has another name than `names`, or is repeated.
    pub fn allow(&self, names: &[&str]) -> Result<(), ApiError> {
        let mut seen: Vec<&str> = Vec::with_capacity(names.len());
        for (name, _) in &self.0 {
            let known = names.iter().map(|name| format!("`{name}`"));
            if !names.contains(&name.as_str()) {
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(ApiError::invalid(format!(
                    "unknown parameter `{name}`; known here: {known}"
                )));
            }
            if seen.contains(&name.as_str()) {
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(ApiError::invalid(format!(
                    "parameter `{name}` is repeated; each of {known} may be present once"
                )));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// Returns whether a parameter is present, also with an empty value.
    pub fn has(&self, name: &str) -> bool {
        self.any(name).is_some()
    }

    /// Returns the first value of a parameter, also an empty one. `None` if it is absent.
    pub fn any(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(own, _)| own == name);
        value.map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a parameter. `None` if it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.any(name).filter(|value| !value.is_empty())
    }

    /// Returns a number within `range`, or `default` if the parameter is absent.
    pub fn number(
        &self,
        name: &str,
        range: RangeInclusive<usize>,
        default: usize,
    ) -> Result<usize, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(default);
        };
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (low, high) = range.into_inner();
            ApiError::invalid(format!("`{name}` must be a number from {low} to {high}"))
        })
    }
}

/// Decodes `%XX` in a part of a path. `None` if the result is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    decoded(text, false)
}

/// Decodes `%XX`, and with `spaces`, `+`.
fn decoded(text: &str, spaces: bool) -> Option<String> {
    let bytes = percent_decode(text.as_bytes(), spaces, false);
    String::from_utf8(bytes.into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = QueryParameters::parse(Some("rule=a%2Fb&q=two+words&view=&n=7&n=8")).unwrap();
        assert_eq!(query.get("rule"), Some("a/b"));
        assert_eq!(query.get("q"), Some("two words"));
        assert_eq!(query.get("view"), None);
        assert_eq!(query.number("n", 1..=100, 20), Ok(7));
        assert_eq!(query.number("limit", 1..=100, 20), Ok(20));
        assert!(query.number("q", 1..=100, 20).is_err());
        assert!(query.number("n", 8..=9, 8).is_err());
        assert!(query.has("view") && !query.has("none"));
        assert!(QueryParameters::parse(Some("a=%ff")).is_err());
    }

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        let allow = |query| {
            let query = QueryParameters::parse(Some(query)).unwrap();
            query.allow(&["rule", "key"]).map_err(|error| error.message)
        };
        assert_eq!(allow("rule=two&key="), Ok(()));
        assert_eq!(allow("&"), Ok(()));
        let unknown = "unknown parameter `kye`; known here: `rule`, `key`";
        assert_eq!(allow("rule=two&kye=203.0.113.30"), Err(unknown.to_owned()));
        let repeated = "parameter `key` is repeated; each of `rule`, `key` may be present once";
        assert_eq!(allow("key=a&rule=two&k%65y=b"), Err(repeated.to_owned()));
    }

    #[test]
    fn a_part_of_a_path_is_decoded() {
        assert_eq!(decode("login%2fsite").as_deref(), Some("login/site"));
        assert_eq!(decode("%C3%A4").as_deref(), Some("ä"));
        assert_eq!(decode("a+b").as_deref(), Some("a+b"));
        assert_eq!(decode("%ff"), None);
    }
}
