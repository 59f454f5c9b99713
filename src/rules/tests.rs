//! Tests of plan and decide.
