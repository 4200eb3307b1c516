// A file server speaking the ndn6-file-server protocol, made of the NDNts libraries (they hold the
// data structures and the client; the published package has no server).
// usage: node serve.mjs UPLINK PREFIX DIR [SEGMENT_SIZE] [SIGNING [certified]]
// SIGNING: null, sha256, ecdsa, rsa, ed25519, or hmac with a secret nobody knows. `certified`
// serves a self-signed certificate of the key and prints `key SHA256:...`.
import { createHash } from "node:crypto";
import { open, readdir, stat } from "node:fs/promises";
import path from "node:path";

import { produce } from "@ndn/endpoint";
import { buildDirectoryListing, FileMetadata, lsKeyword } from "@ndn/fileserver";
import {
  Certificate, ECDSA, Ed25519, generateSigningKey, HMAC, RSA,
} from "@ndn/keychain";
import { Segment, Version } from "@ndn/naming-convention2";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { Data, digestSigning, Name, noopSigning } from "@ndn/packet";
import { isDiscoveryInterest, makeMetadataPacket, MetadataKeyword } from "@ndn/rdr";
import { fromUtf8 } from "@ndn/util";

import { openUplink } from "./uplink.mjs";

const CONTENT_TYPE_NACK = 3;
const FRESHNESS_MS = 60_000;

const [uplink, prefixUri, root, ...options] = process.argv.slice(2);
const [segmentSizeArg = "6144", signing = "sha256", certified] = options;
const prefix = new Name(prefixUri);
const segmentSize = Number(segmentSizeArg);
const ALGORITHMS = { ecdsa: ECDSA, rsa: RSA, ed25519: Ed25519, hmac: HMAC };
let certificate;
const signer = await makeSigner(signing);
const face = await openUplink(uplink);
enableNfdPrefixReg(face);
produce(prefix, answer, { concurrency: 64, dataSigner: signer });
console.log("serving");

async function makeSigner(kind) {
  switch (kind) {
    case "null": return noopSigning;
    case "sha256": return digestSigning;
    default: {
      const algorithm = ALGORITHMS[kind];
      if (!algorithm) {
        throw new Error(`unknown signature kind ${kind}`);
      }
      const [privateKey, publicKey] = await generateSigningKey(prefix, algorithm);
      return certified ? certify(privateKey, publicKey) : privateKey;
    }
  }
}

/** Makes the certificate and the signer that names it. */
async function certify(privateKey, publicKey) {
  certificate = await Certificate.selfSign({ privateKey, publicKey });
  const digest = createHash("sha256").update(certificate.publicKeySpki).digest("base64url");
  console.log(`key SHA256:${digest}`);
  return privateKey.withKeyLocator(certificate.name);
}

/** The path below the root that generic components name, or undefined if they name none. */
function localPath(components) {
  const parts = components.map((comp) => fromUtf8(comp.value));
  if (parts.some((part) => part === "" || part === "." || part === ".." || /[/\0]/.test(part))) {
    return undefined;
  }
  return path.join(root, ...parts);
}

async function answer(interest) {
  if (certificate && interest.name.isPrefixOf(certificate.name)) {
    return certificate.data;
  }
  if (isDiscoveryInterest(interest)) {
    return answerDiscovery(interest.name);
  }
  const last = interest.name.at(-1);
  if (last.is(Segment) && interest.name.get(-2)?.is(Version)) {
    return answerSegment(interest.name);
  }
  return undefined;
}

async function answerDiscovery(interestName) {
  let relative = interestName.slice(prefix.length, -1).comps;
  if (relative.at(-1)?.equals(lsKeyword)) {
    relative = relative.slice(0, -1);
  }
  const file = localPath(relative);
  let st;
  try {
    st = await stat(file, { bigint: true });
  } catch {
    const nack = new Data(interestName, Data.FreshnessPeriod(1));
    nack.contentType = CONTENT_TYPE_NACK;
    return nack;
  }
  const m = new FileMetadata();
  const base = prefix.append(...relative, ...(st.isDirectory() ? [lsKeyword] : []));
  m.name = base.append(Version.create(st.mtimeNs));
  m.mode = Number(st.mode);
  m.mtimeOBig = st.mtimeNs;
  if (!st.isDirectory()) {
    m.size = Number(st.size);
    m.segmentSize = segmentSize;
    m.lastSeg = lastSegment(m.size);
  }
  return makeMetadataPacket(m, { prefix: interestName.getPrefix(-1), signer });
}

function lastSegment(size) {
  return Math.max(0, Math.ceil(size / segmentSize) - 1);
}

async function answerSegment(name) {
  let relative = name.slice(prefix.length, -2).comps;
  const segment = name.at(-1).as(Segment);
  const isListing = relative.at(-1)?.equals(lsKeyword) ?? false;
  if (isListing) {
    relative = relative.slice(0, -1);
  }
  const file = localPath(relative);
  const st = await stat(file, { bigint: true });
  if (st.mtimeNs !== name.at(-2).as(Version.big)) {
    return undefined;
  }
  const [content, size] = isListing
    ? sliceOf(await listing(file), segment)
    : [await readSegment(file, Number(st.size), segment), Number(st.size)];
  if (segment > lastSegment(size)) {
    return undefined;
  }
  const data = new Data(name, Data.FreshnessPeriod(FRESHNESS_MS), content);
  data.finalBlockId = Segment.create(lastSegment(size));
  return data;
}

function sliceOf(payload, segment) {
  return [payload.subarray(segment * segmentSize, (segment + 1) * segmentSize), payload.length];
}

async function listing(directory) {
  const entries = await readdir(directory, { withFileTypes: true });
  return buildDirectoryListing(entries.map((e) => ({ name: e.name, isDir: e.isDirectory() })));
}

async function readSegment(file, size, segment) {
  const offset = segment * segmentSize;
  const buffer = new Uint8Array(Math.max(0, Math.min(segmentSize, size - offset)));
  const handle = await open(file);
  try {
    await handle.read(buffer, 0, buffer.length, offset);
  } finally {
    await handle.close();
  }
  return buffer;
}
