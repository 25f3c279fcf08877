/** The API server's parsers of texts from outside, for the table of test/linear. */
import { generateKeyPairSync } from "node:crypto";
import { nodeClock } from "@quorate/host/node";
import {
  BODY_BYTES,
  head,
  KIB,
  type Listed,
  latin1,
  listed,
  utf8,
} from "../../../test/linear/listed.ts";

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

/** Checks of texts in built-in kinds, by their files. */
const RULE_CHECKS: Readonly<Record<string, readonly string[]>> = {
  texts: [
    ..."isPortName isVariableName isHeaderName isWildcardSubdomain isPercent".split(" "),
    ..."isIp isCanonicalIp isNetwork".split(" "),
  ],
  quantities: ["isContainerResource", "isQuotaResource"],
};

/** Another API server with a discovery document of so many resources, by their names. */
function serverWith(names: readonly string[]) {
  const resources = names.map((name) => ({ name }));
  return {
    call(
      { path }: { readonly path: string },
      listener: {
        responded(status: number, headers: object): void;
        data(bytes: Uint8Array): void;
        ended(): void;
      },
    ) {
      queueMicrotask(() => {
        listener.responded(path === "/apis/a/v1" ? 200 : 404, {});
        listener.data(Buffer.from(JSON.stringify({ resources })));
        listener.ended();
      });
      return { abort() {} };
    },
  };
}

