//! The types of the field table's columns.

/// Whether requests have a value for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPresence {
    /// Every request has a value that is not empty. Exceptions are rare: HTTP/1.0 without a host, a
    /// request that no route matches.
    Always,
    /// Every request has a value that may be empty.
    MaybeEmpty,
    /// Some requests have no value.
    Sometimes,
    /// Every request over TLS has a value.
    Tls,
    /// Some requests over TLS have a value.
    SometimesTls,
    /// Clients with a certificate have a value.
    ClientCertificate,
    /// Addresses in `geo.asn_database` or an override have a value.
    AsnDatabase,
    /// Addresses in `geo.country_database` or an override have a value.
    CountryDatabase,
    /// Addresses in `geo.country_database` have a value.
    ContinentDatabase,
}

/// The cost of reading a field, in instructions, relative to a borrowed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCost {
    /// The value is borrowed.
    Free,
    /// Each read computes the value.
    EachRead(usize),
    /// The first read computes the value; later reads reuse it.
    FirstRead(usize),
}

/// Whether logs and metrics must hide the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSecrecy {
    /// Its values are shown.
    Public,
    /// Its values are hidden.
    Private,
    /// Its values are hidden if this header is redacted.
    PrivateAs(&'static str),
    /// The value of an entry is hidden if the header with its name is redacted; all values are
    /// hidden if no entry is named.
    PrivateEntries,
}

/// How many clients share one value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSpread {
    /// One client's address.
    PerClient,
    /// Many unrelated clients share a value.
    Shared,
    /// One or several clients share a value, depending on the site.
    Varied,
    /// Each request has a different value.
    PerRequest,
}

/// Whether a client can change a field's value at will, and so get a new counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientChoice {
    /// A client cannot, or a rule that reads the field would no longer match.
    Fixed,
    /// A client can, unless the rule tests the field.
    IfUntested,
    /// A client can, unless the rule tests the field or every route names its hosts.
    IfUnrouted,
    /// A client can.
    Freely,
}

/// How the access log shows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Each record has an entry for it, or for the value that it is computed from.
    OwnEntry,
    /// A record has it among the fields that rules read, if a rule reads it.
    IfRead,
    /// No record has it, not even as a hash, because it may contain several secrets.
    Never,
}

/// The format of a field's values, for finding comparisons that never hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is named after its kind of value")]
pub enum ValueFormat {
    /// Any value.
    Any,
    /// One header: missing if it was not sent, never empty.
    Header,
    /// An integer from the first number to the second.
    Number(i64, i64),
    Method,
    Version,
    FullUri,
    Uri,
    Path,
    Extension,
    HeaderName,
    MediaType,
    Host,
    Country,
    Continent,
    TlsVersion,
    Cipher,
    Alpn,
    Ja3,
    Ja4,
}

// === impl ReadCost ===

impl ReadCost {
    /// The cost of the first read.
    pub fn first(self) -> usize {
        match self {
            ReadCost::Free => 0,
            ReadCost::EachRead(cost) | ReadCost::FirstRead(cost) => cost,
        }
    }
}
