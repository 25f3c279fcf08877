/**
 * The paths and operations of a group and version, in a form from which both versions of OpenAPI
 * derive (apiserver: pkg/endpoints/installer.go).
 */

import type { ServedResource } from "@quorate/kube-storage";
import { apiVersionOf, type GroupVersion, type GroupVersionKind } from "@quorate/kube-storage";
import {
  DELETE_COLLECTION_PARAMETERS,
  DELETE_PARAMETERS,
  LIST_PARAMETERS,
  WRITE_PARAMETERS,
} from "./parameters.ts";

/** What a body or a response is. */
export type Content =
  | { readonly of: "object"; readonly resource: ServedResource }
  | { readonly of: "list"; readonly resource: ServedResource }
  | { readonly of: "Status" | "DeleteOptions" | "Patch" | "APIResourceList" };

export interface Operation {
  readonly method: "get" | "put" | "post" | "delete" | "patch";
  /** x-kubernetes-action; "" for discovery. */
  readonly action: string;
  readonly id: string;
  readonly description: string;
  /** Names of query parameters. */
  readonly parameters: readonly string[];
  readonly body: Content | undefined;
  readonly bodyRequired: boolean;
  /** Media types of a patch; undefined for any. */
  readonly consumes: readonly string[] | undefined;
  readonly produces: readonly string[];
  readonly response: Content;
  readonly codes: readonly number[];
  readonly kind: GroupVersionKind | undefined;
}

export interface PathItem {
  readonly path: string;
  /** Names of the parameters of all its operations, of the path and of the query. */
  readonly parameters: readonly string[];
  readonly operations: readonly Operation[];
}

/** "api/v1" or "apis/apps/v1". */
export function pathOf(version: GroupVersion): string {
  return `${version.group === "" ? "api" : "apis"}/${apiVersionOf(version)}`;
}

/** The tag of a group and version, such as "coordination_v1". */
export function tagOf({ group, version }: GroupVersion): string {
  return `${groupName(group).replace(/\./g, "_")}_${version}`;
}

function groupName(group: string): string {
  return group === "" ? "core" : group.replace(/\.k8s\.io$/, "");
}

function camel(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/);
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
}

const PLAIN = ["application/json", "application/yaml"];
const PROTOBUF = "application/vnd.kubernetes.protobuf";

function produced({ protobuf }: ServedResource): readonly string[] {
  return protobuf === undefined ? PLAIN : [...PLAIN, PROTOBUF];
}

function producedByList(resource: ServedResource): readonly string[] {
  const streams = ["application/json;stream=watch"];
  if (resource.protobuf !== undefined) streams.push(`${PROTOBUF};stream=watch`);
  return [...produced(resource), ...streams];
}

