/**
 * The command `./dev compare definitions`: definitions of resources (CustomResourceDefinition) of
 * well-known projects, from Go's module proxy, on a server of ours and on kube-apiserver. Compares
 * what is refused and why, the definition with its defaults, its conditions, and the schemas that
 * are published for its versions.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { parseAllDocuments } from "yaml";
import { readArguments, valueOption } from "../../../../../scripts/dev/command-line.ts";
import { onOurs } from "../comparison.ts";
import { moduleDirectory } from "../go/modules.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { type ApiAccess, exchange } from "../rest/exchange.ts";
import { PROJECTS } from "./projects.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LIMIT_MS = 60_000;
const PAUSE_MS = 200;

interface Definition {
  readonly kind: string;
  readonly metadata: { readonly name?: string };
  readonly spec: {
    readonly group: string;
    readonly versions?: readonly { readonly name: string }[] | null;
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime: string;
}

/** Groups of Kubernetes' own projects need an approval, whose condition comes a little later. */
const APPROVAL = "KubernetesAPIApprovalPolicyConformant";
const isProtected = ({ spec }: Definition): boolean =>
  /(^|\.)(k8s|kubernetes)\.io$/.test(spec.group);

/** What a server makes of each definition, or publishes at each path. */
type Outcomes = Map<Definition | string, unknown>;

function filesOf(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .toSorted()
    .flatMap((name) => filesOf(join(path, name)))
    .filter((file) => /\.ya?ml$/.test(file));
}

/** The definitions of a project; undefined where the module cannot be had. */
function definitionsOf(module: string, paths: readonly string[]): Definition[] | undefined {
  const directory = moduleDirectory(module);
  if (directory === undefined) return undefined;
  return paths
    .flatMap((path) => filesOf(join(directory, path)))
    .flatMap((file) => parseAllDocuments(readFileSync(file, "utf8")))
    .map((document) => ("toJS" in document ? (document.toJS() as Definition | null) : null))
    .filter((one): one is Definition => one?.kind === "CustomResourceDefinition");
}

/** Creates the definition, and waits until it is served or it is known why not. */
async function created(access: ApiAccess, definition: Definition): Promise<unknown> {
  const { status, body } = await exchange(access, {
    method: "POST",
    path: DEFINITIONS,
    body: definition,
  });
  const { message, details } = body as Readonly<Record<string, unknown>>;
  if (status !== 201) return { status, message, details };
  const path = `${DEFINITIONS}/${definition.metadata.name}`;
  for (const endMs = performance.now() + LIMIT_MS; ; await delay(PAUSE_MS)) {
    const now = (await exchange(access, { method: "GET", path })).body as {
      readonly spec: unknown;
      readonly status: { readonly conditions?: readonly Condition[] };
    };
    const conditions = (now.status.conditions ?? [])
      .map(({ lastTransitionTime: _, ...rest }) => rest)
      .toSorted((a, b) => a.type.localeCompare(b.type));
    const isTold = (type: string, value?: string): boolean =>
      conditions.some((one) => one.type === type && (value ?? one.status) === one.status);
    const isSettled =
      isTold("Established", "True") && (!isProtected(definition) || isTold(APPROVAL));
    if (isSettled || performance.now() > endMs)
      return { status, spec: now.spec, state: { ...now.status, conditions } };
  }
}

/** A document without its descriptions, whose words are ours. */
function withoutDescriptions(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutDescriptions);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, field]) => name !== "description" || typeof field !== "string")
      .map(([name, field]) => [name, withoutDescriptions(field)]),
  );
}

/** A type of Kubernetes itself. */
const isShared = (name: string): boolean => /^io\.k8s\.(api|apimachinery)\./.test(name);

