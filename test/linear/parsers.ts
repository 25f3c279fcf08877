/**
 * Every parser of texts from outside. Most are found by their signatures (exported.ts). Those that
 * take more than texts are listed here, each with the file that it stands for. A file that works on
 * texts must be in one of the two, or be left out below for a reason.
 */
import { generateKeyPairSync } from "node:crypto";
import { pathToFileURL } from "node:url";
import type protobuf from "protobufjs";
import { protoRoot } from "../fuzz/messages.ts";
import { exportedOf, ROOT, sourceFiles } from "./exported.ts";
import type { Parser } from "./measure.ts";

const KIB = 1024;
/** The longest head of a request. */
const HEAD_BYTES = 64 * KIB;
/** What the test gives a body's parser; a body may be longer. */
const BODY_BYTES = 256 * KIB;

/** Packages whose exported functions are called without being listed. */
const PURE = [
  ..."backup bolt client host http-kv kube-apiserver kube-storage member metrics proto proxy".split(
    " ",
  ),
  ..."raft rpc server services store transport v2 wal".split(" "),
].map((name) => `packages/${name}/src`);
/** Of the tools those that read what a server or a file says. */
const TOOLS = [
  ..."ctl/src/commands/txn ctl/src/commands/member-id cli/src/go-format ctl/src/connect/peer-url".split(
    " ",
  ),
  ..."ctl/src/offline/initial-cluster ctl/src/dump/proto-text cli/src/table".split(" "),
].map((name) => `packages/${name}.ts`);

/** Functions that take a text and parse none: the text is their own, or they act on a file. */
const NO_PARSERS: ReadonlySet<string> = new Set(["writeYaml", "readUsersList", "probeDisk"]);

// biome-ignore lint/suspicious/noExplicitAny: a module's exports, by name
type Module = any;
type Make = (module: Module, load: (file: string) => Promise<Module>) => Promise<Call> | Call;
type Call = (text: string) => unknown;

interface Listed {
  readonly file: string;
  readonly name: string;
  readonly maxBytes: number;
  readonly limitMsPerKib?: number;
  readonly make: Make;
}

const latin1 = (text: string): Uint8Array => Buffer.from(text, "latin1");
const utf8 = (text: string): string => Buffer.from(text, "latin1").toString("utf8");

function listed(file: string, name: string, make: Make, maxBytes = HEAD_BYTES): Listed {
  return { file: `packages/${file}.ts`, name, make, maxBytes };
}

/** A head with a header. */
const headWith =
  (name: string) =>
  (text: string): Uint8Array =>
    latin1(`GET / HTTP/1.1\r\nhost: a\r\n${name}: ${text.replace(/[\r\n]/g, " ")}\r\n\r\n`);

const HEADERS_OF_HEADS =
  "host connection content-length transfer-encoding expect upgrade x-a".split(" ");

const head = (headers: Readonly<Record<string, string>>, query = "") => ({
  ...{ method: "GET", path: "/", query, headers: new Map(Object.entries(headers)) },
  ...{ peerAddress: "127.0.0.1", isEncrypted: false },
});

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

const FORMATS = [
  ..."date date-time datetime duration email hostname ipv4 ipv6 cidr mac uri uuid uuid3".split(" "),
  ..."uuid5 byte isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor bsonobjectid password".split(
    " ",
  ),
];

const FORMAT_PARSERS = FORMATS.map((format) =>
  listed(
    "kube-apiserver/src/crd/validation/formats",
    `format ${format}`,
    ({ formatCheck }) => {
      const check = formatCheck(format);
      return (text) => check?.(utf8(text));
    },
    BODY_BYTES,
  ),
);

