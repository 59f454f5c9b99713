//! Which client certificates are accepted: the authorities that sign them, and those that are revoked.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};

use super::x509::next_update;
use super::{TlsConfigError, provider};
use crate::clock::Timestamp;

/// Which client certificates are accepted. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    roots: Arc<RootCertStore>,
    required: bool,
    /// The revocation lists. Empty if revocation is not checked.
    revoked: Arc<[CertificateRevocationListDer<'static>]>,
    /// A value that differs for different authorities, revocation lists or a different `required`. Sessions cannot be
    /// resumed after a change.
    pub(super) identity: [u8; 32],
}

// === impl ClientAuth ===

impl ClientAuth {
    /// Accepts clients with a certificate signed by one of `authorities` and, unless `required`, clients without
    /// a certificate. A certificate with another signature is always rejected.
    pub fn from_pem(authorities: &[u8], required: bool) -> Result<Self, TlsConfigError> {
        let mut roots = RootCertStore::empty();
        let mut identity = vec![u8::from(required)];
        for authority in CertificateDer::pem_slice_iter(authorities) {
            let authority = authority.map_err(TlsConfigError::CertificatePem)?;
            push(&mut identity, &authority);
            roots
                .add(authority)
                .map_err(TlsConfigError::BadCertificate)?;
        }
        if roots.is_empty() {
            return Err(TlsConfigError::NoCertificate);
        }
        Ok(Self {
            roots: Arc::new(roots),
            required,
            revoked: Arc::default(),
            identity: hash(&identity),
        })
    }

    /// Rejects the certificates that are listed in the revocation lists of a PEM text. A certificate is also rejected
    /// if its issuer has no list in the text, or only an expired one. `now` is the time at which the lists must be
    /// valid.
    pub fn with_revocations(self, pem: &[u8], now: Timestamp) -> Result<Self, TlsConfigError> {
        let lists =
            CertificateRevocationListDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let lists = lists.map_err(TlsConfigError::RevocationPem)?;
        if lists.is_empty() {
            return Err(TlsConfigError::NoRevocationList);
        }
        let mut identity = self.identity.to_vec();
        for list in &lists {
            push(&mut identity, list);
        }
        let auth = Self {
            revoked: lists.into(),
            identity: hash(&identity),
            ..self
        };
        // The library reads the lists here.
        auth.verifier()?;
        let mut ends = auth.revoked.iter().filter_map(|list| next_update(list));
        match ends.find(|end| *end < now) {
            Some(end) => Err(TlsConfigError::ExpiredRevocationList(end)),
            None => Ok(auth),
        }
    }

    pub(super) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider());
        if !self.required {
            builder = builder.allow_unauthenticated();
        }
        if !self.revoked.is_empty() {
            let lists = self.revoked.iter().cloned();
            builder = builder.with_crls(lists).enforce_revocation_expiration();
        }
        builder.build().map_err(|error| match error {
            VerifierBuilderError::InvalidCrl(error) => TlsConfigError::BadRevocationList(error),
            error => TlsConfigError::Tls(rustls::Error::General(error.to_string())),
        })
    }
}

/// Appends bytes with their length.
fn push(identity: &mut Vec<u8>, bytes: &[u8]) {
    identity.extend_from_slice(&bytes.len().to_be_bytes());
    identity.extend_from_slice(bytes);
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}
