//! The OpenAPI document. Tests compare it with the router and with the objects.

/// The document as JSON.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

#[cfg(test)]
mod tests;
