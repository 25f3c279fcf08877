/** The discovery service over the client library; loaded only where a member is to find others. */
import { readFileSync } from "node:fs";
import { connect, type TlsOptions } from "@quorate/client/node";
import type { Registry, RegistryRecord } from "@quorate/member";
import { ConfigError, type DiscoveryConfig } from "@quorate/member";
import { Event, Event_EventType, KeyValue, toUtf8 } from "@quorate/proto";

/** All registrations of a large cluster are a fraction of it. */
const MAX_RESPONSE_BYTES: number = 4 * 1024 * 1024;

/** Opens the service. Throws ConfigError where a file or an endpoint is not usable. */
export function openRegistry(config: DiscoveryConfig): Registry {
  const client = clientOf(config);
  return {
    async get(key) {
      const [found] = (await client.get(key)).kvs;
      return found === undefined ? undefined : toUtf8(found.value);
    },
    async put(key, value) {
      await client.put(key, value);
    },
    async list(prefix, limit) {
      const { kvs, header } = await client.get(prefix, { prefix: true, limit });
      return { records: kvs.map(recordOf), revision: header.revision };
    },
    async puts(prefix, revision) {
      for await (const { events, header, cancelReason } of client.watch(prefix, {
        prefix: true,
        revision,
      })) {
        const records = events.map((bytes) => Event.decode(bytes)).flatMap(putOf);
        if (records.length > 0) return { records, revision: header?.revision ?? revision };
        if (cancelReason !== "") throw new Error(cancelReason);
      }
      throw new Error("the watch has ended");
    },
    async close() {
      await client.close();
    },
  };
}

function clientOf(config: DiscoveryConfig): ReturnType<typeof connect> {
  const { auth } = config;
  try {
    return connect({
      endpoints: config.endpoints,
      tls: tlsOf(config),
      ...(auth === undefined ? {} : { auth }),
      dialTimeoutMs: config.dialTimeoutMs,
      timeoutMs: config.requestTimeoutMs + config.dialTimeoutMs,
      ...(config.keepaliveTimeMs > 0 ? { keepaliveTimeMs: config.keepaliveTimeMs } : {}),
      keepaliveTimeoutMs: config.keepaliveTimeoutMs,
      maxResponseBytes: MAX_RESPONSE_BYTES,
    });
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError("BadValue", `--discovery-endpoints: ${(error as Error).message}`);
  }
}

function tlsOf(config: DiscoveryConfig): TlsOptions {
  const read = (flag: string, path: string): { pem?: string } => {
    if (path === "") return {};
    try {
      return { pem: readFileSync(path, "utf8") };
    } catch (error) {
      throw new ConfigError(
        "BadFile",
        `--${flag}: cannot read ${path}: ${(error as Error).message}`,
      );
    }
  };
  const ca = read("discovery-cacert", config.caFile).pem;
  const cert = read("discovery-cert", config.certFile).pem;
  const key = read("discovery-key", config.keyFile).pem;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    insecureSkipVerify: config.insecureSkipVerify,
    plainByDefault: config.insecureTransport,
  };
}

/** The record that an event put; none for a deletion. */
function putOf({ type, kv }: Event): RegistryRecord[] {
  return type === Event_EventType.PUT && kv !== undefined ? [recordOf(KeyValue.decode(kv))] : [];
}

function recordOf({ key, value, createRevision }: KeyValue): RegistryRecord {
  return { key: toUtf8(key), value: toUtf8(value), createRevision };
}
