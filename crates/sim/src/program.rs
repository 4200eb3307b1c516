//! Programs on hosts: what the world asks of them, and when.

/// Monotonic and wall clock; they run alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic nanoseconds since the start of the world.
    pub now_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// A program on a host, connected to its forwarder as over a Unix socket.
pub trait Program: std::any::Any {
    /// A frame from the forwarder.
    fn handle_frame(&mut self, frame: &[u8], now: Now);
    /// The time of `poll_timeout` has come.
    fn handle_timeout(&mut self, now: Now);
    /// The next frame for the forwarder.
    fn poll_frame(&mut self, now: Now) -> Option<Vec<u8>>;
    /// When `handle_timeout` has something to do.
    fn poll_timeout(&mut self) -> Option<u64>;
    /// Fault found by the program: a promise of the code under test that was broken.
    fn fault(&self) -> Option<String>;
    /// The process ends without a word; only what is on its disk stays. Until it starts again it is
    /// only asked for faults and frames, and has none of those.
    fn crash(&mut self, _how: Crash, _now: Now) {}
    /// It starts again over what stayed.
    fn restart(&mut self, _now: Now) {}
    /// The connection to the forwarder is gone, or can be had again.
    fn handle_face(&mut self, _is_up: bool, _now: Now) {}
}

/// Way in which a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed.
    Process,
    /// The power fails: what was not made durable may be lost.
    Power,
}
