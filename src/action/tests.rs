//! Tests of the answers.