/** The schemas that are published for the definitions, by the paths of their versions. */
async function published(access: ApiAccess, all: readonly Definition[]): Promise<Outcomes> {
  const paths = new Set(
    all.flatMap(({ spec }) =>
      (spec.versions ?? []).map(({ name }) => `/openapi/v3/apis/${spec.group}/${name}`),
    ),
  );
  const outcomes: Outcomes = new Map();
  for (const path of paths) {
    const { status, body } = await exchange(access, { method: "GET", path });
    const { components } = body as { readonly components?: { readonly schemas: object } };
    const own = Object.entries(components?.schemas ?? {}).filter(([name]) => !isShared(name));
    outcomes.set(path, { status, schemas: withoutDescriptions(Object.fromEntries(own)) });
  }
  return outcomes;
}

type Play = (access: ApiAccess) => Promise<[definitions: Outcomes, schemas: Outcomes]>;

/** Of every project, on one server. */
const playWith =
  (all: readonly Definition[]): Play =>
  async (access) => {
    const outcomes: Outcomes = new Map();
    for (const one of all) outcomes.set(one, await created(access, one));
    // Schemas are published some seconds after a definition is served.
    await delay(5000);
    return [outcomes, await published(access, all)];
  };

/** The places at which two values differ, and both values there. */
function* differences(ours: unknown, theirs: unknown, path = ""): Generator<string> {
  if (isDeepStrictEqual(ours, theirs)) return;
  const bothAre = (test: (value: unknown) => boolean): boolean => test(ours) && test(theirs);
  if (bothAre((value) => typeof value === "object" && value !== null)) {
    const [a, b] = [ours, theirs] as Readonly<Record<string, unknown>>[];
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)]))
      yield* differences(a[name], b[name], `${path}.${name}`);
    return;
  }
  const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 300) ?? "nothing";
  yield `${path}: ours ${shown(ours)}, kube-apiserver's ${shown(theirs)}`;
}

/** So many differences of one definition or document are shown. */
const MOST_SHOWN = 3;

/** Prints what differs; how many are equal. */
function equalOf(
  subjects: Iterable<Definition | string>,
  ours: Outcomes,
  theirs: Outcomes,
): number {
  let equal = 0;
  for (const subject of subjects) {
    const found = [...differences(ours.get(subject), theirs.get(subject)).take(MOST_SHOWN)];
    if (found.length === 0) equal++;
    const name = typeof subject === "string" ? subject : subject.metadata.name;
    for (const one of found) console.log(`    ${name}${one}`);
  }
  return equal;
}

const { values } = readArguments(
  `./dev compare definitions [OPTIONS]

Creates the definitions of ${PROJECTS.length} projects on a new API server of ours, and compares what
becomes of them with kube-apiserver 1.36. Needs Go and its module proxy.`,
  {
    etcd: valueOption(
      "an empty etcd: kube-apiserver (on PATH) is started on it, and compared with",
    ),
    only: valueOption("projects whose modules contain this", ""),
  },
);
const projects = PROJECTS.filter(([module]) => module.includes(values.only)).map(
  ([module, ...paths]) => ({ module, definitions: definitionsOf(module, paths) }),
);
const all = projects.flatMap(({ definitions }) => definitions ?? []);
const play = playWith(all);
const [ours, oursPublished] = await onOurs()(play);
const theirs = values.etcd === undefined ? undefined : await withKubeApiserver(values.etcd, play);
for (const { module, definitions } of projects) {
  if (definitions === undefined) {
    console.log(`${module}: skipped, as Go or its module proxy does not have it`);
    continue;
  }
  const served = definitions.filter((one) => (ours.get(one) as { status: number }).status === 201);
  const line = `${module}: ${definitions.length} definitions, ${served.length} served`;
  if (theirs === undefined) console.log(line);
  else console.log(`${line}, ${equalOf(definitions, ours, theirs[0])} as by kube-apiserver`);
}
if (theirs !== undefined) {
  const paths = [...oursPublished.keys()];
  const equal = equalOf(paths, oursPublished, theirs[1]);
  console.log(`published schemas of ${paths.length} versions, ${equal} as by kube-apiserver`);
}
