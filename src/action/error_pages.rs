//! Configured bodies for the errors that the gateway generates itself.

use std::ops::RangeInclusive;
use std::sync::Arc;

use http::{Response, StatusCode};

use super::{RefusingRule, RequestInfo, ResponseTemplate};
use crate::body::Body;

/// The responses that replace the gateway's own error pages. They keep the status of the error.
#[derive(Clone, Debug, Default)]
pub struct ErrorPages {
    /// The statuses of each page. The first match wins.
    pages: Vec<(RangeInclusive<u16>, Arc<ResponseTemplate>)>,
}

// === impl ErrorPages ===

impl ErrorPages {
    /// Adds a page for these statuses, after the pages that were added before.
    pub fn add(&mut self, statuses: RangeInclusive<u16>, page: Arc<ResponseTemplate>) {
        self.pages.push((statuses, page));
    }

    /// Adds the pages of `other`, after the own ones.
    pub fn extend(&mut self, other: &Self) {
        self.pages.extend(other.pages.iter().cloned());
    }

    /// Whether there are no pages.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn page(&self, status: StatusCode) -> Option<&ResponseTemplate> {
        let mut pages = self.pages.iter();
        let page = pages.find(|(statuses, _)| statuses.contains(&status.as_u16()));
        page.map(|(_, page)| &**page)
    }
}

/// Builds the configured response for an error. `None` without a configured response, and for a gRPC call,
/// which cannot read it.
pub(super) fn error_page(
    request: &RequestInfo<'_>,
    status: StatusCode,
    refused: &RefusingRule<'_>,
) -> Option<Response<Body>> {
    let page = request.errors?.page(status)?;
    if request.is_grpc() {
        return None;
    }
    Some(page.to_response_with(status, request, refused))
}
