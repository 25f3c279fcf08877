/** Tokens and decisions that a webhook knows, beside kube-apiserver. */
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { writeKubeApiFiles } from "../../support/kube-flags.ts";
import { type ProxyClients, proxyClients } from "../../support/proxy-clients.ts";
import { type AskedReview, ReviewWebhook, type Said } from "../../support/review-webhook.ts";
import type { Answer } from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { type ApiAccess, type ApiRequest, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";

const ISSUER = "https://kubernetes.default.svc";
const SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const ANN = {
  username: "ann",
  uid: "7",
  groups: ["dev", "ops"],
  extra: { "example.com/Team": ["a", "b"] },
};

const raw =
  (status: number, body: string, type = "application/json") =>
  (response: ServerResponse): void => {
    response.writeHead(status, type === "" ? {} : { "content-type": type });
    response.end(body);
  };
const failure = (code: number, reason: string, message: string) =>
  raw(
    code,
    JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message }),
  );
const review = (more: object) =>
  raw(
    200,
    JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", ...more }),
  );

const SELF_REVIEW = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
/** Headers of a proxy. */
const PROXIED: readonly Readonly<Record<string, string | readonly string[]>>[] = [
  {},
  { "x-remote-user": "jane" },
  { "x-remote-user": "" },
  { "x-other-user": "joe", "x-remote-group": "a" },
  {
    "x-remote-user": ["first", "second"],
    "x-other-user": "third",
    "x-remote-uid": "9",
    "x-remote-group": ["a, b", "", "c"],
    "x-other-group": ["d"],
    "x-remote-extra-example.com%2fkey": ["1", "2, 3"],
    "x-other-extra-Example.com%2FKey": "4",
    "x-remote-extra-bad%zz": "5",
    "x-remote-extra-": "6",
  },
  { "x-remote-user": Buffer.from("zo\u00eb").toString("latin1") },
  { "x-remote-user": "jane", authorization: "Bearer ann" },
  { authorization: "Bearer ann" },
  { authorization: "Bearer nobody" },
];

/** What the webhook says of each token. */
const TOKENS: Readonly<Record<string, Said>> = {
  ann: { authenticated: true, user: ANN },
  "no-name": { authenticated: true, user: {} },
  nobody: { authenticated: false, user: {} },
  refused: { authenticated: false, error: "no such user", user: ANN },
  "others-audience": { authenticated: true, user: ANN, audiences: ["elsewhere"] },
  "our-audience": { authenticated: true, user: ANN, audiences: ["elsewhere", ISSUER] },
  "with-error": { authenticated: true, user: ANN, error: "almost" },
  forbidden: failure(403, "Forbidden", "you shall not ask"),
  "plain-403": raw(403, "no\n", "text/plain"),
  "plain-404": raw(404, "lost", "text/plain"),
  "json-400": raw(400, '{"a":1}'),
  "plain-418": raw(418, "teapot", "text/plain"),
  unavailable: raw(503, "later", "text/plain"),
  "not-json": raw(200, "nonsense"),
  empty: raw(200, ""),
  "status-in-200": raw(
    200,
    '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"bad day","reason":"BadRequest","code":400}',
  ),
  "other-version": raw(
    200,
    '{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview","status":{"authenticated":true}}',
  ),
  "without-kind": raw(200, '{"status":{"authenticated":true,"user":{"username":"bob"}}}'),
  "without-status": review({}),
  "null-status": review({ status: null }),
  "status-is-text": review({ status: "yes" }),
  "authenticated-is-text": review({ status: { authenticated: "yes" } }),
  "groups-are-text": review({ status: { authenticated: true, user: { groups: "a" } } }),
  "extra-is-text": review({ status: { authenticated: true, user: { extra: { a: "b" } } } }),
};

/** What the webhook says of each ConfigMap and path. */
const DECISIONS: Readonly<Record<string, Said>> = {
  allowed: { allowed: true, reason: "because" },
  refused: { allowed: false, reason: "not today" },
  silent: { allowed: false },
  denied: { allowed: false, denied: true, reason: "never" },
  both: { allowed: true, denied: true, reason: "well" },
  evaluation: { allowed: false, evaluationError: "hm" },
  forbidden: failure(403, "Forbidden", "you shall not ask"),
  "not-json": raw(200, "nonsense"),
  "/allowed": { allowed: true },
  "/denied": { denied: true, allowed: false, reason: "no" },
};

function answer({ kind, spec }: AskedReview): Said {
  if (kind === "TokenReview") return TOKENS[spec.token] ?? { authenticated: false };
  const { resourceAttributes, nonResourceAttributes } = spec;
  return DECISIONS[resourceAttributes?.name ?? nonResourceAttributes?.path] ?? { allowed: false };
}

/** What the same requests got, and what the webhook was asked for them. */
export interface PlayedAnswer extends Answer {
  readonly asked: readonly AskedReview[];
}

