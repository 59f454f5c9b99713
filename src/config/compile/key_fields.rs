//! What the rules read that the access log would not show otherwise, so that a replay can decide
//! as the live gateway did.

use crate::expr::{FieldId, Scheme as _, Type};
use crate::facts::fields::{self, Field, Fields};
use crate::observe::Redactor;
use crate::rules::{Cost, RuleSet};
use crate::snapshot::KeyField;

/// Fields that stand in the access log under a name of their own.
const LOGGED: &[&str] = &[
    "http.request.method",
    "http.request.version",
    "http.request.full_uri",
    "http.request.uri",
    "http.request.uri.path",
    "http.request.uri.path.extension",
    "http.request.uri.query",
    "http.request.uri.args",
    "http.request.uri.args.names",
    "http.request.uri.args.values",
    "http.request.timestamp.sec",
    "http.request.route",
    "http.request.id",
    "http.host",
    "http.referer",
    "http.user_agent",
    "ip.src",
    "ip.src.asnum",
    "ip.src.country",
    "ip.peer",
    "ssl",
    "tls.version",
    "tls.ja3",
    "tls.ja4",
    "http.response.code",
    "upstream.name",
];

/// Whether what is read is a secret: a cookie, or a header that is to be redacted.
pub fn is_secret(fields: &[FieldId], entries: &[(FieldId, Box<str>)], redactor: &Redactor) -> bool {
    fields.iter().any(|field| match name(*field) {
        "http.cookie" | "http.request.cookies" => true,
        "http.user_agent" => redactor.is_redacted("user-agent"),
        "http.referer" => redactor.is_redacted("referer"),
        "http.x_forwarded_for" => redactor.is_redacted("x-forwarded-for"),
        "http.request.headers"
        | "http.request.headers.values"
        | "http.response.headers"
        | "http.response.headers.values" => {
            let mut named = entries.iter().filter(|(of, _)| of == field).peekable();
            named.peek().is_none() || named.any(|(_, entry)| redactor.is_redacted(entry))
        }
        _ => false,
    })
}

/// The key fields of `rules`, each once.
pub fn of(rules: &RuleSet, redactor: &Redactor) -> Vec<KeyField> {
    let mut found = Vec::new();
    for (_, rule) in rules.iter() {
        let (count, mitigate) = rule.predicates();
        for predicate in [count, mitigate] {
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
            Cost::Computed(cost) => {
                add(cost.reads(), cost.reads_entries(), redactor, &mut found);
            }
            Cost::Header(name) => {
                let headers = Fields.field("http.response.headers").map(|field| field.id);
                let entries = headers.map(|field| (field, name.as_str().into()));
                add(&[], entries.as_slice(), redactor, &mut found);
            }
            Cost::Fixed(_) => {}
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
        // An entry that is named is enough.
        if ty(field) == Type::Map && entries.iter().any(|(of, _)| *of == field) {
            continue;
        }
        let secret = is_secret(&[field], &[], redactor);
        push(found, name(field).to_owned(), field, None, secret);
    }
    for (field, entry) in entries.iter().filter(|(field, _)| is_wanted(*field)) {
        let label = format!("{}[\"{entry}\"]", name(*field));
        let one = [(*field, entry.clone())];
        let secret = is_secret(&[*field], &one, redactor);
        push(found, label, *field, Some(entry.as_bytes().into()), secret);
    }
}

fn push(
    found: &mut Vec<KeyField>,
    label: String,
    field: FieldId,
    entry: Option<Box<[u8]>>,
    secret: bool,
) {
    if !found.iter().any(|known| known.label == label) {
        found.push(KeyField {
            label,
            field,
            ty: ty(field),
            entry,
            secret,
        });
    }
}

fn is_wanted(field: FieldId) -> bool {
    let row = fields::by_id(field);
    row.is_some_and(|row| !LOGGED.contains(&row.name))
}

fn name(field: FieldId) -> &'static str {
    fields::by_id(field).map_or("", |row| row.name)
}

fn ty(field: FieldId) -> Type {
    fields::by_id(field).map_or(Type::Bytes, Field::ty)
}
