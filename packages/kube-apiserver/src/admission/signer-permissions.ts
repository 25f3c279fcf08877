/**
 * CertificateApproval and CertificateSigning (Kubernetes: plugin/pkg/admission/certificates): who
 * approves a request for a certificate, or puts one into it, needs the verb on the signer that the
 * request names, besides the permission to change the object.
 */
import { type KubeObject, semanticEqual } from "@quorate/kube-storage";
import type { Authorizer } from "../authz/authorizer.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";

export function signerPermissions(authorizer: Authorizer): AdmissionPlugin {
  return {
    resources: ["certificates.k8s.io/certificatesigningrequests"],
    async validate(attributes) {
      const { operation, subresource, object, oldObject } = attributes;
      if (operation !== "UPDATE") return;
      if (subresource === "approval") await check(attributes, authorizer, "approve");
      else if (subresource === "status" && isSigned(object, oldObject))
        await check(attributes, authorizer, "sign");
    },
  };
}

interface Status {
  readonly certificate?: unknown;
  readonly conditions?: unknown;
}

const statusOf = (object: KubeObject | undefined): Status => (object?.["status"] ?? {}) as Status;

/** Whether an update changes what a signer says. */
function isSigned(object: KubeObject | undefined, old: KubeObject | undefined): boolean {
  const now = statusOf(object);
  const before = statusOf(old);
  return (
    !semanticEqual(now.certificate, before.certificate) ||
    !semanticEqual(now.conditions, before.conditions)
  );
}

/**
 * @param verb on the signer, or on all of its domain: "example.com/*"
 * @throws ApiError 403
 */
async function check(
  attributes: AdmissionAttributes,
  authorizer: Authorizer,
  verb: "approve" | "sign",
): Promise<void> {
  // The stored one: an update cannot name another signer to be judged by.
  const spec = (attributes.oldObject?.["spec"] ?? {}) as { signerName?: string };
  const signer = spec.signerName ?? "";
  const [domain = ""] = signer.split("/", 1);
  for (const name of [signer, `${domain}/*`]) {
    const { decision } = await authorizer.authorize({
      user: attributes.user,
      verb,
      name,
      group: "certificates.k8s.io",
      version: "*",
      resource: "signers",
      subresource: "",
      namespace: "",
      isResourceRequest: true,
      path: "",
    });
    if (decision === "allow") return;
  }
  const why = `user not permitted to ${verb} requests with signerName ${JSON.stringify(signer)}`;
  throw admissionForbidden(attributes, why);
}
