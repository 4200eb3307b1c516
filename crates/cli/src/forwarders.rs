//! Forwarders that may be there.

use crate::exit::{Failure, Outcome};
use byname_client::{ClientError, Refusals};
use byname_io::{ConnectError, Connection, Endpoint};
use std::path::PathBuf;
use std::time::Duration;

/// Time to connect to one of them.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first endpoint at which somebody answers.
pub(crate) fn first_answering(endpoints: &[Endpoint]) -> Outcome<Endpoint> {
    match connect_first(endpoints) {
        Ok((_, endpoint)) => Ok(endpoint.clone()),
        Err(refused) => Err(failure(refused)),
    }
}

/// A connection to the first endpoint at which somebody answers; else why each of them does not.
pub(crate) fn connect_first(
    endpoints: &[Endpoint],
) -> Result<(Connection, &Endpoint), Vec<ConnectError>> {
    let mut refused = Vec::new();
    for endpoint in endpoints {
        match Connection::connect(endpoint, PATIENCE) {
            Ok(connection) => return Ok((connection, endpoint)),
            Err(error) => refused.push(error),
        }
    }
    Err(refused)
}

/// A connection to the first that answers; else why the first does not.
pub(crate) fn connect_any(endpoints: &[Endpoint]) -> Result<Connection, ConnectError> {
    match connect_first(endpoints) {
        Ok((connection, _)) => Ok(connection),
        Err(refused) => match refused.into_iter().next() {
            Some(error) => Err(error),
            None => Connection::connect(&Endpoint::Unix(PathBuf::new()), PATIENCE),
        },
    }
}

/// Nobody answers at any of them.
pub(crate) fn failure(refused: Vec<ConnectError>) -> Failure {
    none_answers(Refusals::new(refused))
}

/// The same of those that were tried, if there were any.
pub(crate) fn none_answers(tried: Option<Refusals>) -> Failure {
    let error = tried.map_or(ClientError::NoEndpoint, |tried| ClientError::NoForwarder { tried });
    Failure::from(error).hint("start one: `byname forward`, or publish with `byname up`")
}
