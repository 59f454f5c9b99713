//! Tests of the imitation.

mod bounds;
mod learning;
mod patterns;
mod privacy;

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, Version};

use super::{HeadSent, Imitation, LearnedResponses, ResponsePacing, SendSchedule, dress};
use crate::action::{RequestInfo, ResponseTemplate, Template};
use crate::body::Body;
use crate::clock::Timestamp;

/// When tests happen.
const NOW: Timestamp = Timestamp::from_secs(1_700_000_040);

/// A request, owned.
struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    id: String,
}

impl Request {
    fn get() -> Self {
        Self::with(&[])
    }

    fn with(fields: &[(&str, &str)]) -> Self {
        Self {
            method: Method::GET,
            uri: Uri::from_static("/"),
            headers: map(fields),
            id: "00ff".to_owned(),
        }
    }

    fn asked(&self, now: Timestamp) -> RequestInfo<'_> {
        RequestInfo {
            method: &self.method,
            uri: &self.uri,
            version: Version::HTTP_11,
            headers: &self.headers,
            id: &self.id,
            now,
            errors: None,
        }
    }
}

fn map(fields: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::try_from(*name).unwrap();
        map.append(name, HeaderValue::try_from(*value).unwrap());
    }
    map
}

/// Lets `memory` learn a response to this client.
fn teach(memory: &LearnedResponses, client: u32, fields: &[(&str, &str)]) {
    teach_at(memory, client, &Request::get(), NOW, fields);
}

fn teach_at(
    memory: &LearnedResponses,
    client: u32,
    request: &Request,
    now: Timestamp,
    fields: &[(&str, &str)],
) {
    memory.learn(&head_sent(client, request, now, Duration::ZERO, fields));
    memory.learn_pace(ResponsePacing::default());
}

fn head_sent(
    client: u32,
    request: &Request,
    now: Timestamp,
    head: Duration,
    fields: &[(&str, &str)],
) -> HeadSent {
    HeadSent {
        headers: map(fields),
        request_headers: request.headers.clone(),
        request_id: request.id.clone(),
        client,
        when: SendSchedule { now, head },
    }
}

/// Learns a response this many times, to each of twelve clients in turn.
fn teach_all(memory: &LearnedResponses, answers: u32, fields: &[(&str, &str)]) {
    for answer in 0..answers {
        teach(memory, answer % 12, fields);
    }
}

fn imitated(memory: &LearnedResponses) -> Option<Imitation> {
    imitated_at(memory, &Request::get(), NOW)
}

/// A response that is sent immediately.
fn imitated_at(memory: &LearnedResponses, request: &Request, now: Timestamp) -> Option<Imitation> {
    memory.pace()?;
    let head = Duration::ZERO;
    memory.imitate(&request.asked(now), SendSchedule { now, head })
}

/// What is known of one field.
fn value(memory: &LearnedResponses, name: &str) -> Option<String> {
    let imitation = imitated(memory)?;
    let mut fields = imitation.fields.iter();
    let (_, value) = fields.find(|(own, _)| own == name)?;
    Some(value.as_ref()?.to_str().unwrap().to_owned())
}

fn canned(content_type: &'static str, body: &str) -> ResponseTemplate {
    ResponseTemplate {
        status: StatusCode::OK,
        content_type: HeaderValue::from_static(content_type),
        headers: Vec::new(),
        body: Template::parse(body).unwrap(),
        html: None,
        json: None,
        imitate: true,
    }
}

/// The headers of a response in order.
fn fields(response: &Response<Body>) -> Vec<(&str, &str)> {
    let fields = response.headers().iter();
    fields
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect()
}

fn dressed(memory: &LearnedResponses, canned: &ResponseTemplate) -> Response<Body> {
    let request = Request::get();
    dress(&request.asked(NOW), canned, &imitated(memory).unwrap())
}
