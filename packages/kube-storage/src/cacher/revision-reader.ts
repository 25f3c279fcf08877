/**
 * Reads the store's latest revision for many requests at once. A request may use only a read that
 * began after it: an earlier one may miss a write that the client has seen acknowledged.
 */
export class RevisionReader {
  readonly #read: () => Promise<number>;
  #running: Promise<number> | undefined;
  #next: Promise<number> | undefined;

  constructor(read: () => Promise<number>) {
    this.#read = read;
  }

  /** The store's revision at some moment after this call. */
  read(): Promise<number> {
    if (this.#running === undefined) return this.#start();
    const start = () => {
      this.#next = undefined;
      return this.#start();
    };
    this.#next ??= this.#running.then(start, start);
    return this.#next;
  }

  #start(): Promise<number> {
    const running = this.#read();
    this.#running = running;
    const done = () => {
      if (this.#running === running) this.#running = undefined;
    };
    running.then(done, done);
    return running;
  }
}
