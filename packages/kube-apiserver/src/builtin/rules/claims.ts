/** PersistentVolumeClaims, PersistentVolumes, and what volumes of pods share with them. */
import {
  compareQuantities,
  fieldErrors,
  invalidValue,
  isDns1123Subdomain,
  notSupported,
  required,
  semanticEqual,
} from "@quorate/kube-storage";
import { notNegative, positive, quantitiesOf } from "./quantities.ts";
import {
  all,
  alternatives,
  fields,
  immutable,
  isAbsent,
  listOf,
  named,
  needed,
  type ObjectFields,
  objectOf,
  oneOf,
  type Rule,
  SELECTOR,
  struct,
  textOf,
} from "./rules.ts";
import { NODE_SELECTOR } from "./scheduling.ts";
import { PATH_WITHOUT_BACKSTEPS } from "./texts.ts";

const MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/** @param none why there must be one */
function accessModes(none: string): Rule {
  return (value, field, found) => {
    const modes = listOf<string>(value);
    if (modes.length === 0) found.push(required(field, none));
    for (const mode of modes) {
      if (!MODES.includes(mode)) found.push(notSupported(field, mode, MODES));
    }
    const others = modes.filter((mode) => MODES.includes(mode) && mode !== "ReadWriteOncePod");
    if (modes.includes("ReadWriteOncePod") && others.length > 0) {
      const text = "may not use ReadWriteOncePod with other access modes";
      found.push(fieldErrors.fieldForbidden(field, text));
    }
  };
}

const VOLUME_MODE = oneOf("Block", "Filesystem");
const CLASS_NAME = named((name) => isDns1123Subdomain(name));

const REFERENCE = struct({
  kind: needed(),
  name: needed(),
  apiGroup: named((name) => isDns1123Subdomain(name)),
});

const SOURCE: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  REFERENCE(value, field, found);
  const { apiGroup, kind } = objectOf(value);
  if ((apiGroup ?? "") === "" && kind !== "PersistentVolumeClaim") {
    const text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    found.push(invalidValue(`${field}.kind`, kind ?? "", text));
  }
};

export const CLAIM_SPEC: Rule = all(
  struct({
    accessModes: accessModes("at least 1 access mode is required"),
    selector: SELECTOR,
    resources(value, field, found) {
      const { storage } = quantitiesOf(objectOf(value), "requests");
      if (storage === undefined) found.push(required(`${field}[storage]`));
      else positive(storage, `${field}[storage]`, found);
    },
    storageClassName: CLASS_NAME,
    volumeMode: VOLUME_MODE,
    dataSource: SOURCE,
    dataSourceRef: SOURCE,
    volumeAttributesClassName: CLASS_NAME,
  }),
  (value, field, found) => {
    const { dataSource, dataSourceRef } = objectOf(value);
    if (isAbsent(dataSource) || isAbsent(dataSourceRef)) return;
    const { namespace = "", ...ref } = objectOf(dataSourceRef);
    const text = "may not be specified when dataSourceRef.namespace is specified";
    if (namespace !== "") found.push(invalidValue(field, {}, text));
    else if (!semanticEqual(dataSource, ref)) {
      found.push(invalidValue(field, {}, "must match dataSourceRef"));
    }
  },
);

const CLAIM_IMMUTABLE =
  "spec is immutable after creation except resources.requests and volumeAttributesClassName for " +
  "bound claims";

/** What a change of a claim may not do. */
export function claimUpdate(
  object: ObjectFields,
  old: ObjectFields,
  found: Parameters<Rule>[2],
): void {
  const [spec, before] = [objectOf(object["spec"]), objectOf(old["spec"])];
  const isBound = objectOf(object["status"])["phase"] === "Bound";
  const size = (of: ObjectFields): string =>
    quantitiesOf(objectOf(of["resources"]), "requests")["storage"] ?? "0";
  const comparable = (of: ObjectFields): ObjectFields => ({
    ...of,
    ...(textOf(before["volumeName"]) === "" ? { volumeName: "" } : {}),
    ...(isAbsent(before["storageClassName"]) ? { storageClassName: "" } : {}),
    ...(isBound
      ? {
          volumeAttributesClassName: "",
          resources: {
            ...objectOf(of["resources"]),
            requests: { ...quantitiesOf(objectOf(of["resources"]), "requests"), storage: "" },
          },
        }
      : {}),
  });
  if (!semanticEqual(comparable(spec), comparable(before))) {
    found.push(fieldErrors.fieldForbidden("spec", CLAIM_IMMUTABLE));
  }
  const has = quantitiesOf(objectOf(old["status"]), "capacity")["storage"] ?? "0";
  if (compareQuantities(size(spec), size(before)) < 0 && compareQuantities(size(spec), has) <= 0) {
    const text = "field can not be less than status.capacity";
    found.push(fieldErrors.fieldForbidden("spec.resources.requests.storage", text));
  }
  immutable(spec["volumeMode"], before["volumeMode"], "volumeMode", found);
}

