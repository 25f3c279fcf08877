/** Volumes of pods. */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isDns1123Subdomain,
  quantityNumber,
  required,
} from "@quorate/kube-storage";
import { CLAIM_SPEC, DRIVER, NO_SOURCE, ONE_SOURCE, SHARED_SOURCES, unchecked } from "./claims.ts";
import { fieldReference, PULL_POLICY, resourceReference } from "./containers.ts";
import {
  ANNOTATIONS,
  all,
  alternatives,
  between,
  each,
  fields,
  isAbsent,
  LABELS,
  listOf,
  named,
  needed,
  number,
  type ObjectFields,
  objectOf,
  type Rule,
  struct,
  textOf,
} from "./rules.ts";
import { LOCAL_PATH } from "./texts.ts";

const MODE = number(
  (value) => value >= 0 && value <= 0o777,
  "must be a number between 0 and 0777 (octal), both inclusive",
);

const ITEMS: Rule = each(struct({ key: needed(), path: all(needed(), LOCAL_PATH), mode: MODE }));

const DOWNWARD_FIELDS = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];

/** Files of a downward API; Kubernetes names none of them by its index. */
const FILES: Rule = (value, field, found) => {
  const at = field.slice(0, -".items".length);
  for (const file of listOf(value)) {
    all(needed(), LOCAL_PATH)(file["path"], `${at}.path`, found);
    const { fieldRef, resourceFieldRef } = file;
    if (!isAbsent(fieldRef)) {
      fieldReference(DOWNWARD_FIELDS)(fieldRef, `${at}.fieldRef`, found);
      if (!isAbsent(resourceFieldRef)) {
        const text = "fieldRef and resourceFieldRef can not be specified simultaneously";
        found.push(invalidValue(at, "resource", text));
      }
    } else if (!isAbsent(resourceFieldRef)) {
      resourceReference(true)(resourceFieldRef, `${at}.resourceFieldRef`, found);
    } else found.push(required(at, "one of fieldRef and resourceFieldRef is required"));
    MODE(file["mode"], `${at}.mode`, found);
  }
};

const MIN_TOKEN_SECONDS = 600;

const PROJECTIONS: Readonly<Record<string, Rule>> = {
  secret: fields({ name: needed(), items: ITEMS }),
  configMap: fields({ name: needed(), items: ITEMS }),
  downwardAPI: fields({ items: FILES }),
  serviceAccountToken: fields({
    expirationSeconds: all(
      number(
        (value) => value >= MIN_TOKEN_SECONDS,
        "may not specify a duration less than 10 minutes",
      ),
      number((value) => value <= 2 ** 32, "may not specify a duration larger than 2^32 seconds"),
    ),
  }),
  clusterTrustBundle: fields({ path: all(needed(), LOCAL_PATH) }),
  podCertificate: fields({ signerName: needed() }),
};

const PROJECTED: Rule = (value, field, found) => {
  MODE(objectOf(value)["defaultMode"], `${field}.defaultMode`, found);
  const paths = new Set<string>();
  for (const [index, source] of listOf(objectOf(value)["sources"]).entries()) {
    const at = `${field}.sources[${index}]`;
    const present = Object.entries(PROJECTIONS).filter(([name]) => !isAbsent(source[name]));
    for (const [name, rule] of present) {
      const one = objectOf(source[name]);
      rule(one, `${at}.${name}`, found);
      if (name === "serviceAccountToken") {
        all(needed(), LOCAL_PATH)(one["path"], `${field}.path`, found);
      }
      for (const { path } of listOf(one["items"])) {
        const text = textOf(path);
        if (paths.has(text)) {
          const shown = name === "downwardAPI" ? text : (one["name"] ?? "");
          found.push(invalidValue(field, shown, "conflicting duplicate paths"));
        }
        if (text !== "") paths.add(text);
      }
    }
    if (present.length > 1) {
      const text = "may not specify more than 1 volume type per source";
      found.push(fieldErrors.fieldForbidden(at, text));
    }
  }
};

const SOURCES: Readonly<Record<string, Rule>> = {
  emptyDir: fields({
    sizeLimit(value, field, found) {
      if (typeof value !== "string" || quantityNumber(value) >= 0) return;
      const text = "SizeLimit field must be a valid resource quantity";
      found.push(fieldErrors.fieldForbidden(field, text));
    },
  }),
  ...SHARED_SOURCES,
  ...unchecked("gitRepo gcePersistentDisk awsElasticBlockStore glusterfs flocker rbd cinder"),
  secret: fields({ secretName: needed(), defaultMode: MODE, items: ITEMS }),
  iscsi: fields({ targetPortal: needed(), iqn: needed(), lun: between(0, 255) }),
  persistentVolumeClaim: fields({ claimName: needed() }),
  ...unchecked("cephfs quobyte"),
  downwardAPI: fields({ defaultMode: MODE, items: FILES }),
  ...unchecked("fc flexVolume"),
  configMap: fields({ name: needed(), defaultMode: MODE, items: ITEMS }),
  ...unchecked("azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos"),
  projected: PROJECTED,
  ...unchecked("scaleIO"),
  csi: fields({
    driver: DRIVER,
    nodePublishSecretRef: fields({ name: needed(named((name) => isDns1123Subdomain(name))) }),
  }),
  ephemeral: fields({
    volumeClaimTemplate: needed(
      struct({
        metadata: fields({ annotations: ANNOTATIONS, labels: LABELS }),
        spec: CLAIM_SPEC,
      }),
    ),
  }),
};

/** @param isPod templates may leave the image of a volume open */
function sourceRule(isPod: boolean): Rule {
  const image = fields({ ...(isPod ? { reference: needed() } : {}), pullPolicy: PULL_POLICY });
  return alternatives({ ...SOURCES, image }, ONE_SOURCE, NO_SOURCE);
}

const OF_PODS = sourceRule(true);
const OF_TEMPLATES = sourceRule(false);

/** Adds the errors of a pod's volumes. @returns the good ones, by name */
export function volumeErrors(
  volumes: readonly ObjectFields[],
  field: string,
  podName: string | undefined,
  found: FieldError[],
): ReadonlyMap<string, ObjectFields> {
  const good = new Map<string, ObjectFields>();
  const rule = podName === undefined ? OF_TEMPLATES : OF_PODS;
  const made = new Set(
    volumes
      .filter(({ ephemeral }) => !isAbsent(ephemeral))
      .map(({ name }) => `${podName ?? ""}-${textOf(name)}`),
  );
  for (const [index, volume] of volumes.entries()) {
    const at = `${field}[${index}]`;
    const name = textOf(volume["name"]);
    const before = found.length;
    rule(volume, at, found);
    if (name === "") found.push(required(`${at}.name`));
    else
      for (const text of isDns1123Label(name)) found.push(invalidValue(`${at}.name`, name, text));
    if (good.has(name)) found.push(fieldErrors.duplicate(`${at}.name`, name));
    if (found.length === before) good.set(name, volume);
    const { claimName } = objectOf(volume["persistentVolumeClaim"]);
    if (podName !== undefined && made.has(textOf(claimName))) {
      const text = "must not reference a PVC that gets created for an ephemeral volume";
      found.push(invalidValue(`${at}.persistentVolumeClaim.claimName`, claimName, text));
    }
  }
  return good;
}
