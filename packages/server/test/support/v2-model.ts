/**
 * A naive v2 store: a tree of nodes in memory and a list of events, after etcd 3.4's
 * etcdserver/api/v2store. Responses are those of the API without times.
 */

interface ModelNode {
  value: string;
  children: Map<string, ModelNode> | undefined;
  created: number;
  modified: number;
  /** The index of the write that set its TTL, which is the same for all; 0: it has none. */
  expires: number;
}

export interface ModelRequest {
  readonly method: string;
  readonly path: readonly string[];
  readonly value: string;
  readonly dir: boolean;
  readonly recursive: boolean;
  readonly ttl: boolean;
  readonly refresh: boolean;
  readonly prevExist: boolean | undefined;
  readonly prevValue: string;
  readonly prevIndex: number;
}

/** A response: its status, and its body without times. */
export interface ModelAnswer {
  readonly status: number;
  readonly json: unknown;
}

interface ModelEvent {
  readonly index: number;
  readonly path: readonly string[];
  readonly json: Record<string, unknown>;
  /** Paths of the nodes that were deleted. */
  readonly deleted: ReadonlySet<string>;
  readonly isRefresh: boolean;
}

class Refused extends Error {
  readonly answer: ModelAnswer;
  constructor(answer: ModelAnswer) {
    super();
    this.answer = answer;
  }
}

const ERRORS: Readonly<Record<number, readonly [number, string]>> = {
  100: [404, "Key not found"],
  101: [412, "Compare failed"],
  102: [403, "Not a file"],
  104: [400, "Not a directory"],
  105: [412, "Key already exists"],
  107: [400, "Root is read only"],
  108: [403, "Directory not empty"],
};

const textOf = (path: readonly string[]) => (path.length === 0 ? "" : `/${path.join("/")}`);

export class V2Model {
  index: number;
  readonly #root: ModelNode;
  readonly #events: ModelEvent[] = [];

  constructor(index: number) {
    this.index = index;
    this.#root = { value: "", children: new Map(), created: 0, modified: 0, expires: 0 };
  }

  answer(request: ModelRequest): ModelAnswer {
    try {
      return this.#answer(request);
    } catch (error) {
      if (error instanceof Refused) return error.answer;
      throw error;
    }
  }

