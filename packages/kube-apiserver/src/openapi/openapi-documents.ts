/**
 * The OpenAPI documents of the served resources: v2 for all of them, v3 for each group and version.
 * A document is made when it is first asked for after a change, in slices, and kept; v3 documents
 * of groups that did not change are kept too.
 */

import { type Clock, Pauses } from "@quorate/host";
import type { GroupVersion, ServedResource, ServedResources } from "@quorate/kube-storage";

import { crc32c, fromUtf8 } from "@quorate/proto";
import type { OpenApiNode } from "./definitions.ts";
import { documentV2, type VersionResources } from "./document-v2.ts";
import { documentV3 } from "./document-v3.ts";
import { gnosticDocument } from "./gnostic-v2.ts";
import { pathOf } from "./operations.ts";
import { withRemoteV2 } from "./remote-v2.ts";

/** A document and its hash in upper-case hex, for ETag and the index of v3. */
export interface OpenApiPage {
  readonly bytes: Uint8Array;
  readonly hash: string;
}

/** The documents of another server's group and version. */
export interface RemoteDocument {
  readonly spec: GroupVersion;
  readonly v2: Readonly<Record<string, unknown>> | undefined;
  readonly v3Url: string | undefined;
}

/** Those of other servers. */
export interface RemoteDocumentSource {
  readonly versions: readonly RemoteDocument[];
  onChange(listener: () => void): void;
}

interface KeptV3 {
  readonly resources: readonly ServedResource[];
  readonly page: Promise<OpenApiPage>;
}

/** Not of OpenAPI itself: how a page of the server refers to the document of a group. */
const V3_ROOT = "/openapi/v3/";

export class OpenApiDocuments {
  private readonly resources: ServedResources;
  private readonly remote: RemoteDocumentSource;
  private readonly clock: Pick<Clock, "turns">;
  private groups: ReadonlyMap<string, VersionResources> | undefined;
  private readonly v3Pages = new Map<string, KeptV3>();
  private v2Json: Promise<OpenApiPage> | undefined;
  private v2Protobuf: Promise<OpenApiPage> | undefined;
  private v3Index: Promise<OpenApiPage> | undefined;

  constructor(
    resources: ServedResources,
    remote: RemoteDocumentSource,
    clock: Pick<Clock, "turns">,
  ) {
    this.resources = resources;
    this.remote = remote;
    this.clock = clock;
    resources.onChange(() => this.forget());
    remote.onChange(() => this.forget());
  }

  /** /openapi/v2 */
  v2(form: "json" | "protobuf"): Promise<OpenApiPage> {
    if (form === "json") this.v2Json ??= this.kept(this.makeV2Json());
    else this.v2Protobuf ??= this.kept(this.makeV2Protobuf());
    return (form === "json" ? this.v2Json : this.v2Protobuf) as Promise<OpenApiPage>;
  }

  /** /openapi/v3: where the documents are, with their hashes. */
  index(): Promise<OpenApiPage> {
    this.v3Index ??= this.kept(this.makeIndex());
    return this.v3Index;
  }

  /**
   * /openapi/v3/PATH
   * @param path "api/v1" or "apis/GROUP/VERSION"
   * @returns undefined where nothing is served there
   */
  async v3(path: string): Promise<OpenApiPage | undefined> {
    const group = this.grouped().get(path);
    if (group === undefined) return undefined;
    const before = this.v3Pages.get(path);
    if (before !== undefined && sameItems(before.resources, group.resources)) return before.page;
    const page = this.json(documentV3(group.version, group.resources));
    page.catch(() => this.v3Pages.delete(path));
    this.v3Pages.set(path, { resources: group.resources, page });
    return page;
  }

  private forget(): void {
    this.groups = undefined;
    this.v2Json = undefined;
    this.v2Protobuf = undefined;
    this.v3Index = undefined;
  }

  /** Forgets everything when a document cannot be made, so that the next request tries again. */
  private kept(page: Promise<OpenApiPage>): Promise<OpenApiPage> {
    page.catch(() => this.forget());
    return page;
  }

  private grouped(): ReadonlyMap<string, VersionResources> {
    if (this.groups !== undefined) return this.groups;
    const groups = new Map<string, { version: GroupVersion; resources: ServedResource[] }>();
    for (const resource of this.resources.all()) {
      const { group, version } = resource;
      const path = pathOf(resource);
      const found = groups.get(path) ?? { version: { group, version }, resources: [] };
      found.resources.push(resource);
      groups.set(path, found);
    }
    for (const path of this.v3Pages.keys()) if (!groups.has(path)) this.v3Pages.delete(path);
    this.groups = groups;
    return groups;
  }

  private async makeIndex(): Promise<OpenApiPage> {
    const paths: Record<string, { serverRelativeURL: string }> = {};
    for (const path of [...this.grouped().keys()].sort()) {
      const page = await this.v3(path);
      if (page !== undefined)
        paths[path] = { serverRelativeURL: `${V3_ROOT}${path}?hash=${page.hash}` };
    }
    for (const { spec, v3Url } of this.remote.versions)
      if (v3Url !== undefined) paths[pathOf(spec)] = { serverRelativeURL: v3Url };
    return pageOf(fromUtf8(JSON.stringify({ paths })));
  }

  private makeV2Json(): Promise<OpenApiPage> {
    return this.json(this.v2Document());
  }

  private *v2Document(): Generator<undefined, OpenApiNode> {
    const own = yield* documentV2([...this.grouped().values()]);
    return yield* withRemoteV2(own, this.remote.versions);
  }

  private async makeV2Protobuf(): Promise<OpenApiPage> {
    const document = await this.run(this.v2Document());
    return pageOf(await this.run(gnosticDocument(document)));
  }

  private async json(making: Generator<undefined, object>): Promise<OpenApiPage> {
    const document = await this.run(making);
    const slices = new Pauses(this.clock.turns);
    const parts: string[] = [];
    for (const part of jsonParts(document, 2)) {
      parts.push(part);
      await slices.next();
    }
    return pageOf(fromUtf8(parts.join("")));
  }

  private async run<T>(making: Generator<undefined, T>): Promise<T> {
    const slices = new Pauses(this.clock.turns);
    for (;;) {
      const { done, value } = making.next();
      if (done === true) return value as T;
      await slices.next();
    }
  }
}

/** The JSON text of an object in parts, one for each of its fields down to a depth. */
function* jsonParts(value: object, depth: number): Generator<string> {
  let separator = "{";
  for (const [key, field] of Object.entries(value)) {
    yield `${separator}${JSON.stringify(key)}:`;
    separator = ",";
    if (depth > 0 && typeof field === "object" && field !== null && !Array.isArray(field))
      yield* jsonParts(field as object, depth - 1);
    else yield JSON.stringify(field);
  }
  yield separator === "{" ? "{}" : "}";
}

function pageOf(bytes: Uint8Array): OpenApiPage {
  const sum = crc32c(0, bytes).toString(16).padStart(8, "0");
  return { bytes, hash: `${sum}${bytes.length.toString(16).padStart(8, "0")}`.toUpperCase() };
}

function sameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}
