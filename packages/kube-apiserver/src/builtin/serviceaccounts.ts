/** ServiceAccounts (kubernetes: registry/core/serviceaccount). */

import type { KindSource, KubeObject, ResourceSpec } from "@quorate/kube-storage";
import { builtinSpec, NAME_AND_AGE, plainStrategy, withField } from "@quorate/kube-storage";
import { validateCoreFinalizers } from "./finalizer-names.ts";

const ENFORCE_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets";
const ENFORCE_WARNING =
  `metadata.annotations[${ENFORCE_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces ` +
  "to isolate access to mounted secrets";

/** References to secrets hold nothing but their names. */
function withCleanSecrets(object: KubeObject): KubeObject {
  const secrets = object["secrets"] as readonly { readonly name?: string }[] | undefined;
  if (secrets === undefined) return object;
  const names = secrets.map(({ name }) => (name === undefined ? {} : { name }));
  return withField(object, "secrets", names);
}

function warnings(object: KubeObject, old: KubeObject | undefined): string[] {
  if (old?.metadata.annotations?.[ENFORCE_MOUNTABLE] !== undefined) return [];
  return object.metadata.annotations?.[ENFORCE_MOUNTABLE] === undefined ? [] : [ENFORCE_WARNING];
}

/** The resource "serviceaccounts"; /token is a storage of its own. */
export function serviceAccounts(source: KindSource): ResourceSpec {
  return builtinSpec(source, "serviceaccounts", {
    shortNames: ["sa"],
    returnsDeletedObject: true,
    strategy: plainStrategy(
      { kind: source.kind, namespaced: true },
      {
        prepareForCreate: (_ctx, object) => withCleanSecrets(object),
        validate: (_ctx, object) => validateCoreFinalizers(object),
        warningsOnCreate: (_ctx, object) => warnings(object, undefined),
        prepareForUpdate: (_ctx, object) => withCleanSecrets(object),
        validateUpdate: (_ctx, object) => [
          ...validateCoreFinalizers(object),
          ...validateCoreFinalizers(object),
        ],
        warningsOnUpdate: (_ctx, object, old) => warnings(object, old),
      },
    ),
    table: NAME_AND_AGE,
  });
}
