//! Selects the certificate by the server name: the exact name, then a wildcard for its first label, else the
//! default.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::x509::{self, CertificateName};
use super::{Certificate, TlsConfigError};

/// Certificates by name. If two have a common name, the first in the list is used.
#[derive(Debug)]
pub(super) struct ByName {
    exact: HashMap<Box<str>, Arc<CertifiedKey>>,
    /// The certificates of `*.example.com`, by `example.com`.
    wildcard: HashMap<Box<str>, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
}

// === impl ByName ===

impl ByName {
    pub(super) fn new(certificates: &[Certificate]) -> Result<Self, TlsConfigError> {
        let default = certificates.first().ok_or(TlsConfigError::NoCertificates)?;
        let mut all = Self {
            exact: HashMap::new(),
            wildcard: HashMap::new(),
            default: default.key.clone(),
        };
        for certificate in certificates {
            for name in certificate.names() {
                all.add(name, &certificate.key);
            }
        }
        Ok(all)
    }

    /// Returns whether `host` has a certificate other than the one selected by `sni`. A client that reconnects
    /// with the host as its server name is never misdirected.
    pub(super) fn misdirects(&self, sni: Option<&str>, host: &str) -> bool {
        if sni == Some(host) {
            return false;
        }
        let Some(wanted) = self.find(host) else {
            return false;
        };
        let chosen = sni
            .and_then(|name| self.find(name))
            .unwrap_or(&self.default);
        !Arc::ptr_eq(wanted, chosen)
    }

    fn add(&mut self, name: &CertificateName, key: &Arc<CertifiedKey>) {
        // A server name is never an address (RFC 6066, section 3).
        let CertificateName::Dns(name) = name else {
            return;
        };
        let (map, name) = match name.strip_prefix("*.") {
            Some(parent) => (&mut self.wildcard, parent),
            None => (&mut self.exact, &**name),
        };
        map.entry(name.into()).or_insert_with(|| key.clone());
    }

    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = x509::normal(name);
        self.exact.get(&*name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            self.wildcard.get(parent)
        })
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = hello.server_name().and_then(|name| self.find(name));
        Some(found.unwrap_or(&self.default).clone())
    }
}
