//! `byname decode`: a packet's elements, or why it is refused.

use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, KeyLocator, Packet, SignatureInfo, tlv};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;

/// Octets read at most: a decoder is for packets, not for archives.
const INPUT_BYTES_MAX: u64 = 64 << 20;
/// Octets of a payload shown.
const PREVIEW_BYTES: usize = 64;

/// Print the elements of NDN packets, or say why they are refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname decode packet.bin
  echo 050b0703080161 0a0400000001 | byname decode
  tcpdump … | byname decode --json -")]
pub(crate) struct Args {
    /// File with packets one after the other, binary or hexadecimal; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// One JSON object per packet.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let input = read_input(args)?;
    let octets = from_hex(&input).unwrap_or(input);
    if octets.is_empty() {
        return Err(Failure::new(Code::Other, "there is nothing to decode: the input is empty"));
    }
    let mut rest = &octets[..];
    let mut offset = 0;
    while !rest.is_empty() {
        let len = match tlv::first_element_len(rest) {
            Ok(Some(len)) if len <= rest.len() as u64 => len as usize,
            Ok(_) => return Err(refused(offset, "the input ends inside a packet")),
            Err(error) => return Err(refused(offset, error)),
        };
        let fields = describe(&rest[..len]).map_err(|error| refused(offset, error))?;
        if args.json {
            output::json_line(fields);
        } else {
            print(&fields, 0);
        }
        offset += len;
        rest = &rest[len..];
    }
    Ok(())
}

fn refused(offset: usize, cause: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Other, format!("refused at octet {offset}: {cause}"))
}

fn read_input(args: &Args) -> Outcome<Vec<u8>> {
    let mut input = Vec::new();
    let result = if args.file.as_os_str() == "-" {
        std::io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut input)
    } else {
        std::fs::File::open(&args.file)
            .and_then(|file| file.take(INPUT_BYTES_MAX).read_to_end(&mut input))
    };
    match result {
        Ok(len) if len as u64 == INPUT_BYTES_MAX => {
            let limit = output::size(INPUT_BYTES_MAX);
            Err(Failure::usage(format!("{}: more than {limit}", args.file.display())))
        }
        Ok(_) => Ok(input),
        Err(error) => Err(Failure::disk(&args.file, error)),
    }
}

