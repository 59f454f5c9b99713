//! The response of `action = "challenge"`: a page that solves the challenge, or a problem document for programs.

mod echoed_form;
mod endpoint;
mod page;
#[cfg(test)]
mod tests;

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, ORIGIN, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

pub use self::echoed_form::hidden_inputs;
pub use self::endpoint::{EndpointResponse, RefusedSolution};
use self::page::ChallengePage;
use super::RequestInfo;
use crate::body::{Body, media_type_is};
use crate::credential::WorkProof;

/// Tells clients that a response is a challenge, and origin servers that a request came through one.
pub const CHALLENGE_HEADER: HeaderName = HeaderName::from_static("x-lockgate-challenge");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// A challenge for one request.
pub struct ChallengeResponse<'a> {
    /// The signed token, in base64url.
    pub token: &'a str,
    /// What the client must solve.
    pub work: &'a WorkProof,
    /// The path for the solution.
    pub url: &'a str,
    /// The whole seconds to wait. `None` if waiting does not help.
    pub retry_after: Option<u64>,
    /// The page that receives the response.
    pub audience: ChallengeAudience,
    /// The origins whose pages may read the response.
    pub origins: &'a [HeaderValue],
}

/// What reads a challenge, and what happens once it is solved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChallengeAudience {
    /// A browser that opens a page: it loads the page again.
    Navigation,
    /// A browser that sends a form, as hidden inputs: it sends the form again.
    EchoedForm(String),
    /// A browser that sends another body: the user sends it again.
    OtherBody,
    /// A program: it sends the request again.
    Program,
}

/// The `Origin` of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOrigin<'a> {
    /// The request has none.
    None,
    /// The request has this one.
    One(&'a HeaderValue),
    /// The request has several, so it is not known which one others read: the page counts as foreign.
    Several,
}

// === impl ChallengeAudience ===

impl ChallengeAudience {
    /// Returns what reads the response to a request, without regard to its body.
    pub fn of(request: &RequestInfo<'_>, is_upgrade: bool) -> Self {
        if is_upgrade || !is_navigation(request.headers) {
            return ChallengeAudience::Program;
        }
        if matches!(*request.method, Method::GET | Method::HEAD) {
            return ChallengeAudience::Navigation;
        }
        ChallengeAudience::OtherBody
    }

    /// Returns whether the page could send the body of the request to `authority` again.
    ///
    /// Only the form of a page of the same origin is repeated. The form of a foreign page would become a form of this
    /// site: with the cookies and headers by which applications recognize forged requests.
    pub fn can_repeat(&self, request: &RequestInfo<'_>, authority: &str) -> bool {
        *self == ChallengeAudience::OtherBody
            && is_form(request)
            && is_same_origin(request.headers, authority)
    }

    /// Returns a page that sends this form again. `None` is a form that was not read to its end.
    pub fn repeating(form: Option<&[u8]>) -> Self {
        let inputs = form.and_then(hidden_inputs);
        inputs.map_or(ChallengeAudience::OtherBody, ChallengeAudience::EchoedForm)
    }
}

/// Returns whether a browser opens a page, as opposed to a script that fetches data.
fn is_navigation(headers: &HeaderMap) -> bool {
    if let Some(mode) = headers.get(SEC_FETCH_MODE) {
        return mode == "navigate";
    }
    let lines = headers.get_all(ACCEPT).iter();
    let mut ranges = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    ranges.any(|range| media_type_is(range, "text/html"))
}

/// Returns whether a page of the same origin sent the request.
fn is_same_origin(headers: &HeaderMap, authority: &str) -> bool {
    match (page_origin(headers), headers.get(SEC_FETCH_SITE)) {
        (PageOrigin::Several, _) => false,
        (_, Some(site)) => site == "same-origin",
        (PageOrigin::One(origin), None) => is_own_origin(origin, authority),
        (PageOrigin::None, None) => false,
    }
}

/// Returns what the request says of the origin of its page.
pub fn page_origin(headers: &HeaderMap) -> PageOrigin<'_> {
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => PageOrigin::None,
        (Some(origin), None) => PageOrigin::One(origin),
        (Some(_), Some(_)) => PageOrigin::Several,
    }
}

/// Returns whether `origin` is that of the pages of `authority`.
pub fn is_own_origin(origin: &HeaderValue, authority: &str) -> bool {
    origin.as_bytes().strip_prefix(b"https://") == Some(authority.as_bytes())
}

/// Returns whether the request is the urlencoded form of a page.
fn is_form(request: &RequestInfo<'_>) -> bool {
    let media = request.headers.get(http::header::CONTENT_TYPE);
    let is_coded = request.headers.contains_key(http::header::CONTENT_ENCODING);
    let is_urlencoded = media.is_some_and(|media| media_type_is(media.as_bytes(), FORM_TYPE));
    *request.method == Method::POST && is_urlencoded && !is_coded
}

// === impl ChallengeResponse ===

impl ChallengeResponse<'_> {
    /// Builds the response.
    pub fn to_response(&self, request: &RequestInfo<'_>) -> Response<Body> {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let mut response = if self.audience == ChallengeAudience::Program {
            request.to_response(status, &problem_type(), self.problem())
        } else {
            let page = ChallengePage::of(self).to_html();
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            let mut response = request.to_response(status, &html, page);
            page::add_headers(response.headers_mut());
            response
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("Cookie"));
        headers.insert(CHALLENGE_HEADER, HeaderValue::from_static("required"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        allow_origin(request, self.origins, headers);
        response
    }

    /// The problem document. Neither the token nor the salt nor the path has a character that JSON escapes.
    fn problem(&self) -> String {
        let (token, work, url) = (self.token, self.work, self.url);
        let (salt, iterations, bits) = (work.salt(), work.iterations(), work.bits());
        let parts = WorkProof::PARTS;
        format!(
            "{{\"type\":\"about:blank\",\"title\":\"Too Many Requests\",\"status\":429,\
             \"detail\":\"Solve the challenge, then send the request again.\",\
             \"challenge\":{{\"token\":\"{token}\",\"salt\":\"{salt}\",\"iterations\":{iterations},\
             \"bits\":{bits},\"parts\":{parts},\"url\":\"{url}\"}}}}\n"
        )
    }
}

fn problem_type() -> HeaderValue {
    HeaderValue::from_static("application/problem+json")
}

/// Lets a page of another origin read the response, if that origin is listed.
fn allow_origin(request: &RequestInfo<'_>, origins: &[HeaderValue], headers: &mut HeaderMap) {
    let Some(origin) = listed_origin(request, origins) else {
        return;
    };
    let exposed = HeaderValue::from_static("x-lockgate-challenge, retry-after");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        ACCESS_CONTROL_ALLOW_CREDENTIALS,
        HeaderValue::from_static("true"),
    );
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// Returns the request's only `Origin` if it is one of `origins`.
fn listed_origin<'o>(
    request: &RequestInfo<'_>,
    origins: &'o [HeaderValue],
) -> Option<&'o HeaderValue> {
    let PageOrigin::One(origin) = page_origin(request.headers) else {
        return None;
    };
    origins.iter().find(|listed| *listed == origin)
}
