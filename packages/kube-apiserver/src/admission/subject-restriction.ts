/**
 * CertificateSubjectRestriction (kubernetes: plugin/pkg/admission/certificates/subjectrestriction):
 * nobody asks for a client's certificate of the group that may do everything.
 */

import { type DerElement, derElements, pemBlocks } from "@quorate/host";
import { fromBase64, toUtf8 } from "@quorate/proto";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";

const SIGNER = "kubernetes.io/kube-apiserver-client";
const MASTERS = "system:masters";

export function subjectRestriction(): AdmissionPlugin {
  return {
    resources: ["certificates.k8s.io/certificatesigningrequests"],
    async validate(attributes) {
      const { object, operation, subresource } = attributes;
      if (operation !== "CREATE" || subresource !== "") return;
      const spec = (object?.["spec"] ?? {}) as { signerName?: string; request?: string };
      if (spec.signerName !== SIGNER) return;
      const pem = toUtf8(fromBase64(spec.request ?? "") ?? new Uint8Array());
      const organizations = requestedOrganizations(pem);
      if (organizations === undefined)
        throw admissionForbidden(attributes, "failed to parse CSR: it is no certificate request");
      if (organizations.includes(MASTERS)) {
        const why = `use of ${SIGNER} signer with ${MASTERS} group is not allowed`;
        throw admissionForbidden(attributes, why);
      }
    },
  };
}

/*
 * Who a request for a certificate is for (PKCS #10, RFC 2986), from its PEM:
 *
 *     SEQUENCE             the request
 *       SEQUENCE           what is asked for
 *         INTEGER          version
 *         SEQUENCE         subject
 *           SET
 *             SEQUENCE     OBJECT IDENTIFIER, text
 *         ...
 *       ...
 *
 * As much as that is read, in one pass; what two readers could understand in two ways is refused.
 */
const INTEGER = 0x02;
const OBJECT_IDENTIFIER = 0x06;
const BMP_STRING = 0x1e;
const SEQUENCE = 0x30;
const SET = 0x31;
/** 2.5.4.10, encoded. */
const ORGANIZATION = "\x55\x04\x0a";
const LABEL = "CERTIFICATE REQUEST";

/**
 * The organizations of the subject, which are the groups of a client.
 *
 * @param pem one block, of a request
 * @returns undefined for anything else
 */
export function requestedOrganizations(pem: string): readonly string[] | undefined {
  const [block] = pemBlocks(pem);
  // A block that one reader passes over would hide the next one from another reader.
  if (block?.label !== LABEL || pem.split("-----BEGIN").length !== 2) return undefined;
  const der = fromBase64(block.body.replaceAll("\r", "").replaceAll("\n", ""));
  return der && organizationsOf(der);
}

function organizationsOf(der: Uint8Array): readonly string[] | undefined {
  const inside = (
    element: DerElement | undefined,
    tag: number,
  ): readonly DerElement[] | undefined =>
    element?.tag === tag ? derElements(der, element.start, element.end) : undefined;
  const whole = derElements(der);
  const [info] = inside(whole?.length === 1 ? whole[0] : undefined, SEQUENCE) ?? [];
  const [version, subject] = inside(info, SEQUENCE) ?? [];
  const sets = inside(subject, SEQUENCE);
  if (version?.tag !== INTEGER || sets === undefined) return undefined;
  const found: string[] = [];
  for (const set of sets) {
    const pairs = inside(set, SET);
    if (pairs === undefined) return undefined;
    for (const pair of pairs) {
      const [type, text, ...more] = inside(pair, SEQUENCE) ?? [];
      if (type?.tag !== OBJECT_IDENTIFIER || text === undefined || more.length > 0)
        return undefined;
      if (textOf(der, type) === ORGANIZATION) found.push(textOf(der, text));
    }
  }
  return found;
}

/** Of the encodings only the one with two bytes a character differs for ASCII. */
function textOf(der: Uint8Array, { tag, start, end }: DerElement): string {
  const text = toUtf8(der.subarray(start, end));
  return tag === BMP_STRING ? text.replaceAll("\0", "") : text;
}
