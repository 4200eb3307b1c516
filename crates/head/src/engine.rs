//! Where a site's catalog is kept: in a file of the site's directory, or in a PostgreSQL database
//! that the directory has the address of.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use byname_catalog::engine::{EmbeddedEngine, Engine, EngineError};
use byname_postgres::{PostgresEngine, PostgresError};

/// File of the embedded engine.
pub(crate) const ENGINE_FILE: &str = "catalog.redb";
/// File with the engine's address, where it is not the embedded one.
const ADDRESS_FILE: &str = "engine";
/// The same while it is being written.
const NEW_ADDRESS_FILE: &str = "engine.new";
const EMBEDDED: &str = "embedded";
const SCHEMES: [&str; 2] = ["postgres:", "postgresql:"];

/// Reason why an engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The directory with its address cannot be read or written.
    #[error("{}: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The address is none.
    #[error(transparent)]
    Malformed(#[from] BadAddress),
    /// The file cannot be used.
    #[error("the catalog in {} cannot be used: {source}", directory.display())]
    File {
        /// Its directory.
        directory: PathBuf,
        /// Why.
        source: EngineError,
    },
    /// The database is not to be had.
    #[error("the database of the catalog cannot be used: {0}")]
    Database(#[from] PostgresError),
}

/// Which engine a catalog is in.
#[derive(Clone, PartialEq, Eq)]
pub enum EngineAddress {
    /// A file in the site's directory.
    Embedded,
    /// A PostgreSQL database: a connection string, which may have a password in it.
    Postgres(String),
}

impl EngineAddress {
    /// The engine of a site's directory; none if there is no site in it.
    ///
    /// # Errors
    /// [`AddressError`] if it cannot be read, or has no address in it.
    pub fn of(directory: &Path) -> Result<Option<Self>, AddressError> {
        let failed = |source| AddressError::Directory { directory: directory.to_owned(), source };
        match fs::read_to_string(directory.join(ADDRESS_FILE)) {
            Ok(text) => return Ok(Some(text.trim().parse()?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(directory.join(ENGINE_FILE).is_file().then_some(Self::Embedded))
    }

    /// Makes this the engine of a directory.
    ///
    /// # Errors
    /// [`AddressError::Directory`] if it cannot be written; the old one stays then.
    pub fn note(&self, directory: &Path) -> Result<(), AddressError> {
        let (new, file) = (directory.join(NEW_ADDRESS_FILE), directory.join(ADDRESS_FILE));
        let write = || {
            if *self == Self::Embedded {
                return match fs::remove_file(&file) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                    _ => fs::File::open(directory)?.sync_all(),
                };
            }
            // For its owner alone: there may be a password in it.
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut opened = options.open(&new)?;
            writeln!(opened, "{}", self.text())?;
            opened.sync_all()?;
            fs::rename(&new, &file)?;
            fs::File::open(directory)?.sync_all()
        };
        write()
            .map_err(|source| AddressError::Directory { directory: directory.to_owned(), source })
    }

    /// The kind of engine, without what leads there.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Embedded => EMBEDDED,
            Self::Postgres(_) => "postgres",
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Embedded => EMBEDDED,
            Self::Postgres(text) => text,
        }
    }

    /// Opens the engine, and makes it if it is missing.
    pub(crate) fn open(&self, directory: &Path) -> Result<OpenEngine, AddressError> {
        match self {
            Self::Embedded => EmbeddedEngine::open(&directory.join(ENGINE_FILE))
                .map(|engine| OpenEngine::Embedded(Arc::new(engine)))
                .map_err(|source| AddressError::File { directory: directory.to_owned(), source }),
            Self::Postgres(text) => {
                let shared = text.strip_prefix("postgres:").filter(|rest| !rest.starts_with("//"));
                let engine = PostgresEngine::open(shared.unwrap_or(text))?;
                Ok(OpenEngine::Postgres(Arc::new(engine)))
            }
        }
    }
}

impl std::fmt::Debug for EngineAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())
    }
}

impl FromStr for EngineAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        match text {
            EMBEDDED => Ok(Self::Embedded),
            _ if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) => {
                Ok(Self::Postgres(text.to_owned()))
            }
            _ => Err(BadAddress),
        }
    }
}

/// A text that names no engine.
#[derive(Debug, thiserror::Error)]
#[error(
    "an engine is `embedded` or `postgres:` and where its database is, as in \
    postgres:host=/run/postgresql dbname=lab"
)]
pub struct BadAddress;

/// An engine that is open.
pub(crate) enum OpenEngine {
    Embedded(Arc<EmbeddedEngine>),
    Postgres(Arc<PostgresEngine>),
}

impl OpenEngine {
    /// Whatever needs the catalog for itself: nobody else has it until this process ends.
    pub(crate) fn alone(self) -> Result<Arc<dyn Engine>, AddressError> {
        match self {
            // The lock on the file says so.
            Self::Embedded(engine) => Ok(engine),
            Self::Postgres(engine) => {
                engine.use_alone()?;
                Ok(engine)
            }
        }
    }

    /// A head, which may have others beside it: the engine, and whether that is so.
    pub(crate) fn for_heads(self) -> Result<(Arc<dyn Engine>, bool), AddressError> {
        match self {
            Self::Embedded(engine) => Ok((engine, false)),
            Self::Postgres(engine) => {
                engine.use_shared()?;
                Ok((engine, true))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EngineAddress;

    #[test]
    fn an_address_is_noted_and_forgotten() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(EngineAddress::of(directory.path()).unwrap(), None);
        let address: EngineAddress = "postgres:host=/run password=x".parse().unwrap();
        address.note(directory.path()).unwrap();
        assert_eq!(EngineAddress::of(directory.path()).unwrap(), Some(address.clone()));
        let mode = directory.path().join("engine").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(format!("{address:?}"), "postgres", "a password is shown to nobody");
        for _ in 0..2 {
            EngineAddress::Embedded.note(directory.path()).unwrap();
        }
        assert_eq!(EngineAddress::of(directory.path()).unwrap(), None);
        for text in ["", "postgres", "mysql:x"] {
            assert!(text.parse::<EngineAddress>().is_err(), "{text}");
        }
    }
}
