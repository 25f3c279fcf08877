/**
 * A random stream of requests for every path of the gateway, the same for the same seed: bodies
 * from the fields of each message type, with the forms of values that JSON allows and with those
 * that it does not; broken JSON; HTTP methods, paths and headers.
 */
import { httpRoutes, type JsonField, type JsonMessage } from "@quorate/proto";
import { SeededRandom } from "../../support/random.ts";
import type { GatewayRequest } from "./request.ts";
import { script } from "./script.ts";

/** Requests that random bodies would make change what all later ones depend on, or wait. */
const FIXED_BODIES: ReadonlyMap<string, readonly string[]> = new Map([
  ["/v3/auth/enable", ['{"x":']],
  ["/v3/auth/disable", ["{}"]],
  ["/v3/cluster/member/add", ["{}", '{"peerURLs":["x"]}', '{"peerURLs":["http://a:1/x"]}']],
  ["/v3/cluster/member/remove", ["{}", '{"ID":"5"}']],
  ["/v3/cluster/member/update", ["{}", '{"ID":5,"peerURLs":["http://a:1"]}']],
  ["/v3/cluster/member/promote", ["{}", '{"ID":"5"}']],
  ["/v3/maintenance/downgrade", ['{"version":"x"}', '{"action":"CANCEL"}', '{"action":7}']],
  ["/v3/maintenance/transfer-leadership", ["{}", '{"targetID":"5"}']],
  ["/v3/maintenance/alarm", ["{}", '{"action":"GET","alarm":"NOSPACE"}', '{"action":"x"}']],
  ["/v3/maintenance/snapshot", ["{}"]],
  ["/v3/maintenance/defragment", ["{}"]],
  // Short leases would end at a time of their own, and those without an id have a random one.
  [
    "/v3/lease/grant",
    ['{"TTL":900,"ID":"5"}', '{"ID":77,"TTL":"1e3"}', '{"TTL":"9000000001","ID":7}', '{"ID":"x"}'],
  ],
  ["/v3/lock/lock", ['{"name":"bA==","lease":"77"}', '{"name":"","lease":1e2}']],
  ["/v3/election/campaign", ['{"name":"ZQ==","lease":77,"value":"MQ=="}', '{"lease":"6"}']],
  // Without a lease of its own, one with a random id would be made, and stored with the key.
  [
    "/v3/election/proclaim",
    ['{"leader":{"name":"ZQ==","key":"ZS80ZA==","rev":"9","lease":"77"}}', '{"value":"Mg=="}'],
  ],
  ["/v3/election/observe", ['{"name":"ZQ=="}']],
  ["/v3/auth/user/add", ['{"name":"u"}', '{"name":"v","password":"v"}', '{"password":"x"}', "{}"]],
]);
const KEYS: readonly string[] = ["a", "b", "c", "ab", "z", "\0", "k/1", "k/2", "\xff"];
const NAMES: readonly string[] = ["u", "v", "w", "r", "q", "root", "", "ü<&>"];
const MAX_DEPTH = 3;

/** `count` requests, after those of the script that makes something to read. */
export function requestsOf(seed: number, count: number): GatewayRequest[] {
  const random = new SeededRandom(seed);
  const requests: GatewayRequest[] = [...script()];
  // Streams wait a little for more, so they are few.
  const unary = httpRoutes().filter(({ rpc }) => !rpc.responseStream && !rpc.requestStream);
  for (let i = 0; i < count; i++) {
    const isStream = random.oneIn(40);
    const path = isStream
      ? random.pick(httpRoutes().filter(({ rpc }) => rpc.responseStream)).path
      : // Each path comes as often as the others.
        unary[i % unary.length].path;
    requests.push(requestFor(random, path));
  }
  return requests;
}

function requestFor(random: SeededRandom, path: string): GatewayRequest {
  const route = httpRoutes().find((one) => one.path === path)!;
  const fixed = FIXED_BODIES.get(path);
  let body = fixed === undefined ? objectOf(random, route.request, 0) : random.pick(fixed);
  // What a broken stream request does is among the listed differences, and takes a time limit each.
  if (random.oneIn(5) && !route.rpc.responseStream && fixed === undefined)
    body = broken(random, body);
  return {
    method: random.oneIn(40) ? random.pick(["GET", "PUT", "DELETE", "HEAD", "OPTIONS"]) : "POST",
    path: random.oneIn(30) ? otherPath(random, path) : path,
    headers: random.oneIn(6) ? headersOf(random) : {},
    body: Buffer.from(body, "utf8").toString("latin1"),
  };
}

function otherPath(random: SeededRandom, path: string): string {
  return random.pick([
    `${path}/`,
    `${path}?limit=1&x=%zz`,
    path.replace("/v3/", "/v3beta/"),
    path.replace("/v3/", "/v3//"),
    path.replace("/v3/", "/v3/./x/../"),
    path.replace("a", "%61"),
    path.slice(0, -1),
    `${path}x`,
    path.toUpperCase(),
    "/v3/",
    "/v3/kv",
  ]);
}

