//! The forwarder daemon: drives the forwarder over io.
