/**
 * Adds what other servers serve to the OpenAPI v2 document (kube-openapi: pkg/aggregator): their
 * paths of a group and version, and the definitions that these refer to. A definition whose name
 * stands for another one here gets a number behind it.
 */
import { type GroupVersion, isObject, semanticEqual } from "@quorate/kube-storage";
import type { OpenApiNode } from "./definitions.ts";

type Nodes = Readonly<Record<string, unknown>>;

export interface RemoteV2 {
  readonly spec: GroupVersion;
  readonly v2: Nodes | undefined;
}

const DEFINITIONS = "#/definitions/";
const PARAMETERS = "#/parameters/";

/** Yields between its parts. What is there already stays. */
export function* withRemoteV2(
  document: OpenApiNode,
  remotes: readonly RemoteV2[],
): Generator<undefined, OpenApiNode> {
  const paths = { ...nodesOf(document["paths"]) };
  const definitions = { ...nodesOf(document["definitions"]) };
  const parameters = { ...nodesOf(document["parameters"]) };
  for (const { spec, v2 } of remotes) {
    const prefix = `/apis/${spec.group}/${spec.version}/`;
    const added = new Added(definitions, parameters, v2 ?? {});
    for (const [path, item] of Object.entries(nodesOf(v2?.["paths"]))) {
      if (!path.startsWith(prefix) || Object.hasOwn(paths, path) || !isObject(item)) continue;
      paths[path] = added.moved(item);
      yield;
    }
    while (added.step()) yield;
  }
  return { ...document, paths, definitions, parameters };
}

/** The shared parts of one other document that its paths refer to. */
class Added {
  readonly #definitions: Record<string, unknown>;
  readonly #parameters: Record<string, unknown>;
  readonly #theirs: Nodes;
  readonly #theirParameters: Nodes;
  /** Their references to the ones here. */
  readonly #names = new Map<string, string>();
  readonly #waiting: (() => void)[] = [];

  constructor(
    definitions: Record<string, unknown>,
    parameters: Record<string, unknown>,
    document: Nodes,
  ) {
    this.#definitions = definitions;
    this.#parameters = parameters;
    this.#theirs = nodesOf(document["definitions"]);
    this.#theirParameters = nodesOf(document["parameters"]);
  }

  /** Adds one of the parts that were referred to; false where none is left. */
  step(): boolean {
    const next = this.#waiting.pop();
    next?.();
    return next !== undefined;
  }

  /** A copy that refers to the parts here. */
  moved(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.moved(one));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [
        key,
        key === "$ref" && typeof one === "string" ? this.#reference(one) : this.moved(one),
      ]),
    );
  }

  #reference(reference: string): string {
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    const isParameter = reference.startsWith(PARAMETERS);
    if (!isParameter && !reference.startsWith(DEFINITIONS)) return reference;
    const prefix = isParameter ? PARAMETERS : DEFINITIONS;
    const theirs = isParameter ? this.#theirParameters : this.#theirs;
    const ours = isParameter ? this.#parameters : this.#definitions;
    const name = reference.slice(prefix.length);
    const value = Object.hasOwn(theirs, name) ? theirs[name] : undefined;
    if (value === undefined) return reference;
    const own = freeName(name, value, ours);
    this.#names.set(reference, prefix + own);
    if (!Object.hasOwn(ours, own)) {
      // The name is taken now, what it refers to is added behind it.
      ours[own] = value;
      this.#waiting.push(() => (ours[own] = this.moved(value)));
    }
    return prefix + own;
  }
}

/** The name, or with a number behind it where the name stands for something else. */
function freeName(name: string, value: unknown, taken: Nodes): string {
  for (let count = 1; ; count++) {
    const own = count === 1 ? name : `${name}_v${count}`;
    if (!Object.hasOwn(taken, own) || semanticEqual(taken[own], value)) return own;
  }
}

function nodesOf(value: unknown): Nodes {
  return isObject(value) ? value : {};
}
