//! A small scheme and map-backed facts for the tests in the submodules.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod bounds;
mod compiled;
mod errors;
mod explained;
mod lists;
mod naive;
mod needs;
mod networks;
mod parts;
mod random;
mod truths;
mod unknown;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::ControlFlow;

use super::{
    ExprEnv, FieldFacts, FieldId, FieldScheme, FieldSpec, NamedList, NamedLists, Phase, ValueType,
};

use Phase::{Request, Response};

/// Name, type, phase, whether names ignore case; the index is the field number.
const FIELDS: [(&str, ValueType, Phase, bool); 17] = [
    ("http.request.method", ValueType::Bytes, Request, false),
    ("http.request.uri.path", ValueType::Bytes, Request, false),
    ("http.host", ValueType::Bytes, Request, false),
    ("http.user_agent", ValueType::Bytes, Request, false),
    ("http.referer", ValueType::Bytes, Request, false),
    ("http.request.headers", ValueType::Map, Request, true),
    (
        "http.request.headers.names",
        ValueType::Array,
        Request,
        false,
    ),
    (
        "http.request.headers.values",
        ValueType::Array,
        Request,
        false,
    ),
    ("http.request.cookies", ValueType::Map, Request, false),
    ("http.request.uri.args", ValueType::Map, Request, false),
    ("http.request.body.size", ValueType::Int, Request, false),
    ("ip.src", ValueType::Ip, Request, false),
    ("ip.peer", ValueType::Ip, Request, false),
    ("ip.src.asnum", ValueType::Int, Request, false),
    ("ip.src.country", ValueType::Bytes, Request, false),
    ("ssl", ValueType::Bool, Request, false),
    ("http.response.code", ValueType::Int, Response, false),
];

pub(super) struct Small;

impl FieldScheme for Small {
    fn field(&self, name: &str) -> Option<FieldSpec> {
        let at = FIELDS.iter().position(|field| field.0 == name)?;
        let (_, ty, phase, names_ignore_case) = FIELDS[at];
        Some(FieldSpec {
            id: FieldId(at as u16),
            ty,
            phase,
            names_ignore_case,
            entries_are_strings: false,
        })
    }

    fn names(&self) -> Vec<&'static str> {
        FIELDS.iter().map(|field| field.0).collect()
    }

    fn refusal(&self, name: &str) -> Option<String> {
        (name == "cf.threat_score")
            .then(|| "`cf.threat_score` is known only to Cloudflare; use `ip.src.asnum`".into())
    }

    fn read_cost(&self, _: FieldId) -> usize {
        0
    }

    fn is_known_from_head(&self, field: FieldId) -> bool {
        FIELDS[usize::from(field.0)].2 == Request
    }
}

/// A name and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// Facts from maps. What is not in them is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub bytes: BTreeMap<u16, Vec<u8>>,
    pub ints: BTreeMap<u16, i64>,
    pub ips: BTreeMap<u16, IpAddr>,
    pub bools: BTreeMap<u16, bool>,
    pub lists: BTreeMap<u16, Vec<Pair>>,
}

impl Sample {
    pub(super) fn bytes(mut self, field: &str, value: &[u8]) -> Self {
        self.bytes.insert(id(field), value.to_vec());
        self
    }

    pub(super) fn int(mut self, field: &str, value: i64) -> Self {
        self.ints.insert(id(field), value);
        self
    }

    pub(super) fn ip(mut self, field: &str, value: &str) -> Self {
        self.ips.insert(id(field), value.parse().unwrap());
        self
    }

    pub(super) fn bool(mut self, field: &str, value: bool) -> Self {
        self.bools.insert(id(field), value);
        self
    }

    pub(super) fn list(mut self, field: &str, values: &[(&str, &str)]) -> Self {
        let pairs = values
            .iter()
            .map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()));
        self.lists.insert(id(field), pairs.collect());
        self
    }

    fn values(&self, field: FieldId, name: Option<&[u8]>) -> Vec<&[u8]> {
        let pairs = self.lists.get(&field.0).map_or(&[][..], |pairs| pairs);
        let named = pairs
            .iter()
            .filter(|pair| name.is_none_or(|name| pair.0 == name));
        named.map(|pair| &*pair.1).collect()
    }
}

impl FieldFacts for Sample {
    fn bytes(&self, field: FieldId) -> Option<Cow<'_, [u8]>> {
        self.bytes.get(&field.0).map(Cow::from)
    }

    fn int(&self, field: FieldId) -> Option<i64> {
        self.ints.get(&field.0).copied()
    }

    fn ip(&self, field: FieldId) -> Option<IpAddr> {
        self.ips.get(&field.0).copied()
    }

    fn bool(&self, field: FieldId) -> Option<bool> {
        self.bools.get(&field.0).copied()
    }

    fn element(&self, field: FieldId, name: Option<&[u8]>, index: i32) -> Option<Cow<'_, [u8]>> {
        let values = self.values(field, name);
        let at = if index < 0 {
            values.len().checked_sub(index.unsigned_abs() as usize)?
        } else {
            index as usize
        };
        values.get(at).map(|value| Cow::Borrowed(*value))
    }

    fn each(
        &self,
        field: FieldId,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let _ = self.values(field, name).into_iter().try_for_each(visit);
    }
}

pub(super) fn id(field: &str) -> u16 {
    Small.field(field).unwrap().id.0
}

/// The request that most tests use. `http.referer` and a cookie `none` are missing.
pub(super) fn request() -> Sample {
    let headers = [
        ("host", "Shop.Example.com"),
        ("accept", "text/html"),
        ("x-tag", "Alpha"),
        ("x-tag", "beta"),
        ("x-tag", "a*b"),
        ("x-empty", ""),
    ];
    let names: Vec<(&str, &str)> = headers.iter().map(|(name, _)| ("", *name)).collect();
    Sample::default()
        .bytes("http.request.method", b"POST")
        .bytes("http.request.uri.path", b"/api/v1/Login")
        .bytes("http.host", b"shop.example.com")
        .bytes("http.user_agent", b"Mozilla/5.0 \xff \"x\" curl\\8")
        .bytes("ip.src.country", b"CN")
        .int("http.request.body.size", 1500)
        .int("ip.src.asnum", 64500)
        .int("http.response.code", 403)
        .ip("ip.src", "203.0.113.7")
        .ip("ip.peer", "::ffff:192.0.2.5")
        .bool("ssl", true)
        .list("http.request.headers", &headers)
        .list("http.request.headers.names", &names)
        .list("http.request.headers.values", &headers)
        .list(
            "http.request.cookies",
            &[("sid", "abc%20Def"), ("Sid", "other")],
        )
        .list(
            "http.request.uri.args",
            &[("q", "1"), ("q", "22"), ("q", "333")],
        )
}

pub(super) fn lists() -> NamedLists {
    let mut lists = NamedLists::new();
    lists.insert(
        "office",
        NamedList::from_texts(["203.0.113.0/24", "2001:db8::/48"]),
    );
    lists.insert("agents", NamedList::from_texts(["curl", "wget", "CN"]));
    lists.insert("networks", NamedList::from_texts(["64500", "64501"]));
    lists.insert("nobody", NamedList::from_texts([]));
    lists
}

/// Runs `look` with an environment that allows everything.
pub(super) fn with_env<T>(look: impl FnOnce(&ExprEnv) -> T) -> T {
    let lists = lists();
    look(&ExprEnv {
        scheme: &Small,
        lists: &lists,
        allow_response: true,
    })
}
