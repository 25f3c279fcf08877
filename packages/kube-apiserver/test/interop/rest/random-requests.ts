/** Random creates, updates, patches and deletions of few objects, so that they meet each other. */
import { SeededRandom } from "@quorate/host";
import { CONFIG_MAPS, configMap, deleteOptions, LEASES, lease, type Sent } from "./objects.ts";
import type { Step } from "./step.ts";

const NAMES = ["a", "b", "c", "d"];
const FINALIZERS = ["example.org/f", "example.org/g", "bad name", "nodomain"];
const LABELS: readonly object[] = [{}, { x: "1" }, { x: "2", y: "" }, { "a b": "c" }];
const SELECTORS = ["x", "x=1", "x!=1", "x in (1,2)", "!x", "y=", "x notin (2),y"];
const DATA: readonly object[] = [
  {},
  { data: { k: "v" } },
  { data: { k: "w" } },
  { data: { k: "v" }, immutable: true },
  { data: { "a/b": "c" } },
  { binaryData: { k: "eA==" }, data: { k: "v" } },
];
const SPECS: readonly object[] = [
  { spec: {} },
  { spec: { holderIdentity: "a", leaseDurationSeconds: 5 } },
  { spec: { holderIdentity: "b", renewTime: "2026-01-02T03:04:05.000006Z" } },
  {},
  { spec: { leaseDurationSeconds: -1 } },
  { spec: { leaseTransitions: -1, renewTime: "yesterday" } },
];

/** What the requests are about. */
interface Resource {
  readonly path: string;
  readonly make: typeof configMap;
  /** Fields; the last two are not valid, or make an object that cannot change. */
  readonly fields: readonly object[];
}

const RESOURCES: readonly Resource[] = [
  { path: CONFIG_MAPS, make: configMap, fields: DATA },
  { path: LEASES, make: lease, fields: SPECS },
];

const DELETIONS: readonly object[] = [
  {},
  { gracePeriodSeconds: 0 },
  { gracePeriodSeconds: 30 },
  { propagationPolicy: "Background" },
  { propagationPolicy: "Foreground", dryRun: ["All"] },
  { propagationPolicy: "Orphan", dryRun: ["All"] },
  { preconditions: { uid: "wrong" } },
  { preconditions: { resourceVersion: "1" } },
  { dryRun: ["All"] },
];
const MERGE = { "content-type": "application/merge-patch+json" };

/** Makes the steps of one seed. */
class Generator {
  readonly #random: SeededRandom;
  #resource = RESOURCES[0];

  constructor(seed: number) {
    this.#random = new SeededRandom(BigInt(seed));
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#random.below(values.length)];
  }

  #chance(percent: number): boolean {
    return this.#random.below(100) < percent;
  }

  #finalizers(): string[] | undefined {
    if (this.#chance(50)) return undefined;
    const good = this.#chance(85) ? FINALIZERS.slice(0, 2) : FINALIZERS;
    return this.#chance(30) ? [] : [this.#pick(good)];
  }

  #metadata(): Record<string, unknown> {
    const labels = this.#pick(this.#chance(90) ? LABELS.slice(0, 3) : LABELS);
    const finalizers = this.#finalizers();
    return { labels, ...(finalizers === undefined ? {} : { finalizers }) };
  }

  #object(name: string): Sent {
    const { make, fields } = this.#resource;
    const few = this.#chance(80) ? fields.slice(0, 4) : fields;
    return make(name, this.#pick(few), this.#metadata());
  }

  #query(): string {
    return this.#chance(15) ? "?dryRun=All" : "";
  }

  #put(path: string, name: string): Step {
    const body = this.#object(name);
    const revision = this.#pick(["none", "none", "last", "last", "old"]);
    const query = this.#query();
    return (last) => {
      const { resourceVersion, uid } = (last(path) as Partial<Sent>).metadata ?? {};
      const known = revision === "last" && resourceVersion !== undefined;
      const stamped = known
        ? { resourceVersion, uid }
        : revision === "old"
          ? { resourceVersion: "1" }
          : {};
      const metadata = { ...body.metadata, ...stamped };
      return { method: "PUT", path: path + query, body: { ...body, metadata } };
    };
  }

  #patch(path: string): Step {
    const { labels, finalizers = null } = this.#metadata();
    const fields = this.#pick(this.#resource.fields.slice(0, 4));
    const body = { ...fields, metadata: { labels, finalizers } };
    return { method: "PATCH", path: path + this.#query(), body, headers: MERGE };
  }

  #delete(path: string): Step {
    const options = this.#pick(DELETIONS);
    const exact = this.#chance(20);
    return (last) => {
      const { uid, resourceVersion } = (last(path) as Partial<Sent>).metadata ?? {};
      const known = exact && uid !== undefined;
      const fields = known ? { preconditions: { uid, resourceVersion } } : options;
      return { method: "DELETE", path, body: deleteOptions(fields) };
    };
  }

  step(): Step {
    const name = this.#pick(NAMES);
    this.#resource = this.#pick(RESOURCES);
    const { path: collection } = this.#resource;
    const path = `${collection}/${name}`;
    const kind = this.#random.below(100);
    if (kind < 25)
      return { method: "POST", path: collection + this.#query(), body: this.#object(name) };
    if (kind < 50) return this.#put(path, name);
    if (kind < 65) return this.#patch(path);
    if (kind < 85) return this.#delete(path);
    if (kind < 92) return { method: "GET", path };
    const selector = encodeURIComponent(this.#pick(SELECTORS));
    const own = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    const query = `?labelSelector=${selector}&${own}`;
    return { method: kind < 98 ? "GET" : "DELETE", path: collection + query };
  }
}

/** @param count how many, after the namespace */
export function randomSteps(seed: number, count: number): Step[] {
  const generator = new Generator(seed);
  return Array.from({ length: count }, () => generator.step());
}
