/**
 * CertificateApproval, CertificateSigning and ClusterTrustBundleAttest (Kubernetes:
 * plugin/pkg/admission/certificates): who approves a request for a certificate, puts one into it,
 * or says which certificates of a signer are to be trusted, needs the verb on the signer, besides
 * the permission to change the object.
 */
import {
  fieldForbidden,
  invalid,
  type KubeObject,
  semanticEqual,
  type UserInfo,
} from "@quorate/kube-storage";
import type { Authorizer } from "../authz/authorizer.ts";
import { changesOnlyGcFields } from "../authz/grant-check.ts";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";

const GROUP = "certificates.k8s.io";

export function signerPermissions(authorizer: Authorizer): AdmissionPlugin {
  return {
    resources: ["certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"].map(
      (resource) => `${GROUP}/${resource}`,
    ),
    async validate(attributes) {
      const { operation, subresource, object, oldObject, user, kind } = attributes;
      const { resource } = attributes.resource;
      // The stored one: an update cannot name another signer to be judged by.
      const signer = signerOf(resource === "clustertrustbundles" ? object : oldObject);
      const may = (verb: string) => isPermitted(authorizer, user, verb, signer);
      const refused = (why: string) => admissionForbidden(attributes, why);
      const quoted = JSON.stringify(signer);
      if (resource === "clustertrustbundles") {
        const isSame = object && oldObject && changesOnlyGcFields(object, oldObject);
        if (signer === "" || isSame === true || (await may("attest"))) return;
        throw refused(`user not permitted to attest for signerName ${quoted}`);
      }
      if (operation !== "UPDATE") return;
      if (resource === "podcertificaterequests") {
        if (subresource !== "status") return;
        if (semanticEqual(statusOf(object), statusOf(oldObject)) || (await may("sign"))) return;
        const why = `User ${JSON.stringify(user.name)} is not permitted to "sign" for signer ${quoted}`;
        throw invalid(kind, attributes.name, [fieldForbidden("spec.signerName", why)]);
      }
      const isSigning = subresource === "status" && isSigned(object, oldObject);
      const verb = subresource === "approval" ? "approve" : isSigning ? "sign" : undefined;
      if (verb === undefined || (await may(verb))) return;
      throw refused(`user not permitted to ${verb} requests with signerName ${quoted}`);
    },
  };
}

function signerOf(object: KubeObject | undefined): string {
  return ((object?.["spec"] ?? {}) as { signerName?: string }).signerName ?? "";
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

/** Whether the user has the verb on the signer, or on all of its domain: "example.com/*". */
async function isPermitted(
  authorizer: Authorizer,
  user: UserInfo,
  verb: string,
  signer: string,
): Promise<boolean> {
  const [domain = ""] = signer.split("/", 1);
  for (const name of [signer, `${domain}/*`]) {
    const { decision } = await authorizer.authorize({
      user,
      verb,
      name,
      group: GROUP,
      version: "*",
      resource: "signers",
      subresource: "",
      namespace: "",
      isResourceRequest: true,
      path: "",
    });
    if (decision === "allow") return true;
  }
  return false;
}
