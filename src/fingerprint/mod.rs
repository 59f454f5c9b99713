//! ClientHello bytes → JA3 and JA4. Pure: no I/O, no clock.
