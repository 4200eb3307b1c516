//! A node on a thread, and a client that speaks NDN over one connection.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use byname_face::frame_len;
use byname_io::{Connection, Endpoint, Interest as Watch, Poller, Token};
use byname_link::{LinkService, ReassemblyLimits};
use byname_node::{Control, Node, NodeConfig, NodeError, Stop};
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{ControlParameters, ControlResponse, FaceStatus};
use byname_packet::{
    Data, DataBuilder, DigestSigner, Interest, InterestBuilder, Name, NameRef, NullSigner, Packet,
    SignatureExtra,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Running {
    pub(crate) listening: Vec<Endpoint>,
    pub(crate) control: Control,
    stop: Stop,
    thread: Option<JoinHandle<Result<Node, NodeError>>>,
}

impl Running {
    /// A node at which producers may register over TCP.
    pub(crate) fn start(mut config: NodeConfig) -> Self {
        config.forwarder.allow_register_loopback = true;
        Self::start_as_configured(config)
    }

    pub(crate) fn start_as_configured(config: NodeConfig) -> Self {
        let mut node = Node::new(config).unwrap();
        let (listening, stop) = (node.listening(), node.stop_handle());
        let (handle, control) = (stop.clone(), node.control());
        let thread = std::thread::spawn(move || node.run(&handle).map(|()| node));
        Self { listening, control, stop, thread: Some(thread) }
    }

    pub(crate) fn listen(endpoints: &[&str]) -> Self {
        let listen = endpoints.iter().map(|e| e.parse().unwrap()).collect();
        Self::start(NodeConfig { listen, ..NodeConfig::default() })
    }

    pub(crate) fn client(&self, index: usize) -> Client {
        Client::connect(&self.listening[index])
    }

    pub(crate) fn finish(mut self) -> Node {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A packet as a client got it.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) wire: Vec<u8>,
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) nack: Option<u64>,
    pub(crate) mark: Option<u64>,
}

impl Got {
    pub(crate) fn data(&self) -> Data<'_> {
        assert_eq!(self.nack, None);
        Data::decode(&self.wire).unwrap()
    }

    pub(crate) fn interest(&self) -> Interest<'_> {
        Interest::decode(&self.wire).unwrap()
    }
}

pub(crate) struct Client {
    pub(crate) connection: Connection,
    poller: Poller,
    receiver: LinkService,
    sender: LinkService,
    inbox: std::collections::VecDeque<Got>,
    closed: bool,
    nonce: u32,
}

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

impl Client {
    pub(crate) fn connect(endpoint: &Endpoint) -> Self {
        Self::new(Connection::connect(endpoint, PATIENCE).unwrap())
    }

    pub(crate) fn new(connection: Connection) -> Self {
        let poller = Poller::new().unwrap();
        poller.add(&connection, Token(1), Watch::READ).unwrap();
        let service = || match connection.is_datagram() {
            true => LinkService::datagram(1420, 77, ReassemblyLimits::default()),
            false => LinkService::stream(),
        };
        let (receiver, sender) = (service(), service());
        let inbox = std::collections::VecDeque::new();
        Self { receiver, sender, connection, poller, inbox, closed: false, nonce: 0 }
    }

    pub(crate) fn send(&mut self, header: &LpHeader<'_>, packet: &[u8]) {
        let connection = &mut self.connection;
        self.sender
            .send(header, packet, 0, |head, body| connection.queue(&[head, body]).unwrap())
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        while self.connection.wants_write() && Instant::now() < deadline {
            // The node may have ended meanwhile: then nothing comes any more, either.
            if self.connection.flush().is_err() {
                self.closed = true;
                return;
            }
        }
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.connection.queue(&[bytes]).unwrap();
        self.connection.flush().unwrap();
    }

    pub(crate) fn express(&mut self, uri: &str) {
        self.express_with(uri, None, |interest| interest);
    }

