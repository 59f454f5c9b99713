//! What a request costs: so many units of its rule's limit.

use super::RuleCost;
use crate::expr::{FieldFacts, ScalarValue};
use crate::facts::fields;

// === impl RuleCost ===

impl RuleCost {
    /// Whether it is known only once there is a response.
    pub fn reads_response(&self) -> bool {
        match self {
            RuleCost::Fixed(_) => false,
            RuleCost::Computed(scalar) => scalar.reads_response(),
            RuleCost::Header(_) => true,
        }
    }

    /// The cost of what is in `facts`; `None`: nothing is counted.
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
