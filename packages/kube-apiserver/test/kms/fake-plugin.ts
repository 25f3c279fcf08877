/** A KMS v2 plugin on a unix socket, with what can go wrong with one. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { GrpcCode } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { EngineServer } from "@quorate/rpc/node";
import {
  decodeDecryptRequest,
  decodeEncryptRequest,
  type EncryptedKey,
  encodeEncryptResponse,
  encodePlaintext,
  encodeStatus,
} from "../../node/encryption/kms-messages.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SERVICE = "/v2.KeyManagementService/";

export class FakePlugin {
  readonly #keys = new Map<string, Buffer>();
  readonly calls = { Status: 0, Encrypt: 0, Decrypt: 0 };
  version = "v2";
  healthz = "ok";
  keyId = "key-1";
  /** Calls fail with this text. */
  failure: string | undefined;
  /** Calls wait for this. */
  gate: Promise<void> = Promise.resolve();
  /** Changes what Encrypt returns. */
  change: (key: EncryptedKey) => EncryptedKey = (key) => key;

  /** Serves at a socket's path. */
  async serve(path: string): Promise<EngineServer> {
    const method = (name: keyof FakePlugin["calls"], answer: (bytes: Uint8Array) => Uint8Array) => {
      const handler = async (bytes: Uint8Array): Promise<Uint8Array> => {
        this.calls[name]++;
        await this.gate;
        if (this.failure !== undefined) throw new StatusError(GrpcCode.Internal, this.failure);
        return answer(bytes);
      };
      return [`${SERVICE}${name}`, handler] as const;
    };
    const unary = new Map([
      method("Status", () => encodeStatus(this)),
      method("Encrypt", (bytes) =>
        encodeEncryptResponse(this.encrypt(decodeEncryptRequest(bytes))),
      ),
      method("Decrypt", (bytes) => encodePlaintext(this.decrypt(decodeDecryptRequest(bytes)))),
    ]);
    const services = { unary, stream: new Map() };
    const http = () => ({});
    const deps = { services, http, clock: nodeClock, logger: silentLogger };
    const server = new EngineServer({ listen: [{ path, secure: false }] }, deps);
    await server.listen();
    return server;
  }

  encrypt(plaintext: Uint8Array): EncryptedKey {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#key(this.keyId), nonce);
    const text = Buffer.concat([cipher.update(plaintext), cipher.final()]);
    return this.change({
      ciphertext: Buffer.concat([nonce, text, cipher.getAuthTag()]),
      keyId: this.keyId,
      annotations: new Map([["place.example.org", Uint8Array.of(1, 2)]]),
    });
  }

  decrypt({ ciphertext, keyId }: EncryptedKey): Uint8Array {
    const end = ciphertext.length - TAG_BYTES;
    const nonce = ciphertext.subarray(0, NONCE_BYTES);
    const cipher = createDecipheriv("aes-256-gcm", this.#key(keyId), nonce);
    cipher.setAuthTag(ciphertext.subarray(end));
    return Buffer.concat([cipher.update(ciphertext.subarray(NONCE_BYTES, end)), cipher.final()]);
  }

  #key(id: string): Buffer {
    let key = this.#keys.get(id);
    if (key === undefined) this.#keys.set(id, (key = randomBytes(32)));
    return key;
  }
}
