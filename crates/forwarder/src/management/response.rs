//! Responses: status codes, texts and the Data around them.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};
use byname_packet::{DataBuilder, DigestSigner, NameRef};

/// Components before the module: `/localhost/nfd`.
pub(super) const PREFIX_LEN: usize = 2;

/// Answers stay fresh for this long, as NFD's do.
pub(super) const FRESHNESS_MS: u64 = 1000;

/// Parameters that a refusal repeats have no more octets than this: the Data holds them in its name
/// as well.
const REPEATED_BYTES_MAX: usize = 2048;

/// Modules of the protocol, for the answer to unknown commands.
const MODULES: [&[u8]; 6] = [b"rib", b"faces", b"fib", b"cs", b"strategy-choice", b"status"];

pub(super) fn bad(text: impl Into<String>) -> ControlResponse {
    ControlResponse::new(status_code::BAD_REQUEST, text)
}

pub(super) fn forbidden(text: impl Into<String>) -> ControlResponse {
    ControlResponse::new(status_code::UNAUTHORIZED, text)
}

/// The answer to what is neither a command nor a dataset.
pub(super) fn unknown(module: &[u8]) -> ControlResponse {
    if MODULES.contains(&module) {
        ControlResponse::new(status_code::NOT_IMPLEMENTED, "unknown command or dataset")
    } else {
        ControlResponse::new(status_code::NOT_FOUND, "unknown management module")
    }
}

/// The Data that answers `name` with a response.
pub(super) fn encode(
    name: NameRef<'_>,
    content_type: u64,
    response: &ControlResponse,
) -> Option<Vec<u8>> {
    let (mut content, mut packet) = (Vec::new(), Vec::new());
    match refused_parameters(name, response) {
        Some(body) => ControlResponse { body, ..response.clone() }.encode(&mut content),
        None => response.encode(&mut content),
    }
    let data = DataBuilder::new(name).content_type(content_type).freshness_ms(FRESHNESS_MS);
    data.encode(&content, &DigestSigner, &mut packet).ok()?;
    Some(packet)
}

/// The body of a refusal without one of its own: the parameters of the command. NFD says nothing,
/// and python-ndn and NDNd's tools cannot read that.
fn refused_parameters(name: NameRef<'_>, response: &ControlResponse) -> Option<Vec<u8>> {
    let is_bare = response.status_code >= status_code::BAD_REQUEST && response.body.is_empty();
    let component = name.get(PREFIX_LEN + 2).filter(|_| is_bare)?;
    if component.value.len() > REPEATED_BYTES_MAX {
        return None;
    }
    ControlParameters::decode(component.value).ok()?;
    Some(component.value.to_vec())
}
