/**
 * The chain of admission plug-ins (apiserver: pkg/admission/chain.go). All that change objects run
 * first, in order, each on what the one before returned; then those that check. A change by a
 * webhook or policy starts a second round of those that change objects, for the ones that want to
 * see later changes (reinvocationPolicy IfNeeded).
 */
import type { KubeObject } from "@quorate/kube-storage";
import { type ApiError, forbidden, semanticEqual } from "@quorate/kube-storage";
import type { Admission, AdmissionAttributes } from "./admission.ts";

/** One plug-in: it changes, checks, or both. Both reject with ApiError. */
export interface AdmissionPlugin {
  /** What it is asked about, as group/resource ("/pods"), subresources included. Absent: all. */
  readonly resources?: readonly string[];
  /** It has nothing to judge by. Absent: never. Who gives it something calls `refresh`. */
  isIdle?(): boolean;
  /** Resolves with the object, changed or not. */
  mutate?(attributes: AdmissionAttributes, rounds: Rounds): Promise<KubeObject | undefined>;
  validate?(attributes: AdmissionAttributes): Promise<void>;
}

/** The rounds of the plug-ins that change one object. */
export interface Rounds {
  readonly isSecond: boolean;
  /** Asks for a second round; none follows that. */
  again(): void;
}

/** Which webhooks or policies of one plug-in want to see later changes of one object. */
export class Reinvocation {
  readonly #rounds: Rounds;
  /** Called, and no change since. */
  readonly #waiting = new Set<string>();
  /** To be called again. */
  readonly #due = new Set<string>();
  #last: KubeObject | undefined;

  private constructor(rounds: Rounds) {
    this.#rounds = rounds;
  }

  /**
   * At the start of a round of the plug-in.
   * @param states of the plug-in, by the rounds
   */
  static of(
    states: WeakMap<Rounds, Reinvocation>,
    rounds: Rounds,
    object: KubeObject | undefined,
  ): Reinvocation {
    const known = states.get(rounds);
    if (known !== undefined) {
      if (!semanticEqual(known.#last, object)) known.#require();
      return known;
    }
    const made = new Reinvocation(rounds);
    states.set(rounds, made);
    return made;
  }

  isDue(id: string): boolean {
    return this.#due.has(id);
  }

  /** The object has changed. */
  changed(): void {
    this.#require();
    this.#rounds.again();
  }

  #require(): void {
    for (const id of this.#waiting) this.#due.add(id);
    this.#waiting.clear();
  }

  /** After the call of one that wants to see later changes. */
  wait(id: string): void {
    this.#waiting.add(id);
  }

  /** The plug-in's round is over. */
  ended(object: KubeObject | undefined): void {
    this.#last = object;
  }
}

/** Asks only the plug-ins that are for the request's resource, and have something to judge by. */
export class AdmissionChain implements Admission {
  readonly #plugins: readonly AdmissionPlugin[];
  /** For the resources that a plug-in names; as many as all of them name. */
  readonly #byResource = new Map<string, readonly AdmissionPlugin[]>();
  #forOthers: readonly AdmissionPlugin[] = [];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = plugins;
    this.refresh();
  }

  /** A plug-in has become idle, or is no longer. Requests under way keep theirs. */
  refresh(): void {
    const active = this.#plugins.filter((plugin) => plugin.isIdle?.() !== true);
    for (const name of new Set(this.#plugins.flatMap(({ resources = [] }) => resources)))
      this.#byResource.set(
        name,
        active.filter(({ resources }) => resources?.includes(name) !== false),
      );
    this.#forOthers = active.filter(({ resources }) => resources === undefined);
  }

  async mutate(attributes: AdmissionAttributes): Promise<KubeObject | undefined> {
    const plugins = this.#for(attributes);
    let { object } = attributes;
    let wantsSecond = false;
    const rounds = { isSecond: false, again: () => (wantsSecond = true) };
    const round = async (): Promise<void> => {
      for (const plugin of plugins)
        if (plugin.mutate !== undefined)
          object = await plugin.mutate({ ...attributes, object }, rounds);
    };
    await round();
    if (!wantsSecond) return object;
    rounds.isSecond = true;
    await round();
    return object;
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    for (const plugin of this.#for(attributes)) await plugin.validate?.(attributes);
  }

  #for({ resource: { group, resource } }: AdmissionAttributes): readonly AdmissionPlugin[] {
    return this.#byResource.get(`${group}/${resource}`) ?? this.#forOthers;
  }
}

/** Finds what a pod names. Rejects with ApiError. @param namespace absent: outside of namespaces */
export type FindNamed = (name: string, namespace?: string) => Promise<KubeObject | undefined>;

/** Whether a request is about objects of the resource, or a subresource of them. */
export function isOf({ resource }: AdmissionAttributes, group: string, name: string): boolean {
  return resource.group === group && resource.resource === name;
}

/** The error of a plug-in that refuses a request; a new object may not have a name yet. */
export function admissionForbidden(attributes: AdmissionAttributes, why: string): ApiError {
  return forbidden(attributes.resource, nameFor(attributes), why);
}

function nameFor({ name, object }: AdmissionAttributes): string {
  if (name !== "") return name;
  return object?.metadata.name || object?.metadata.generateName || "Unknown";
}
