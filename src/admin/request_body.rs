//! Reads request bodies of limited size within a limited time.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::api_error::ApiError;

/// The maximum size of a body, in bytes.
const MAX_BODY: usize = 64 << 10;
/// The timeout for a whole body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a body that is too large is read, so that its client reads the response instead of an error.
const LINGER_BYTES: usize = 4 << 20;

/// Reads a whole body.
pub async fn read<B>(body: B) -> Result<Vec<u8>, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let read = timeout(BODY_TIMEOUT, read_all(body)).await;
    read.unwrap_or_else(|_| {
        let message = "the body did not arrive within 10 s";
        Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, message))
    })
}

async fn read_all<B>(mut body: B) -> Result<Vec<u8>, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (mut bytes, mut size) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let incomplete = |_| ApiError::new(StatusCode::BAD_REQUEST, "the body is incomplete");
        let Ok(data) = frame.map_err(incomplete)?.into_data() else {
            continue;
        };
        size = size.saturating_add(data.len());
        if size <= MAX_BODY {
            bytes.extend_from_slice(&data);
        } else if size > LINGER_BYTES {
            break;
        }
    }
    if size > MAX_BODY {
        let message = "the body is larger than 64 KiB";
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    Ok(bytes)
}

/// Parses a body that is a JSON object.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ApiError::invalid("the body must be a JSON object")),
        Err(error) => Err(ApiError::invalid(format!("the body is not JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn a_body_has_at_most_64_kib() {
        let body = |size| Full::new(Bytes::from(vec![b'x'; size]));
        assert_eq!(read(body(MAX_BODY)).await.unwrap().len(), MAX_BODY);
        let error = read(body(MAX_BODY + 1)).await.unwrap_err();
        assert_eq!(error.status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn only_an_object_is_accepted() {
        assert!(object(b"{\"a\":1}").is_ok());
        for wrong in [&b""[..], b"[]", b"1", b"{", b"{}x", b"\xff"] {
            let error = object(wrong).unwrap_err();
            assert_eq!(error.status, StatusCode::UNPROCESSABLE_ENTITY);
        }
        let deep = "[".repeat(100_000);
        assert!(object(deep.as_bytes()).is_err());
    }
}