/** Functions on texts in rules and conditions, by the file that registers them. */
const CEL_FUNCTIONS: Readonly<Record<string, readonly string[]>> = {
  strings: [
    ..."object.split(',').size() >= 0|object.trim() != 'x'|object.lowerAscii() != 'x'".split("|"),
    ..."object.indexOf('ab') > -2|object.lastIndexOf('ab') > -2|object.find('[0-9]+') != 'x'".split(
      "|",
    ),
    ..."object.findAll('[0-9]+').size() >= 0|object.replace('a', 'b') != 'x'".split("|"),
  ],
  networks: ["isIP(object)", "isCIDR(object)"],
  quantities: ["isQuantity(object)"],
  semver: ["isSemver(object)"],
  urls: ["isURL(object)"],
};

const LISTED: readonly Listed[] = [
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
  listed("rpc/src/hpack/decoder", "header block", ({ HpackDecoder }) => (text) => {
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
    "rpc/src/client/response-head",
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
    "services/src/v3/client-versions",
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
    "rpc/src/grpc/base64",
    "base64 of gRPC",
    ({ decodeBase64 }) =>
      (text) =>
        decodeBase64(text),
  ),
  ...["", "a="].map((start) =>
    listed(
      "kube-apiserver/src/handlers/query",
      `query ${start}`,
      ({ Query }) =>
        (text) =>
          new Query(start + text).first("a"),
    ),
  ),
  listed("kube-apiserver/src/handlers/target", "path", async ({ Target }, load) => {
    const { Query } = await load("packages/kube-apiserver/src/handlers/query.ts");
    const none = new Query("");
    return (text) => [
      Target.of("GET", `/${text}`, none),
      Target.of("GET", `/api/v1/${text}`, none),
    ];
  }),
  ...[
    "labelSelector",
    "fieldSelector",
    "continue",
    "resourceVersion",
    "limit",
    "timeoutSeconds",
  ].map((name) =>
    listed("kube-apiserver/src/handlers/list-options", name, async ({ listRequestOf }, load) => {
      const { Query } = await load("packages/kube-apiserver/src/handlers/query.ts");
      return (text) =>
        listRequestOf(
          new Query(`${name}=${encodeURIComponent(utf8(text))}`),
          { namespace: "a", name: "" },
          {},
        );
    }),
  ),
  listed(
    "kube-apiserver/src/handlers/negotiation",
    "Accept",
    ({ negotiate, bodyEncoding }) =>
      (text) => {
        try {
          bodyEncoding(text, ["json", "yaml"]);
        } catch {
          // The other one is called all the same.
        }
        return negotiate(text, { encodings: ["json", "yaml", "protobuf"], allows: () => false });
      },
  ),
  ...["upgrade", "connection", "sec-websocket-protocol"].map((name) =>
    listed(
      "kube-apiserver/src/authn/socket-protocols",
      `WebSocket of watches, ${name}`,
      ({ isWebSocketRequest, socketProtocols }) =>
        (text) => {
          const given = head({ upgrade: "websocket", connection: "upgrade", [name]: text });
          isWebSocketRequest(given);
          return socketProtocols(given);
        },
    ),
  ),
  listed("kube-apiserver/src/audit/source-ips", "X-Forwarded-For", ({ sourceIps }) => (text) => [
    sourceIps(head({ "x-forwarded-for": text })),
    sourceIps(head({ "x-real-ip": text })),
  ]),
  ...FORMAT_PARSERS,
  {
    ...listed("kube-apiserver/src/crd/validation/patterns", "pattern", async ({ loadPatterns }) => {
      const patterns = await loadPatterns();
      let count = 0;
      // Another one each time, which is in no cache.
      return (text) => patterns.compile(`${utf8(text)}${count++}`).test("aaa");
    }),
    // Nested stars cost the engine 3 ms a KiB, and it takes 16 KiB of an administrator's pattern.
    limitMsPerKib: 10,
  },
  ...["^(a+)+$", "(a|a)*b", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"].map((pattern) =>
    listed(
      "kube-apiserver/src/crd/validation/patterns",
      `text for ${pattern}`,
      async ({ loadPatterns }) => {
        const compiled = (await loadPatterns()).compile(pattern);
        return (text) => compiled.test(utf8(text));
      },
    ),
  ),
  listed(
    "kube-apiserver/src/crd/serving/json-path",
    "JSON path",
    ({ JsonPath }) =>
      (text) =>
        new JsonPath(utf8(text)),
  ),
  ...["{.a", "{.items[?(@.a=="].map((start) =>
    listed(
      "kube-apiserver/src/crd/serving/json-path-filter",
      `JSON path ${start}`,
      async (_, load) => {
        const { JsonPath } = await load("packages/kube-apiserver/src/crd/serving/json-path.ts");
        return (text) => new JsonPath(start + utf8(text));
      },
    ),
  ),
  listed(
    "kube-storage/src/codec/json-parser",
    "body as JSON",
    ({ JsonParser }) =>
      (text) => {
        const parser = new JsonParser(utf8(text));
        while (!parser.step(10_000));
        return parser.value;
      },
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/codec/yaml",
    "object as YAML",
    ({ writeYaml }) =>
      (text) =>
        writeYaml({ a: utf8(text), [utf8(text)]: 1 }),
    BODY_BYTES,
  ),
  ...["a: ", "- ", "a: {", "a: '", 'a: "', "a: |\n "].map((start) =>
    listed(
      "kube-storage/src/codec/yaml",
      `YAML ${JSON.stringify(start)}`,
      ({ parseYaml }) =>
        (text) =>
          parseYaml(start + utf8(text)),
      BODY_BYTES,
    ),
  ),
  listed("kube-storage/src/codec/go-time", "times", ({ parseTime, canonicalTime }) => (text) => [
    parseTime(text, "seconds"),
    parseTime(text, "micros"),
    canonicalTime(text, "seconds"),
  ]),
  listed(
    "kube-storage/src/meta/names",
    "prefix of names",
    ({ isDns1123Subdomain }) =>
      (text) =>
        isDns1123Subdomain(text, "bytes"),
    BODY_BYTES,
  ),
  listed(
    "kube-apiserver/src/apply/json-patch",
    "JSON pointer",
    ({ applyJsonPatch }) =>
      (text) =>
        applyJsonPatch({ a: "b" }, [{ op: "add", path: `/${utf8(text)}`, value: 1 }]),
    BODY_BYTES,
  ),
  listed(
    "kube-apiserver/src/apply/managed-fields",
    "managedFields",
    ({ decodeManagedFields, managedFieldsProblem }) =>
      (text) => {
        const fieldsV1 = {
          [`f:${utf8(text)}`]: {},
          [`k:{"a":"${utf8(text)}"}`]: {},
          [`v:${utf8(text)}`]: {},
        };
        const entries = [
          {
            manager: text,
            operation: "Update",
            apiVersion: "v1",
            time: text,
            fieldsType: "FieldsV1",
            fieldsV1,
          },
        ];
        return [managedFieldsProblem(entries), decodeManagedFields(entries)];
      },
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/meta/object-meta-validation",
    "labels, finalizers and owners",
    (module) => (text) => {
      const value = utf8(text);
      module.validateLabels({ [value]: value }, "a");
      module.validateAnnotations({ [value]: value }, "a");
      module.validateFinalizers([value], "a");
      return module.validateOwnerReferences(
        [{ apiVersion: value, kind: value, name: value, uid: value }],
        "a",
      );
    },
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/meta/label-requirement",
    "requirement",
    ({ checkRequirement }) =>
      (text) =>
        checkRequirement({ key: utf8(text), operator: "in", values: [utf8(text)] }),
    BODY_BYTES,
  ),
  listed(
    "kube-apiserver/src/crd/definition/field-path",
    "field path of a rule",
    ({ findField }) =>
      (text) =>
        findField(utf8(text), { type: "object", properties: {} }, true),
    BODY_BYTES,
  ),
  listed(
    "kube-apiserver/node/x509/der",
    "DER",
    ({ elementsOf }) =>
      (text) =>
        elementsOf(latin1(text)),
    BODY_BYTES,
  ),
  listed(
    "host/node/crl",
    "revocation list",
    ({ readRevocations }) =>
      (text) =>
        readRevocations(latin1(text)),
    BODY_BYTES,
  ),
  listed(
    "proxy/node/host-port",
    "host and port",
    ({ splitHostPort }) =>
      (text) =>
        splitHostPort(text),
  ),
  listed(
    "client/src/endpoint",
    "endpoint of a client",
    ({ parseEndpoint }) =>
      (text) =>
        parseEndpoint(text, false),
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
    "kube-apiserver/src/audit/auditor",
    "Authorization in the audit log",
    ({ attemptedMethods }) =>
      (text) =>
        attemptedMethods(head({ authorization: text }, text), false),
  ),
  listed(
    "kube-apiserver/src/authn/token-file",
    "token file",
    ({ parseTokenFile }) =>
      (text) =>
        parseTokenFile(text, "tokens.csv", () => {}),
    BODY_BYTES,
  ),
  listed(
    "kube-apiserver/src/admission/webhook-review",
    "answer of a webhook",
    ({ decodeReview }) =>
      (text) =>
        decodeReview(
          latin1(`{"response":{"uid":"a","allowed":true,"patch":"${text}`),
          "v1",
          "a",
          true,
        ),
    BODY_BYTES,
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
        );
      },
    BODY_BYTES,
  ),
  listed(
    "kube-apiserver/node/service-account-keys",
    "key file",
    ({ serviceAccountKeys }) => {
      const pem = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
        type: "pkcs8",
        format: "pem",
      });
      return (text) =>
        serviceAccountKeys({ path: "a", pem }, [
          { path: "b", pem: `-----BEGIN PUBLIC KEY-----${text}` },
        ]);
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
  ...[...["", "'", "object.", "[", "object == ", "object.matches('a') || ", "size("]].map((start) =>
    listed(
      "kube-apiserver/src/crd/cel/faults",
      `condition in CEL ${start}`,
      async (_, load) => {
        const { MatchConditionCompiler } = await load(
          "packages/kube-apiserver/src/crd/cel/match-conditions.ts",
        );
        const compiler = new MatchConditionCompiler();
        await compiler.load();
        return (text) => compiler.compile(start + utf8(text));
      },
      16 * KIB,
    ),
  ),
  ...Object.entries(CEL_FUNCTIONS).flatMap(([file, expressions]) =>
    expressions.map((expression) =>
      listed(
        `kube-apiserver/src/crd/cel/functions/${file}`,
        `CEL ${expression}`,
        async (_, load) => {
          const { MatchConditionCompiler } = await load(
            "packages/kube-apiserver/src/crd/cel/match-conditions.ts",
          );
          const compiler = new MatchConditionCompiler();
          await compiler.load();
          const condition = compiler.compile(expression);
          if (typeof condition !== "function") throw new Error(JSON.stringify(condition));
          return (text) =>
            condition({ object: utf8(text), oldObject: undefined, request: undefined });
        },
      ),
    ),
  ),
  ...allMessageTypes().map((type) => {
    const name = type.fullName.slice(1);
    const [pkg, ...rest] = name.split(".");
    return listed("proto/src/wire/bytes", `protobuf ${name}`, async (_, load) => {
      const module = await load("packages/proto/index.ts");
      const codec = module[rest.join("_")] ?? module[pkg!]?.[rest.join("_")];
      return (text) => codec?.decode(latin1(text));
    });
  }),
];

