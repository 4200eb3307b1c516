//! Where user state lives: the XDG directories, all of it below `BYNAME_HOME` when that is set.

use std::path::{Path, PathBuf};

/// Directories of one user.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    pub(crate) config_file: PathBuf,
    pub(crate) keys: PathBuf,
    pub(crate) trust: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) runtime: PathBuf,
}

/// Options of all users.
pub(crate) const SYSTEM_CONFIG: &str = "/etc/byname/byname.toml";

impl Paths {
    /// Reads the environment once.
    pub(crate) fn from_env() -> Self {
        Self::new(&|key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from))
    }

    fn new(env: &dyn Fn(&str) -> Option<PathBuf>) -> Self {
        if let Some(home) = env("BYNAME_HOME") {
            return Self {
                config_file: home.join("config/config.toml"),
                keys: home.join("data/keys"),
                trust: home.join("data/trust"),
                state: home.join("state"),
                runtime: home.join("run"),
            };
        }
        let home = env("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let xdg = |key: &str, fallback: &str| {
            env(key).filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(fallback))
        };
        let data = xdg("XDG_DATA_HOME", ".local/share").join("byname");
        let runtime = match env("XDG_RUNTIME_DIR").filter(|path| path.is_absolute()) {
            Some(dir) => dir.join("byname"),
            None => {
                std::env::temp_dir().join(format!("byname-{}", rustix::process::geteuid().as_raw()))
            }
        };
        Self {
            config_file: xdg("XDG_CONFIG_HOME", ".config").join("byname/config.toml"),
            keys: data.join("keys"),
            trust: data.join("trust"),
            state: xdg("XDG_STATE_HOME", ".local/state").join("byname"),
            runtime,
        }
    }

    /// The socket on which `up` and `forward` listen unless told otherwise.
    pub(crate) fn socket(&self) -> PathBuf {
        self.runtime.join("nfd.sock")
    }

    /// Whether publishing `dir` would publish byname's own state (or `dir` lies inside it).
    pub(crate) fn exposes_state(&self, dir: &Path) -> bool {
        [&self.keys, &self.trust, &self.state, &self.runtime].iter().any(|own| {
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
        assert_eq!(paths.socket(), Path::new("/run/user/5/byname/nfd.sock"));
        let relative = with(&[("HOME", "/h"), ("XDG_STATE_HOME", "x")]);
        assert_eq!(relative.state, Path::new("/h/.local/state/byname"));
    }
}
