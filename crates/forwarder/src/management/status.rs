//! Contents of the datasets.

use byname_packet::mgmt::{
    self, ChannelStatus, ControlResponse, CsInfo, FaceQueryFilter, FaceStatus, FibEntry,
    GeneralStatus, RibEntry, StrategyChoice,
};
use byname_packet::{Name, NameRef, types};

use super::action::Turn;
use super::cs;
use super::face_fields::{flags, link_type_number, marking, mtu, persistency_number, scope_number};
use super::response::{PREFIX_LEN, bad, unknown};
use super::settings::Settings;
use super::view::{FaceView, View};
use crate::face::FaceCounters;
use crate::rib::{FIB_ORIGIN, Route};
use crate::strategy;

/// A dataset of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dataset {
    General,
    Faces(FaceQueryFilter),
    Channels,
    Fib,
    Rib,
    Cs,
    Strategies,
}

impl Dataset {
    /// The dataset of that module and name; `name` is the whole one, which holds a query's filter.
    pub(super) fn find(
        module: &[u8],
        dataset: &[u8],
        name: NameRef<'_>,
    ) -> Result<Self, ControlResponse> {
        Ok(match (module, dataset) {
            (b"status", b"general") => Self::General,
            (b"faces", b"list") => Self::Faces(FaceQueryFilter::default()),
            (b"faces", b"query") => Self::Faces(filter(name)?),
            (b"faces", b"channels") => Self::Channels,
            (b"fib", b"list") => Self::Fib,
            (b"rib", b"list") => Self::Rib,
            (b"cs", b"info") => Self::Cs,
            (b"strategy-choice", b"list") => Self::Strategies,
            _ => return Err(unknown(module)),
        })
    }

    /// Returns whether it lists routes, of which there may be a million.
    pub(super) fn is_listing(&self) -> bool {
        matches!(self, Self::Fib | Self::Rib)
    }
}

fn filter(name: NameRef<'_>) -> Result<FaceQueryFilter, ControlResponse> {
    let component = name.get(PREFIX_LEN + 2).filter(|c| c.typ == types::GENERIC);
    let component = component.ok_or_else(|| bad("Malformed filter"))?;
    FaceQueryFilter::decode(component.value)
        .map_err(|error| bad(format!("Malformed filter: {error}")))
}

/// The payload of a dataset.
pub(super) fn payload(
    turn: &Turn<'_>,
    dataset: &Dataset,
    settings: &Settings,
    channels: &[String],
) -> Vec<u8> {
    let (view, mut out) = (turn.view, Vec::new());
    match dataset {
        Dataset::General => general_status(turn, settings).encode(&mut out),
        Dataset::Faces(filter) => view.for_each_face(&mut |face, counters| {
            if is_match(filter, face) {
                face_status(face, counters).encode(&mut out);
            }
        }),
        Dataset::Channels => {
            for uri in channels {
                ChannelStatus { local_uri: uri.clone() }.encode(&mut out);
            }
        }
        Dataset::Fib | Dataset::Rib => {
            encode_listing(turn, dataset, (None, usize::MAX), &mut out);
        }
        Dataset::Cs => cs_info(view).encode(&mut out),
        Dataset::Strategies => view.for_each_strategy(&mut |prefix, chosen| {
            let strategy = strategy::instance_name(chosen);
            StrategyChoice { name: prefix.to_name(), strategy }.encode(&mut out);
        }),
    }
    out
}

