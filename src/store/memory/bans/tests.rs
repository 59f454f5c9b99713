//! Who makes room, and what a clock may do.
