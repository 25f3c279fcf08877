/** Calls a KMS v2 plugin: gRPC on a unix socket (k8s.io/kms: apis/v2/api.proto). */
import { randomUUID } from "node:crypto";
import type { Clock } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import { Channel } from "@quorate/rpc/node";
import {
  decodeEncryptResponse,
  decodePlaintext,
  decodeStatus,
  type EncryptedKey,
  encodeDecryptRequest,
  encodeEncryptRequest,
  type KmsStatus,
} from "./kms-messages.ts";

/** A response may have an encrypted key and its annotations, or a seed. */
const MAX_RESPONSE_BYTES = 256 * 1024;

/** A key management service. All calls reject with Error that says why. */
export interface KmsService {
  status(): Promise<KmsStatus>;
  encrypt(plaintext: Uint8Array): Promise<EncryptedKey>;
  decrypt(key: EncryptedKey): Promise<Uint8Array>;
  close(): void;
}

export interface PluginOptions {
  /** "unix:///path/of/socket". */
  readonly endpoint: string;
  /** Of one call, with the connection. */
  readonly timeoutMs: number;
}

export class PluginClient implements KmsService {
  readonly #options: PluginOptions;
  readonly #clock: Clock;
  readonly #channel: Channel;

  constructor(options: PluginOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#channel = new Channel(
      {
        endpoint: options.endpoint,
        address: `unix:${options.endpoint.replace(/^unix:(?:\/\/)?/, "")}`,
        tls: undefined,
        dialTimeoutMs: options.timeoutMs,
        limits: { maxMessageBytes: MAX_RESPONSE_BYTES },
      },
      clock,
    );
    // The API server lives on for other reasons.
    this.#channel.setReferenced(false);
  }

  async status(): Promise<KmsStatus> {
    return decodeStatus(await this.#call("Status", new Uint8Array(0)));
  }

  async encrypt(plaintext: Uint8Array): Promise<EncryptedKey> {
    const request = encodeEncryptRequest(plaintext, randomUUID());
    return decodeEncryptResponse(await this.#call("Encrypt", request));
  }

  async decrypt(key: EncryptedKey): Promise<Uint8Array> {
    return decodePlaintext(await this.#call("Decrypt", encodeDecryptRequest(key, randomUUID())));
  }

  close(): void {
    this.#channel.close();
  }

  async #call(method: string, request: Uint8Array): Promise<Uint8Array> {
    const { timeoutMs } = this.#options;
    const endMs = this.#clock.monotonicMs() + timeoutMs;
    const connection = await this.#channel.connect();
    return new Promise((resolve, reject) => {
      let response: Uint8Array | undefined;
      const path = `/v2.KeyManagementService/${method}`;
      const leftMs = Math.max(1, endMs - this.#clock.monotonicMs());
      const call = connection.call(
        { path, metadata: [], timeoutMs: leftMs },
        {
          message: (bytes) => {
            if (response === undefined) {
              response = bytes;
              return;
            }
            timer.cancel();
            call?.cancel();
            reject(new Error("the plugin sent more than one response"));
          },
          ended: ({ code, message }) => {
            timer.cancel();
            if (code !== GrpcCode.OK)
              reject(new Error(`rpc error: code = ${code} desc = ${message}`));
            else if (response === undefined) reject(new Error("the plugin sent no response"));
            else resolve(response);
          },
        },
      );
      const timer = this.#clock.after(leftMs, () => {
        call?.cancel();
        reject(new Error(`the plugin did not respond within ${timeoutMs} ms`));
      });
      if (call === undefined) {
        timer.cancel();
        reject(new Error("the plugin takes no more calls at present"));
      } else call.send(request, true);
    });
  }
}