/// Hexadecimal digits with white space between them; `None` when the input is something else.
fn from_hex(input: &[u8]) -> Option<Vec<u8>> {
    let mut digits = Vec::with_capacity(input.len());
    for octet in input.iter().filter(|octet| !octet.is_ascii_whitespace()) {
        digits.push(char::from(*octet).to_digit(16)? as u8);
    }
    let whole = digits.len() % 2 == 0 && !digits.is_empty();
    whole.then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn describe(wire: &[u8]) -> Result<Value, byname_packet::DecodeError> {
    let lp = LpPacket::decode(wire)?;
    let bare = lp.fragment.is_some_and(|fragment| fragment.len() == wire.len());
    let mut fields = Map::new();
    if !bare {
        fields.insert("link".into(), describe_link(&lp));
    }
    match lp.fragment {
        Some(fragment) if lp.frag_count > 1 => {
            fields.insert("fragment".into(), describe_octets(fragment));
        }
        Some(packet) => match Packet::decode(packet)? {
            Packet::Interest(interest) => {
                fields.insert("interest".into(), describe_interest(&interest));
            }
            Packet::Data(data) => {
                fields.insert("data".into(), describe_data(&data));
            }
        },
        None => {}
    }
    Ok(Value::Object(fields))
}

fn describe_link(lp: &LpPacket<'_>) -> Value {
    let header = &lp.header;
    let mut fields = json!({
        "sequence": lp.sequence,
        "pit_token": header.pit_token.map(hex),
        "nack_reason": header.nack,
        "incoming_face_id": header.incoming_face_id,
        "next_hop_face_id": header.next_hop_face_id,
        "cache_policy": header.cache_policy,
        "congestion_mark": header.congestion_mark,
        "not_fresh": header.not_fresh,
        "tx_sequence": lp.tx_sequence,
    });
    let acks: Vec<u64> = lp.acks().collect();
    if let Value::Object(fields) = &mut fields {
        if lp.frag_count > 1 {
            fields.insert("frag_index".into(), lp.frag_index.into());
            fields.insert("frag_count".into(), lp.frag_count.into());
        }
        if !acks.is_empty() {
            fields.insert("acks".into(), acks.into());
        }
        if header.non_discovery {
            fields.insert("non_discovery".into(), true.into());
        }
    }
    present(fields)
}

fn describe_interest(interest: &Interest<'_>) -> Value {
    let hint: Option<Vec<String>> =
        interest.forwarding_hint.map(|hint| hint.names().map(|name| name.to_string()).collect());
    present(json!({
        "name": interest.name.to_string(),
        "can_be_prefix": interest.can_be_prefix,
        "must_be_fresh": interest.must_be_fresh,
        "forwarding_hint": hint,
        "nonce": interest.nonce.map(|nonce| hex(&nonce)),
        "lifetime_ms": interest.lifetime_ms,
        "hop_limit": interest.hop_limit,
        "application_parameters": interest.application_parameters.map(describe_octets),
        "parameters_digest_ok":
            interest.application_parameters.map(|_| interest.check_parameters_digest()),
        "signature": interest.signature_info.as_ref().map(describe_signature),
        "signature_value": interest.signature_value.map(hex),
    }))
}

fn describe_data(data: &Data<'_>) -> Value {
    present(json!({
        "name": data.name.to_string(),
        "content_type": data.meta.content_type,
        "freshness_ms": data.meta.freshness_ms,
        "final_block_id": data.meta.final_block_id.map(|component| component.to_string()),
        "content": describe_octets(data.content),
        "signature": describe_signature(&data.signature_info),
        "signature_value": hex(data.signature_value),
        "implicit_digest": hex(&data.implicit_digest()),
    }))
}

fn describe_signature(info: &SignatureInfo<'_>) -> Value {
    let kind = match info.signature_type {
        0 => "DigestSha256".to_owned(),
        1 => "SignatureSha256WithRsa".to_owned(),
        3 => "SignatureSha256WithEcdsa".to_owned(),
        4 => "SignatureHmacWithSha256".to_owned(),
        5 => "SignatureEd25519".to_owned(),
        200 => "NullSignature".to_owned(),
        other => other.to_string(),
    };
    let locator = info.key_locator.map(|locator| match locator {
        KeyLocator::Name(name) => name.to_string(),
        KeyLocator::Digest(digest) => format!("digest {}", hex(digest)),
    });
    let iso = byname_packet::signature::format_iso;
    present(json!({
        "type": kind,
        "key_locator": locator,
        "nonce": info.nonce.map(hex),
        "time_ms": info.time_ms,
        "seq_num": info.seq_num,
        "not_before": info.validity.map(|validity| iso(validity.not_before_s)),
        "not_after": info.validity.map(|validity| iso(validity.not_after_s)),
    }))
}

fn describe_octets(octets: &[u8]) -> Value {
    let shown = &octets[..octets.len().min(PREVIEW_BYTES)];
    json!({ "bytes": octets.len(), "start": hex(shown) })
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// Leaves out what is not there.
fn present(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}

fn print(value: &Value, depth: usize) {
    let Value::Object(fields) = value else { return };
    for (key, value) in fields {
        let indent = "  ".repeat(depth);
        match value {
            Value::Object(_) => {
                output::out_line(&format!("{indent}{key}"));
                print(value, depth + 1);
            }
            Value::String(text) => output::out_line(&format!("{indent}{key:<22} {text}")),
            other => output::out_line(&format!("{indent}{key:<22} {other}")),
        }
    }
}
