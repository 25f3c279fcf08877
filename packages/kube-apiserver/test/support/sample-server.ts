/** Another API server, which serves sample.example.com/v1 to whom it trusts, for tests. */
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { makeAuthority, makeCertificate } from "../../../../test/support/certs.ts";

export const SAMPLE_GROUP = "sample.example.com";
const ROOT = `/apis/${SAMPLE_GROUP}/v1`;
const SERVICE = "sample.default.svc";
/** What the server shows of a request. */
const SHOWN =
  /^(?:x-remote-|x-forwarded-(?:for|proto|uri)|authorization|impersonate-|content-type)/;

const RESOURCE_LIST = {
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion: `${SAMPLE_GROUP}/v1`,
  resources: [
    {
      name: "widgets",
      singularName: "widget",
      namespaced: true,
      kind: "Widget",
      verbs: ["get", "list", "watch"],
      shortNames: ["wi"],
    },
    { name: "widgets/echo", singularName: "", namespaced: true, kind: "Widget", verbs: ["create"] },
  ],
};
const OPENAPI_V2 = {
  swagger: "2.0",
  info: { title: "sample", version: "v1" },
  paths: {
    [`${ROOT}/widgets`]: {
      get: {
        responses: {
          "200": { description: "OK", schema: { $ref: "#/definitions/Widget" } },
        },
      },
    },
    "/apis/other.example.com/v1/things": { get: { responses: {} } },
  },
  definitions: {
    Widget: {
      type: "object",
      properties: {
        metadata: { $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" },
        next: { $ref: "#/definitions/Widget" },
      },
    },
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": { description: "another one" },
    Unused: { type: "object" },
  },
};
const OPENAPI_V3 = { openapi: "3.0.0", info: { title: "sample" }, paths: {}, components: {} };

export interface SampleServer {
  readonly port: number;
  /** PEM of its authority, in base64. */
  readonly caBundle: string;
  /** Of clients' certificates, as they come. */
  readonly clients: Set<string>;
  /** Connections that are open. */
  readonly open: ReadonlySet<Socket>;
  /** Stops listening, and ends its connections. */
  stop(): Promise<void>;
}

/** Starts it on a free port of 127.0.0.1. */
export async function startSampleServer(name = SERVICE): Promise<SampleServer> {
  const ca = makeAuthority(`authority of ${name}`);
  const own = makeCertificate({ name, issuer: ca, usage: "server", dnsNames: [name] });
  const clients = new Set<string>();
  const open = new Set<Socket>();
  const server: Server = createServer(
    { cert: own.certPem, key: own.keyPem, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const subject = (request.socket as TLSSocket).getPeerCertificate()?.subject?.CN;
      if (typeof subject === "string") clients.add(subject);
      const json = (status: number, body: unknown): void => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      };
      const { pathname } = new URL(request.url ?? "", "https://sample");
      if (pathname === ROOT) return json(200, RESOURCE_LIST);
      if (pathname === "/openapi/v2") return json(200, OPENAPI_V2);
      if (pathname === "/openapi/v3") {
        const serverRelativeURL = `/openapi/v3${ROOT}?hash=1`;
        return json(200, { paths: { [ROOT.slice(1)]: { serverRelativeURL } } });
      }
      if (pathname === `/openapi/v3${ROOT}`) return json(200, OPENAPI_V3);
      if (pathname.endsWith("/silent")) return;
      if (pathname.endsWith("/cut")) {
        response.writeHead(200, { "content-length": "100" });
        response.write("begun", () => response.destroy());
        return;
      }
      if (pathname.endsWith("/teapot")) {
        response.writeHead(418, { "content-type": "text/plain", "x-own": "1" });
        response.end("short and stout");
        return;
      }
      if (pathname.endsWith("/moved")) {
        response.writeHead(302, { location: `${ROOT}/teapot` });
        response.end();
        return;
      }
      if (pathname.endsWith("/endless")) {
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536, "x")));
        };
        response.on("drain", more);
        more();
        return;
      }
      if (request.url?.includes("watch=1")) {
        response.writeHead(200, { "content-type": "application/json" });
        response.write('{"type":"ADDED"}\n');
        return;
      }
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const shown = Object.entries(request.headersDistinct).filter(([key]) => SHOWN.test(key));
        json(200, {
          kind: "Echo",
          method: request.method,
          url: request.url,
          headers: Object.fromEntries(shown.sort()),
          body: Buffer.concat(parts).toString(),
        });
      });
    },
  );
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    if (request.url?.includes("refused")) {
      socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
      return;
    }
    const upgrade = request.headers.upgrade ?? "";
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${upgrade}\r\n`,
    );
    socket.write(`x-protocols: ${request.headers["sec-websocket-protocol"] ?? ""}\r\n\r\nhello `);
    if (head.length > 0) socket.write(head);
    socket.pipe(socket);
  });
  server.on("secureConnection", (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    clients,
    open,
    port: (server.address() as AddressInfo).port,
    caBundle: Buffer.from(ca.certPem).toString("base64"),
    stop: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      return closed;
    },
  };
}

/** An APIService of the group, with changes of its spec. */
export function sampleApiService(
  { port, caBundle }: Pick<SampleServer, "port" | "caBundle">,
  change: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  const spec = {
    group: SAMPLE_GROUP,
    version: "v1",
    groupPriorityMinimum: 2000,
    versionPriority: 10,
    caBundle,
    service: { namespace: "default", name: "sample", port },
    ...change,
  };
  const name = `${spec.version}.${spec.group}`;
  return { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: { name }, spec };
}
