//! `sslmode` and `sslrootcert`, with the same meaning as in libpq.
//!
//! With `prefer`, the default, a connection is encrypted if the server supports it; `require` makes
//! that mandatory; `verify-ca` also requires a certificate of a trusted authority, `verify-full` one
//! for this host name. The trusted certificates are those in `sslrootcert`, or the system's. As in
//! libpq, a given `sslrootcert` is also used with `prefer` and `require`.
//!
//! `tokio-postgres-rustls` opens the connections and provides SCRAM channel binding. The verifier is
//! our own because rustls has none that checks a chain without the host name, or nothing at all.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The value of `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SslVerification {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslVerification {
    pub(crate) fn parse(text: &str) -> Option<SslVerification> {
        Some(match text {
            "disable" => SslVerification::Disable,
            "prefer" => SslVerification::Prefer,
            "require" => SslVerification::Require,
            "verify-ca" => SslVerification::VerifyCa,
            "verify-full" => SslVerification::VerifyFull,
            _ => return None,
        })
    }

    pub(crate) fn to_ssl_mode(self) -> SslMode {
        match self {
            SslVerification::Disable => SslMode::Disable,
            SslVerification::Prefer => SslMode::Prefer,
            SslVerification::Require | SslVerification::VerifyCa | SslVerification::VerifyFull => {
                SslMode::Require
            }
        }
    }
}

/// An encrypted stream.
pub(crate) type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Builds the TLS connector, reading the trusted certificates if the mode needs them.
pub(crate) fn connector(
    mode: SslVerification,
    roots: Option<&Path>,
) -> Result<MakeRustlsConnect, String> {
    let provider = tine_net::tls::provider();
    let roots = match roots {
        Some(file) => Some(read_roots(file)?),
        None if matches!(mode, SslVerification::VerifyCa | SslVerification::VerifyFull) => {
            let unnamed = |error| format!("{error}; name a file in PEM with `sslrootcert`");
            Some(tine_net::tls::native_roots().map_err(unnamed)?)
        }
        None => None,
    };
    let chain = roots.map(|roots| {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| format!("the trusted certificates are of no use: {error}"))
    });
    let verifier = CertificateVerifier {
        chain: chain.transpose()?,
        check_name: mode == SslVerification::VerifyFull,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn read_roots(file: &Path) -> Result<RootCertStore, String> {
    let unread = |why: String| {
        format!("`sslrootcert`: {why} in {}; name a file of certificates in PEM", file.display())
    };
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unread(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in found {
        let certificate = certificate.map_err(|error| unread(error.to_string()))?;
        roots.add(certificate).map_err(|error| unread(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(unread("there is no certificate".to_owned())),
        false => Ok(roots),
    }
}

/// Verifies the server's certificate.
#[derive(Debug)]
struct CertificateVerifier {
    /// Verifies the chain; without it every certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the host name must match too.
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last, after the chain.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
