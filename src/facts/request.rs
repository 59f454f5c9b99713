//! The facts of one request, which compiled expressions read by field number.
//!
//! Everything is borrowed; cookies, arguments and geo data are computed on demand, and stored if
//! they are read often. Nothing here changes a request.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;
use std::ops::ControlFlow;

use http::HeaderMap;

use super::body::{FormField, InspectedBody};
use super::client::{ClientCredentials, ClientMemo};
use super::cookies::{self, Cookie};
use super::fields::{self, FieldGetter};
use super::maps::ParsedPairs;
use super::query::{self, Argument};
use super::{ClientConnection, CookieLines, RequestHead};
use crate::clock::Timestamp;
use crate::expr::{FieldFacts, FieldId, position};

/// A source of geo data for addresses. All methods return `None` if the value is unknown or there is no database.
pub trait GeoSource {
    /// The number of the autonomous system.
    fn asn(&self, ip: IpAddr) -> Option<u32>;
    /// The ISO 3166-1 code of the country, in capitals.
    fn country(&self, ip: IpAddr) -> Option<[u8; 2]>;
    /// The two-letter code of the continent, in capitals.
    fn continent(&self, ip: IpAddr) -> Option<[u8; 2]>;
}

/// A source without a database: everything is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGeo;

/// The facts of a request.
pub struct RequestFacts<'r> {
    /// The request's head.
    pub head: &'r RequestHead<'r>,
    /// All request headers.
    pub headers: &'r HeaderMap,
    /// The connection of the request.
    pub connection: &'r ClientConnection,
    /// The client's address.
    pub client: IpAddr,
    /// The template of the matched route. `None` if no route matches.
    pub route: Option<&'r str>,
    /// The request id.
    pub id: &'r str,
    /// The time of the request.
    pub now: Timestamp,
    /// The source of geo data.
    pub geo: &'r dyn GeoSource,
    /// How the cookies of clients are checked. `None` if none are.
    pub credentials: Option<&'r ClientCredentials>,
    pub(super) client_memo: OnceCell<Box<ClientMemo>>,
    cookies: ParsedPairs<Cookie<'r>>,
    arguments: ParsedPairs<Argument<'r>>,
    body: OnceCell<Box<InspectedBody>>,
    asn: OnceCell<Option<u32>>,
    country: OnceCell<Option<[u8; 2]>>,
    continent: OnceCell<Option<[u8; 2]>>,
}

/// The facts that the response phase adds.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'r> {
    /// The status.
    pub status: u16,
    /// All response headers.
    pub headers: &'r HeaderMap,
    /// Milliseconds from the request's head to the response's.
    pub duration_ms: u64,
    /// The size of the body in bytes. `None` if unknown.
    pub body_size: Option<u64>,
    /// The upstream that responded or failed. `None` if no upstream was used.
    pub upstream: Option<&'r str>,
    /// The failure of the upstream. `None` if it did not fail.
    pub upstream_error: Option<&'r str>,
}

/// A request's facts, with the response's once there is one.
#[derive(Clone, Copy)]
pub struct FactsView<'a, 'r> {
    /// The request.
    pub request: &'a RequestFacts<'r>,
    /// The response; `None` in the request phase.
    pub response: Option<&'a ResponseFacts<'a>>,
}

// === impl RequestFacts ===

impl<'r> RequestFacts<'r> {
    /// The facts of the request with this head. The route, `id` and `credentials` can be set later.
    pub fn new(
        head: &'r RequestHead<'r>,
        headers: &'r HeaderMap,
        connection: &'r ClientConnection,
        client: IpAddr,
        now: Timestamp,
        geo: &'r dyn GeoSource,
    ) -> Self {
        Self {
            head,
            headers,
            connection,
            client,
            route: None,
            id: "",
            now,
            geo,
            credentials: None,
            client_memo: OnceCell::new(),
            cookies: ParsedPairs::default(),
            arguments: ParsedPairs::default(),
            body: OnceCell::new(),
            asn: OnceCell::new(),
            country: OnceCell::new(),
            continent: OnceCell::new(),
        }
    }

