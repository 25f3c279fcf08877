/**
 * bcrypt on threads of their own, beside the pool that file operations use: a flood of logins
 * holds up no fdatasync. The threads start with the first password.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { MAX_RUNNING_HASHES, type PasswordHasher } from "@quorate/member";
import type { BcryptJob, BcryptResult } from "./bcrypt-worker.ts";

/** A quarter of the processors, so that the members' own work comes first. */
export function hashThreads(): number {
  return Math.max(1, Math.min(MAX_RUNNING_HASHES, Math.floor(availableParallelism() / 4)));
}

interface Waiting {
  readonly resolve: (result: boolean | string) => void;
  readonly reject: (error: Error) => void;
}

/** One thread and the jobs that it has; it is made again when it has failed. */
class HashThread {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #nextId = 1;

  get load(): number {
    return this.#waiting.size;
  }

  async run(job: Omit<BcryptJob, "id">): Promise<boolean | string> {
    const worker = this.#worker ?? (await this.#open());
    const id = this.#nextId++;
    // A process that has nothing else to do waits for a hash, and not for the thread.
    worker.ref();
    return new Promise<boolean | string>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, ...job });
    });
  }

  async #open(): Promise<Worker> {
    // Loaded for its address, and only where there are passwords.
    const { bcryptWorker } = await import("./bcrypt-worker.ts");
    return this.#worker ?? this.#start(bcryptWorker);
  }

  #start({ url, workerData }: { readonly url: URL; readonly workerData: string }): Worker {
    const worker = new Worker(url, { workerData });
    this.#worker = worker;
    worker.on("message", ({ id, result, error }: BcryptResult) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) worker.unref();
      if (result !== undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(`bcrypt: ${error}`));
    });
    worker.on("error", (error) => this.#failed(worker, error as Error));
    worker.on("exit", () =>
      this.#failed(worker, new Error("the thread for password hashes has ended")),
    );
    return worker;
  }

  #failed(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }

  close(): void {
    void this.#worker?.terminate();
  }
}

/** The hasher of a member. @param threads as `hashThreads` says unless set */
export function bcryptHasher(threads: number = hashThreads()): PasswordHasher {
  const all = Array.from({ length: threads }, () => new HashThread());
  const idlest = () => all.reduce((best, one) => (one.load < best.load ? one : best));
  return {
    hash: async (password, cost) => String(await idlest().run({ password, hash: undefined, cost })),
    verify: async (password, hash) => (await idlest().run({ password, hash, cost: 0 })) === true,
    close: () => {
      for (const thread of all) thread.close();
    },
  };
}
