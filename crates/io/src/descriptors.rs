//! Descriptors of the process: how many there may be, and how many of them connections may take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections leave for files, state, and the peers that the kernel vouches for.
const RESERVED: usize = 448;

/// Raises the limit of the process to what the administrator allows (the hard limit); says what it
/// is then. For programs, at their start.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
    {
        return descriptors(maximum);
    }
    descriptors(current)
}

/// Connections that a server may have at a time, so that descriptors are left for everything else:
/// all but 448, or half where there are fewer than twice as many.
pub fn connections_max() -> usize {
    share_of_connections(descriptors(getrlimit(Resource::Nofile).current))
}

/// No limit is given as none.
fn descriptors(limit: Option<u64>) -> usize {
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

fn share_of_connections(limit: usize) -> usize {
    limit - RESERVED.min(limit / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        assert_eq!(share_of_connections(1024), 576);
        assert_eq!(share_of_connections(100), 50);
        assert_eq!(share_of_connections(usize::MAX), usize::MAX - RESERVED);
        assert_eq!(share_of_connections(0), 0);
    }

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let raised = raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(raised, descriptors(limit.maximum));
    }
}
