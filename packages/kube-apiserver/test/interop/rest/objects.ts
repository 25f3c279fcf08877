/** Objects that the requests send, and paths. */

export interface Sent {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

type Maker = (name: string, fields?: object, metadata?: object) => Sent;

function maker(apiVersion: string, kind: string): Maker {
  return (name, fields = {}, metadata = {}) => ({
    apiVersion,
    kind,
    metadata: { name, ...metadata },
    ...fields,
  });
}

export const configMap: Maker = maker("v1", "ConfigMap");
export const secret: Maker = maker("v1", "Secret");
export const namespace: Maker = maker("v1", "Namespace");
export const account: Maker = maker("v1", "ServiceAccount");
export const lease: Maker = maker("coordination.k8s.io/v1", "Lease");
export const event: Maker = maker("v1", "Event");
export const groupEvent: Maker = maker("events.k8s.io/v1", "Event");

export function deleteOptions(fields: object): object {
  return { kind: "DeleteOptions", apiVersion: "v1", ...fields };
}

const NS = "/api/v1/namespaces/t";
export const NAMESPACES = "/api/v1/namespaces";
export const CONFIG_MAPS = `${NS}/configmaps`;
export const SECRETS = `${NS}/secrets`;
export const ACCOUNTS = `${NS}/serviceaccounts`;
export const EVENTS = `${NS}/events`;
export const GROUP_EVENTS = "/apis/events.k8s.io/v1/namespaces/t/events";
export const LEASES = "/apis/coordination.k8s.io/v1/namespaces/t/leases";

/** Asks for a Table. */
export const AS_TABLE = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };

/** Without the object that a controller makes in each namespace. */
export const OWN = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
