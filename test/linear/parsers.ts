/**
 * Every parser of texts from outside. Most are found by their signatures (exported.ts). Those that
 * take more than texts are listed here and in test/parsers.ts of packages, each with the file that
 * it stands for. A file that works on texts must be in one of the two, or be left out for a reason.
 */

import { existsSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Pauses } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import type protobuf from "protobufjs";
import { contributed } from "../../scripts/contributed.ts";
import { protoRoot } from "../fuzz/messages.ts";
import { exportedOf, ROOT, sourceFiles } from "./exported.ts";
import {
  BODY_BYTES,
  type Call,
  HEAD_BYTES,
  head,
  KIB,
  type Listed,
  latin1,
  listed,
  type Module,
  utf8,
} from "./listed.ts";
import type { Parser } from "./measure.ts";

/** Packages whose exported functions take what its caller has made, or what an operator has. */
const OWN_TEXTS: ReadonlySet<string> = new Set(["cli", "ctl", "embed", "quorate", "sim"]);
/** Folders whose exported functions are called without being listed. */
const PURE = readdirSync(`${ROOT}/packages`)
  .filter((name) => !OWN_TEXTS.has(name))
  .map((name) => `packages/${name}/src`)
  .filter((folder) => existsSync(`${ROOT}/${folder}`));
/** Of the tools those that read what a server or a file says. */
const TOOLS = [
  ..."ctl/src/commands/txn ctl/src/commands/member-id cli/src/go-format ctl/src/connect/peer-url".split(
    " ",
  ),
  ..."ctl/src/offline/initial-cluster ctl/src/dump/proto-text cli/src/table".split(" "),
].map((name) => `packages/${name}.ts`);

/** Functions that take a text and parse none: the text is their own, or they act on a file. */
const NO_PARSERS: ReadonlySet<string> = new Set(["writeYaml", "readUsersList", "probeDisk"]);

/** A head with a header. */
const headWith =
  (name: string) =>
  (text: string): Uint8Array =>
    latin1(`GET / HTTP/1.1\r\nhost: a\r\n${name}: ${text.replace(/[\r\n]/g, " ")}\r\n\r\n`);

const HEADERS_OF_HEADS =
  "host connection content-length transfer-encoding expect upgrade x-a".split(" ");

const HEADS_OF_HTTP1 = HEADERS_OF_HEADS.map((name) =>
  listed("rpc/src/http1/head", `head with ${name}`, ({ parseHead }) => {
    const bytesOf = headWith(name);
    return (text) => {
      const bytes = bytesOf(text);
      return parseHead(bytes, 0, bytes.length, 500);
    };
  }),
);

function allMessageTypes(): protobuf.Type[] {
  const types: protobuf.Type[] = [];
  const walk = (root: protobuf.NamespaceBase): void => {
    for (const one of root.nestedArray) {
      if ("fieldsArray" in one) types.push(one as protobuf.Type);
      if ("nestedArray" in one) walk(one as protobuf.NamespaceBase);
    }
  };
  walk(protoRoot);
  return types;
}

const OF_PACKAGES = await contributed<{
  LISTED: readonly Listed[];
  LEFT_OUT: Readonly<Record<string, string>>;
}>("parsers");