    pub(crate) fn express_with(
        &mut self,
        uri: &str,
        token: Option<&[u8]>,
        adjust: impl FnOnce(InterestBuilder<'_>) -> InterestBuilder<'_>,
    ) {
        self.nonce += 1;
        let name = name(uri);
        let nonce = (std::process::id() << 16 ^ rand_u32() ^ self.nonce).to_be_bytes();
        let mut wire = Vec::new();
        adjust(InterestBuilder::new(name.view()).nonce(nonce)).encode(&mut wire);
        self.send(&LpHeader { pit_token: token, ..LpHeader::default() }, &wire);
    }

    pub(crate) fn put(&mut self, name: NameRef<'_>, content: &[u8], token: Option<&[u8]>) {
        let mut wire = Vec::new();
        DataBuilder::new(name)
            .freshness_ms(60_000)
            .encode(content, &NullSigner, &mut wire)
            .unwrap();
        self.send(&LpHeader { pit_token: token, ..LpHeader::default() }, &wire);
    }

    /// The next packet, `None` when the connection is closed or nothing comes for long.
    pub(crate) fn next(&mut self) -> Option<Got> {
        self.next_within(PATIENCE)
    }

    pub(crate) fn next_within(&mut self, patience: Duration) -> Option<Got> {
        let deadline = Instant::now() + patience;
        let mut events = Vec::new();
        loop {
            if let Some(got) = self.inbox.pop_front() {
                return Some(got);
            }
            if self.closed || Instant::now() >= deadline {
                return None;
            }
            self.poller.wait(&mut events, Some(Duration::from_millis(100))).unwrap();
            let (inbox, receiver) = (&mut self.inbox, &mut self.receiver);
            let result = self.connection.recv_burst(frame_len, &mut |frame| {
                if let Some(received) = receiver.receive(frame, 0).unwrap() {
                    inbox.push_back(Got {
                        wire: received.packet.to_vec(),
                        token: received.header.pit_token.map(<[u8]>::to_vec),
                        nack: received.header.nack,
                        mark: received.header.congestion_mark,
                    });
                }
            });
            self.closed = result.map_or(true, |status| status.closed);
        }
    }

    /// True if the other side closes the connection.
    pub(crate) fn is_closed_by_peer(&mut self) -> bool {
        while self.next().is_some() {}
        self.closed
    }

    pub(crate) fn command(
        &mut self,
        prefix: &str,
        parameters: &ControlParameters,
    ) -> ControlResponse {
        let mut component = Vec::new();
        parameters.encode(&mut component);
        let command = name(prefix).with_generic(&component);
        let mut wire = Vec::new();
        let octets = rand_u32().to_be_bytes();
        let extra = SignatureExtra { nonce: Some(&octets), time_ms: Some(1), ..Default::default() };
        InterestBuilder::new(command.view())
            .must_be_fresh(true)
            .encode_signed(&DigestSigner, extra, &mut wire)
            .unwrap();
        self.send(&LpHeader::default(), &wire);
        let got = self.next().expect("an answer to the command");
        let asked = Interest::decode(&wire).unwrap();
        assert_eq!(got.data().name, asked.name);
        ControlResponse::decode(got.data().content).unwrap()
    }

    pub(crate) fn register(&mut self, prefix: &str) -> ControlResponse {
        let parameters =
            ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() };
        self.command("/localhost/nfd/rib/register", &parameters)
    }

    /// The faces that the forwarder lists, of one segment.
    pub(crate) fn faces(&mut self) -> Vec<FaceStatus> {
        self.express_with("/localhost/nfd/faces/list", None, |interest| {
            interest.can_be_prefix(true).must_be_fresh(true)
        });
        let got = self.next().expect("a list of faces");
        FaceStatus::decode_all(got.data().content).unwrap()
    }

    /// Answers the next Interest with its own name as content, prefixed by `tag`.
    pub(crate) fn serve_one(&mut self, tag: &[u8]) -> Got {
        loop {
            let got = self.next().expect("an Interest to serve");
            let Ok(Packet::Interest(interest)) = Packet::decode(&got.wire) else { continue };
            let name = interest.name.to_name();
            self.put(name.view(), tag, got.token.as_deref());
            return got;
        }
    }
}

pub(crate) fn rand_u32() -> u32 {
    let mut octets = [0u8; 4];
    rustix::rand::getrandom(&mut octets, rustix::rand::GetRandomFlags::empty()).unwrap();
    u32::from_ne_bytes(octets)
}

/// A producer that answers every Interest with `content` until its connection closes.
pub(crate) fn produce(mut client: Client, content: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while let Some(got) = client.next_within(Duration::from_secs(60)) {
            if let Ok(Packet::Interest(interest)) = Packet::decode(&got.wire) {
                let name = interest.name.to_name();
                client.put(name.view(), &content, got.token.as_deref());
            }
        }
    })
}

/// Waits until something is so.
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