function headersOf(random: SeededRandom): Record<string, string> {
  return random.pick<Record<string, string>>([
    { "content-type": "application/json" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "text/plain; charset=x" },
    { accept: "application/xml" },
    { te: "trailers" },
    { origin: "http://a.example" },
    { authorization: "x" },
    { "grpc-timeout": "5S" },
    { "grpc-timeout": "0S" },
    { "grpc-timeout": "-1S" },
    { "grpc-timeout": "5" },
    { "grpc-timeout": "5s" },
    { "grpc-timeout": "99999999999999999999H" },
    { "grpc-metadata-hasleader": "true" },
    { "grpc-metadata-x-bin": "YQ==" },
    { "grpc-metadata-x-bin": "YQ" },
    { "grpc-metadata-x-bin": "Y!==" },
    { "grpc-metadata-x": "\xfc" },
    { "content-encoding": "gzip" },
    { connection: "close" },
  ]);
}

/** A body with something in it that does not belong there. */
function broken(random: SeededRandom, body: string): string {
  const at = random.below(body.length + 1);
  switch (random.below(8)) {
    case 0:
      return body.slice(0, at);
    case 1:
      return body.slice(0, at) + body.slice(at + 1);
    case 2:
      return body.slice(0, at) + random.pick([...'{}[]:,"\\0x-.e tn\t\n\u0001é']) + body.slice(at);
    case 3:
      return `${body}${random.pick(["}", "{}", " x", "\n\n", "\0"])}`;
    case 4:
      return `${random.pick([" ", "\n\t", "\ufeff", "[", "null", '"x"', "1", "-", "tru"])}${body}`;
    case 5:
      return body.replace("{", random.pick(['{"":1,', '{"key":null,"key":null,', '{"x":[1,{}],']));
    case 6:
      return body.replace(
        /"[^"]*"(?=[,}])/,
        random.pick(["{}", "[]", "true", "null", "1.5", '"*"']),
      );
    default:
      return body.replace(/":/, random.pick(['"', '";', '" :', '\\u0022":', '":\n', '"::']));
  }
}

function objectOf(random: SeededRandom, type: JsonMessage, depth: number): string {
  const parts: string[] = [];
  const unions = new Set<string>();
  for (const field of type.fields) {
    if (random.below(3) === 0) continue;
    if (field.oneof !== undefined) {
      if (unions.has(field.oneof) && !random.oneIn(30)) continue;
      unions.add(field.oneof);
    }
    if (field.kind === "message" && depth >= MAX_DEPTH) continue;
    const name = random.oneIn(2) ? field.name : field.jsonName;
    parts.push(`"${name}":${fieldValueOf(random, field, depth)}`);
  }
  return `{${parts.join(random.oneIn(4) ? " ,\n " : ",")}}`;
}

function fieldValueOf(random: SeededRandom, field: JsonField, depth: number): string {
  if (random.oneIn(40)) return "null";
  if (!field.repeated) return singleOf(random, field, depth);
  const values = Array.from({ length: random.below(3) }, () => singleOf(random, field, depth));
  return `[${values.join(",")}]`;
}

function singleOf(random: SeededRandom, field: JsonField, depth: number): string {
  if (random.oneIn(60)) return random.pick(["{}", "[]", "true", '"?"', "1.5", '""']);
  switch (field.kind) {
    case "bool":
      return random.pick(["true", "false"]);
    case "string":
      return JSON.stringify(random.pick(NAMES));
    case "bytes":
      return bytesOf(random);
    case "enum": {
      const [name, number] = random.pick([...field.enumType!.numbers]);
      return random.pick([`"${name}"`, String(number), random.oneIn(8) ? "9" : String(number)]);
    }
    case "message":
      return objectOf(random, field.message!, depth + 1);
    default:
      return numberOf(random, field);
  }
}

function bytesOf(random: SeededRandom): string {
  const value = Buffer.from(random.pick(KEYS), "latin1");
  const encoding = random.pick(["base64", "base64", "base64", "base64url"] as const);
  return `"${value.toString(encoding)}"`;
}

/** Small ones mostly: revisions that exist, leases of the script, limits. */
function numberOf(random: SeededRandom, field: JsonField): string {
  // A compaction or watch of the future would make later requests wait or fail.
  const large = /revision/i.test(field.name) ? "4" : "9007199254740993";
  return random.pick([
    String(random.below(4)),
    String(random.below(4)),
    `"${random.below(8)}"`,
    `"${random.pick(["77", "78"])}"`,
    random.pick(["1e1", "1.0", "-0", "0e9", '"1e1"', '" 1"', '"0x1"', '"-1"', "-1", large]),
    random.pick(["18446744073709551615", '"9223372036854775808"', "1.5", "1e400", '"+1"', "2"]),
  ]);
}