export const LISTED: readonly Listed[] = [
  listed(
    "kube-apiserver/src/aggregation/remote-documents",
    "names of another server's resources",
    ({ readDocuments }) =>
      (text) => {
        const names = Array.from(text, (char, i) => `${char}${i}`);
        const place = { host: "a", port: 1 };
        return readDocuments({ group: "a", version: "v1" }, place, serverWith(names), nodeClock);
      },
    16 * KIB,
  ),
  ...Object.entries(RULE_CHECKS).flatMap(([file, names]) =>
    names.map((name) =>
      listed(
        `kube-apiserver/src/builtin/rules/${file}`,
        name,
        (module) => (text) => module[name](utf8(text)),
        BODY_BYTES,
      ),
    ),
  ),
  ...["DOMAIN_PATH", "FULL_DOMAIN", "LOCAL_PATH", "endpointIp"].map((name) =>
    listed(
      "kube-apiserver/src/builtin/rules/texts",
      name,
      (module) => (text) => module[name](utf8(text), "", []),
      BODY_BYTES,
    ),
  ),
  listed(
    "kube-apiserver/src/admission/subject-restriction",
    "a request's elements",
    ({ requestedOrganizations }) => {
      const label = "CERTIFICATE REQUEST-----";
      return (text) => {
        const body = Buffer.from(text, "latin1").toString("base64");
        return requestedOrganizations(`-----BEGIN ${label}${body}-----END ${label}`);
      };
    },
    BODY_BYTES,
  ),
  ...["", "a="].map((start) =>
    listed(
      "kube-apiserver/src/handlers/target",
      `query ${start}`,
      ({ Query }) =>
        (text) =>
          new Query(start + text).first("a"),
    ),
  ),
  listed("kube-apiserver/src/handlers/target", "path", async ({ Target }, load) => {
    const { Query } = await load("packages/kube-apiserver/src/handlers/target.ts");
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
    "shardSelector",
  ].map((name) =>
    listed("kube-apiserver/src/handlers/list-options", name, async ({ listRequestOf }, load) => {
      const { Query } = await load("packages/kube-apiserver/src/handlers/target.ts");
      return (text) =>
        listRequestOf(new Query(`${name}=${encodeURIComponent(utf8(text))}`), "", false, true);
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
  listed("kube-apiserver/src/audit/auditor", "X-Forwarded-For", ({ sourceIps }) => (text) => [
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
    listed("kube-apiserver/src/crd/serving/json-path", `JSON path ${start}`, async (_, load) => {
      const { JsonPath } = await load("packages/kube-apiserver/src/crd/serving/json-path.ts");
      return (text) => new JsonPath(start + utf8(text));
    }),
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
    ({ decodeManagedFields }) =>
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
        return decodeManagedFields(entries);
      },
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
  ...["", "'", "object.", "[", "object == ", "object.matches('a') || ", "size("].map((start) =>
    listed(
      "kube-apiserver/src/crd/cel/lang/lex",
      `condition in CEL ${start}`,
      async (_, load) => {
        const { RequestExpressions } = await load(
          "packages/kube-apiserver/src/crd/cel/request-expressions.ts",
        );
        const expressions = new RequestExpressions();
        await expressions.load();
        const set = expressions.set({ hasParams: false, hasVariables: false });
        return (text) => set.compile(start + utf8(text), []);
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
          const { RequestExpressions } = await load(
            "packages/kube-apiserver/src/crd/cel/request-expressions.ts",
          );
          const expressions = new RequestExpressions();
          await expressions.load();
          const set = expressions.set({ hasParams: false, hasVariables: false });
          const { program, error } = set.compile(expression, []);
          if (program === undefined) throw new Error(error);
          return (text) => program.evaluate(() => utf8(text), 1_000_000);
        },
      ),
    ),
  ),
];

/** Files that work on texts and need no entry. A name that ends with "/" stands for a folder. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "packages/kube-apiserver/src/builtin/rules/":
    "one split or one pattern of a text; texts.ts and quantities.ts have entries",
  "packages/kube-apiserver/src/admission/":
    "names and rules that meta/ and crd/definition have checked",
  "packages/kube-apiserver/src/handlers/shard-selector.ts":
    "what the parser of CEL made; list-options.ts has the entry",
  "packages/kube-apiserver/src/apply/last-applied.ts": "fields of decoded managedFields",
  "packages/kube-apiserver/src/apply/strategic-merge.ts":
    "directives of a patch: prefixes of names in a decoded object",
  "packages/kube-apiserver/src/apply/typed-schema.ts": "types of the source's tables",
  "packages/kube-apiserver/src/audit/policy.ts": "the operator's file against a path",
  "packages/kube-apiserver/src/builtin/autoscalers.ts":
    "annotations by JSON.parse; else names of the source",
  "packages/kube-apiserver/src/controllers/quota-status.ts": "the key of a stored object, once",
  "packages/kube-apiserver/src/controllers/policy-status.ts":
    "errors of the compiler, and names that policy-validation has checked",
  "packages/kube-apiserver/src/crd/cel/request-expressions.ts": "names of the source",
  "packages/kube-apiserver/node/unused-flags.ts": "names of the source",
  "packages/kube-apiserver/src/authn/forbidden.ts": "three replacements of single characters",
  "packages/kube-apiserver/src/builtin/cluster-tables.ts":
    "an apiVersion that meta/ has checked, for a column",
  "packages/kube-apiserver/src/builtin/plain-kinds.ts": "paths of the source's tables",
  "packages/kube-apiserver/src/builtin/scale.ts": "paths that crd/definition has checked",
  "packages/kube-apiserver/src/chaos/":
    "the operator's command line, and the first 64 characters of a User-Agent",
  "packages/kube-apiserver/src/handlers/call.ts":
    "two replacements of single characters; warnings are bounded",
  "packages/kube-apiserver/src/openapi/": "groups and kinds of checked definitions",
  "packages/kube-apiserver/src/aggregation/":
    "a path that target.ts has read, PEM by pemBlocks, documents of bounded length by JSON.parse",
  "packages/kube-apiserver/src/authn/impersonation.ts":
    "one split of a header; attack:linear sends it",
  "packages/kube-apiserver/src/authn/oidc-tokens.ts":
    "pages by JSON.parse, and tokens that jose takes apart",
  "packages/kube-apiserver/src/authn/proxied-users.ts":
    "one decoding of each header's key and value",
  "packages/kube-apiserver/src/authn/remote-reviews.ts":
    "answers of 64 KiB at most, by the parsers of JSON and YAML",
  "packages/kube-apiserver/src/authn/request-authenticator.ts": "one split of a header, of three",
  "packages/kube-apiserver/src/authn/service-account-tokens.ts":
    "a token that jose has taken apart",
  "packages/kube-apiserver/src/authn/token-requests.ts": "claims that were made here",
  "packages/kube-apiserver/src/authz/": "paths of rules against a path, by prefix",
  "packages/kube-apiserver/src/crd/cel/cost/": "names of functions in the source's tables",
  "packages/kube-apiserver/src/crd/cel/lang/standard.ts":
    "texts that expressions convert; functions/ has entries of the same kind",
  "packages/kube-apiserver/src/crd/cel/faults.ts": "an expression that the lexer has bounded",
  "packages/kube-apiserver/src/crd/cel/lang/ast.ts": "names that the lexer has found",
  "packages/kube-apiserver/src/crd/cel/lang/check.ts": "names that the lexer has found",
  "packages/kube-apiserver/src/crd/cel/lang/environment.ts": "signatures of the source",
  "packages/kube-apiserver/src/crd/cel/lang/evaluate.ts": "names that the lexer has found",
  "packages/kube-apiserver/src/crd/cel/lang/parse.ts": "tokens; the lexer has the entry",
  "packages/kube-apiserver/src/crd/cel/lang/types.ts": "signatures of the source",
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
  "packages/kube-apiserver/node/encryption/": "the operator's file",
  "packages/kube-apiserver/node/flag-options.ts": "the operator's command line",
  "packages/kube-apiserver/node/json-client.ts": "answers by JSON.parse",
  "packages/kube-apiserver/node/metrics-page.ts": "escapes of single characters in labels",
  "packages/kube-apiserver/node/version.ts": "the version of the source",
  "packages/kube-apiserver/node/webhook-caller.ts": "addresses of configurations, by URL",
};
