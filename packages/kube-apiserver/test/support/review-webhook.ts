/** A webhook for TokenReviews and SubjectAccessReviews, over TLS with client certificates. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority } from "../../../../scripts/certs.ts";

/** What the webhook says: a status of the review, or something else by hand. */
export type Said = Readonly<Record<string, unknown>> | ((response: ServerResponse) => void);

export interface AskedReview {
  readonly apiVersion: string;
  readonly kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: the spec of either kind
  readonly spec: any;
}

export class ReviewWebhook implements AsyncDisposable {
  /** All that it was asked, in order. */
  readonly asked: AskedReview[] = [];
  /** A kubeconfig with a client certificate, and one whose server is gone. */
  readonly dir: string;
  readonly configFile: string;
  readonly goneFile: string;
  readonly port: number;
  readonly #close: () => Promise<void>;

  private constructor(dir: string, port: number, asked: AskedReview[], close: () => Promise<void>) {
    this.dir = dir;
    this.configFile = join(dir, "webhook.yaml");
    this.goneFile = join(dir, "gone.yaml");
    this.port = port;
    this.asked = asked;
    this.#close = close;
  }

  /** @param answer to each review */
  static async start(answer: (review: AskedReview) => Said): Promise<ReviewWebhook> {
    const dir = mkdtempSync(join(tmpdir(), "review-webhook-"));
    const ca = await createAuthority("webhook");
    const leaf = await ca.issue({ commonName: "hook", hosts: ["127.0.0.1"], usage: "server" });
    const client = await ca.issue({ commonName: "asker", hosts: [], usage: "client" });
    const asked: AskedReview[] = [];
    const sockets = new Set<Socket>();
    const tls = { cert: leaf.certPem, key: leaf.keyPem, ca: ca.caPem, requestCert: true };
    const server = createServer(tls, (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const review = JSON.parse(Buffer.concat(chunks).toString()) as AskedReview;
        asked.push(review);
        const said = answer(review);
        if (typeof said === "function") return said(response);
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ ...review, status: said }));
      });
    });
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const close = async (): Promise<void> => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(dir, { recursive: true, force: true });
    };
    writeFileSync(join(dir, "ca.pem"), ca.caPem);
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    const user = {
      "client-certificate-data": base64(client.certPem),
      "client-key-data": base64(client.keyPem),
    };
    const config = (url: string) => ({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "hook", cluster: { server: url, "certificate-authority": "ca.pem" } }],
      users: [{ name: "asker", user }],
      contexts: [{ name: "hook", context: { cluster: "hook", user: "asker" } }],
      "current-context": "hook",
    });
    const webhook = new ReviewWebhook(dir, port, asked, close);
    const write = (path: string, url: string): void =>
      writeFileSync(path, JSON.stringify(config(url)));
    write(webhook.configFile, `https://127.0.0.1:${port}/review`);
    write(webhook.goneFile, "https://127.0.0.1:1/review");
    return webhook;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}
