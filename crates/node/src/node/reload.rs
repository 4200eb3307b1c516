//! Taking over a configuration: at the start all of it, later what has changed.
//!
//! New listeners are bound before anything else changes, so that a configuration that cannot be
//! had leaves the old one whole. What other machines and applications have set up (faces, routes,
//! strategies set by command) is left alone: only what the old configuration named is taken back.

use std::collections::HashSet;
use std::time::Duration;

use byname_forwarder::{FaceId, Persistency, Route, strategy};
use byname_io::{AllowedOrigins, Connection, DatagramSocket, Endpoint, Interest, Listener, Token};
use byname_packet::mgmt::route_origin;
use tracing::{info, warn};

use super::{Node, Source};
use crate::config::{Changes, NodeConfig, SAME_HOST, StaticRoute};
use crate::error::NodeError;
use crate::links::Shared;
use crate::strategies::strategy_name;

/// A socket to listen with that is bound, but not yet watched.
enum Bound {
    Stream(Listener),
    Datagram(Box<DatagramSocket>),
    /// A multicast group, which is a face from the start.
    Group(Connection),
}

/// Joining a group waits for nobody.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

impl Node {
    /// Goes on with `config`.
    ///
    /// # Errors
    /// [`NodeError`], with nothing changed.
    pub(super) fn reload(&mut self, mut config: NodeConfig) -> Result<Changes, NodeError> {
        config.forwarder.seed = self.config.forwarder.seed;
        config.forwarder.own_uid = self.config.forwarder.own_uid;
        config.forwarder.start_now_ns = self.config.forwarder.start_now_ns;
        config.forwarder.start_unix_ns = self.config.forwarder.start_unix_ns;
        let known: HashSet<&Endpoint> = self.bound.iter().map(|(endpoint, _)| endpoint).collect();
        let mut added = Vec::new();
        for endpoint in &config.listen {
            let is_new = !known.contains(endpoint) && !added.iter().any(|(it, _)| it == endpoint);
            if is_new {
                added.push((endpoint.clone(), self.bind(endpoint, &config)?));
            }
        }
        self.memory.set_bytes_max(config.connection_bytes_max);
        self.links.shared.limiter.set_rates(config.udp_unvalidated);
        let mut changes = Changes { listeners_added: added.len(), ..Changes::default() };
        let before = std::mem::replace(&mut self.config, config);
        for (endpoint, bound) in added {
            self.watch(endpoint, bound)?;
        }
        changes.listeners_removed = self.close_unlisted();
        let origins = origins(&self.config.websocket_origins);
        for listener in self.listeners.values_mut() {
            listener.set_allowed_origins(origins.clone());
        }
        self.forwarder.reconfigure(&self.config.forwarder);
        self.reload_content_store(&before);
        self.reload_strategies(&before, &mut changes);
        self.reload_routes(&before, &mut changes)?;
        self.set_channels();
        info!(?changes, "configuration taken over");
        Ok(changes)
    }

    fn bind(&self, endpoint: &Endpoint, config: &NodeConfig) -> Result<Bound, NodeError> {
        match endpoint {
            Endpoint::Udp { .. } => {
                let socket = DatagramSocket::bind_with(endpoint, self.limits())?;
                return Ok(Bound::Datagram(Box::new(socket)));
            }
            Endpoint::Multicast { .. } => {
                let group = Connection::connect_with(endpoint, JOIN_TIMEOUT, self.limits())?;
                return Ok(Bound::Group(group));
            }
            _ => {}
        }
        let mut listener = Listener::bind(endpoint)?;
        listener.set_limits(self.limits());
        if let Endpoint::Unix(path) = endpoint {
            super::access::grant(path, config.socket_access)?;
        }
        Ok(Bound::Stream(listener))
    }