    /// These facts with the response's, for the response phase.
    pub fn with_response<'a>(&'a self, response: &'a ResponseFacts<'a>) -> FactsView<'a, 'r> {
        FactsView {
            request: self,
            response: Some(response),
        }
    }

    /// The cookies, in order.
    pub fn cookies(&self) -> &[Cookie<'r>] {
        self.cookies.all(|| cookies::parse(self.headers))
    }

    /// The `nth` value of the cookie `name`. `None` if there is none.
    #[inline(always)]
    pub fn cookie(&self, name: &[u8], nth: usize) -> Option<Cow<'_, [u8]>> {
        let Some(all) = self.cookies.for_lookup(|| cookies::parse(self.headers)) else {
            return match self.head.cookies {
                CookieLines::None => None,
                CookieLines::One(line) => cookies::find_in([line], name, nth),
                CookieLines::Several => cookies::find(self.headers, name, nth),
            };
        };
        let mut named = all.iter().filter(|(found, _)| *found == name);
        named.nth(nth).map(|(_, value)| Cow::Borrowed(&**value))
    }

    /// The query arguments, in order.
    pub fn arguments(&self) -> &[Argument<'r>] {
        self.arguments.all(|| query::parse(self.query()))
    }

    /// The `nth` value of the query argument `name`. `None` if there is none.
    pub fn argument(&self, name: &[u8], nth: usize) -> Option<Cow<'_, [u8]>> {
        let Some(all) = self.arguments.for_lookup(|| query::parse(self.query())) else {
            return query::find(self.query(), name, nth);
        };
        let mut named = all.iter().filter(|(found, _)| **found == *name);
        named.nth(nth).map(|(_, value)| Cow::Borrowed(&**value))
    }

    /// Calls `visit` with the name of each cookie.
    pub(super) fn each_cookie_name(
        &self,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.cookies.for_lookup(|| cookies::parse(self.headers)) {
            Some(all) => all.iter().try_for_each(|(name, _)| visit(name)),
            None => cookies::names(self.headers).try_for_each(visit),
        }
    }

    /// Calls `visit` with the name of each query argument.
    pub(super) fn each_argument_name(
        &self,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.arguments.for_lookup(|| query::parse(self.query())) {
            Some(all) => all.iter().try_for_each(|(name, _)| visit(name)),
            None => query::names(self.query()).try_for_each(|name| visit(&name)),
        }
    }

    /// Sets the inspected part of the body. A second call has no effect.
    pub fn set_body(&self, body: InspectedBody) {
        let _ = self.body.set(Box::new(body));
    }

    /// The inspected part of the body. `None` if the body was not inspected.
    pub fn body(&self) -> Option<&InspectedBody> {
        self.body.get().map(|body| &**body)
    }

    /// The fields of the form in the body, in order. Empty if the body is no form or was not read.
    pub(super) fn form_fields(&self) -> &[FormField] {
        self.body().map_or(&[], InspectedBody::form_fields)
    }

    /// The number of the client's autonomous system. `None` if unknown.
    pub fn asn(&self) -> Option<u32> {
        *self.asn.get_or_init(|| self.geo.asn(self.client))
    }

    /// The client's country. `None` if unknown.
    pub fn country(&self) -> Option<&[u8; 2]> {
        let look_up = || self.geo.country(self.client);
        self.country.get_or_init(look_up).as_ref()
    }

    /// The client's continent. `None` if unknown.
    pub fn continent(&self) -> Option<&[u8; 2]> {
        let look_up = || self.geo.continent(self.client);
        self.continent.get_or_init(look_up).as_ref()
    }

    fn query(&self) -> &'r [u8] {
        self.head.query.unwrap_or_default().as_bytes()
    }

    fn view(&self) -> FactsView<'_, 'r> {
        FactsView {
            request: self,
            response: None,
        }
    }
}

impl FieldFacts for RequestFacts<'_> {
    fn bytes(&self, field: FieldId) -> Option<Cow<'_, [u8]>> {
        self.view().get_bytes(field)
    }

    fn int(&self, field: FieldId) -> Option<i64> {
        self.view().int(field)
    }

    fn ip(&self, field: FieldId) -> Option<IpAddr> {
        self.view().ip(field)
    }

    fn bool(&self, field: FieldId) -> Option<bool> {
        self.view().bool(field)
    }

    fn element(&self, field: FieldId, name: Option<&[u8]>, index: i32) -> Option<Cow<'_, [u8]>> {
        self.view().get_element(field, name, index)
    }

    fn each(
        &self,
        field: FieldId,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        self.view().each(field, name, visit);
    }
}

// === impl FactsView ===

impl<'a> FactsView<'a, '_> {
    fn get_bytes(self, field: FieldId) -> Option<Cow<'a, [u8]>> {
        match fields::getter(field)? {
            FieldGetter::Bytes(get) => get(self),
            _ => None,
        }
    }

    #[inline(always)]
    fn get_element(self, field: FieldId, name: Option<&[u8]>, index: i32) -> Option<Cow<'a, [u8]>> {
        match fields::getter(field)? {
            FieldGetter::Map(source) => source.value(self, name, index),
            _ if name.is_some() => None,
            FieldGetter::List(get) => {
                let all = get(self);
                let text = all.get(position(index, || Some(all.len()))?)?;
                Some(Cow::Borrowed(text.as_bytes()))
            }
            FieldGetter::Names(source) => source.name(self, index),
            FieldGetter::Values(source) => source.value(self, None, index),
            _ => None,
        }
    }
}

impl FieldFacts for FactsView<'_, '_> {
    fn bytes(&self, field: FieldId) -> Option<Cow<'_, [u8]>> {
        self.get_bytes(field)
    }

    fn int(&self, field: FieldId) -> Option<i64> {
        match fields::getter(field)? {
            FieldGetter::Int(get) => get(*self),
            _ => None,
        }
    }

    fn ip(&self, field: FieldId) -> Option<IpAddr> {
        match fields::getter(field)? {
            FieldGetter::Ip(get) => get(*self),
            _ => None,
        }
    }

    fn bool(&self, field: FieldId) -> Option<bool> {
        match fields::getter(field)? {
            FieldGetter::Bool(get) => get(*self),
            _ => None,
        }
    }

    fn element(&self, field: FieldId, name: Option<&[u8]>, index: i32) -> Option<Cow<'_, [u8]>> {
        self.get_element(field, name, index)
    }

    fn each(
        &self,
        field: FieldId,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        match fields::getter(field) {
            Some(FieldGetter::Map(source)) => source.each_value(*self, name, visit),
            Some(FieldGetter::List(get)) if name.is_none() => {
                let _ = get(*self)
                    .iter()
                    .try_for_each(|text| visit(text.as_bytes()));
            }
            Some(FieldGetter::Names(source)) if name.is_none() => source.each_name(*self, visit),
            Some(FieldGetter::Values(source)) if name.is_none() => {
                source.each_value(*self, None, visit);
            }
            _ => {}
        }
    }
}

// === impl NoGeo ===

impl GeoSource for NoGeo {
    fn asn(&self, _: IpAddr) -> Option<u32> {
        None
    }

    fn country(&self, _: IpAddr) -> Option<[u8; 2]> {
        None
    }

    fn continent(&self, _: IpAddr) -> Option<[u8; 2]> {
        None
    }
}

#[cfg(test)]
mod tests;
