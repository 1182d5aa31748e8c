//! Connections that nobody else can read, and whether it is the right server that answers.
//!
//! The words are those of PostgreSQL's own programs: with `prefer`, which is what counts without a
//! word, a connection is encrypted if the server can; `require` insists on that; `verify-ca` wants
//! a certificate of an authority that is trusted, `verify-full` one for this very host. Trusted is
//! whoever is in the file of `sslrootcert`, or without it in the system's own list. As there, a
//! file that is given is believed also with `prefer` and `require`.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

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

/// Encrypts connections.
#[derive(Clone, Debug)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Reads the certificates that are trusted, if any are asked for.
    pub(crate) fn new(mode: Mode, roots: Option<&Path>) -> Result<Tls, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = match roots {
            Some(file) => Some(from_file(file)?),
            None if matches!(mode, Mode::VerifyCa | Mode::VerifyFull) => Some(of_the_system()?),
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
        Ok(Tls(Arc::new(config)))
    }
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

fn of_the_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err("the system trusts no certificate; name a file of them in PEM with \
                     `sslrootcert`"
            .to_owned()),
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

/// A connection to be encrypted, to a host of this name.
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    host: String,
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = std::convert::Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        Ok(Handshake { config: Arc::clone(&self.0), host: host.to_owned() })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, Self::Error>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Handshake { config, host } = self;
            let name = ServerName::try_from(host)?;
            let connector = tokio_rustls::TlsConnector::from(config);
            match connector.connect(name, socket).await {
                Ok(stream) => Ok(Stream(stream)),
                // What the line said may be otherwise the next time; what the server showed not.
                Err(error) => match error.get_ref().and_then(|it| it.downcast_ref::<Error>()) {
                    Some(refused) => Err(refused.clone().into()),
                    None => Err(error.into()),
                },
            }
        })
    }
}

/// A connection that is encrypted.
pub(crate) struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