    fn watch(&mut self, endpoint: Endpoint, bound: Bound) -> Result<(), NodeError> {
        let source = match bound {
            Bound::Datagram(socket) => {
                let free =
                    self.links.shared.sockets.iter().position(|shared| shared.socket.is_none());
                let index = free.unwrap_or(self.links.shared.sockets.len());
                let token = self.token(Source::Shared(index));
                self.poller.add(&*socket, Token(token), Interest::READ)?;
                info!(endpoint = %socket.local_endpoint(), "listening");
                let shared = Shared::new(*socket, token);
                match free {
                    Some(index) => self.links.shared.sockets[index] = shared,
                    None => self.links.shared.sockets.push(shared),
                }
                Source::Shared(index)
            }
            Bound::Stream(listener) => {
                let index = self.listeners.keys().last().map_or(0, |last| last + 1);
                let token = self.token(Source::Listener(index));
                self.poller.add(&listener, Token(token), Interest::READ)?;
                info!(endpoint = %listener.local_endpoint(), "listening");
                self.listeners.insert(index, listener);
                Source::Listener(index)
            }
            Bound::Group(connection) => {
                let face = self.lasting_face(&endpoint);
                self.carry_by_connection(face, connection, Persistency::Permanent)?;
                self.on_restored(face);
                Source::Face(face)
            }
        };
        self.bound.push((endpoint, source));
        Ok(())
    }

    /// Closes what the configuration does not name. Connections that came through it stay.
    fn close_unlisted(&mut self) -> usize {
        let listen: HashSet<&Endpoint> = self.config.listen.iter().collect();
        let (stay, go): (Vec<_>, Vec<_>) = std::mem::take(&mut self.bound)
            .into_iter()
            .partition(|(endpoint, _)| listen.contains(endpoint));
        self.bound = stay;
        for (endpoint, source) in &go {
            info!(%endpoint, "listening no more");
            self.sources.retain(|_, other| other != source);
            match source {
                Source::Listener(index) => drop(self.listeners.remove(index)),
                Source::Shared(index) => self.close_shared(*index),
                Source::Face(face) => self.end_face(*face),
            }
        }
        go.len()
    }

    /// Faces of peers end with the socket that carried them; lasting ones get another link.
    fn close_shared(&mut self, index: usize) {
        self.links.shared.sockets[index].socket = None;
        let mut peers: Vec<_> = self.peers.keys().copied().collect();
        peers.retain(|(socket, _)| *socket == index);
        for peer in peers {
            let face = self.peers.get(&peer).copied();
            match face.filter(|face| self.lasting.contains_key(face)) {
                Some(face) => {
                    self.peers.remove(&peer);
                    self.lasting_face_lost(face, "its socket was closed");
                }
                None => self.drop_peer(peer),
            }
        }
    }

    /// Only what the file says otherwise than before: commands may have changed the store since.
    fn reload_content_store(&mut self, before: &NodeConfig) {
        let bounds =
            |config: &NodeConfig| (config.forwarder.cs_entries_max, config.forwarder.cs_bytes_max);
        let flags = |config: &NodeConfig| (config.cs_admit, config.cs_serve);
        if bounds(before) != bounds(&self.config) {
            let (entries_max, bytes_max) = bounds(&self.config);
            self.forwarder.set_content_store_bounds(entries_max, bytes_max);
        }
        if flags(before) != flags(&self.config) {
            let (admit, serve) = flags(&self.config);
            self.forwarder.set_content_store_flags(admit, serve);
        }
    }

    fn reload_strategies(&mut self, before: &NodeConfig, changes: &mut Changes) {
        let now = self.config.strategies.clone();
        for (prefix, _) in &before.strategies {
            if !now.iter().any(|(other, _)| other == prefix) {
                self.forwarder.unset_strategy(prefix);
                changes.strategies_changed += 1;
            }
        }
        for (prefix, strategy) in &now {
            if before.strategies.iter().any(|(p, s)| p == prefix && s == strategy) {
                continue;
            }
            changes.strategies_changed += 1;
            let found = strategy_name(strategy).and_then(|name| strategy::by_name(name.view()));
            match found {
                Some(found) => self.forwarder.set_strategy(prefix, found),
                None => warn!(strategy, "there is no such strategy"),
            }
        }
    }

