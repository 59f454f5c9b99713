//! A certificate chain with its private key, read from PEM or generated for development.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::x509::{CertificateName, ValidityPeriod, names_of};
use super::{TlsConfigError, provider};
use crate::clock::Timestamp;

/// A certificate chain, its private key and its names. Cheap to clone; `Debug` never shows the key.
#[derive(Clone)]
pub struct Certificate {
    pub(super) key: Arc<CertifiedKey>,
    names: Arc<[CertificateName]>,
    lifetime: Option<ValidityPeriod>,
}

/// A certificate and its intermediate certificates, the server's own first.
#[derive(Clone, Debug)]
pub struct CertificateChain(Vec<CertificateDer<'static>>);

/// A private key. `Debug` never shows it.
pub struct PrivateKey(PrivateKeyDer<'static>);

// === impl CertificateChain ===

impl CertificateChain {
    /// Reads the certificates of a PEM text; ignores other sections.
    pub fn from_pem(text: &[u8]) -> Result<Self, TlsConfigError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
        let chain = chain.map_err(TlsConfigError::CertificatePem)?;
        if chain.is_empty() {
            return Err(TlsConfigError::NoCertificate);
        }
        Ok(Self(chain))
    }
}

// === impl PrivateKey ===

impl PrivateKey {
    /// Reads the first key of a PEM text: PKCS#8, PKCS#1 or SEC1. Ignores other sections.
    pub fn from_pem(text: &[u8]) -> Result<Self, TlsConfigError> {
        let key = PrivateKeyDer::from_pem_slice(text);
        key.map(Self).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsConfigError::NoKey,
            error => TlsConfigError::KeyPem(error),
        })
    }
}

// === impl Certificate ===

impl Certificate {
    /// Generates a self-signed certificate for these DNS names and addresses, for development.
    pub fn self_signed(names: &[&str]) -> Result<Self, TlsConfigError> {
        let key = rcgen::KeyPair::generate().map_err(TlsConfigError::Generate)?;
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let mut params = rcgen::CertificateParams::new(names).map_err(TlsConfigError::Generate)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "lockgate development");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key).map_err(TlsConfigError::Generate)?;
        Self::of(
            CertificateChain(vec![certificate.into()]),
            PrivateKey(key.into()),
        )
    }

    /// Combines a chain and its key.
    pub fn of(
        CertificateChain(chain): CertificateChain,
        PrivateKey(key): PrivateKey,
    ) -> Result<Self, TlsConfigError> {
        let own = chain.first().ok_or(TlsConfigError::NoCertificate)?;
        let names = names_of(own).into();
        let lifetime = ValidityPeriod::of_certificate(own);
        let key =
            CertifiedKey::from_der(chain, key, &provider()).map_err(TlsConfigError::of_pair)?;
        Ok(Self {
            key: Arc::new(key),
            names,
            lifetime,
        })
    }

    /// Returns the DNS names and addresses of the certificate. If empty, it can only be a default.
    pub fn names(&self) -> &[CertificateName] {
        &self.names
    }

    /// Returns its first name and when it expires.
    pub(super) fn end(&self) -> Option<(Box<str>, Timestamp)> {
        let name = self.names.first().map(CertificateName::to_string);
        Some((name.unwrap_or_default().into(), self.lifetime?.until))
    }

    /// Returns the validity period. `None` if it cannot be read.
    pub fn lifetime(&self) -> Option<ValidityPeriod> {
        self.lifetime
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
