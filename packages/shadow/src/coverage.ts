/**
 * How many revisions were found equal. A comparison at revision R with the compact revision C
 * covers the revisions from C to R: the state at C, and each change after it.
 *
 *     joined at 100      equal (90, 140]     equal (120, 200]     equal (260, 300]
 *     covered            41: 100 to 140      101: to 200          142: 260 to 300 more
 */
export class Coverage {
  /** The revision at which the shadow began. */
  readonly first: number;
  #through: number;
  #equal = 0;

  /** @param equal what an earlier run of the same shadow has covered, up to `through` */
  constructor(first: number, through = first - 1, equal = 0) {
    this.first = first;
    this.#through = through;
    this.#equal = equal;
  }

  /** Revisions found equal. */
  get equal(): number {
    return this.#equal;
  }

  /** The last of them. */
  get through(): number {
    return this.#through;
  }

  add(compactRevision: number, revision: number): void {
    const from = Math.max(this.#through + 1, compactRevision, this.first);
    if (revision < from) return;
    this.#equal += revision - from + 1;
    this.#through = revision;
  }
}