/** All paths of a group and version, sorted. */
export function pathsOf(version: GroupVersion, resources: readonly ServedResource[]): PathItem[] {
  const items = [discoveryPath(version)];
  for (const resource of resources) items.push(...resourcePaths(version, resource));
  return items.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function discoveryPath(version: GroupVersion): PathItem {
  return {
    path: `/${pathOf(version)}/`,
    parameters: [],
    operations: [
      {
        method: "get",
        action: "",
        id: `get${camel(groupName(version.group))}${camel(version.version)}APIResources`,
        description: "get available resources",
        parameters: [],
        body: undefined,
        bodyRequired: false,
        consumes: undefined,
        produces: [...PLAIN, PROTOBUF],
        response: { of: "APIResourceList" },
        codes: [200],
        kind: undefined,
      },
    ],
  };
}

function resourcePaths(version: GroupVersion, resource: ServedResource): PathItem[] {
  const make = new OperationFactory(version, resource);
  const base = `/${pathOf(version)}`;
  const space = resource.namespaced ? "/namespaces/{namespace}" : "";
  const spaceParameters = resource.namespaced ? ["namespace"] : [];
  const items: PathItem[] = [];
  const add = (path: string, parameters: string[], operations: (Operation | undefined)[]) => {
    const present = operations.filter((each) => each !== undefined);
    if (present.length > 0)
      items.push({ path, parameters: [...parameters, "pretty"], operations: present });
  };
  const { storage, subresource } = resource;
  const all = `${base}${space}/${resource.resource}`;
  if (subresource === "") {
    add(all, spaceParameters, [
      storage.list && make.list(resource.namespaced),
      storage.create && make.create(),
      storage.deleteCollection && make.deleteCollection(),
    ]);
    if (resource.namespaced)
      add(`${base}/${resource.resource}`, [], [storage.list && make.list(false)]);
  }
  const tail = subresource === "" ? "" : `/${subresource}`;
  add(
    `${all}/{name}${tail}`,
    ["name", ...spaceParameters],
    [
      storage.get && make.get(),
      storage.update && make.replace(),
      storage.createNamed && make.create(),
      subresource === "" && storage.delete ? make.delete() : undefined,
      storage.update && subresource !== "finalize" ? make.patch() : undefined,
    ],
  );
  return items;
}

/** Makes the operations of one resource. */
class OperationFactory {
  private readonly resource: ServedResource;
  private readonly prefix: string;
  private readonly self: Content;

  constructor({ group, version }: GroupVersion, resource: ServedResource) {
    this.resource = resource;
    this.prefix = `${camel(groupName(group))}${camel(version)}`;
    this.self = { of: "object", resource };
  }

  list(inNamespace: boolean): Operation {
    const { kind } = this.resource.kind;
    const where = this.resource.namespaced && !inNamespace ? "ForAllNamespaces" : "";
    return this.operation("get", "list", "list", {
      id: `list${this.prefix}${inNamespace ? "Namespaced" : ""}${kind}${where}`,
      description: `list or watch objects of kind ${kind}`,
      parameters: LIST_PARAMETERS,
      produces: producedByList(this.resource),
      response: { of: "list", resource: this.resource },
    });
  }

  create(): Operation {
    return this.operation("post", "post", "create", {
      parameters: WRITE_PARAMETERS,
      body: this.self,
      bodyRequired: true,
      codes: [200, 201, 202],
    });
  }

  get(): Operation {
    return this.operation("get", "get", "read", {});
  }

  replace(): Operation {
    return this.operation("put", "put", "replace", {
      parameters: WRITE_PARAMETERS,
      body: this.self,
      bodyRequired: true,
      codes: [200, 201],
    });
  }

  patch(): Operation {
    const strategic = this.resource.strategicMerge
      ? ["application/strategic-merge-patch+json"]
      : [];
    return this.operation("patch", "patch", "patch", {
      description: `partially update the specified ${this.resource.kind.kind}`,
      parameters: [...WRITE_PARAMETERS, "force"],
      body: { of: "Patch" },
      bodyRequired: true,
      consumes: [
        "application/json-patch+json",
        "application/merge-patch+json",
        ...strategic,
        "application/apply-patch+yaml",
      ],
      codes: [200, 201],
    });
  }

  delete(): Operation {
    return this.operation("delete", "delete", "delete", {
      parameters: DELETE_PARAMETERS,
      body: { of: "DeleteOptions" },
      response: { of: "Status" },
      codes: [200, 202],
    });
  }

  deleteCollection(): Operation {
    const { namespaced, kind } = this.resource;
    return this.operation("delete", "deletecollection", "delete", {
      id: `delete${this.prefix}Collection${namespaced ? "Namespaced" : ""}${kind.kind}`,
      description: `delete collection of ${kind.kind}`,
      parameters: DELETE_COLLECTION_PARAMETERS,
      body: { of: "DeleteOptions" },
      response: { of: "Status" },
    });
  }

  private operation(
    method: Operation["method"],
    action: string,
    verb: string,
    own: Partial<Operation>,
  ): Operation {
    const { kind, namespaced, subresource, singular } = this.resource;
    const name = subresource === "" ? kind.kind : `${camel(singular)}${camel(subresource)}`;
    return {
      method,
      action,
      id: `${verb}${this.prefix}${namespaced ? "Namespaced" : ""}${name}`,
      description: `${verb} ${subresource === "" ? "" : `${subresource} of `}${kind.kind}`,
      parameters: [],
      body: undefined,
      bodyRequired: false,
      consumes: undefined,
      produces: produced(this.resource),
      response: this.self,
      codes: [200],
      kind,
      ...own,
    };
  }
}
