/**
 * CertificateSubjectRestriction (kubernetes: plugin/pkg/admission/certificates/subjectrestriction):
 * nobody asks for a client's certificate of the group that may do everything.
 */
import { fromBase64, toUtf8 } from "@quorate/proto";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";
import { requestedOrganizations } from "./signing-request-subject.ts";

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
