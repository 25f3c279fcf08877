/**
 * What the server offers, for clients (apiserver: pkg/endpoints/discovery).
 *
 *     /api /apis /apis/GROUP /api/VERSION /apis/GROUP/VERSION    one document each
 *     /api /apis with Accept: ...;as=APIGroupDiscoveryList       all in one, with an ETag
 */

import {
  apiVersionOf,
  compareVersions,
  type GroupVersionKind,
  type ServedResource,
  type ServedResources,
} from "@quorate/kube-storage";
import type { RemoteVersion } from "../aggregation/aggregator.ts";
import { groupPriority, versionPriority } from "../builtin/group-priorities.ts";
import { verbsOf } from "../handlers/dispatch.ts";

type Document = Readonly<Record<string, unknown>>;

interface Version {
  readonly version: string;
  /** As an APIService has it: the highest is the first one. */
  readonly priority: number;
  readonly resources: readonly ServedResource[];
  /** Where another server serves it. */
  readonly remote?: RemoteVersion;
}

interface Group {
  readonly group: string;
  readonly priority: number;
  readonly versions: readonly Version[];
}

/** Groups and versions of other servers. */
export interface RemoteVersions {
  readonly versions: readonly RemoteVersion[];
  onChange(listener: () => void): void;
}

/** The discovery documents; made again after a change of the resources. */
export class Discovery {
  readonly #resources: ServedResources;
  readonly #remote: RemoteVersions;
  #groups: readonly Group[] | undefined;
  #aggregated = new Map<string, Document>();

  constructor(resources: ServedResources, remote: RemoteVersions) {
    this.#resources = resources;
    this.#remote = remote;
    const forget = (): void => {
      this.#groups = undefined;
      this.#aggregated = new Map();
    };
    resources.onChange(forget);
    remote.onChange(forget);
  }

  /** @param address of the server, as the client may reach it */
  legacyVersions(address: string): Document {
    const versions = this.#group("")?.versions.map(({ version }) => version) ?? [];
    const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: address }];
    return { kind: "APIVersions", versions, serverAddressByClientCIDRs };
  }

  groupList(): Document {
    const groups = this.#all.filter(({ group }) => group !== "").map(groupDocument);
    return { kind: "APIGroupList", apiVersion: "v1", groups };
  }

  /** Undefined for a group that is not served. */
  group(name: string): Document | undefined {
    const group = name === "" ? undefined : this.#group(name);
    return group && { kind: "APIGroup", apiVersion: "v1", ...groupDocument(group) };
  }

  /** Undefined for a version that is not served. */
  version(group: string, version: string): Document | undefined {
    const found = this.#group(group)?.versions.find((one) => one.version === version);
    return (
      found && {
        kind: "APIResourceList",
        ...(group === "" ? {} : { apiVersion: "v1" }),
        groupVersion: apiVersionOf({ group, version }),
        resources: found.resources.map(resourceDocument),
      }
    );
  }

  /**
   * All resources in one document.
   * @param isLegacy the core group alone (/api), else all others (/apis)
   * @param version of apidiscovery.k8s.io: "v2" or "v2beta1"
   */
  aggregated(isLegacy: boolean, version: string): Document {
    const key = `${isLegacy} ${version}`;
    const known = this.#aggregated.get(key);
    if (known !== undefined) return known;
    const items = this.#all
      .filter(({ group }) => (group === "") === isLegacy)
      .map(({ group, versions }) => ({
        metadata: group === "" ? {} : { name: group },
        versions: versions.map(aggregatedVersion),
      }));
    const document = {
      kind: "APIGroupDiscoveryList",
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items,
    };
    this.#aggregated.set(key, document);
    return document;
  }

  /** "/apis/apps", "/apis/apps/v1" and such. */
  paths(): string[] {
    return this.#all.flatMap(({ group, versions }) => {
      const root = group === "" ? "/api" : `/apis/${group}`;
      return [root, ...versions.map(({ version }) => `${root}/${version}`)];
    });
  }

  get #all(): readonly Group[] {
    this.#groups ??= withRemote(groupsOf(this.#resources.all()), this.#remote.versions);
    return this.#groups;
  }

  #group(name: string): Group | undefined {
    return this.#all.find(({ group }) => group === name);
  }
}