const LISTED: readonly Listed[] = [
  ...OF_PACKAGES.flatMap((one) => one.LISTED),
  ...HEADS_OF_HTTP1,
  listed("rpc/src/http1/head", "request line", ({ parseHead }) => (text) => {
    const bytes = latin1(`GET /${text} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return parseHead(bytes, 0, bytes.length, 500);
  }),
  listed(
    "rpc/src/http1/head",
    "trailers",
    ({ areTrailers }) =>
      (text) => {
        const bytes = latin1(`${text}\r\n\r\n`);
        return areTrailers(bytes, 0, bytes.length);
      },
    16 * KIB,
  ),
  listed("rpc/src/hpack/hpack", "header block", ({ HpackDecoder }) => (text) => {
    const bytes = latin1(text);
    return new HpackDecoder(4096, HEAD_BYTES).decode(bytes, 0, bytes.length);
  }),
  listed(
    "rpc/src/hpack/huffman",
    "Huffman code",
    ({ huffmanDecode, maxDecodedBytes }) =>
      (text) => {
        const bytes = latin1(text);
        return huffmanDecode(bytes, 0, bytes.length, new Uint8Array(maxDecodedBytes(bytes.length)));
      },
  ),
  ...["te", "connection", "content-type", "grpc-timeout", ":path", ":authority", "x-bin"].map(
    (name) =>
      listed("rpc/src/http2/request-head", `HTTP/2 ${name}`, async ({ parseRequestHead }, load) => {
        const { HeaderField } = await load("packages/rpc/src/hpack/header-field.ts");
        return (text) =>
          parseRequestHead([
            new HeaderField(":method", "POST"),
            new HeaderField(":scheme", "http"),
            ...(name === ":path" ? [] : [new HeaderField(":path", "/a")]),
            new HeaderField(name, text),
          ]);
      }),
  ),
  ...["grpc-timeout", "grpc-metadata-a-bin", "grpc-metadata-a"].map((name) =>
    listed("rpc/src/gateway/metadata", `gateway ${name}`, ({ callHead, metadataOf }) => (text) => {
      const { headers } = head({ [name]: text });
      return [callHead(headers), metadataOf(headers, "a-bin"), metadataOf(headers, "a")];
    }),
  ),
  ...["sec-websocket-protocol", "cookie", "authorization"].map((name) =>
    listed(
      "rpc/src/gateway/socket-exchange",
      `WebSocket ${name}`,
      async ({ handshakeFields, SocketExchange }) =>
        (text) => {
          const given = head({ [name]: text });
          handshakeFields(given);
          const socket = { id: 1, send: () => {}, close: () => {} };
          return new SocketExchange(given, socket, {}).head;
        },
    ),
  ),
  listed(
    "rpc/node/websocket/handshake",
    "upgrade",
    ({ asksForWebSocket }) =>
      (text) =>
        asksForWebSocket(head({ upgrade: text })),
  ),
  listed(
    "rpc/src/client/client-call",
    "gRPC status",
    ({ statusOf }) =>
      (text) =>
        statusOf({ grpcStatus: text, grpcMessage: text }),
  ),
  listed(
    "proto/src/json/request",
    "JSON to protobuf",
    async ({ jsonToWire }, load) => {
      const { jsonTypes } = await load("packages/proto/src/json/types.ts");
      const type = jsonTypes().get("etcdserverpb.TxnRequest");
      return (text) => jsonToWire(type, latin1(text));
    },
    BODY_BYTES,
  ),
  ...['{"key":"', '{"revision":', '{"success":[', '{"range_end":"a","key":"'].map((start) =>
    listed(
      "proto/src/json/request",
      `JSON ${start}`,
      async ({ jsonToWire }, load) => {
        const { jsonTypes } = await load("packages/proto/src/json/types.ts");
        const type = jsonTypes().get(
          start.includes("success") ? "etcdserverpb.TxnRequest" : "etcdserverpb.RangeRequest",
        );
        return (text) => jsonToWire(type, latin1(`${start}${text}`));
      },
      BODY_BYTES,
    ),
  ),
  listed(
    "proto/src/json/splitter",
    "stream of JSON values",
    ({ JsonSplitter }) =>
      (text) => {
        const splitter = new JsonSplitter(1 << 20);
        return splitter.push?.(latin1(text)) ?? splitter.add?.(latin1(text));
      },
    BODY_BYTES,
  ),
  listed("http-kv/src/key-path", "query of /kv", ({ Query, keyOfPath }) => (text) => {
    try {
      keyOfPath(`/kv/${text}`, "/kv/");
    } catch {
      // The query is looked at all the same.
    }
    const query = new Query(`after=${text}`, ["after"]);
    return [query.text("after"), query.bytes("after")];
  }),
  ...["if-match", "if-none-match"].map((name) =>
    listed(
      "http-kv/src/preconditions",
      name,
      ({ Preconditions }) =>
        (text) =>
          new Preconditions({ headers: new Map([[name, text]]) }),
    ),
  ),
  listed(
    "http-kv/src/txn-request",
    "/txn",
    ({ txnOfBody }) =>
      (text) =>
        txnOfBody(latin1(text), 128),
    BODY_BYTES,
  ),
  listed(
    "http-kv/src/plain-json",
    "/txn, number",
    ({ parsePlainJson }) =>
      (text) =>
        parsePlainJson(latin1(`{"a":${text}}`)),
    BODY_BYTES,
  ),
  listed(
    "v2/src/form",
    "form",
    ({ parseForm }) =>
      (text) =>
        parseForm(
          { ...head({ "content-type": "application/x-www-form-urlencoded" }, text), method: "PUT" },
          latin1(text),
        ),
    BODY_BYTES,
  ),
  ...["ttl", "prevValue", "prevIndex", "recursive"].map((name) =>
    listed(
      "v2/src/key-request",
      `v2 ${name}`,
      ({ parseKeyRequest }) =>
        (text) =>
          parseKeyRequest(head({}, `${name}=${text}`), `/${text}`, new Uint8Array()),
    ),
  ),
  listed(
    "server/src/http/health",
    "query of /health",
    ({ queryValues }) =>
      (text) =>
        queryValues(text, "exclude"),
  ),
  ...["origin", "sec-fetch-site", "host"].map((name) =>
    listed("services/src/http/same-site", name, ({ refuseCrossSite }) => {
      const handler = refuseCrossSite(() => ({ status: 200, headers: {}, body: "" }));
      return (text) => handler({ ...head({ host: "a", [name]: text }), method: "POST" });
    }),
  ),
  ...["origin", "host", "access-control-request-headers"].map((name) =>
    listed("services/src/http/access", name, ({ controlAccess }) => {
      const rules = {
        corsOrigins: new Set(["http://a"]),
        hostWhitelist: new Set(["a"]),
        cors: ["http://a"],
        hosts: ["a"],
      };
      return (text) =>
        controlAccess(
          () => ({ status: 200, headers: {}, body: "" }),
          rules,
        )?.(head({ host: "a", [name]: text }));
    }),
  ),
  listed(
    "services/src/v3/table",
    "client-api-version",
    ({ ClientVersions }) =>
      (text) =>
        new ClientVersions({ with: () => ({ inc() {} }) }).label(text),
  ),
  listed(
    "transport/src/frames",
    "peer frames",
    ({ FrameReader }) =>
      (text) => {
        const reader = new FrameReader(1 << 20);
        reader.push(latin1(text));
        while (reader.next() !== undefined);
      },
    BODY_BYTES,
  ),
  listed(
    "transport/src/frames",
    "peer message",
    ({ decodeMessage }) =>
      (text) =>
        decodeMessage(latin1(text)),
    BODY_BYTES,
  ),
  listed(
    "rpc/src/grpc/wire",
    "protobuf fields",
    ({ readFields }) =>
      (text) =>
        readFields(latin1(text)),
    BODY_BYTES,
  ),
  listed(
    "rpc/src/grpc/calls",
    "base64 of gRPC",
    ({ decodeBase64 }) =>
      (text) =>
        decodeBase64(text),
  ),
  listed(
    "host/node/crl",
    "revocation list",
    ({ readRevocations }) =>
      (text) =>
        readRevocations(latin1(text), new Pauses(nodeClock.turns)),
    BODY_BYTES,
  ),
  listed(
    "client/src/endpoint",
    "endpoint of a client",
    ({ parseEndpoint }) =>
      (text) =>
        parseEndpoint(text, false),
  ),
  listed(
    "backup/node/s3-store",
    "XML of an object store",
    ({ elements }) =>
      (text) =>
        elements(text, "Key"),
    BODY_BYTES,
  ),
  listed(
    "ctl/src/observe/metrics-text",
    "metrics of a member",
    ({ MetricsText }) =>
      (text) =>
        new MetricsText(text),
    BODY_BYTES,
  ),
  listed(
    "ctl/src/commands/txn",
    "line of txn",
    ({ splitWords }) =>
      (text) =>
        splitWords(text),
  ),
  listed(
    "rpc/node/client/channel",
    "address",
    ({ splitAddress }) =>
      (text) =>
        splitAddress(text),
  ),
  listed(
    "host/node/tls-check",
    "certificate file",
    ({ checkTlsOptions }) =>
      (text) => {
        const certPem = `-----BEGIN CERTIFICATE-----\n${text}`;
        return checkTlsOptions(
          { certFile: "a", keyFile: "b", caFile: "c" },
          { certPem, keyPem: text, trustedCaPem: certPem },
          new Pauses(nodeClock.turns),
        );
      },
    BODY_BYTES,
  ),
  listed(
    "rpc/src/http/fields",
    "values of response headers",
    ({ responseFields }) =>
      (text) =>
        responseFields({ "x-a": text }),
    BODY_BYTES,
  ),
  ...allMessageTypes().map((type) => {
    const name = type.fullName.slice(1);
    const [pkg, ...rest] = name.split(".");
    return listed("proto/src/wire/bytes", `protobuf ${name}`, async (_, load) => {
      const module = await load("packages/proto/index.ts");
      const codec = module[rest.join("_")] ?? module[pkg]?.[rest.join("_")];
      return (text) => codec?.decode(latin1(text));
    });
  }),
];

/** Files that work on texts and need no entry. A name that ends with "/" stands for a folder. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  ...Object.assign({}, ...OF_PACKAGES.map((one) => one.LEFT_OUT)),
  "packages/ctl/":
    "the operator's own command line, files and output; what comes from a server is in TOOLS",
  "packages/cli/": "the operator's own command line",
  "packages/sim/": "the simulator's own texts",
  "packages/bolt/": "the operator's own file",
  "packages/backup/src/exchange.ts": "no text: files are replaced",
  "packages/backup/src/fetch.ts": "no text but names that format.ts parses",
  "packages/backup/node/s3-signature.ts": "requests that are made here",
  "packages/quorate/node/envtest.ts": "paths and variables of the person who tests",
  "packages/shadow/src/page.ts": "single characters are replaced",
  "packages/shadow/node/program.ts": "the operator's own command line and paths",
  "packages/shadow/node/state-file.ts": "the shadow's own file, by JSON.parse",
  "packages/create/node/create.ts": "a directory that a person names; a file by JSON.parse",
  "packages/client/src/codec.ts": "a value, by JSON.parse or the program's own codec",
  "packages/store/src/etcd-file/": "a file of the operator or of a member; fields by JSON.parse",
  "packages/store/src/membership/membership.ts": "a record of the store, by JSON.parse",
  "packages/store/src/store.ts": "the version of the cluster, which was checked",
  "packages/host/node/memory/": "paths and keys of the process's own",
  "packages/member/src/identity/passwords.ts": "a stored hash, by one pattern from its start",
  "packages/embed/": "the options of the program that embeds a member",
  "packages/server/src/config/": "the operator's command line and file",
  "packages/server/node/": "the surroundings of the process: /proc, files of the operator",
  "packages/member/src/identity/login-limits.ts": "an address of the socket",
  "packages/metrics/node/": "/proc",
  "packages/host/src/random.ts": "names of streams in the source",
  "packages/host/node/issue-certificates.ts": "certificates that are made here",
  "packages/host/node/lock.ts": "a file of the operator's directory",
  "packages/host/node/machine.ts": "/proc and /sys",
  "packages/host/node/names.ts": "names that the resolver has made",
  "packages/host/node/rotating-file.ts": "names of the operator's directory",
  "packages/host/node/tls.ts":
    "fields of certificates that Node has parsed and the handshake has bounded",
  "packages/proto/src/json/": "the parts of proto/src/json/request.ts, which is in the table",
  "packages/proxy/src/": "keys and addresses, by one walk",
  "packages/raft/src/message.ts": "a text of the source",
  "packages/rpc/src/gateway/": "fixed prefixes of a path, and texts that were made here",
  "packages/rpc/src/hpack/static-table.ts": "the table of the RFC",
  "packages/rpc/src/http1/exchange.ts": "the first name of Upgrade, by a split of one",
  "packages/rpc/src/http2/connection.ts": "the preface, byte by byte",
  "packages/server/src/audit/": "keys and names that were bounded where they are shown",
  "packages/member/src/identity/jwt/jwt-tokens.ts":
    "a claim of a token whose signature is good, by one split",
  "packages/member/src/corruption/peer-hash.ts": "a body of a bounded size, by JSON.parse",
  "packages/console/src/api.ts": "JSON.parse of 32 KiB, for a user who is known",
  "packages/console/src/overview.ts": "JSON.parse of a member's report of 64 KiB",
  "packages/http-kv/src/credentials.ts": "2,048 characters at the most",
  "packages/member/src/membership/":
    "answers of members, by JSON.parse, and flags; URLs are in the table",
  "packages/services/src/v3/standard.ts": "paths of the source's tables",
  "packages/v2/src/": "names of keys of at most 4,096 bytes, and records of the store",
  "packages/store/src/level-files/": "files of the member's own directory",
  "packages/wal/src/": "names and records of the member's own directory",
  "packages/client/node/": "errors of the socket",
  "packages/proxy/node/": "the operator's command line, and lines of the log",
  "packages/transport/node/": "addresses and headers that src/ has parsed",
};

/** What works on a text by more than comparing it. */
const TEXT_WORK =
  /\.(?:split|match|matchAll|replace|replaceAll|exec|search|charCodeAt|codePointAt)\(|JSON\.parse/;

export function isLeftOut(file: string): boolean {
  return Object.keys(LEFT_OUT).some((name) =>
    name.endsWith("/") ? file.startsWith(name) : file === name,
  );
}

/** Files whose code works on texts. */
export function filesWithTextWork(
  read: (file: string) => string,
  folders: readonly string[],
): string[] {
  return folders.flatMap(sourceFiles).filter((file) => TEXT_WORK.test(read(file)));
}

export interface Entry extends Parser {
  readonly file: string;
}

async function load(file: string): Promise<Module> {
  return import(pathToFileURL(`${ROOT}/${file}`).href);
}

async function foundEntries(): Promise<Entry[]> {
  const files = [...PURE.flatMap(sourceFiles), ...TOOLS];
  const entries: Entry[] = [];
  for (const one of files.flatMap(exportedOf)) {
    if (NO_PARSERS.has(one.name)) continue;
    const module = await load(one.file);
    one.parameters.forEach((_, at) => {
      const place = one.parameters.length === 1 ? "" : `, ${at + 1}`;
      const call: Call = (text) => {
        const given = one.parameters.map((kind, i) => {
          const value = i === at ? text : "a";
          return kind === "bytes" ? latin1(value) : utf8(value);
        });
        return module[one.name](...given);
      };
      entries.push({ file: one.file, name: `${one.name}${place}`, call, maxBytes: HEAD_BYTES });
    });
  }
  return entries;
}

/** All parsers, ready to be called. */
export async function allParsers(): Promise<Entry[]> {
  const entries = await foundEntries();
  for (const { make, ...rest } of LISTED)
    entries.push({ ...rest, call: await make(await load(rest.file), load) });
  return entries;
}
