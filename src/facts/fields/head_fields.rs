//! The fields without those of the request body, for expressions that are evaluated without an inspection.

use super::FieldTable;
use crate::expr::{FieldId, FieldScheme, FieldSpec, Phase};

/// The fields that expressions outside rules may name: all but those of the request body, which is inspected only
/// for rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadFields;

// === impl HeadFields ===

impl FieldScheme for HeadFields {
    fn field(&self, name: &str) -> Option<FieldSpec> {
        FieldTable
            .field(name)
            .filter(|field| field.phase != Phase::Body)
    }

    fn names(&self) -> Vec<&'static str> {
        let mut names = FieldTable.names();
        names.retain(|name| self.field(name).is_some());
        names
    }

    fn refusal(&self, name: &str) -> Option<String> {
        let field = FieldTable.field(name);
        if field.is_some_and(|field| field.phase == Phase::Body) {
            return Some(format!(
                "`{name}` depends on the request body; only `count`, `mitigate`, `cost` and `key` of a rule can read it"
            ));
        }
        FieldTable.refusal(name)
    }

    fn read_cost(&self, field: FieldId) -> usize {
        FieldTable.read_cost(field)
    }

    fn is_known_from_head(&self, field: FieldId) -> bool {
        FieldTable.is_known_from_head(field)
    }
}
