// Connects the NDNts logical forwarder to a real one. Shared by the scripts of this folder.
import { TcpTransport, UdpTransport, UnixTransport } from "@ndn/node-transport";
import { WsTransport } from "@ndn/ws-transport";

/** Opens a face for unix:///path, tcp://host:port, udp://host:port or ws://host:port. */
export async function openUplink(uri) {
  const unix = /^unix:\/\/(\/.+)$/.exec(uri);
  if (unix) {
    return UnixTransport.createFace({}, unix[1]);
  }
  if (uri.startsWith("ws://")) {
    return WsTransport.createFace({}, uri);
  }
  const inet = /^(tcp|udp):\/\/([^:]+):(\d+)$/.exec(uri);
  if (!inet) {
    throw new Error(`not a face URI: ${uri}`);
  }
  const [, scheme, host, port] = inet;
  const transport = scheme === "tcp" ? TcpTransport : UdpTransport;
  return transport.createFace({}, { host, port: Number(port) });
}
