/** Asks webhooks that kubeconfigs name, for reviews of tokens and of access. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type KubeAccess, kubeAccessOf, parseYaml } from "@quorate/kube-storage";
import type { WebhookCaller } from "../src/admission/webhook-caller.ts";
import {
  MAX_REVIEW_BYTES,
  type PostReview,
  REVIEW_TIMEOUT_MS,
} from "../src/authn/remote-reviews.ts";

/** Rejects with Error, which names the file, for one that cannot be read or used. */
export async function reviewPoster(path: string, webhooks: WebhookCaller): Promise<PostReview> {
  const server = await serverOf(path);
  return async (body) => {
    const limits = { timeoutMs: REVIEW_TIMEOUT_MS, maxBytes: MAX_REVIEW_BYTES };
    const response = await webhooks.call({ config: server, body, ...limits });
    const header = (name: string): string => String(response.headers?.[name] ?? "");
    return {
      status: response.status,
      contentType: header("content-type"),
      retryAfter: header("retry-after"),
      body: response.body,
    };
  };
}

async function serverOf(path: string): Promise<KubeAccess> {
  const read = (file: string): string => readFileSync(resolve(dirname(path), file), "utf8");
  const text = readFileSync(path, "utf8");
  const { value } = await parseYaml(text).catch((error: Error) => {
    throw new Error(`${path}: ${error.message}`);
  });
  return kubeAccessOf(value, path, read);
}
