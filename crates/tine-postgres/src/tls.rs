//! `sslmode` and `sslrootcert`, which mean what they mean to PostgreSQL's own programs.
//!
//! With `prefer`, the default, a connection is encrypted if the server can; `require` insists on
//! that; `verify-ca` wants a certificate of a trusted authority, `verify-full` one for this very
//! host. Trusted are the certificates in the file of `sslrootcert`, or without it the system's. As
//! in libpq, a file that is given is used with `prefer` and `require` too.
//!
//! `tokio-postgres-rustls` makes the connections and binds SCRAM to their channel. The verifier is
//! ours because rustls has none that checks a chain without the host's name, or nothing at all.

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

/// How far a server is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    pub(crate) fn parse(text: &str) -> Option<Mode> {
        Some(match text {
            "disable" => Mode::Disable,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }

    pub(crate) fn of_the_line(self) -> SslMode {
        match self {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }
}

/// An encrypted connection.
pub(crate) type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Returns what encrypts connections, after reading the certificates to trust, if any are asked
/// for.
pub(crate) fn connector(mode: Mode, roots: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let provider = tine_net::tls::provider();
    let roots = match roots {
        Some(file) => Some(from_file(file)?),
        None if matches!(mode, Mode::VerifyCa | Mode::VerifyFull) => {
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
    let verifier = Verifier {
        chain: chain.transpose()?,
        names: mode == Mode::VerifyFull,
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

fn from_file(file: &Path) -> Result<RootCertStore, String> {
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

/// Whether a server is the right one.
#[derive(Debug)]
struct Verifier {
    /// Who is trusted; without it everybody is.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Whether its name has to be the right one as well.
    names: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // Names are looked at when everything else is in order.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(ServerCertVerified::assertion()),
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
