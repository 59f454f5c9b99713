//! Certificates of clients: who signs them, and whether a client must have one.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::{Error, provider};

/// Which clients are let in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    roots: Arc<RootCertStore>,
    required: bool,
    identity: [u8; 32],
}

// === impl ClientAuth ===

impl ClientAuth {
    /// Clients whose certificate one of these has signed; unless it is `required`, clients without
    /// a certificate too. A certificate that is not signed so is refused in any case.
    pub fn from_pem(authorities: &[u8], required: bool) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        let mut hash = Context::new(&SHA256);
        hash.update(&[u8::from(required)]);
        for authority in CertificateDer::pem_slice_iter(authorities) {
            let authority = authority.map_err(Error::CertificatePem)?;
            hash.update(&authority.len().to_be_bytes());
            hash.update(&authority);
            roots.add(authority).map_err(Error::BadCertificate)?;
        }
        if roots.is_empty() {
            return Err(Error::NoCertificate);
        }
        let mut identity = [0; 32];
        identity.copy_from_slice(hash.finish().as_ref());
        Ok(Self {
            roots: Arc::new(roots),
            required,
            identity,
        })
    }

    /// What tells it from every other.
    pub(super) fn identity(&self) -> [u8; 32] {
        self.identity
    }

    pub(super) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let builder = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider());
        let builder = match self.required {
            true => builder,
            false => builder.allow_unauthenticated(),
        };
        builder
            .build()
            .map_err(|error| Error::Tls(rustls::Error::General(error.to_string())))
    }
}
