/** The secrets of a cluster's certificates, as an observation and as steps change them. */

import { fromUtf8, toBase64, toUtf8, writeFromBase64 } from "@quorate/proto";
import type { QuorateCluster } from "../base/kinds.ts";
import { annotationOf, type KubeObject } from "../base/kube.ts";
import {
  authorityName,
  leafName,
  REQUEST,
  ROTATE,
  ROTATE_AUTHORITY,
  type Subject,
  secretOf,
  subjectOf,
} from "./objects.ts";
import type { AuthorityView, CertificateView, Leaf } from "./observed.ts";
import type { AuthorityStage } from "./step.ts";

/** A certificate and its key, as PEM. */
export interface Pair {
  readonly certPem: string;
  readonly keyPem: string;
}

/** Makes and reads certificates. */
export interface Certifier {
  authority(commonName: string, fromMs: number, untilMs: number): Promise<Pair>;
  issue(authority: Pair, subject: Subject, fromMs: number, untilMs: number): Promise<Pair>;
  /** Throws for what is no certificate. */
  validity(certPem: string): { readonly fromMs: number; readonly untilMs: number };
  /** Whether the authority signed it. */
  isSignedBy(certPem: string, authorityPem: string): boolean;
}

const DAY_MS = 24 * 3_600_000;
const AUTHORITY_DAYS = 3650;
/** Certificates begin in the past, for members whose clocks are behind. */
const EARLIER_MS = 3_600_000;
const STAGE_SINCE = "quorate.dev/stage-since";

function encode(text: string): string {
  return toBase64(fromUtf8(text));
}

/** A value of a secret as text; "" where there is none. */
export function secretText(secret: KubeObject | undefined, name: string): string {
  const encoded = secret?.data?.[name] ?? "";
  const bytes = new Uint8Array(encoded.length);
  return toUtf8(bytes.subarray(0, writeFromBase64(bytes, encoded, 0)));
}

/** All certificates of authorities that are to be trusted. */
const bundleOf = (authority: KubeObject): string =>
  ["tls.crt", "next.crt", "previous.crt"].map((name) => secretText(authority, name)).join("");

export function authorityView(
  secret: KubeObject | undefined,
  certifier: Certifier,
): AuthorityView | undefined {
  if (secret === undefined) return undefined;
  const { fromMs, untilMs } = certifier.validity(secretText(secret, "tls.crt"));
  const has = (name: string): boolean => secretText(secret, name) !== "";
  return {
    fromMs,
    untilMs,
    stage: has("next.crt") ? "next" : has("previous.crt") ? "previous" : "alone",
    stageSinceMs: Number(annotationOf(secret, STAGE_SINCE) ?? "0"),
    request: annotationOf(secret, REQUEST) ?? "",
  };
}

export function leafView(
  secret: KubeObject | undefined,
  authority: KubeObject | undefined,
  certifier: Certifier,
): CertificateView | undefined {
  if (secret === undefined || authority === undefined) return undefined;
  const certPem = secretText(secret, "tls.crt");
  return {
    fromMs: certifier.validity(certPem).fromMs,
    untilMs: certifier.validity(certPem).untilMs,
    isCurrent:
      secretText(secret, "ca.crt") === bundleOf(authority) &&
      certifier.isSignedBy(certPem, secretText(authority, "tls.crt")),
    request: annotationOf(secret, REQUEST) ?? "",
  };
}

/** A certificate that cert-manager made; undefined until it is whole. */
export function issuedView(
  secret: KubeObject | undefined,
  certifier: Certifier,
): CertificateView | undefined {
  if (["tls.crt", "tls.key", "ca.crt"].some((name) => secretText(secret, name) === ""))
    return undefined;
  const { fromMs, untilMs } = certifier.validity(secretText(secret, "tls.crt"));
  return { fromMs, untilMs, isCurrent: true, request: "" };
}

/** The secret of the authority after a stage of its replacement. */
export async function nextAuthority(
  cluster: QuorateCluster,
  present: KubeObject | undefined,
  stage: AuthorityStage,
  nowMs: number,
  certifier: Certifier,
): Promise<KubeObject> {
  const name = authorityName(cluster.metadata.name);
  const data: Record<string, string> = { ...present?.data };
  const move = (from: string, to: string): void => {
    for (const part of ["crt", "key"]) {
      if (data[`${from}.${part}`] !== undefined) data[`${to}.${part}`] = data[`${from}.${part}`]!;
      delete data[`${from}.${part}`];
    }
  };
  if (stage === "first" || stage === "next") {
    const untilMs = nowMs + AUTHORITY_DAYS * DAY_MS;
    const pair = await certifier.authority(`${name} ${nowMs}`, nowMs - EARLIER_MS, untilMs);
    const prefix = stage === "first" ? "tls" : "next";
    data[`${prefix}.crt`] = encode(pair.certPem);
    data[`${prefix}.key`] = encode(pair.keyPem);
  } else if (stage === "takeover") {
    move("tls", "previous");
    move("next", "tls");
    delete data["previous.key"];
  } else delete data["previous.crt"];
  return secretOf(cluster, name, data, {
    [STAGE_SINCE]: String(nowMs),
    [REQUEST]: annotationOf(cluster, ROTATE_AUTHORITY) ?? "",
  });
}

/** The secret of a new certificate. */
export async function newLeaf(
  cluster: QuorateCluster,
  leaf: Leaf,
  authority: KubeObject,
  nowMs: number,
  certifier: Certifier,
): Promise<KubeObject> {
  const signer = {
    certPem: secretText(authority, "tls.crt"),
    keyPem: secretText(authority, "tls.key"),
  };
  const subject = subjectOf(cluster, leaf);
  const untilMs = nowMs + cluster.spec!.certificates.validDays * DAY_MS;
  const pair = await certifier.issue(signer, subject, nowMs - EARLIER_MS, untilMs);
  const data = {
    "tls.crt": encode(pair.certPem),
    "tls.key": encode(pair.keyPem),
    "ca.crt": encode(bundleOf(authority)),
  };
  const request = annotationOf(cluster, ROTATE) ?? "";
  return secretOf(cluster, leafName(cluster.metadata.name, leaf), data, { [REQUEST]: request });
}