const MAX_DRIVER_CHARS = 63;

export const DRIVER: Rule = needed((value, field, found) => {
  const name = textOf(value);
  if (name.length > MAX_DRIVER_CHARS) found.push(fieldErrors.tooLong(field, MAX_DRIVER_CHARS));
  for (const text of isDns1123Subdomain(name.toLowerCase())) {
    found.push(invalidValue(field, name, text));
  }
});

/** Sources that pods and PersistentVolumes have alike. */
export const SHARED_SOURCES: Readonly<Record<string, Rule>> = {
  hostPath: (value, field, found) => {
    const { path, type } = objectOf(value);
    needed(PATH_WITHOUT_BACKSTEPS)(path, `${field}.path`, found);
    if (textOf(path) !== "") HOST_PATH_TYPE(type, `${field}.type`, found);
  },
  nfs: fields({
    server: needed(),
    path: all(needed(), (value, field, found) => {
      const path = textOf(value);
      if (!path.startsWith("/")) found.push(invalidValue(field, path, "must be an absolute path"));
    }),
  }),
};

const HOST_PATH_TYPE = oneOf(
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
);

export const ONE_SOURCE = "may not specify more than 1 volume type";
export const NO_SOURCE = "must specify a volume type";
export const ANY: Rule = () => {};

/** Sources whose fields no rule looks at: storage that few clusters have any more. */
export function unchecked(names: string): Readonly<Record<string, Rule>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, ANY]));
}

const VOLUME_SOURCES = {
  ...SHARED_SOURCES,
  ...unchecked(
    "gcePersistentDisk awsElasticBlockStore glusterfs flocker rbd quobyte cephfs iscsi cinder fc " +
      "flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO " +
      "storageos",
  ),
  local: struct({ path: needed(PATH_WITHOUT_BACKSTEPS) }),
  csi: struct({ driver: DRIVER, volumeHandle: needed() }),
};

export const VOLUME_SPEC: Rule = all(
  struct({
    accessModes: accessModes(""),
    capacity(value, field, found) {
      const capacity = objectOf(value);
      const names = Object.keys(capacity);
      if (names.length === 0) found.push(required(field));
      if (!names.includes("storage") || names.length > 1) {
        found.push(notSupported(field, capacity, ["storage"]));
      }
      for (const name of names) {
        notNegative(capacity[name], `${field}[${name}]`, found);
        positive(capacity[name], `${field}[${name}]`, found);
      }
    },
    persistentVolumeReclaimPolicy: oneOf("Delete", "Recycle", "Retain"),
    nodeAffinity: fields({
      required: needed(NODE_SELECTOR, "must specify required node constraints"),
    }),
  }),
  alternatives(VOLUME_SOURCES, ONE_SOURCE, NO_SOURCE),
  (value, field, found) => {
    const { local, hostPath, nodeAffinity, persistentVolumeReclaimPolicy } = objectOf(value);
    if (!isAbsent(local) && isAbsent(nodeAffinity)) {
      found.push(required(`${field}.nodeAffinity`, "Local volume requires node affinity"));
    }
    const path = textOf(objectOf(hostPath)["path"]);
    if (/^\/+$/.test(path) && persistentVolumeReclaimPolicy === "Recycle") {
      const text = "may not be 'recycle' for a hostPath mount of '/'";
      found.push(fieldErrors.fieldForbidden(`${field}.persistentVolumeReclaimPolicy`, text));
    }
  },
  struct({ storageClassName: CLASS_NAME, volumeMode: VOLUME_MODE }),
);

/** What a change of a PersistentVolume may not do. */
export function volumeUpdate(
  object: ObjectFields,
  old: ObjectFields,
  found: Parameters<Rule>[2],
): void {
  const [spec, before] = [objectOf(object["spec"]), objectOf(old["spec"])];
  const names = Object.keys(VOLUME_SOURCES);
  if (names.some((name) => !semanticEqual(sourceOf(spec, name), sourceOf(before, name)))) {
    const text = "spec.persistentvolumesource is immutable after creation";
    found.push(fieldErrors.fieldForbidden("spec.persistentvolumesource", text));
  }
  immutable(spec["volumeMode"], before["volumeMode"], "volumeMode", found);
}

function sourceOf(spec: ObjectFields, name: string): unknown {
  if (name !== "csi" || isAbsent(spec[name])) return spec[name];
  const { controllerExpandSecretRef: _, ...csi } = objectOf(spec[name]);
  return csi;
}
