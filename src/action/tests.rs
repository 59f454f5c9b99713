//! Tests of the gateway's own responses.

mod forms;
mod quotas;
mod refusals;
mod templates;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri, Version};

use super::{RefusingRule, RequestInfo};
use crate::body::Body;
use crate::clock::Timestamp;

/// What is asked, owned.
pub(in crate::action) struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Request {
    pub(in crate::action) fn new(method: Method, fields: &[(&str, &str)]) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::try_from(*name).unwrap();
            headers.append(name, HeaderValue::try_from(*value).unwrap());
        }
        Self {
            method,
            uri: Uri::from_static("/"),
            headers,
        }
    }

    pub(in crate::action) fn get(fields: &[(&str, &str)]) -> Self {
        Self::new(Method::GET, fields)
    }

    pub(in crate::action) fn asked(&self) -> RequestInfo<'_> {
        RequestInfo {
            method: &self.method,
            uri: &self.uri,
            version: Version::HTTP_11,
            headers: &self.headers,
            id: "00ff",
            now: Timestamp::from_secs(1_700_000_040),
            errors: None,
        }
    }
}

fn refused(retry_after: Option<u64>) -> RefusingRule<'static> {
    RefusingRule {
        rule: "login-stuffing",
        response: None,
        retry_after,
    }
}

pub(in crate::action) fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|v| v.to_str().unwrap())
}

/// The body of a response, which is always in memory.
pub(in crate::action) fn text(response: Response<Body>) -> String {
    use http_body_util::BodyExt as _;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let body = runtime.block_on(response.into_body().collect());
    let bytes = body.unwrap_or_else(|_| panic!("a whole body")).to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
