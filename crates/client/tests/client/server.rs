//! A thread that plays forwarder and publisher behind one socket.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use byname_client::{Client, ClientConfig};
use byname_face::frame_len;
use byname_io::{Connection, Endpoint, Interest as Watch, Listener, Poller, Token};
use byname_packet::Interest;
use byname_packet::lp::{LpHeader, LpPacket, encode_header};

use super::publisher::{Publisher, Reply};

/// May change a reply on its way.
pub(crate) type Meddler = Box<dyn FnMut(&Interest<'_>, Reply) -> Reply + Send>;

pub(crate) struct Server {
    pub(crate) publisher: Arc<Mutex<Publisher>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// A server, and the connection to it. The server ends with the connection.
    pub(crate) fn start(publisher: Publisher, mut meddler: Meddler) -> (Self, Connection) {
        let (near, mut far) = Connection::pair().expect("a socket pair");
        let publisher = Arc::new(Mutex::new(publisher));
        let shared = Arc::clone(&publisher);
        let thread = std::thread::spawn(move || serve(&mut far, &shared, &mut meddler, None));
        (Server { publisher, thread: Some(thread) }, near)
    }

    /// A thread that serves the first connection made to `endpoint`, until it is closed or so
    /// many requests were answered; then nobody listens there any more.
    pub(crate) fn listen(
        endpoint: &Endpoint,
        publisher: Arc<Mutex<Publisher>>,
        replies_max: Option<usize>,
    ) -> JoinHandle<()> {
        Server::listen_meddling(endpoint, publisher, replies_max, Box::new(|_, reply| reply))
    }

    /// The same, whose replies are changed.
    pub(crate) fn listen_meddling(
        endpoint: &Endpoint,
        publisher: Arc<Mutex<Publisher>>,
        replies_max: Option<usize>,
        mut meddler: Meddler,
    ) -> JoinHandle<()> {
        let listener = Listener::bind(endpoint).expect("nobody is there");
        std::thread::spawn(move || {
            let mut far = loop {
                if let Some(connection) = listener.accept().expect("an open socket") {
                    break connection;
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            serve(&mut far, &publisher, &mut meddler, replies_max);
        })
    }

    /// Threads that serve every connection made to `endpoint`, for as long as the test runs.
    pub(crate) fn listen_often(endpoint: &Endpoint, publisher: &Arc<Mutex<Publisher>>) {
        Server::listen_slowly(endpoint, publisher, Duration::ZERO);
    }

    /// The same, with a pause before each reply.
    pub(crate) fn listen_slowly(
        endpoint: &Endpoint,
        publisher: &Arc<Mutex<Publisher>>,
        pause: Duration,
    ) {
        let listener = Listener::bind(endpoint).expect("nobody is there");
        let publisher = Arc::clone(publisher);
        std::thread::spawn(move || {
            while let Ok(connection) = listener.accept() {
                let Some(mut far) = connection else {
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                };
                let publisher = Arc::clone(&publisher);
                let mut meddler: Meddler = Box::new(move |_, reply| {
                    std::thread::sleep(pause);
                    reply
                });
                std::thread::spawn(move || serve(&mut far, &publisher, &mut meddler, None));
            }
        });
    }

    /// A server that answers honestly, and a client that trusts it.
    pub(crate) fn honest(publisher: Publisher) -> (Self, Client) {
        Server::meddled(publisher, Box::new(|_, reply| reply))
    }

    /// A server whose replies are changed, and a client that trusts the publisher.
    pub(crate) fn meddled(publisher: Publisher, meddler: Meddler) -> (Self, Client) {
        let config = trusting(&publisher);
        let (server, connection) = Server::start(publisher, meddler);
        (server, Client::with_connection(connection, config).expect("a client"))
    }
}

impl Server {
    /// True if the connection was closed and the server has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Locals are dropped in reverse order, so the client, made with the server, is gone.
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
            && thread.is_finished()
        {
            thread.join().expect("the server did not panic");
        }
    }
}

/// A configuration that trusts the publisher's key, with short time-outs.
pub(crate) fn trusting(publisher: &Publisher) -> ClientConfig {
    let mut config = ClientConfig { timeout: Duration::from_secs(3), ..ClientConfig::default() };
    config.trust.add_anchor(publisher.prefix.clone(), publisher.key_id());
    config
}

fn serve(
    far: &mut Connection,
    publisher: &Mutex<Publisher>,
    meddler: &mut Meddler,
    replies_max: Option<usize>,
) {
    let mut poller = Poller::new().expect("a poller");
    poller.add(far, Token(0), Watch::READ).expect("watched");
    let (mut events, mut reply_count) = (Vec::new(), 0);
    while replies_max.is_none_or(|max| reply_count < max) {
        poller.wait(&mut events, Some(Duration::from_secs(30))).expect("a wait");
        let mut replies = Vec::new();
        let status = far.recv_burst(frame_len, &mut |frame| {
            let packet = LpPacket::decode(frame).expect("a frame");
            let wire = packet.fragment.expect("a packet");
            let interest = Interest::decode(wire).expect("an Interest");
            let reply = publisher.lock().expect("no panic").answer(&interest);
            replies.push((wire.to_vec(), meddler(&interest, reply)));
        });
        for (interest, reply) in replies {
            reply_count += 1;
            send(far, &interest, &reply);
        }
        if status.is_err() || status.is_ok_and(|status| status.closed) {
            return;
        }
        while far.wants_write() && far.flush().is_ok() {
            std::thread::yield_now();
        }
    }
}

fn send(connection: &mut Connection, interest: &[u8], reply: &Reply) {
    let mut head = Vec::new();
    let packet = match reply {
        Reply::Silence => return,
        Reply::Data(wire) => wire,
        Reply::Nack(reason) => {
            let header = LpHeader { nack: Some(*reason), ..LpHeader::default() };
            encode_header(&header, None, interest.len(), &mut head);
            interest
        }
    };
    while connection.queue(&[&head, packet]).is_err() {
        if connection.flush().is_err() {
            return;
        }
    }
}
