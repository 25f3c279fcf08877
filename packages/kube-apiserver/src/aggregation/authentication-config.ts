/**
 * The ConfigMap by which other API servers know whom to believe (kubernetes: pkg/controlplane/
 * controller/clusterauthenticationtrust): the authorities of clients' certificates, and the one of
 * this server's own, with the headers that say who asks.
 */
import { pemBlocks } from "@quorate/host";
import { type KubeObject, semanticEqual } from "@quorate/kube-storage";
import type { ProxySettings } from "../authn/proxied-users.ts";
import { isAlreadyExists, type LocalClient, type ResourceRef } from "../informers/local-client.ts";

const CONFIG_MAPS: ResourceRef = { group: "", version: "v1", resource: "configmaps" };
const NAMESPACE = "kube-system";
const NAME = "extension-apiserver-authentication";
/** Authorities of servers that share a cluster; the oldest ones go. */
export const MAX_PUBLISHED_CERTIFICATES = 100;

export interface PublishedTrust {
  /** Of clients' certificates; "" for none. */
  readonly clientCaPem: string;
  /** Of the certificate that this server shows to others; "" for none. */
  readonly requestHeaderCaPem: string;
  /** The names in that certificate, and the headers that say who asks. */
  readonly proxies: ProxySettings;
}

/** Creates it, or adds what this server has to what others have written. Rejects with ApiError. */
export async function publishTrust(client: LocalClient, trust: PublishedTrust): Promise<void> {
  const metadata = { name: NAME, namespace: NAMESPACE };
  const data = dataOf(trust, {});
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata, data } as KubeObject;
  if ((await client.get(CONFIG_MAPS, NAMESPACE, NAME)) === undefined) {
    try {
      await client.create(CONFIG_MAPS, NAMESPACE, object);
      return;
    } catch (error) {
      // Another server was first.
      if (!isAlreadyExists(error)) throw error;
    }
  }
  await client.update(CONFIG_MAPS, NAMESPACE, NAME, (present) => {
    const before = (present["data"] ?? {}) as Record<string, string>;
    const changed = { ...present, data: { ...before, ...dataOf(trust, before) } };
    return semanticEqual(changed, present) ? undefined : changed;
  });
}

function dataOf(
  { clientCaPem, requestHeaderCaPem, proxies }: PublishedTrust,
  before: Readonly<Record<string, string>>,
): Record<string, string> {
  const joined = (name: string, own: readonly string[]): string =>
    JSON.stringify([...new Set([...listOf(before[name]), ...own])]);
  const certificates = (name: string, pem: string): string =>
    [...new Set([...certificatesOf(before[name] ?? ""), ...certificatesOf(pem)])]
      .slice(-MAX_PUBLISHED_CERTIFICATES)
      .join("");
  return {
    ...(clientCaPem === ""
      ? {}
      : { "client-ca-file": certificates("client-ca-file", clientCaPem) }),
    ...(requestHeaderCaPem === ""
      ? {}
      : {
          "requestheader-allowed-names": joined(
            "requestheader-allowed-names",
            proxies.allowedNames,
          ),
          "requestheader-client-ca-file": certificates(
            "requestheader-client-ca-file",
            requestHeaderCaPem,
          ),
          "requestheader-extra-headers-prefix": joined(
            "requestheader-extra-headers-prefix",
            proxies.extraPrefixes,
          ),
          "requestheader-group-headers": joined(
            "requestheader-group-headers",
            proxies.groupHeaders,
          ),
          "requestheader-uid-headers": joined("requestheader-uid-headers", proxies.uidHeaders),
          "requestheader-username-headers": joined(
            "requestheader-username-headers",
            proxies.usernameHeaders,
          ),
        }),
  };
}

/** A list that another server has written; what cannot be read is written anew. */
function listOf(text = "[]"): readonly string[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

function certificatesOf(pem: string): string[] {
  return pemBlocks(pem)
    .filter(({ label }) => label === "CERTIFICATE")
    .map(({ text }) => `${text.trim()}\n`);
}
