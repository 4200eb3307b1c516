//! Endpoints that could not be connected to, each with its cause, in one line.

use std::fmt;

use byname_io::ConnectError;

/// Endpoints that could not be connected to, in the order tried; at least one.
#[derive(Debug)]
pub struct Refusals(Vec<ConnectError>);

impl Refusals {
    /// `None` if nothing was tried.
    pub fn new(tried: Vec<ConnectError>) -> Option<Self> {
        (!tried.is_empty()).then_some(Refusals(tried))
    }

    /// The errors in the order tried.
    pub fn all(&self) -> &[ConnectError] {
        &self.0
    }

    /// The one that says most: where somebody may be, before where nobody listens.
    pub fn telling(&self) -> &ConnectError {
        let somebody = self.0.iter().find(|error| !is_nobody(error));
        somebody.unwrap_or(&self.0[0])
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for error in self.0.iter().filter(|error| !is_nobody(error)) {
            write!(out, "{separator}{error}")?;
            separator = "; ";
        }
        let nobody = self.0.iter().filter_map(|error| match error {
            ConnectError::NobodyListens { uri, .. } => Some(uri.as_str()),
            _ => None,
        });
        let nobody = nobody.collect::<Vec<_>>();
        if nobody.is_empty() {
            return Ok(());
        }
        write!(out, "{separator}nobody listens on {}", nobody.join(", "))
    }
}

fn is_nobody(error: &ConnectError) -> bool {
    matches!(error, ConnectError::NobodyListens { .. })
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn what_one_may_not_open_comes_before_what_is_not_there() {
        let nobody = |uri: &str| ConnectError::NobodyListens {
            uri: uri.to_owned(),
            source: Error::from_raw_os_error(2),
        };
        let denied = ConnectError::Denied {
            uri: "unix:///b".to_owned(),
            source: Error::from_raw_os_error(13),
        };
        let refusals = Refusals::new(vec![nobody("unix:///a"), denied, nobody("tcp://c")]).unwrap();
        let text = refusals.to_string();
        assert!(text.starts_with("no permission to connect to unix:///b: "), "{text}");
        assert!(text.ends_with("; nobody listens on unix:///a, tcp://c"), "{text}");
        assert!(matches!(refusals.telling(), ConnectError::Denied { .. }));
        assert!(Refusals::new(Vec::new()).is_none());
    }
}
