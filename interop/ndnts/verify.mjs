// Reads one file with NDNts and checks the signature of every packet.
// usage: node verify.mjs UPLINK NAME OUT [key=SHA256:...] [secret=FILE]
// Signatures by a key are followed from certificate to certificate up to the given key; HMACs need
// the secret, digests nothing, and Null proves nothing. Prints one JSON object: the signature
// types of metadata and segments with how many packets proved themselves, and whether a segment in
// which one bit was flipped was refused. Exit code 1 if a packet does not prove itself.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

import { consume } from "@ndn/endpoint";
import {
  Certificate, createVerifier, HMAC, SigningAlgorithmListFull,
} from "@ndn/keychain";
import { Data, digestSigning, Interest, Name, noopSigning, SigType } from "@ndn/packet";
import { makeDiscoveryInterest } from "@ndn/rdr";
import { fetch } from "@ndn/segmented-object";
import { Decoder, Encoder } from "@ndn/tlv";

import { openUplink } from "./uplink.mjs";

const CHAIN_MAX = 4;
const TITLES = new Map([
  [SigType.Sha256, "digest"], [SigType.Sha256WithRsa, "rsa"], [SigType.Sha256WithEcdsa, "ecdsa"],
  [SigType.HmacWithSha256, "hmac"], [SigType.Ed25519, "ed25519"], [SigType.Null, "null"],
]);

const [uplink, uri, out, ...optionArgs] = process.argv.slice(2);
const options = Object.fromEntries(optionArgs.map((arg) => {
  const at = arg.indexOf("=");
  return [arg.slice(0, at), arg.slice(at + 1)];
}));
const hmac = options.secret && createVerifier(
  HMAC, await HMAC.cryptoGenerate({ importRaw: await readFile(options.secret) }, false));
const certified = new Map();
const counts = {};

/** What checks a packet, by its signature type and key locator. */
async function verifierOf(data, depth) {
  switch (data.sigInfo.type) {
    case SigType.Null: return noopSigning;
    case SigType.Sha256: return digestSigning;
    case SigType.HmacWithSha256:
      if (!hmac) {
        throw new Error("no secret for an HMAC");
      }
      return hmac;
    default: {
      const locator = data.sigInfo.keyLocator.name;
      const key = locator.toString();
      if (!certified.has(key)) {
        certified.set(key, certificateVerifier(locator, depth));
      }
      return certified.get(key);
    }
  }
}

/** The verifier with the key of a certificate that leads to the anchor. */
async function certificateVerifier(locator, depth) {
  const data = await consume(new Interest(locator, Interest.CanBePrefix), { retx: 3 });
  const certificate = Certificate.fromData(data);
  const digest = createHash("sha256").update(certificate.publicKeySpki).digest("base64url");
  if (`SHA256:${digest}` !== options.key) {
    if (depth >= CHAIN_MAX || certificate.isSelfSigned) {
      throw new Error("no certificate leads to the anchor");
    }
    const issuer = await verifierOf(data, depth + 1);
    await issuer.verify(data);
    if ([noopSigning, digestSigning, hmac].includes(issuer)) {
      throw new Error("a certificate that no key signed");
    }
  }
  return createVerifier(certificate, { algoList: SigningAlgorithmListFull });
}

const verifier = {
  async verify(data) {
    await (await verifierOf(data, 0)).verify(data);
    const title = TITLES.get(data.sigInfo.type);
    counts[title] = (counts[title] ?? 0) + 1;
  },
};

async function flippedIsRefused(wire) {
  const damaged = Uint8Array.from(wire);
  damaged[damaged.length >> 1] ^= 1;
  const data = Decoder.decode(damaged, Data);
  try {
    await (await verifierOf(data, 0)).verify(data);
    return false;
  } catch {
    return true;
  }
}

const face = await openUplink(uplink);
let code = 0;
try {
  const metadata = await consume(makeDiscoveryInterest(new Name(uri)), { retx: 3, verifier });
  const described = TITLES.get(metadata.sigInfo.type);
  delete counts[described];
  const versioned = new Decoder(metadata.content).decode(Name);
  const packets = await fetch(versioned, { retxLimit: 10, verifier });
  await writeFile(out, packets);
  const first = await consume(new Interest(versioned.append("50=%00")), { retx: 3 });
  const flipped = await flippedIsRefused(Encoder.encode(first));
  console.log(JSON.stringify({ metadata: described, segments: counts, flipped }));
} catch (error) {
  console.error(String(error));
  code = 1;
}
face.close();
process.exit(code);
