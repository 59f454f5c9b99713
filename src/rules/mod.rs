//! plan, decide, settle.
pub mod plan;
