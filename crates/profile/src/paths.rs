//! Places of user state: the XDG directories, all of it below `BYNAME_HOME` when that is set.
//!
//! The directory for the socket may lie in the directory for temporary files, where anybody can
//! make one of that name first: there it counts only if it is the user's own.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use crate::environment::Environment;

/// A directory for sockets that cannot be used.
#[derive(Debug, Error)]
pub enum PathsError {
    /// Somebody else could have put a socket there, or could replace it.
    #[error("{}: others can write to it, or made it", path.display())]
    RuntimeShared {
        /// The directory.
        path: PathBuf,
    },
    /// The directory cannot be looked at.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl PathsError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            PathsError::RuntimeShared { .. } => Errno::ACCESS.raw_os_error(),
            PathsError::Disk { source, .. } => crate::errno::of_io(source),
        }
    }
}

/// Files and directories of one user.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The user's options.
    pub config_file: PathBuf,
    /// The user's bookmarks.
    pub remotes: PathBuf,
    /// The user's own keys.
    pub keys: PathBuf,
    /// Whose keys count.
    pub trust: PathBuf,
    /// Packets of publishers that belong to copies.
    pub copies: PathBuf,
    /// The site cache, unless configured otherwise.
    pub cache: PathBuf,
    /// State that programs keep between runs.
    pub state: PathBuf,
    /// Sockets.
    pub runtime: PathBuf,
    /// Others may make files where `runtime` lies.
    is_runtime_shared: bool,
}

/// Options of all users.
pub const SYSTEM_CONFIG: &str = "/etc/byname/byname.toml";

impl Paths {
    /// Paths as `BYNAME_HOME`, `HOME`, `TMPDIR` and the `XDG_` variables say.
    pub fn new(environment: &Environment) -> Self {
        Self::from_lookup(&|key| environment.path(key))
    }

    /// Everything below one directory.
    pub fn below(home: &Path) -> Self {
        Self {
            config_file: home.join("config/config.toml"),
            remotes: home.join("config/remotes"),
            keys: home.join("data/keys"),
            trust: home.join("data/trust"),
            copies: home.join("data/copies"),
            cache: home.join("cache"),
            state: home.join("state"),
            runtime: home.join("run"),
            is_runtime_shared: false,
        }
    }

    fn from_lookup(env: &dyn Fn(&str) -> Option<PathBuf>) -> Self {
        if let Some(home) = env("BYNAME_HOME") {
            return Self::below(&home);
        }
        let home = env("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let xdg = |key: &str, fallback: &str| {
            env(key).filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(fallback))
        };
        let data = xdg("XDG_DATA_HOME", ".local/share").join("byname");
        let user = env("XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
        let is_runtime_shared = user.is_none();
        let runtime = user.map(|dir| dir.join("byname")).unwrap_or_else(|| {
            let temporary = env("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
            temporary.join(format!("byname-{}", rustix::process::geteuid().as_raw()))
        });
        Self {
            config_file: xdg("XDG_CONFIG_HOME", ".config").join("byname/config.toml"),
            remotes: xdg("XDG_CONFIG_HOME", ".config").join("byname/remotes"),
            keys: data.join("keys"),
            trust: data.join("trust"),
            copies: data.join("copies"),
            cache: xdg("XDG_CACHE_HOME", ".cache").join("byname"),
            state: xdg("XDG_STATE_HOME", ".local/state").join("byname"),
            runtime,
            is_runtime_shared,
        }
    }

    /// The socket on which `up` and `forward` listen unless told otherwise.
    ///
    /// # Errors
    /// [`PathsError`] when somebody else could have put it there: what `up` publishes would be
    /// theirs to read.
    pub fn socket(&self) -> Result<PathBuf, PathsError> {
        if self.is_runtime_shared {
            self.claim_runtime()?;
        }
        Ok(self.runtime.join("nfd.sock"))
    }

    /// The socket beside it for peers that share memory.
    ///
    /// # Errors
    /// As [`Paths::socket`].
    pub fn memory_socket(&self) -> Result<PathBuf, PathsError> {
        Ok(self.socket()?.with_file_name("memif.sock"))
    }

    fn claim_runtime(&self) -> Result<(), PathsError> {
        let dir = &self.runtime;
        match std::fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Ok(()),
            _ => {}
        }
        let found = std::fs::symlink_metadata(dir)
            .map_err(|source| PathsError::Disk { path: dir.clone(), source })?;
        let own_uid = rustix::process::geteuid().as_raw();
        if found.is_dir() && found.uid() == own_uid && found.mode() & 0o022 == 0 {
            return Ok(());
        }
        Err(PathsError::RuntimeShared { path: dir.clone() })
    }

    /// True if publishing `dir` would publish byname's own state (or `dir` lies inside it).
    pub fn exposes_state(&self, dir: &Path) -> bool {
        [&self.keys, &self.trust, &self.copies, &self.state, &self.runtime].iter().any(|own| {
            let own = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
            own.starts_with(dir) || dir.starts_with(&own)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Paths;
    use std::path::{Path, PathBuf};

    fn with(vars: &[(&str, &str)]) -> Paths {
        Paths::from_lookup(&|key| {
            vars.iter().find(|(name, _)| *name == key).map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn byname_home_moves_everything() {
        let paths = with(&[("BYNAME_HOME", "/b"), ("HOME", "/h"), ("XDG_DATA_HOME", "/x")]);
        for path in [&paths.config_file, &paths.keys, &paths.trust, &paths.state, &paths.runtime] {
            assert!(path.starts_with("/b"), "{}", path.display());
        }
        assert!(paths.exposes_state(Path::new("/b/data")));
        assert!(paths.exposes_state(Path::new("/")));
        assert!(!paths.exposes_state(Path::new("/srv")));
    }

    #[test]
    fn xdg_directories() {
        let paths = with(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/5")]);
        assert_eq!(paths.keys, Path::new("/h/.local/share/byname/keys"));
        assert_eq!(paths.socket().unwrap(), Path::new("/run/user/5/byname/nfd.sock"));
        let relative = with(&[("HOME", "/h"), ("XDG_STATE_HOME", "x")]);
        assert_eq!(relative.state, Path::new("/h/.local/state/byname"));
    }

    #[test]
    fn a_runtime_directory_that_others_may_have_made_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().unwrap();
        let paths = with(&[("HOME", "/h"), ("TMPDIR", temporary.path().to_str().unwrap())]);
        let socket = paths.socket().unwrap();
        let dir = socket.parent().unwrap();
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(paths.socket().is_err());
        std::fs::remove_dir(dir).unwrap();
        std::os::unix::fs::symlink("/", dir).unwrap();
        assert!(paths.socket().is_err());
    }
}
