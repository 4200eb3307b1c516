//! Forwarders that may be there.

use crate::exit::{Code, Failure, Outcome, chain};
use byname_io::{Connection, Endpoint};
use std::time::Duration;

/// The first endpoint at which somebody answers.
pub(crate) fn first_answering(endpoints: &[Endpoint]) -> Outcome<Endpoint> {
    let mut last = None;
    for endpoint in endpoints {
        match Connection::connect(endpoint, Duration::from_secs(5)) {
            Ok(_) => return Ok(endpoint.clone()),
            Err(error) => last = Some(chain(&error)),
        }
    }
    let tried: Vec<String> = endpoints.iter().map(Endpoint::to_string).collect();
    let cause = last.unwrap_or_default();
    Err(Failure::new(
        Code::NoRoute,
        format!("no forwarder answers at {}: {cause}", tried.join(", ")),
    )
    .hint("start one: `byname forward`, or publish with `byname up`"))
}
