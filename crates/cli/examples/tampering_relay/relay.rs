//! The relay itself, shared by the example program and the tests.

use byname_packet::lp::LpPacket;
use byname_packet::{Data, tlv};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Relays every connection until the listener fails.
pub(crate) fn serve(listener: &TcpListener, target: &str, kind: &str) {
    for client in listener.incoming() {
        let Ok(client) = client else { return };
        let Ok(server) = TcpStream::connect(target) else { continue };
        let (Ok(client_in), Ok(server_out)) = (client.try_clone(), server.try_clone()) else {
            continue;
        };
        std::thread::spawn(move || forward(client_in, server_out, None));
        let kind = kind.to_owned();
        std::thread::spawn(move || forward(server, client, Some(kind)));
    }
}

/// Copies whole packets from `from` to `to`; those of `kind` lose their integrity.
fn forward(mut from: TcpStream, mut to: TcpStream, kind: Option<String>) {
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        while let Ok(Some(len)) = tlv::first_element_len(&buffer) {
            if len > buffer.len() as u64 {
                break;
            }
            let mut packet: Vec<u8> = buffer.drain(..len as usize).collect();
            if kind.as_deref() == Some("withheld manifest") && is_of_manifest(&packet) {
                continue;
            }
            if let Some(at) = kind.as_deref().and_then(|kind| place_to_flip(&packet, kind)) {
                packet[at] ^= 1;
            }
            if to.write_all(&packet).is_err() {
                return;
            }
        }
        match from.read(&mut chunk) {
            Ok(len) if len > 0 => buffer.extend_from_slice(&chunk[..len]),
            _ => {
                let _ = to.shutdown(std::net::Shutdown::Write);
                return;
            }
        }
    }
}

/// True if the packet is Data of a manifest.
fn is_of_manifest(packet: &[u8]) -> bool {
    let fragment = LpPacket::decode(packet).ok().and_then(|link| link.fragment);
    fragment.and_then(|fragment| Data::decode(fragment).ok()).is_some_and(|data| {
        data.name.components().any(|component| component.is_keyword(b"manifest"))
    })
}

/// The offset of an octet in the middle of the content, if this is a Data of `kind`.
fn place_to_flip(packet: &[u8], kind: &str) -> Option<usize> {
    let fragment = LpPacket::decode(packet).ok()?.fragment?;
    let data = Data::decode(fragment).ok()?;
    let has = |test: &dyn Fn(&[u8]) -> bool| {
        data.name.components().any(|c| c.typ == byname_packet::types::KEYWORD && test(c.value))
    };
    let actual = if has(&|word| word == b"metadata") {
        "metadata"
    } else if has(&|word| word.starts_with(b"tree-")) {
        "node"
    } else if has(&|word| word == b"manifest") {
        "manifest"
    } else if has(&|word| word == b"ls") {
        "listing"
    } else {
        "data"
    };
    let is_segment = data.name.last().and_then(|last| last.segment()).is_some();
    if actual != kind || !is_segment || data.content.is_empty() {
        return None;
    }
    let start = data.content.as_ptr() as usize - packet.as_ptr() as usize;
    Some(start + data.content.len() / 2)
}
