//! The trusted certificates of this machine, and the crypto provider.

use std::io;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;

/// This machine has no trusted certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this machine has no trusted certificates")]
pub struct NoRoots;

/// Returns the crypto provider of every TLS connection.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Loads the system's trusted certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
pub fn native_certificates() -> Result<Vec<CertificateDer<'static>>, NoRoots> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() { Err(NoRoots) } else { Ok(found) }
}

/// Loads them as roots for a certificate verifier. Certificates that rustls cannot use are skipped, as
/// in browsers.
pub fn native_roots() -> Result<RootCertStore, NoRoots> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(native_certificates()?);
    if roots.is_empty() { Err(NoRoots) } else { Ok(roots) }
}

/// Returns the rustls error in an I/O error: the peer is not trusted, and a retry would not help.
pub fn rejection(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Returns the TLS configuration for the HTTP client, with the system's trusted certificates.
#[cfg(feature = "http")]
pub fn http_client() -> Result<ureq::tls::TlsConfig, NoRoots> {
    use ureq::tls::{Certificate, RootCerts, TlsConfig};

    let found = native_certificates()?;
    let roots = found.iter().map(|it| Certificate::from_der(it.as_ref()).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(provider())
        .build())
}

/// Returns whether an HTTP request failed because the peer is not trusted.
#[cfg(feature = "http")]
pub fn is_untrusted(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Tls(_) | ureq::Error::Pem(_) | ureq::Error::Rustls(_) => true,
        ureq::Error::Io(io) => rejection(io).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::rejection;

    #[test]
    fn a_rejected_certificate_is_not_a_broken_connection() {
        let refused = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let wrapped = io::Error::new(io::ErrorKind::InvalidData, refused.clone());
        assert_eq!(rejection(&wrapped), Some(&refused));
        assert_eq!(rejection(&io::ErrorKind::InvalidData.into()), None);
        assert_eq!(rejection(&io::Error::other("else")), None);
    }
}