    fn reload_routes(
        &mut self,
        before: &NodeConfig,
        changes: &mut Changes,
    ) -> Result<(), NodeError> {
        let now = self.config.routes.clone();
        for route in before.routes.iter().filter(|route| !now.contains(route)) {
            let kept =
                now.iter().any(|it| it.prefix == route.prefix && it.endpoint == route.endpoint);
            if let Some(face) = self.lasting_face_to(&route.endpoint).filter(|_| !kept) {
                self.forwarder.remove_route(&route.prefix, face, route_origin::STATIC);
            }
            changes.routes_removed += 1;
        }
        for entry in self.config.faces.clone() {
            let face = self.lasting_face(&entry.endpoint);
            self.forwarder.set_face_options(face, entry.options);
            self.apply_options(face);
        }
        for route in now.iter().filter(|route| !before.routes.contains(route)) {
            self.add_static_route(route)?;
            changes.routes_added += 1;
        }
        changes.faces_removed = self.end_unnamed_faces(before);
        Ok(())
    }

    fn add_static_route(&mut self, route: &StaticRoute) -> Result<(), NodeError> {
        let face = self.lasting_face(&route.endpoint);
        let (cost, flags) = (route.cost, route.flags);
        let origin = route_origin::STATIC;
        let added = Route { face, origin, cost, flags, expires_ns: None };
        Ok(self.forwarder.add_route(&route.prefix, added)?)
    }

    /// Ends the faces that only the old configuration names.
    fn end_unnamed_faces(&mut self, before: &NodeConfig) -> usize {
        let (old, new) = (named(before), named(&self.config));
        let gone: HashSet<FaceId> =
            old.difference(&new).filter_map(|endpoint| self.lasting_face_to(endpoint)).collect();
        for face in &gone {
            self.end_face(*face);
        }
        gone.len()
    }

    fn lasting_face_to(&self, endpoint: &Endpoint) -> Option<FaceId> {
        let mut lasting = self.lasting.iter();
        lasting.find(|(_, lasting)| lasting.endpoint == *endpoint).map(|(face, _)| *face)
    }

    /// Tells management what can be listed as channels.
    fn set_channels(&mut self) {
        let streams = self.listeners.values().map(|listener| {
            match (listener.local_endpoint(), listener.local_address()) {
                (Endpoint::WebSocket { .. }, Some(address)) => format!("ws://{address}"),
                (Endpoint::Tcp { .. }, Some(address)) => byname_io::peer_uri("tcp", address),
                (endpoint, _) => endpoint.to_string(),
            }
        });
        let datagrams =
            self.links.shared.sockets.iter().filter_map(|shared| shared.socket.as_ref());
        let uris = streams.chain(datagrams.map(DatagramSocket::local_uri)).collect();
        self.forwarder.set_channels(uris);
    }
}

/// Which pages may open a WebSocket, of what the configuration says.
fn origins(list: &[String]) -> AllowedOrigins {
    if list.iter().any(|origin| origin == "*") {
        return AllowedOrigins::Any;
    }
    let (same_host, others): (Vec<_>, Vec<_>) =
        list.iter().cloned().partition(|origin| origin == SAME_HOST);
    match same_host.is_empty() {
        true => AllowedOrigins::Only(others),
        false => AllowedOrigins::SameHostAnd(others),
    }
}

/// The peers that a configuration names.
fn named(config: &NodeConfig) -> HashSet<Endpoint> {
    let routes = config.routes.iter().map(|route| route.endpoint.clone());
    routes.chain(config.faces.iter().map(|face| face.endpoint.clone())).collect()
}
