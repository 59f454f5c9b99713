//! The certificate of a client, which the TLS library has verified. Its fields are read at most once per connection,
//! when a rule first needs one. Reading a certificate is the task of the module that terminates TLS.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// A verified client certificate.
#[derive(Clone)]
pub struct ClientCertificate {
    der: Arc<[u8]>,
    read: fn(&[u8]) -> CertificateFields,
    fields: OnceLock<CertificateFields>,
}

/// The fields of a certificate. A text is empty if the field cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFields {
    /// The distinguished name of the subject, as in RFC 4514.
    pub subject: Box<str>,
    /// The subject alternative names, each with its kind: `DNS:app.example`.
    pub names: Vec<Box<str>>,
    /// The serial number in lower-case hexadecimal digits.
    pub serial: Box<str>,
    /// The SHA-256 of the certificate in lower-case hexadecimal digits.
    pub fingerprint: Box<str>,
}

// === impl ClientCertificate ===

impl ClientCertificate {
    /// Creates the certificate with this DER, whose fields `read` returns.
    pub fn new(der: impl Into<Arc<[u8]>>, read: fn(&[u8]) -> CertificateFields) -> Self {
        Self {
            der: der.into(),
            read,
            fields: OnceLock::new(),
        }
    }

    /// Returns the fields. The first call reads the certificate.
    pub fn fields(&self) -> &CertificateFields {
        self.fields.get_or_init(|| (self.read)(&self.der))
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}
