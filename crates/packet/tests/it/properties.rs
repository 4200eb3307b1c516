//! Round trips: any content decodes to what was encoded.

use byname_packet::lp::{self, FragmentFields, LinkFields, LpHeader, LpPacket};
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, FaceStatus, FibEntry, NextHop, RibEntry, Route,
};
use byname_packet::signature::{format_iso, parse_iso};
use byname_packet::{
    Component, Data, DataBuilder, DigestSigner, Interest, InterestBuilder, Name, NullSigner,
    SignatureExtra, Signer, ValidityPeriod, sha256, tlv, types,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::wire;

fn component() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let known = prop::sample::select(vec![8u16, 8, 8, 32, 50, 52, 54, 56, 58]);
    let typ = prop_oneof![4 => known, 1 => 3..=u16::MAX];
    let digest = (1u16..=2, vec(any::<u8>(), 32));
    prop_oneof![9 => (typ, vec(any::<u8>(), 0..12)), 1 => digest]
}

fn name() -> impl Strategy<Value = Name> {
    vec(component(), 0..7)
        .prop_map(|parts| parts.iter().map(|(typ, value)| Component { typ: *typ, value }).collect())
}

/// A name that an Interest may have.
fn interest_name() -> impl Strategy<Value = Name> {
    name().prop_map(|name| {
        let plain = |c: &Component<'_>| c.typ != types::PARAMETERS_SHA256_DIGEST;
        let mut name: Name = name.view().components().filter(plain).collect();
        if name.view().is_empty() {
            name.push_generic(b"x");
        }
        name
    })
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

/// Any number, with those around the changes of width as likely as all others.
fn number() -> impl Strategy<Value = u64> {
    let edges =
        vec![0, 1, 252, 253, 255, 256, 65535, 65536, u64::from(u32::MAX), 1 << 32, u64::MAX];
    prop_oneof![prop::sample::select(edges), any::<u64>()]
}

/// SignatureNonce, SignatureTime and SignatureSeqNum.
type Replay = (Option<Vec<u8>>, Option<u64>, Option<u64>);

#[derive(Debug, Clone)]
struct Fields {
    name: Name,
    flags: (bool, bool),
    hint: Vec<Name>,
    nonce: Option<[u8; 4]>,
    lifetime_ms: Option<u64>,
    hop_limit: Option<u8>,
    parameters: Option<Vec<u8>>,
    signed: Option<Replay>,
}

fn interest_fields() -> impl Strategy<Value = Fields> {
    let extra = (option::of(vec(any::<u8>(), 1..12)), option::of(number()), option::of(number()));
    let rest = (option::of(any::<u8>()), option::of(octets()), option::of(extra));
    let hint = vec(name(), 0..4);
    (
        interest_name(),
        any::<(bool, bool)>(),
        hint,
        any::<Option<[u8; 4]>>(),
        option::of(number()),
        rest,
    )
        .prop_map(
            |(name, flags, hint, nonce, lifetime_ms, (hop_limit, parameters, signed))| Fields {
                name,
                flags,
                hint,
                nonce,
                lifetime_ms,
                hop_limit,
                parameters,
                signed,
            },
        )
}

impl Fields {
    fn encode(&self) -> Vec<u8> {
        let mut builder = InterestBuilder::new(self.name.view())
            .can_be_prefix(self.flags.0)
            .must_be_fresh(self.flags.1)
            .forwarding_hint(&self.hint);
        if let Some(nonce) = self.nonce {
            builder = builder.nonce(nonce);
        }
        if let Some(ms) = self.lifetime_ms {
            builder = builder.lifetime_ms(ms);
        }
        if let Some(hops) = self.hop_limit {
            builder = builder.hop_limit(hops);
        }
        if let Some(parameters) = &self.parameters {
            builder = builder.application_parameters(parameters);
        }
        let mut out = Vec::new();
        match &self.signed {
            None => builder.encode(&mut out),
            Some((nonce, time_ms, seq_num)) => {
                let extra = SignatureExtra {
                    nonce: nonce.as_deref(),
                    time_ms: *time_ms,
                    seq_num: *seq_num,
                };
                builder.encode_signed(&DigestSigner, extra, &mut out).unwrap();
            }
        }
        out
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

/// Text that comes near to a name.
fn almost_name() -> &'static str {
    "(ndn:)?(/(seg=|v=|t=|[0-9]{1,6}=|%)?[ -~é\u{202e}]{0,6}){0,4}"
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn names(name in name()) {
        let mut octets = Vec::new();
        name.view().encode(&mut octets);
        prop_assert_eq!(octets.len(), name.view().wire_len());
        wire::name_uri(name.view().value());
        wire::name_uri(name.to_string().as_bytes());
    }

    #[test]
    fn any_text_is_a_name_or_not(text in almost_name()) {
        wire::name_uri(text.as_bytes());
    }

    #[test]
    fn order_of_names_is_the_order_of_their_components(a in name(), b in name()) {
        let key = |name: &Name| -> Vec<(u16, usize, Vec<u8>)> {
            name.view().components().map(|c| (c.typ, c.value.len(), c.value.to_vec())).collect()
        };
        prop_assert_eq!(a.cmp(&b), key(&a).cmp(&key(&b)));
    }

    #[test]
    fn interests(fields in interest_fields()) {
        let octets = fields.encode();
        let found = Interest::decode_checked(&octets).unwrap();
        let has_parameters = fields.parameters.is_some() || fields.signed.is_some();
        let name = found.name.without_last(usize::from(has_parameters));
        prop_assert_eq!(name, fields.name.view());
        prop_assert_eq!((found.can_be_prefix, found.must_be_fresh), fields.flags);
        let hint = found.forwarding_hint.iter().flat_map(|h| h.names()).map(|n| n.to_name());
        prop_assert_eq!(hint.collect::<Vec<_>>(), fields.hint);
        prop_assert_eq!(found.nonce, fields.nonce);
        prop_assert_eq!(found.lifetime_ms, fields.lifetime_ms);
        prop_assert_eq!(found.hop_limit, fields.hop_limit);
        if let Some((nonce, time_ms, seq_num)) = fields.signed {
            let info = found.signature_info.unwrap();
            prop_assert_eq!(info.nonce, nonce.as_deref());
            prop_assert_eq!((info.time_ms, info.seq_num), (time_ms, seq_num));
            let digest = sha256(&found.signed_portion().unwrap());
            prop_assert_eq!(found.signature_value, Some(&digest[..]));
            let parameters = fields.parameters.unwrap_or_default();
            prop_assert_eq!(found.application_parameters, Some(&parameters[..]));
        } else {
            prop_assert_eq!(found.application_parameters, fields.parameters.as_deref());
        }
        wire::packet(&octets);
    }

    #[test]
    fn datas(
        name in name(),
        content in octets(),
        (content_type, freshness_ms) in (number(), number()),
        last in option::of(component()),
        times in option::of((0..300_000_000_000u64, number())),
        is_null in any::<bool>(),
    ) {
        let mut builder =
            DataBuilder::new(name.view()).content_type(content_type).freshness_ms(freshness_ms);
        let last = last.as_ref().map(|(typ, value)| Component { typ: *typ, value });
        if let Some(last) = last {
            builder = builder.final_block_id(last);
        }
        if let Some((not_after_s, time_ms)) = times {
            let validity = ValidityPeriod { not_before_s: 0, not_after_s };
            builder = builder.validity(validity).signature_time_ms(time_ms);
        }
        let signer: &dyn Signer = if is_null { &NullSigner } else { &DigestSigner };
        let mut octets = vec![0xEE];
        builder.encode(&content, signer, &mut octets).unwrap();
        let found = Data::decode(&octets[1..]).unwrap();
        prop_assert_eq!(found.name, name.view());
        prop_assert_eq!(found.meta.content_type, content_type);
        prop_assert_eq!(found.meta.freshness_ms, freshness_ms);
        prop_assert_eq!(found.meta.final_block_id, last);
        prop_assert_eq!(found.content, content);
        prop_assert_eq!(found.signature_info.time_ms, times.map(|(_, ms)| ms));
        if !is_null {
            prop_assert_eq!(found.signature_value, sha256(&[found.signed_portion()]));
        }
        wire::packet(&octets[1..]);
    }

    #[test]
    fn link_packets(
        token in option::of(vec(any::<u8>(), 1..=32)),
        nack in option::of(number()),
        faces in any::<(Option<u64>, Option<u64>)>(),
        (policy, mark) in (option::of(number()), option::of(number())),
        non_discovery in any::<bool>(),
        sequence in option::of((number(), 0..500u64, 1..500u64)),
        tx_sequence in option::of(number()),
        acks in vec(number(), 0..5),
        content in vec(any::<u8>(), 1..300),
    ) {
        let header = LpHeader {
            pit_token: token.as_deref(),
            nack,
            incoming_face_id: faces.0,
            next_hop_face_id: faces.1,
            cache_policy: policy,
            congestion_mark: mark,
            non_discovery,
            prefix_announcement: non_discovery.then_some(&[6, 0]),
            path_trace: token.as_deref(),
            not_fresh: non_discovery,
        };
        let fragment = sequence.map(|(sequence, index, more)| {
            FragmentFields { sequence, index, count: index + more }
        });
        let link = LinkFields { fragment, tx_sequence, acks: &acks, padding_bytes: 0 };
        let mut octets = Vec::new();
        lp::encode_link_header(&header, &link, content.len(), &mut octets);
        let is_bare = octets.is_empty();
        octets.extend_from_slice(&content);
        if is_bare {
            prop_assert!(header.is_empty() && fragment.is_none() && acks.is_empty());
            return Ok(());
        }
        let found = LpPacket::decode(&octets).unwrap();
        prop_assert_eq!(found.header, header);
        prop_assert_eq!(found.fragment, Some(&content[..]));
        prop_assert_eq!(found.sequence, fragment.map(|f| f.sequence));
        let (index, count) = fragment.map_or((0, 1), |f| (f.index, f.count));
        prop_assert_eq!((found.frag_index, found.frag_count), (index, count));
        prop_assert_eq!(found.tx_sequence, tx_sequence);
        prop_assert_eq!(found.acks().collect::<Vec<_>>(), acks);
        wire::lp(&octets);
    }

    #[test]
    fn management(
        (name, strategy) in (option::of(name()), option::of(name())),
        numbers in vec(option::of(number()), 12),
        texts in vec(option::of("\\PC{0,20}"), 2),
        routes in vec((number(), number(), number(), number(), option::of(number())), 0..4),
    ) {
        let parameters = ControlParameters {
            name: name.clone(),
            strategy,
            face_id: numbers[0],
            uri: texts[0].clone(),
            local_uri: texts[1].clone(),
            origin: numbers[1],
            cost: numbers[2],
            capacity: numbers[3],
            count: numbers[4],
            flags: numbers[5],
            mask: numbers[6],
            expiration_period_ms: numbers[7],
            face_persistency: numbers[8],
            base_congestion_marking_interval_ns: numbers[9],
            default_congestion_threshold_bytes: numbers[10],
            mtu: numbers[11],
        };
        let code = numbers[0].unwrap_or(200);
        let response = ControlResponse::new(code, "é").with_parameters(&parameters);
        let mut octets = Vec::new();
        response.encode(&mut octets);
        let back = ControlResponse::decode(&octets).unwrap();
        prop_assert_eq!(back.parameters().unwrap(), parameters);
        prop_assert_eq!(back, response);

        let name = name.unwrap_or_default();
        let routes: Vec<Route> = routes
            .into_iter()
            .map(|(face_id, origin, cost, flags, expiration_period_ms)| {
                Route { face_id, origin, cost, flags, expiration_period_ms }
            })
            .collect();
        let hops = routes.iter().map(|r| NextHop { face_id: r.face_id, cost: r.cost }).collect();
        let rib = RibEntry { name: name.clone(), routes };
        let fib = FibEntry { name, next_hops: hops };
        let mut octets = Vec::new();
        rib.encode(&mut octets);
        rib.encode(&mut octets);
        prop_assert_eq!(RibEntry::decode_all(&octets).unwrap(), [rib.clone(), rib]);
        octets.clear();
        fib.encode(&mut octets);
        prop_assert_eq!(FibEntry::decode_all(&octets).unwrap(), [fib]);
        let face = FaceStatus { face_id: code, mtu: numbers[1], ..FaceStatus::default() };
        octets.clear();
        face.encode(&mut octets);
        prop_assert_eq!(FaceStatus::decode_all(&octets).unwrap(), [face]);
    }

    #[test]
    fn numbers(typ in 1..=u32::MAX, number in number()) {
        let mut octets = Vec::new();
        tlv::write_nni(&mut octets, typ, number);
        prop_assert_eq!(octets.len(), tlv::nni_element_len(typ, number));
        let element = tlv::read_only(&octets, typ, "number").unwrap();
        prop_assert_eq!(tlv::read_nni(element.value, "number"), Ok(number));
        let mut var = Vec::new();
        tlv::write_var(&mut var, number);
        prop_assert_eq!(var.len(), tlv::var_len(number));
    }

    #[test]
    fn moments(unix_s in 0..=253_402_300_799u64) {
        prop_assert_eq!(parse_iso(format_iso(unix_s).as_bytes()), Some(unix_s));
    }

    #[test]
    fn garbage(octets in vec(any::<u8>(), 0..200)) {
        wire::packet(&octets);
        wire::lp(&octets);
        wire::name_uri(&octets);
        wire::mgmt(&octets);
        wire::signature_info(&octets);
    }
}
