//! Fields that rules read and the access log would otherwise omit. A replay needs them to decide
//! like the live gateway.

use crate::expr::{FieldId, ValueType};
use crate::facts::fields::{FieldSecrecy, LogFormat, RESPONSE_HEADERS, by_id};
use crate::observe::Redactor;
use crate::rules::trace::SecretValues;
use crate::rules::{RuleCost, RuleSet};
use crate::snapshot::KeyField;

/// Returns whether a read value is secret: a cookie, or a header listed in `log.redact`.
pub fn is_secret(fields: &[FieldId], entries: &[(FieldId, Box<str>)], redactor: &Redactor) -> bool {
    fields.iter().any(|field| match by_id(*field).secret {
        FieldSecrecy::Public => false,
        FieldSecrecy::Private => true,
        FieldSecrecy::PrivateAs(header) => redactor.is_redacted(header),
        FieldSecrecy::PrivateEntries => {
            let mut named = entries.iter().filter(|(of, _)| of == field).peekable();
            named.peek().is_none() || named.any(|(_, entry)| redactor.is_redacted(entry))
        }
    })
}

/// Returns the key fields of `rules`, without duplicates.
pub fn of(rules: &RuleSet, redactor: &Redactor) -> Vec<KeyField> {
    let mut found = Vec::new();
    for (_, rule) in rules.iter() {
        for predicate in rule.expressions() {
            add(
                predicate.reads(),
                predicate.reads_entries(),
                redactor,
                &mut found,
            );
        }
        for part in &rule.key.parts {
            let scalar = &part.scalar;
            add(scalar.reads(), scalar.reads_entries(), redactor, &mut found);
        }
        match &rule.cost {
            RuleCost::Computed(cost) => {
                add(cost.reads(), cost.reads_entries(), redactor, &mut found);
            }
            RuleCost::Header(name) => {
                let entry = (RESPONSE_HEADERS, name.as_str().into());
                add(&[], &[entry], redactor, &mut found);
            }
            RuleCost::Fixed(_) => {}
        }
    }
    found
}

fn add(
    read: &[FieldId],
    entries: &[(FieldId, Box<str>)],
    redactor: &Redactor,
    found: &mut Vec<KeyField>,
) {
    for field in read.iter().copied().filter(|field| is_wanted(*field)) {
        // If a rule names an entry of the map, only that entry is logged.
        if by_id(field).ty() == ValueType::Map && entries.iter().any(|(of, _)| *of == field) {
            continue;
        }
        let secret = is_secret(&[field], &[], redactor);
        push(found, field, None, secret);
    }
    for (field, entry) in entries.iter().filter(|(field, _)| is_wanted(*field)) {
        let secret = is_secret(&[*field], &[(*field, entry.clone())], redactor);
        push(found, *field, Some(entry), secret);
    }
}

fn push(found: &mut Vec<KeyField>, id: FieldId, entry: Option<&str>, secret: bool) {
    let field = by_id(id);
    let label = match entry {
        Some(entry) => format!("{}[\"{entry}\"]", field.name),
        None => field.name.to_owned(),
    };
    if !found.iter().any(|known| known.label == label) {
        found.push(KeyField {
            label,
            field: id,
            ty: field.ty(),
            entry: entry.map(|entry| entry.as_bytes().into()),
            secret,
        });
    }
}

fn is_wanted(field: FieldId) -> bool {
    by_id(field).logged == LogFormat::IfRead
}

// === impl Redactor ===

impl SecretValues for Redactor {
    fn is_secret(&self, fields: &[FieldId], entries: &[(FieldId, Box<str>)]) -> bool {
        is_secret(fields, entries, self)
    }

    fn hash(&self, value: &[u8]) -> String {
        Redactor::hash(self, value)
    }
}