async function play(
  access: ApiAccess,
  webhook: ReviewWebhook,
  clients: ProxyClients,
): Promise<PlayedAnswer[]> {
  const answers: PlayedAnswer[] = [];
  const ask = async (request: ApiRequest, from: ApiAccess = access): Promise<void> => {
    const before = webhook.asked.length;
    const response = withSortedRules(normalised(await exchange(from, request)));
    // Spaces and ports are the server's own, and what it asks for others is not compared.
    const asked = webhook.asked.slice(before).filter(isOurs);
    answers.push(
      JSON.parse(
        JSON.stringify({ request: JSON.stringify(request), response, asked })
          .replaceAll(String(webhook.port), "11111")
          .replace(/X509SHA256=[0-9a-f]+/g, "<credential>"),
      ),
    );
  };
  const tokenReview = (spec: object) =>
    ask({
      method: "POST",
      path: TOKEN_REVIEWS,
      body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec },
    });
  const as = (token: string) => ({ authorization: `Bearer ${token}` });
  for (const token of Object.keys(TOKENS)) {
    await ask({
      method: "POST",
      path: SELF,
      body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
      headers: as(token),
    });
    await tokenReview({ token });
  }
  for (const audiences of [["elsewhere"], ["other"], [ISSUER, "elsewhere"]])
    for (const token of ["ann", "others-audience", "our-audience"])
      await tokenReview({ token, audiences });
  const maps = "/api/v1/namespaces/default/configmaps";
  for (const name of Object.keys(DECISIONS)) {
    const isPath = name.startsWith("/");
    const path = isPath ? name : `${maps}/${name}`;
    await ask({ method: "GET", path, headers: as("ann") });
    // Kept for a time.
    await ask({ method: "GET", path, headers: as("ann") });
    const attributes = isPath
      ? { nonResourceAttributes: { path: name, verb: "get" } }
      : {
          resourceAttributes: {
            namespace: "default",
            verb: "get",
            version: "v1",
            resource: "configmaps",
            name,
          },
        };
    await ask({
      method: "POST",
      path: ACCESS_REVIEWS,
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { user: "bob", ...attributes },
      },
    });
  }
  await ask({ method: "DELETE", path: `${maps}/a<b>?dryRun=All&x=%3Cb%3E`, headers: as("ann") });
  await ask({ method: "GET", path: `${maps}/forbidden?pretty=1&x=%3Cb%3E`, headers: as("ann") });
  await ask({ method: "PUT", path: `${maps}/denied/status`, headers: as("ann"), body: {} });
  await ask({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    headers: as("no-name"),
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectRulesReview",
      spec: { namespace: "default" },
    },
  });
  for (const [name, { certPem: cert, keyPem: key }] of Object.entries(clients.certificates)) {
    for (const headers of PROXIED) {
      const request = { method: "POST", path: SELF, body: SELF_REVIEW, headers, who: name };
      // Values that come more than once are lists, which Node sends as such.
      await ask(request as unknown as ApiRequest, { url: access.url, headers: {}, cert, key });
    }
  }
  const config = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
  const { body } = await exchange(access, { method: "GET", path: config });
  const data = Object.entries((body as { data: Record<string, string> }).data);
  const published = data.filter(([name]) => !name.endsWith("-ca-file"));
  const response = { status: 200, body: Object.fromEntries(published) };
  answers.push({ request: config, response, asked: [] });
  return answers;
}

/** The order of a user's rules is that of the bindings in kube-apiserver's memory. */
function withSortedRules(response: ApiResponse): ApiResponse {
  const { status } = (response.body ?? {}) as { status?: { nonResourceRules?: object[] } };
  status?.nonResourceRules?.sort((a, b) => JSON.stringify(a).length - JSON.stringify(b).length);
  return response;
}

/** Of the users of the play, not of controllers. */
function isOurs({ spec }: AskedReview): boolean {
  return spec.token !== undefined || !String(spec.user).startsWith("system:");
}

/** Of kube-apiserver, on an empty etcd. */
export async function theirAnswers(etcd: string, version: "v1" | "v1beta1" = "v1") {
  await using webhook = await ReviewWebhook.start(answer);
  const clients = await proxyClients(webhook.dir);
  return await withKubeApiserver(
    etcd,
    (access) => play(access, webhook, clients),
    () => [
      `--client-ca-file=${clients.clientCaFile}`,
      `--requestheader-client-ca-file=${clients.proxyCaFile}`,
      "--requestheader-allowed-names=proxy,front",
      "--requestheader-username-headers=X-Remote-User,X-Other-User",
      "--requestheader-uid-headers=X-Remote-Uid",
      "--requestheader-group-headers=X-Remote-Group,X-Other-Group",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-,X-Other-Extra-",
      `--authentication-token-webhook-config-file=${webhook.configFile}`,
      `--authentication-token-webhook-version=${version}`,
      // Behind RBAC, which all kube-apiservers of tests have.
      "--authorization-mode=Webhook",
      `--authorization-webhook-config-file=${webhook.configFile}`,
      `--authorization-webhook-version=${version}`,
    ],
  );
}

/** Of a server of ours. */
export async function ourAnswers(version: "v1" | "v1beta1" = "v1"): Promise<PlayedAnswer[]> {
  await using webhook = await ReviewWebhook.start(answer);
  const { configFile } = webhook;
  const clients = await proxyClients(webhook.dir);
  const dir = mkdtempSync(join(tmpdir(), "access-"));
  writeKubeApiFiles(dir, "admin", "admin-token");
  await using api = await startApiServer({
    tokenAuthFile: join(dir, "tokens.csv"),
    clientCaFile: clients.clientCaFile,
    requestHeaderCaFile: clients.proxyCaFile,
    proxies: {
      allowedNames: ["proxy", "front"],
      usernameHeaders: ["X-Remote-User", "X-Other-User"],
      uidHeaders: ["X-Remote-Uid"],
      groupHeaders: ["X-Remote-Group", "X-Other-Group"],
      extraPrefixes: ["X-Remote-Extra-", "X-Other-Extra-"],
    },
    serviceAccounts: {
      issuers: [ISSUER],
      audiences: [],
      maxExpirationSeconds: 0,
      signingKeyFile: "",
      keyFiles: [],
    },
    webhookTokens: { configFile, version, cacheTtlMs: 120_000 },
    authorizationModes: ["RBAC", "Webhook"],
    webhookDecisions: { configFile, version, allowedMs: 300_000, refusedMs: 30_000 },
  });
  rmSync(dir, { recursive: true });
  const headers = { authorization: "Bearer admin-token" };
  return await play({ url: api.url, headers }, webhook, clients);
}