function groupsOf(resources: readonly ServedResource[]): Group[] {
  const groups = new Map<string, Map<string, ServedResource[]>>();
  for (const one of resources) {
    const versions = groups.get(one.group) ?? new Map<string, ServedResource[]>();
    groups.set(one.group, versions);
    versions.set(one.version, [...(versions.get(one.version) ?? []), one]);
  }
  return [...groups].map(([group, versions]) => ({
    group,
    priority: groupPriority({ group }),
    versions: [...versions].map(([version, list]) => ({
      version,
      priority: versionPriority({ group, version }),
      resources: list,
    })),
  }));
}

/** The groups with those of other servers, by their priorities. */
function withRemote(groups: readonly Group[], remotes: readonly RemoteVersion[]): readonly Group[] {
  if (remotes.length === 0) return groups;
  const all = new Map(groups.map((one) => [one.group, one]));
  for (const remote of remotes) {
    const { group, version, groupPriorityMinimum, versionPriority } = remote.spec;
    const { priority = 0, versions = [] } = all.get(group) ?? {};
    const others = versions.filter((one) => one.version !== version);
    const own: Version = { version, priority: versionPriority, resources: [], remote };
    all.set(group, {
      group,
      priority: Math.max(priority, groupPriorityMinimum),
      versions: [...others, own].sort(
        (a, b) => b.priority - a.priority || compareVersions(a.version, b.version),
      ),
    });
  }
  return [...all.values()].sort(
    (a, b) => b.priority - a.priority || (a.group < b.group ? -1 : a.group > b.group ? 1 : 0),
  );
}

function groupDocument({ group, versions }: Group): Document {
  const list = versions.map(({ version }) => ({
    groupVersion: apiVersionOf({ group, version }),
    version,
  }));
  return { name: group, versions: list, preferredVersion: list[0] };
}

function resourceDocument(one: ServedResource): Document {
  const { kind, group, version, subresource } = one;
  const isOwn = kind.group === group && kind.version === version;
  return {
    name: subresource === "" ? one.resource : `${one.resource}/${subresource}`,
    singularName: subresource === "" ? one.singular : "",
    namespaced: one.namespaced,
    ...(isOwn ? {} : { group: kind.group, version: kind.version }),
    kind: kind.kind,
    verbs: verbsOf(one),
    ...(subresource !== "" || one.shortNames.length === 0 ? {} : { shortNames: one.shortNames }),
    ...(subresource !== "" || one.categories.length === 0 ? {} : { categories: one.categories }),
    ...(one.storageVersionHash === "" || subresource !== ""
      ? {}
      : { storageVersionHash: one.storageVersionHash }),
  };
}

/** Group and version are left empty where they are the resource's own, as in Kubernetes. */
function responseKind({ kind, group, version }: ServedResource): GroupVersionKind {
  const isOwn = kind.group === group && kind.version === version;
  return isOwn ? { group: "", version: "", kind: kind.kind } : kind;
}

function aggregatedVersion({ version, resources, remote }: Version): Document {
  if (remote !== undefined) {
    const freshness = remote.isCurrent ? "Current" : "Stale";
    const { resources: theirs } = remote;
    return { version, ...(theirs.length === 0 ? {} : { resources: theirs }), freshness };
  }
  const list = resources
    .filter(({ subresource }) => subresource === "")
    .map((one) => {
      const subresources = resources
        .filter((it) => it.resource === one.resource && it.subresource !== "")
        .map((it) => ({
          subresource: it.subresource,
          responseKind: responseKind(it),
          verbs: verbsOf(it),
        }));
      return {
        resource: one.resource,
        responseKind: responseKind(one),
        scope: one.namespaced ? "Namespaced" : "Cluster",
        singularResource: one.singular,
        verbs: verbsOf(one),
        ...(one.shortNames.length === 0 ? {} : { shortNames: one.shortNames }),
        ...(one.categories.length === 0 ? {} : { categories: one.categories }),
        ...(subresources.length === 0 ? {} : { subresources }),
      };
    });
  return { version, resources: list, freshness: "Current" };
}
