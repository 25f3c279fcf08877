/** The other client, which has nothing to do with the call that is measured: see prober.ts. */
import { Worker } from "node:worker_threads";
import type { ProberData, ProberReport } from "./prober.ts";

export class Prober {
  readonly #worker: Worker;
  #take: (report: ProberReport) => void = () => {};
  #failed: (error: Error) => void = () => {};

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", (report: ProberReport) => this.#take(report));
    worker.on("error", (error: Error) => this.#failed(error));
  }

  static async start(data: ProberData): Promise<Prober> {
    const worker = new Worker(new URL("./prober.ts", import.meta.url), { workerData: data });
    await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    return new Prober(worker);
  }

  /** What was measured since the last report. */
  report(): Promise<ProberReport> {
    return new Promise((resolve, reject) => {
      this.#take = resolve;
      this.#failed = reject;
      this.#worker.postMessage("report");
    });
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