/** Files that work on texts and need no entry. A name that ends with "/" stands for a folder. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "packages/ctl/":
    "the operator's own command line, files and output; what comes from a server is in TOOLS",
  "packages/cli/": "the operator's own command line",
  "packages/sim/": "the simulator's own texts",
  "packages/bolt/": "the operator's own file",
  "packages/embed/": "the options of the program that embeds a member",
  "packages/kube-storage/src/schema/": "tables in the source, read once",
  "packages/kube-storage/src/registry/":
    "paths and names of tables in the source; what is in objects goes through codec/ and meta/",
  "packages/server/src/config/": "the operator's command line and file",
  "packages/server/node/": "the surroundings of the process: /proc, files of the operator",
  "packages/kube-apiserver/src/admission/":
    "names and rules that meta/ and crd/definition have checked",
  "packages/kube-apiserver/src/apply/last-applied.ts": "fields of decoded managedFields",
  "packages/kube-apiserver/src/apply/strategic-merge.ts":
    "directives of a patch: prefixes of names in a decoded object",
  "packages/kube-apiserver/src/apply/typed-schema.ts": "types of the source's tables",
  "packages/kube-apiserver/src/audit/policy.ts": "the operator's file against a path",
  "packages/kube-apiserver/src/authn/forbidden.ts": "three replacements of single characters",
  "packages/kube-apiserver/src/builtin/cluster-tables.ts":
    "an apiVersion that meta/ has checked, for a column",
  "packages/kube-apiserver/src/builtin/plain-kinds.ts": "paths of the source's tables",
  "packages/kube-apiserver/src/builtin/scale.ts": "paths that crd/definition has checked",
  "packages/kube-apiserver/src/handlers/warnings.ts":
    "two replacements of single characters; warnings are bounded",
  "packages/kube-apiserver/src/openapi/": "groups and kinds of checked definitions",
  "packages/member/src/identity/login-limits.ts": "an address of the socket",
  "packages/metrics/node/": "/proc",
  "packages/kube-apiserver/src/authn/impersonation.ts":
    "one split of a header; attack:linear sends it",
  "packages/kube-apiserver/src/authn/service-account-tokens.ts":
    "a token that jose has taken apart",
  "packages/kube-apiserver/src/authn/token-requests.ts": "claims that were made here",
  "packages/kube-apiserver/src/authz/": "paths of rules against a path, by prefix",
  "packages/kube-storage/src/cacher/": "keys and numbers of the store",
  "packages/kube-storage/src/codec/json-decode.ts":
    "values that JSON.parse has made; the types of attack:linear's objects reach each",
  "packages/kube-storage/src/schema/maps.ts": "the order of names",
  "packages/kube-storage/src/codec/wire-decode.ts":
    "built-in kinds over protobuf; attack:linear sends them",
  "packages/kube-apiserver/src/crd/conversion/": "versions in the definition",
  "packages/kube-apiserver/src/crd/schema/embedded.ts": "an apiVersion, by parseApiVersion",
  "packages/kube-apiserver/src/crd/serving/":
    "names of definitions that crd/definition has checked",
  "packages/kube-apiserver/src/crd/validation/numbers.ts":
    "the text of a number that was made here",
  "packages/kube-apiserver/src/encryption/": "the operator's file",
  "packages/kube-apiserver/src/handlers/patch.ts": "a media type out of a list",
  "packages/kube-apiserver/src/handlers/send-list.ts": "texts that were made here",
  "packages/kube-apiserver/src/handlers/write-options.ts":
    "the field manager, 128 characters; attack:linear sends it",
  "packages/kube-apiserver/src/server/":
    "paths and labels of tables in the source; attack:linear sends paths",
  "packages/kube-storage/src/storage/versioned-object.ts": "what the store holds, by JSON.parse",
  "packages/kube-apiserver/node/encryption/": "the operator's file",
  "packages/kube-apiserver/node/flag-options.ts": "the operator's command line",
  "packages/kube-apiserver/node/json-client.ts": "answers by JSON.parse",
  "packages/kube-apiserver/node/version.ts": "the version of the source",
  "packages/kube-apiserver/node/webhook-caller.ts": "addresses of configurations, by URL",
  "packages/kube-apiserver/node/x509/issue.ts": "certificates that are made here",
  "packages/host/src/random.ts": "names of streams in the source",
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
