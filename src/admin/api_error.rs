//! The errors of the admin API: a status, one sentence, and the headers that belong to the status.

use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

/// Why a request to the admin port failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// One sentence for the user, without a final full stop.
    pub message: String,
    /// A header that the status requires. `None` for most errors.
    pub header: Option<Box<(HeaderName, HeaderValue)>>,
    /// The errors of a configuration. `None` unless a reload was refused.
    pub errors: Option<Value>,
}

// === impl ApiError ===

impl ApiError {
    /// An error with a status and a sentence.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            header: None,
            errors: None,
        }
    }

    /// A token is missing or wrong.
    pub fn unauthorized() -> Self {
        let header = (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Self {
            header: Some(Box::new(header)),
            ..Self::new(StatusCode::UNAUTHORIZED, "a token is required")
        }
    }

    /// A request header that this port does not accept.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// A path, rule, upstream, server, ban or client that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// A method that the path does not have. `allow` lists those that it has.
    pub fn wrong_method(allow: &str) -> Self {
        let value = HeaderValue::from_str(allow).ok();
        Self {
            header: value.map(|value| Box::new((ALLOW, value))),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allow}"))
        }
    }

    /// An invalid value or parameter.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// Something that the gateway cannot do now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// All streams are in use.
    pub fn too_many_streams() -> Self {
        let header = (RETRY_AFTER, HeaderValue::from_static("5"));
        Self {
            header: Some(Box::new(header)),
            ..Self::unavailable("16 streams are open; close one of them")
        }
    }

    /// A failure inside the gateway.
    pub fn internal() -> Self {
        let message = "the gateway failed to process the request; its log has the reason";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Returns the JSON object of the error.
    pub fn to_json(&self) -> Value {
        let mut value = json!({ "error": self.message });
        if let (Some(object), Some(errors)) = (value.as_object_mut(), &self.errors) {
            object.insert("errors".to_owned(), errors.clone());
        }
        value
    }
}
