//! TLS to a database server: whose certificates count, and by which one the server knows us.
//!
//! The cryptographic library is the workspace's own. Files are read once, when the database is
//! opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
pub(crate) use tokio_postgres_rustls::MakeRustlsConnect as Connector;

use crate::error::PostgresError;

/// Files with certificates and a key, in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// Certificates of those who may certify servers; the system's if there is none.
    pub(crate) roots: Option<PathBuf>,
    /// The certificate by which a server knows this client.
    pub(crate) certificate: Option<PathBuf>,
    /// Its key.
    pub(crate) key: Option<PathBuf>,
}

/// Makes connections under TLS 1.2 or 1.3, to servers whose certificates are of their names.
pub(crate) fn connector(files: &Files) -> Result<Connector, PostgresError> {
    let failed = |source| PostgresError::Tls { source };
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots(files.roots.as_deref())?);
    let config = match (&files.certificate, &files.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(of(key))?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(failed)?
        }
        (Some(path), None) | (None, Some(path)) => {
            return Err(PostgresError::HalfAnIdentity { path: path.clone() });
        }
    };
    Ok(Connector::new(config))
}

/// Whose certificates of servers count: those of a file, or the system's.
fn roots(file: Option<&Path>) -> Result<RootCertStore, PostgresError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|source| PostgresError::Tls { source })?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "certificates of the system cannot be read");
            }
            roots.add_parsable_certificates(found.certs);
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PostgresError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(of(path))?;
    match found.is_empty() {
        true => Err(of(path)(rustls::pki_types::pem::Error::NoItemsFound)),
        false => Ok(found),
    }
}

fn of(path: &Path) -> impl Fn(rustls::pki_types::pem::Error) -> PostgresError {
    move |source| PostgresError::Certificate { path: path.to_owned(), source }
}
