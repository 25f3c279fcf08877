/** V8's inspector of another process: how often each function ran, and in which order. */
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** A process that is to be inspected has this in its NODE_OPTIONS. */
export const INSPECTED = { NODE_OPTIONS: "--inspect=127.0.0.1:0" };

/** A function by where it stands. */
export interface Place {
  /** Path of the file. */
  readonly path: string;
  readonly scriptId: string;
  readonly name: string;
  /** Offsets in the file. */
  readonly start: number;
  readonly end: number;
  readonly count: number;
}

interface Coverage {
  readonly result: readonly {
    readonly scriptId: string;
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly {
        readonly startOffset: number;
        readonly endOffset: number;
        readonly count: number;
      }[];
    }[];
  }[];
}

export const keyOf = (place: Place): string => `${place.path}:${place.start}-${place.end}`;

export class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #next = 1;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    socket.addEventListener("close", () => {
      for (const one of this.#waiting.values()) one.reject(new Error("the inspector has gone"));
    });
  }

  /** Connects to the process that wrote this log. @throws Error where the log names no inspector */
  static async open(log: string): Promise<Inspector> {
    // A program that starts itself again has written two lines.
    const url = [...log.matchAll(/Debugger listening on (ws:\/\/\S+)/g)].at(-1)?.[1];
    if (url === undefined) throw new Error(`the process has no inspector:\n${log}`);
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", () => reject(new Error(`nothing answers at ${url}`)));
    });
    const inspector = new Inspector(socket);
    await inspector.#send("Profiler.enable");
    await inspector.#send("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    return inspector;
  }

  close(): void {
    this.#socket.close();
  }

  /** The functions of packages/ since the last call of this method, also those that did not run. */
  async take(): Promise<Map<string, Place>> {
    const { result } = (await this.#send("Profiler.takePreciseCoverage")) as Coverage;
    const places = result
      .filter(({ url }) => url.startsWith("file:") && url.includes("/packages/"))
      .flatMap(({ scriptId, url, functions }) =>
        functions.map(({ functionName, ranges: [{ startOffset, endOffset, count }] }) => ({
          path: fileURLToPath(url),
          scriptId,
          name: functionName,
          start: startOffset,
          end: endOffset,
          count,
        })),
      );
    return new Map(places.map((place) => [keyOf(place), place]));
  }

  /**
   * The order in which functions ran first while `action` did. Breakpoints whose condition is never
   * true note it, so the process does not stop.
   * @param at line and column of a function, from 0
   * @param settleMs how long work that a request has left behind takes at most
   * @returns indices of `places`
   */
  async orderOf(
    places: readonly Place[],
    at: (place: Place) => { readonly lineNumber: number; readonly columnNumber: number },
    action: () => Promise<void>,
    settleMs: number,
  ): Promise<readonly number[]> {
    await this.#send("Debugger.enable");
    for (const [index, place] of places.entries()) {
      const location = { scriptId: place.scriptId, ...at(place) };
      const condition = `void (globalThis.quoratePath ??= new Set()).add(${index})`;
      // A function that only returns a constant may have no place to stop.
      await this.#send("Debugger.setBreakpoint", { location, condition }).catch(() => {});
    }
    // Work of requests before this one, such as the backend's batch, is done before it begins.
    await delay(settleMs);
    await this.#send("Runtime.evaluate", { expression: "globalThis.quoratePath = new Set()" });
    // Under breakpoints a request can take longer than its deadline; what ran was noted anyway.
    await action().catch(() => {});
    await delay(settleMs);
    const expression = "JSON.stringify([...(globalThis.quoratePath ?? [])])";
    const { result } = (await this.#send("Runtime.evaluate", { expression })) as {
      result: { value: string };
    };
    await this.#send("Debugger.disable");
    return JSON.parse(result.value) as number[];
  }

  #send(method: string, params: object = {}): Promise<unknown> {
    const id = this.#next++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return waiting.promise;
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as { id?: number; result?: unknown; error?: object };
    if (message.id === undefined) return;
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.error === undefined) waiting?.resolve(message.result);
    else waiting?.reject(new Error(JSON.stringify(message.error)));
  }
}
