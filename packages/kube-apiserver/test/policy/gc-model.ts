/** What must be left when the garbage collector is idle, found the slow and simple way. */
import type { OwnerReference } from "@quorate/kube-storage";

interface ModelObject {
  readonly key: string;
  refs: OwnerReference[];
  isHeld: boolean;
  isDeleting: boolean;
}

export class GcModel {
  readonly #objects = new Map<string, ModelObject>();

  add(uid: string, key: string, refs: readonly OwnerReference[], isHeld: boolean): void {
    this.#objects.set(uid, { key, refs: [...refs], isHeld, isDeleting: false });
    this.#settle();
  }

  setRefs(uid: string, refs: readonly OwnerReference[]): void {
    const object = this.#objects.get(uid);
    if (object !== undefined) object.refs = [...refs];
    this.#settle();
  }

  release(uid: string): void {
    const object = this.#objects.get(uid);
    if (object === undefined) return;
    object.isHeld = false;
    if (object.isDeleting) this.#objects.delete(uid);
    this.#settle();
  }

  delete(uid: string, policy: "Orphan" | "Background" | "Foreground"): void {
    if (policy === "Orphan") {
      for (const one of this.#objects.values())
        one.refs = one.refs.filter((ref) => ref.uid !== uid);
    }
    this.#remove(uid);
    this.#settle();
  }

  get alive(): string[] {
    return [...this.#objects.keys()];
  }

  has(uid: string): boolean {
    return this.#objects.has(uid);
  }

  isHeld(uid: string): boolean {
    return this.#objects.get(uid)?.isHeld ?? false;
  }

  isDeleting(uid: string): boolean {
    return this.#objects.get(uid)?.isDeleting ?? false;
  }

  /**
   * Each object with the owners that it still names. Which of them a deletion left behind depends
   * on the order of a cascade.
   */
  get state(): string[] {
    return [...this.#objects.values()]
      .map(({ key, refs, isDeleting }) =>
        isDeleting ? `${key} is being deleted` : `${key} <- ${refs.map(({ name }) => name).sort()}`,
      )
      .sort();
  }

  #remove(uid: string): void {
    const object = this.#objects.get(uid)!;
    if (object.isHeld) object.isDeleting = true;
    else this.#objects.delete(uid);
  }

  /** Until nothing changes: no living owner is the end; a dead one among living is forgotten. */
  #settle(): void {
    for (let isStable = false; !isStable; ) {
      isStable = true;
      for (const [uid, object] of this.#objects) {
        if (object.refs.length === 0 || object.isDeleting) continue;
        const solid = object.refs.filter((ref) => this.#objects.has(ref.uid));
        if (solid.length === object.refs.length) continue;
        isStable = false;
        if (solid.length > 0) object.refs = solid;
        else this.#remove(uid);
      }
    }
  }
}
