/**
 * Jobs, each done at least once: a worker claims a job with its session, and removes it when it is
 * done. Where the session ends before, another worker takes the job.
 */
import {
  type Client,
  compareCreateRevision,
  compareVersion,
  json,
  type Namespace,
  opDelete,
  opPut,
  type Session,
} from "@quorate/client";

export class Jobs<Job> {
  readonly #client: Client;
  readonly #prefix: string;
  readonly #todo: Namespace<Job>;

  constructor(client: Client, name: string) {
    this.#client = client;
    this.#prefix = `jobs/${name}/`;
    this.#todo = client.namespace(`${this.#prefix}todo/`, json<Job>());
  }

  async add(job: Job): Promise<void> {
    await this.#todo.put(`${Date.now()}-${crypto.randomUUID()}`, job);
  }

  /** Does jobs, one after the other, until the session has ended or `stop` is aborted. */
  async work(session: Session, run: (job: Job) => Promise<void>, stop: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([session.signal, stop]);
    while (!signal.aborted) {
      const { header } = await this.#client.get(this.#prefix, { prefix: true, countOnly: true });
      if (await this.#next(session, run)) continue;
      // Nothing to claim: until something changes.
      const options = { prefix: true, revision: header.revision + 1, signal };
      try {
        for await (const _ of this.#client.watch(this.#prefix, options).changes()) break;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }

  /** Does the first job that nobody has claimed. */
  async #next(session: Session, run: (job: Job) => Promise<void>): Promise<boolean> {
    for await (const { key, value } of this.#todo.entries()) {
      const [todo, claim] = [`${this.#prefix}todo/${key}`, `${this.#prefix}claim/${key}`];
      const claimed = await this.#client.txn({
        compare: [compareVersion(claim, "=", 0), compareVersion(todo, ">", 0)],
        success: [opPut(claim, "", { lease: session.lease })],
      });
      if (!claimed.succeeded) continue;
      await run(value);
      // Only with the claim that this worker made: it may have ended meanwhile.
      await this.#client.txn({
        compare: [compareCreateRevision(claim, "=", claimed.header.revision)],
        success: [opDelete(todo), opDelete(claim)],
      });
      return true;
    }
    return false;
  }
}
