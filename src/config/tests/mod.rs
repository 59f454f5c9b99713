//! Tests of the reader: golden files for its output, property tests for any text.

mod expressions;
mod fixtures;
mod golden;
mod inner;
mod property;
mod reading;
mod schema;
