// An administrator's steps with @ndn/nfdmgmt, in order; prints one JSON object per step.
// usage: node nfdmgmt.mjs UPLINK STEPS
// STEPS is a JSON array of ["invoke", COMMAND, PARAMETERS], ["list", DATASET], ["query", FILTER],
// ["announce", PREFIX, MILLISECONDS] and ["erase", PREFIX].
import { AltUri } from "@ndn/naming-convention2";
import {
  ChannelStatus, ControlCommandOptions, ControlParameters, CsInfo, FaceQuery, FaceStatus,
  GeneralStatus, invoke, invokeCsErase, invokeGeneric, list, PrefixAnn, RibEntry, StrategyChoice,
} from "@ndn/nfdmgmt";
import { digestSigning, Name } from "@ndn/packet";

import { openUplink } from "./uplink.mjs";

const DATASETS = { GeneralStatus, FaceStatus, ChannelStatus, CsInfo, StrategyChoice, RibEntry };

const [uplink, stepsJson] = process.argv.slice(2);
const face = await openUplink(uplink);

const ACTIONS = {
  async invoke(command, parameters) {
    const response = await invoke(command, named(parameters));
    return answered(response);
  },
  async list(dataset) {
    return (await list(DATASETS[dataset])).map(plain);
  },
  async query(filter) {
    return (await list(FaceQuery(filter))).map(plain);
  },
  async announce(prefix, expirationPeriod) {
    const { data } = await PrefixAnn.build({
      announced: new Name(prefix), expirationPeriod, signer: digestSigning,
    });
    const { formatCommandAppParams } = ControlCommandOptions;
    return answered(await invokeGeneric("rib/announce", data, {
      formatCommand: formatCommandAppParams,
    }));
  },
  async erase(prefix) {
    return invokeCsErase(new Name(prefix));
  },
};

/** Parameters whose names are URIs become those that the library wants. */
function named(parameters) {
  const found = { ...parameters };
  for (const key of ["name", "strategy"]) {
    if (key in found) {
      found[key] = new Name(found[key]);
    }
  }
  return found;
}

function answered(response) {
  const { statusCode, statusText, body } = response;
  const parameters = body.length > 0 ?
    plain(ControlParameters.decodeFromResponseBody(response)) : {};
  return { statusCode, statusText, parameters };
}

/** What of a structure JSON can say: names as URIs, big integers as numbers. */
function plain(value) {
  if (value instanceof Name) {
    return AltUri.ofName(value);
  }
  if (typeof value === "bigint") {
    return Number(value);
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plain(field)]));
  }
  return value;
}

for (const [action, ...operands] of JSON.parse(stepsJson)) {
  console.log(JSON.stringify({ result: await ACTIONS[action](...operands) }));
}
face.close();
process.exit(0);
