// Connects the NDNts logical forwarder to a real one. Shared by the scripts of this folder.
import { TcpTransport, UdpTransport, UnixTransport } from "@ndn/node-transport";

/** Opens a face for unix:///path, tcp://host:port or udp://host:port. */
export async function openUplink(uri) {
  const unix = /^unix:\/\/(\/.+)$/.exec(uri);
  if (unix) {
    return UnixTransport.createFace({}, unix[1]);
  }
  const inet = /^(tcp|udp):\/\/([^:]+):(\d+)$/.exec(uri);
  if (!inet) {
    throw new Error(`not a face URI: ${uri}`);
  }
  const [, scheme, host, port] = inet;
  const transport = scheme === "tcp" ? TcpTransport : UdpTransport;
  return transport.createFace({}, { host, port: Number(port) });
}
