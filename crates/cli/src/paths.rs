//! Where user state lives: the XDG directories, all of it below `BYNAME_HOME` when that is set.
//!
//! The directory for the socket may lie in the directory for temporary files, where anybody can
//! make one of that name first: there it counts only if it is the user's own.

use crate::exit::{Code, Failure, Outcome};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Directories of one user.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    pub(crate) config_file: PathBuf,
    pub(crate) keys: PathBuf,
    pub(crate) trust: PathBuf,
    /// Packets of publishers that belong to copies.
    pub(crate) copies: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) runtime: PathBuf,
    /// Others may make files where `runtime` lies.
    is_runtime_shared: bool,
}

/// Options of all users.
pub(crate) const SYSTEM_CONFIG: &str = "/etc/byname/byname.toml";

impl Paths {
    /// Reads the environment once.
    pub(crate) fn from_env() -> Self {
        Self::new(&|key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from))
    }

    /// Everything below one directory.
    pub(crate) fn below(home: &Path) -> Self {
        Self {
            config_file: home.join("config/config.toml"),
            keys: home.join("data/keys"),
            trust: home.join("data/trust"),
            copies: home.join("data/copies"),
            state: home.join("state"),
            runtime: home.join("run"),
            is_runtime_shared: false,
        }
    }

    fn new(env: &dyn Fn(&str) -> Option<PathBuf>) -> Self {
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
            keys: data.join("keys"),
            trust: data.join("trust"),
            copies: data.join("copies"),
            state: xdg("XDG_STATE_HOME", ".local/state").join("byname"),
            runtime,
            is_runtime_shared,
        }
    }

    /// The socket on which `up` and `forward` listen unless told otherwise.
    ///
    /// # Errors
    /// When somebody else could have put it there: what `up` publishes would be theirs to read.
    pub(crate) fn socket(&self) -> Outcome<PathBuf> {
        if self.is_runtime_shared {
            self.claim_runtime()?;
        }
        Ok(self.runtime.join("nfd.sock"))
    }

    /// The socket beside it for peers that share memory.
    ///
    /// # Errors
    /// As [`Paths::socket`].
    pub(crate) fn memory_socket(&self) -> Outcome<PathBuf> {
        Ok(self.socket()?.with_file_name("memif.sock"))
    }

    fn claim_runtime(&self) -> Outcome {
        let dir = &self.runtime;
        match std::fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Ok(()),
            _ => {}
        }
        let found = std::fs::symlink_metadata(dir).map_err(|e| Failure::disk(dir, e))?;
        let own_uid = rustix::process::geteuid().as_raw();
        if found.is_dir() && found.uid() == own_uid && found.mode() & 0o022 == 0 {
            return Ok(());
        }
        let message = format!("{}: others can write to it, or made it", dir.display());
        Err(Failure::new(Code::LocalDisk, message)
            .hint("set XDG_RUNTIME_DIR or BYNAME_HOME to a directory that is yours alone"))
    }

    /// Whether publishing `dir` would publish byname's own state (or `dir` lies inside it).
    pub(crate) fn exposes_state(&self, dir: &Path) -> bool {
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
        Paths::new(&|key| {
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
