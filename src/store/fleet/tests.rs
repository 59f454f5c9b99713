//! Tests of the counters of async mode on one node.