  #refuse(code: number, cause: string): Refused {
    const [status, message] = ERRORS[code];
    const json = { errorCode: code, message, ...(cause !== "" && { cause }), index: this.index };
    return new Refused({ status, json });
  }

  #answer(request: ModelRequest): ModelAnswer {
    const { method, path, prevExist, prevIndex, prevValue } = request;
    const compares = prevIndex > 0 || prevValue !== "";
    if (method === "GET") {
      const node = this.#existing(path);
      return {
        status: 200,
        json: { action: "get", node: this.#view(path, node, true, request.recursive) },
      };
    }
    if (method === "POST") {
      const name = String(this.index + 1).padStart(20, "0");
      return this.#create({ ...request, path: [...path, name] }, "create", false);
    }
    if (method === "DELETE")
      return compares ? this.#delete(request, true) : this.#delete(request, false);
    if (prevExist === false) return this.#create(request, "create", false);
    if (compares) return this.#rewrite(request, "compareAndSwap");
    if (prevExist === true) return this.#rewrite(request, "update");
    return this.#set(request);
  }

  #existing(path: readonly string[]): ModelNode {
    let node = this.#root;
    path.forEach((name, at) => {
      if (node.children === undefined) throw this.#refuse(104, textOf(path.slice(0, at)));
      const child = node.children.get(name);
      if (child === undefined) throw this.#refuse(100, textOf(path.slice(0, at + 1)));
      node = child;
    });
    return node;
  }

  #find(path: readonly string[]): ModelNode | undefined {
    try {
      return this.#existing(path);
    } catch (error) {
      if ((error as Refused).answer?.status === 404) return undefined;
      throw error;
    }
  }

  #set(request: ModelRequest): ModelAnswer {
    const { path, refresh } = request;
    const node = refresh ? this.#existing(path) : this.#find(path);
    if (path.length === 0) throw this.#refuse(107, "/");
    if (node?.children !== undefined) throw this.#refuse(102, textOf(path));
    const value = refresh ? node!.value : request.value;
    return this.#create({ ...request, value }, "set", true);
  }

  #create(request: ModelRequest, action: string, replace: boolean): ModelAnswer {
    const { path, dir, value, ttl } = request;
    if (path.length === 0) throw this.#refuse(107, "/");
    for (let at = 1; at < path.length; at++) {
      const node = this.#find(path.slice(0, at));
      if (node === undefined) break;
      if (node.children === undefined) throw this.#refuse(104, textOf(path.slice(0, at)));
    }
    const before = this.#find(path);
    if (before !== undefined && !replace) throw this.#refuse(105, textOf(path));
    const prevNode = before === undefined ? undefined : this.#view(path, before, false, false);
    const next = ++this.index;
    const fresh = (isDir: boolean, text: string, expires: boolean): ModelNode => ({
      value: text,
      children: isDir ? new Map() : undefined,
      created: next,
      modified: next,
      expires: expires ? next : 0,
    });
    let parent = this.#root;
    for (const name of path.slice(0, -1)) {
      const child = parent.children!.get(name) ?? fresh(true, "", false);
      parent.children!.set(name, child);
      parent = child;
    }
    const node = fresh(dir, dir ? "" : value, ttl);
    parent.children!.set(path[path.length - 1], node);
    const json = {
      action,
      node: this.#view(path, node, false, false),
      ...(prevNode && { prevNode }),
    };
    this.#note(path, json, request.refresh && action !== "create");
    return { status: prevNode === undefined ? 201 : 200, json };
  }

  #compare({ prevValue, prevIndex }: ModelRequest, node: ModelNode): void {
    const value = prevValue === "" || prevValue === node.value;
    const index = prevIndex === 0 || prevIndex === node.modified;
    const parts = [
      ...(value && !index ? [] : [`[${prevValue} != ${node.value}]`]),
      ...(index && !value ? [] : [`[${prevIndex} != ${node.modified}]`]),
    ];
    if (!value || !index) throw this.#refuse(101, parts.join(" "));
  }

  #rewrite(request: ModelRequest, action: string): ModelAnswer {
    const { path, value, ttl, refresh } = request;
    if (path.length === 0) throw this.#refuse(107, "/");
    const node = this.#existing(path);
    const isDir = node.children !== undefined;
    if (isDir && (action !== "update" || value !== "")) throw this.#refuse(102, textOf(path));
    if (action !== "update") this.#compare(request, node);
    const prevNode = this.#view(path, node, false, false);
    const next = ++this.index;
    if (!isDir) {
      node.modified = next;
      if (!refresh) node.value = value;
    }
    node.expires = ttl ? next : 0;
    const view = { ...this.#view(path, node, false, false), modifiedIndex: next };
    const json = { action, node: view, prevNode };
    this.#note(path, json, refresh);
    return { status: 200, json };
  }

  #delete(request: ModelRequest, compares: boolean): ModelAnswer {
    const { path, dir, recursive } = request;
    if (path.length === 0 && !compares) throw this.#refuse(107, "/");
    const node = this.#existing(path);
    const isDir = node.children !== undefined;
    if (isDir && (compares || !(dir || recursive))) throw this.#refuse(102, textOf(path));
    if (compares) this.#compare(request, node);
    if (isDir && !recursive && node.children!.size > 0) throw this.#refuse(108, textOf(path));
    return {
      status: 200,
      json: this.#remove(path, node, compares ? "compareAndDelete" : "delete"),
    };
  }

  #remove(path: readonly string[], node: ModelNode, action: string): object {
    const prevNode = this.#view(path, node, false, false);
    this.index++;
    const deleted = new Set(this.#paths(path, node));
    this.#existing(path.slice(0, -1)).children!.delete(path[path.length - 1]);
    const { dir, key, createdIndex } = prevNode as Record<string, unknown>;
    const view = { key, ...(dir === true && { dir }), modifiedIndex: this.index, createdIndex };
    const json = { action, node: view, prevNode };
    this.#note(path, json, false, deleted);
    return json;
  }

  #paths(path: readonly string[], node: ModelNode): string[] {
    const below = [...(node.children ?? [])].flatMap(([name, child]) =>
      this.#paths([...path, name], child),
    );
    return [textOf(path), ...below];
  }

  /** The time is up for all nodes that have a TTL, in the order in which they got it. */
  expireAll(): void {
    const due: { path: readonly string[]; node: ModelNode }[] = [];
    const walk = (path: readonly string[], node: ModelNode): void => {
      if (node.expires > 0) due.push({ path, node });
      for (const [name, child] of node.children ?? []) walk([...path, name], child);
    };
    walk([], this.#root);
    for (const { path, node } of due.sort((a, b) => a.node.expires - b.node.expires))
      if (this.#find(path) === node) this.#remove(path, node, "expire");
  }

  #view(
    path: readonly string[],
    node: ModelNode,
    withNodes: boolean,
    recursive: boolean,
  ): Record<string, unknown> {
    const nodes = withNodes
      ? [...(node.children ?? [])]
          .filter(([name]) => !name.startsWith("_"))
          .map(([name, child]) => this.#view([...path, name], child, recursive, recursive))
          .sort((a, b) => (String(a["key"]) < String(b["key"]) ? -1 : 1))
      : [];
    return {
      ...(path.length > 0 && { key: textOf(path) }),
      ...(node.children === undefined ? { value: node.value } : { dir: true }),
      ...(nodes.length > 0 && { nodes }),
      ...(node.modified > 0 && { modifiedIndex: node.modified, createdIndex: node.created }),
    };
  }

  #note(
    path: readonly string[],
    json: Record<string, unknown>,
    isRefresh: boolean,
    deleted: ReadonlySet<string> = new Set(),
  ): void {
    this.#events.push({ index: this.index, path, json, isRefresh, deleted });
  }

  /** The first event from an index on that a wait is for. */
  eventFrom(path: readonly string[], recursive: boolean, from: number): object | undefined {
    const text = textOf(path);
    const isSeen = ({ index, path: at, isRefresh, deleted }: ModelEvent): boolean => {
      if (index < from || isRefresh) return false;
      if (textOf(at) === text || deleted.has(text)) return true;
      const isBelow = textOf(at).startsWith(`${text}/`);
      return recursive && isBelow && !at.slice(path.length).some((name) => name.startsWith("_"));
    };
    return this.#events.find(isSeen)?.json;
  }
}
