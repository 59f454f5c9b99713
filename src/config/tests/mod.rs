//! Tests of reading: golden files for what a user sees, properties for any text.

mod beside;
mod golden;
mod inner;
mod property;
mod reading;
mod schema;
