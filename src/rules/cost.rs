//! The cost of a request: the units that it is charged.

use super::RuleCost;
use crate::expr::{FieldFacts, ScalarValue};
use crate::facts::fields;

// === impl RuleCost ===

impl RuleCost {
    /// Whether the cost is known only once there is a response.
    pub fn reads_response(&self) -> bool {
        match self {
            RuleCost::Fixed(_) => false,
            RuleCost::Computed(scalar) => scalar.reads_response(),
            RuleCost::Header(_) => true,
        }
    }

    /// The cost of the request in `facts`. `None` if it is not counted.
    #[inline]
    pub(super) fn of(&self, facts: &dyn FieldFacts) -> Option<u64> {
        match self {
            RuleCost::Fixed(cost) => Some(*cost),
            RuleCost::Computed(scalar) => Some(match scalar.eval(facts) {
                Some(ScalarValue::Int(cost)) => u64::try_from(cost).unwrap_or(1),
                _ => 1,
            }),
            RuleCost::Header(name) => {
                let name = name.as_str().as_bytes();
                whole_number(&facts.element(fields::RESPONSE_HEADERS, Some(name), 0)?)
            }
        }
    }
}

/// Parses a number that consists of digits alone. A number that is too large becomes `u64::MAX`.
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