/// Appends up to `max` entries of the FIB or the RIB behind `after`; the last one, if there are
/// more.
pub(super) fn encode_listing(
    turn: &Turn<'_>,
    dataset: &Dataset,
    (after, max): (Option<NameRef<'_>>, usize),
    out: &mut Vec<u8>,
) -> Option<Name> {
    let mut entries = turn.view.rib().iter_after(after);
    let mut last = None;
    for (prefix, routes) in entries.by_ref().take(max) {
        last = Some(prefix);
        if *dataset == Dataset::Fib {
            encode_fib_entry(turn.view, prefix, out);
        } else {
            encode_rib_entry(prefix, routes, turn.now_ns, out);
        }
    }
    entries.next().and(last).map(|last| last.to_name())
}

fn encode_fib_entry(view: &dyn View, prefix: NameRef<'_>, out: &mut Vec<u8>) {
    let Some(hops) = view.next_hops(prefix) else { return };
    let next_hops =
        hops.iter().map(|hop| mgmt::NextHop { face_id: hop.face.0, cost: hop.cost }).collect();
    FibEntry { name: prefix.to_name(), next_hops }.encode(out);
}

fn general_status(turn: &Turn<'_>, settings: &Settings) -> GeneralStatus {
    let totals = turn.view.totals();
    let counters = totals.counters;
    GeneralStatus {
        version: settings.version.clone(),
        start_timestamp_ms: settings.start_unix_ns / 1_000_000,
        current_timestamp_ms: turn.unix_ms(),
        name_tree_entry_count: 0,
        fib_entry_count: totals.fib_entries as u64,
        pit_entry_count: totals.pit_entries as u64,
        measurements_entry_count: 0,
        cs_entry_count: totals.cs_entries as u64,
        in_interest_count: counters.in_interests,
        in_data_count: counters.in_data,
        in_nack_count: counters.in_nacks,
        out_interest_count: counters.out_interests,
        out_data_count: counters.out_data,
        out_nack_count: counters.out_nacks,
        satisfied_interest_count: counters.satisfied_interests,
        unsatisfied_interest_count: counters.unsatisfied_interests,
    }
}

fn cs_info(view: &dyn View) -> CsInfo {
    let (store, totals) = (view.store(), view.totals());
    CsInfo {
        capacity: store.capacity as u64,
        flags: cs::flags(&store),
        entry_count: totals.cs_entries as u64,
        hit_count: totals.counters.cs_hits,
        miss_count: totals.counters.cs_misses,
    }
}

fn encode_rib_entry(prefix: NameRef<'_>, routes: &[Route], now_ns: u64, out: &mut Vec<u8>) {
    let left_ms = |at: u64| at.saturating_sub(now_ns) / 1_000_000;
    let registered = routes.iter().filter(|route| route.origin != FIB_ORIGIN);
    let routes: Vec<mgmt::Route> = registered
        .map(|route| mgmt::Route {
            face_id: route.face.0,
            origin: route.origin,
            cost: route.cost,
            flags: route.flags,
            expiration_period_ms: route.expires_ns.map(left_ms),
        })
        .collect();
    if !routes.is_empty() {
        RibEntry { name: prefix.to_name(), routes }.encode(out);
    }
}

fn is_match(filter: &FaceQueryFilter, face: FaceView<'_>) -> bool {
    let info = face.info;
    let has_scheme = |uri: &str, scheme: &str| {
        uri.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://"))
    };
    let equals = |wanted: Option<u64>, number: u64| wanted.is_none_or(|wanted| wanted == number);
    let reads = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|w| w == text);
    equals(filter.face_id, face.id.0)
        && filter.uri_scheme.as_ref().is_none_or(|scheme| {
            has_scheme(&info.remote_uri, scheme) || has_scheme(&info.local_uri, scheme)
        })
        && reads(&filter.uri, &info.remote_uri)
        && reads(&filter.local_uri, &info.local_uri)
        && equals(filter.scope, scope_number(info))
        && equals(filter.persistency, persistency_number(info.persistency))
        && equals(filter.link_type, link_type_number(info.link_type))
}

fn face_status(face: FaceView<'_>, counters: &FaceCounters) -> FaceStatus {
    let info = face.info;
    let (interval_ns, threshold_bytes) = marking(face.options);
    FaceStatus {
        face_id: face.id.0,
        uri: info.remote_uri.clone(),
        local_uri: info.local_uri.clone(),
        expiration_period_ms: None,
        scope: scope_number(info),
        persistency: persistency_number(info.persistency),
        link_type: link_type_number(info.link_type),
        base_congestion_marking_interval_ns: Some(interval_ns),
        default_congestion_threshold_bytes: Some(threshold_bytes),
        mtu: Some(mtu(face)),
        in_interest_count: counters.in_interests,
        in_data_count: counters.in_data,
        in_nack_count: counters.in_nacks,
        out_interest_count: counters.out_interests,
        out_data_count: counters.out_data,
        out_nack_count: counters.out_nacks,
        in_bytes: counters.in_bytes,
        out_bytes: counters.out_bytes,
        flags: flags(face.options),
        is_down: face.is_down,
    }
}
