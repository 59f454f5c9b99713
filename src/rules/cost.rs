//! What a request costs: so many units of its rule's limit.

use super::Cost;
use crate::expr::{Facts, Value};
use crate::facts::fields;

// === impl Cost ===

impl Cost {
    /// Whether it is known only once there is a response.
    pub fn reads_response(&self) -> bool {
        match self {
            Cost::Fixed(_) => false,
            Cost::Computed(scalar) => scalar.reads_response(),
            Cost::Header(_) => true,
        }
    }

    /// The cost of what is in `facts`; `None`: nothing is counted.
    #[inline]
    pub(super) fn of(&self, facts: &dyn Facts) -> Option<u64> {
        match self {
            Cost::Fixed(cost) => Some(*cost),
            Cost::Computed(scalar) => Some(match scalar.eval(facts) {
                Some(Value::Int(cost)) => u64::try_from(cost).unwrap_or(1),
                _ => 1,
            }),
            Cost::Header(name) => {
                let name = name.as_str().as_bytes();
                whole_number(&facts.element(fields::RESPONSE_HEADERS, Some(name), 0)?)
            }
        }
    }
}

/// A number of digits alone; one that is too large is the largest.
fn whole_number(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        Some(number.saturating_mul(10).saturating_add(digit.into()))
    })
}
