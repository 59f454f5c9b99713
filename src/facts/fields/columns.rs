//! The types of the field table's columns.

/// Whether requests have a value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPresence {
    /// Every request has a value, which is not empty. Exceptions are rare: HTTP/1.0 without a
    /// host, a request that no route matches.
    Always,
    /// Every request has a value, which may be empty.
    MaybeEmpty,
    /// Some requests have none.
    Sometimes,
    /// Every request over TLS has a value.
    Tls,
    /// Some requests over TLS have a value.
    SometimesTls,
    /// `geo.asn_database` or an override holds it.
    AsnDatabase,
    /// `geo.country_database` or an override holds it.
    CountryDatabase,
    /// `geo.country_database` holds it.
    ContinentDatabase,
}

/// What reading a field costs, in instructions, compared with a value that is only borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCost {
    /// The value is borrowed.
    Free,
    /// Each read computes the value.
    EachRead(usize),
    /// The first read computes the value, later ones find it.
    FirstRead(usize),
}

/// Whether logs and metrics must hide the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSecrecy {
    /// Its values are shown.
    Public,
    /// Its values are hidden.
    Private,
    /// Its values are hidden where this header is redacted.
    PrivateAs(&'static str),
    /// The value of each entry is hidden where the header with its name is redacted; all values
    /// are hidden where no entry is named.
    PrivateEntries,
}

/// How many clients have the same value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSpread {
    /// The address of one client.
    PerClient,
    /// Many clients that have nothing to do with each other.
    Shared,
    /// Some clients, or one: it depends on the site.
    Varied,
    /// Each request has another value.
    PerRequest,
}

/// Whether a client can change the value of a field at will, and so start with a new counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientChoice {
    /// A client cannot, or a rule that reads it would no longer match.
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
    /// Each record shows it, or what it is computed from, under a name of its own.
    OwnEntry,
    /// A record shows it among the fields that rules read, if one reads it.
    IfRead,
}

/// What the values of a field look like, so that a comparison that never holds can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is named after its kind of value")]
pub enum ValueFormat {
    /// Nothing is known.
    Any,
    /// One header: missing where it was not sent, never empty.
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
