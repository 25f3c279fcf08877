/**
 * Calls of webhooks: admission, the conversion of custom resources, authentication and
 * authorization share one caller with its connections (apiserver: pkg/util/webhook/client.go).
 * node/webhook-caller.ts has the real one, test/policy/server.ts an in-memory one.
 *
 *     caller.call(clientConfig, json, { timeoutMs, signal })  ->  { status, body }
 *                                                            or  WebhookCallError
 */

import type { Cancellation, KubeAccess } from "@quorate/kube-storage";
import { CodedError } from "@quorate/proto";

/** admissionregistration.k8s.io/v1 WebhookClientConfig; apiextensions' has the same fields. */
export interface WebhookClientConfig {
  readonly url?: string;
  readonly service?: {
    readonly namespace: string;
    readonly name: string;
    readonly path?: string;
    /** Default 443. */
    readonly port?: number;
  };
  /** PEM certificates in base64; the platform's CAs where it is empty. */
  readonly caBundle?: string;
}

/** A webhook that a kubeconfig names (--authentication-token-webhook-config-file). */
export type WebhookServer = Omit<KubeAccess, "namespace">;

export interface WebhookCall {
  readonly config: WebhookClientConfig | WebhookServer;
  /** JSON. */
  readonly body: Uint8Array;
  /** Of the whole call; more than 0. It is also sent as the parameter "timeout". */
  readonly timeoutMs: number;
  readonly signal?: Cancellation | undefined;
  /** Of the response; default MAX_WEBHOOK_RESPONSE_BYTES. */
  readonly maxBytes?: number;
}

export interface WebhookResponse {
  readonly status: number;
  readonly body: Uint8Array;
  /** By lower-case names; absent in tests. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/**
 * Why there is no response.
 *   Config: the clientConfig cannot be used (no such service, not https, bad caBundle)
 *   Unreachable: no connection, or it broke
 *   Timeout: no whole response in time
 *   TooLarge: the response exceeds MAX_WEBHOOK_RESPONSE_BYTES
 *   Busy: too many calls are under way
 */
export type WebhookCallErrorCode = "Config" | "Unreachable" | "Timeout" | "TooLarge" | "Busy";

export class WebhookCallError extends CodedError<WebhookCallErrorCode> {
  constructor(code: WebhookCallErrorCode, message: string) {
    super("WebhookCallError", code, message);
  }
}

export interface WebhookCaller {
  /**
   * Posts the body and resolves with the response, whatever its status is. Rejects with
   * WebhookCallError, or with the signal's reason.
   */
  call(call: WebhookCall): Promise<WebhookResponse>;
}

/** A longer response is refused. Kubernetes has no limit of its own here. */
export const MAX_WEBHOOK_RESPONSE_BYTES: number = 8 * 1024 * 1024;
