/**
 * Processor time of the thread that calls it, in nanoseconds. process.threadCpuUsage() counts in
 * steps of the system's timer (4 ms); the clock that WASI offers for a thread does not. A call
 * takes 0.6 microseconds.
 */
import { WASI } from "node:wasi";

const CLOCK_THREAD_CPU = 3;

const text = (name: string): number[] => [name.length, ...Buffer.from(name)];

/**
 * A module with one function, which asks WASI's clock_time_get for the thread's clock, reads the
 * number from memory and returns it as a double.
 */
const MODULE = new Uint8Array(
  [
    [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    // Types: (i32, i64, i32) -> i32 and () -> f64.
    [1, 12, 2, 0x60, 3, 0x7f, 0x7e, 0x7f, 1, 0x7f, 0x60, 0, 1, 0x7c],
    [2, 41, 1, ...text("wasi_snapshot_preview1"), ...text("clock_time_get"), 0, 0],
    // One function of the second type, one page of memory, both exported.
    [3, 2, 1, 1, 5, 3, 1, 0, 1],
    [7, 16, 2, ...text("memory"), 2, 0, ...text("now"), 0, 1],
    // drop(clock_time_get(CLOCK_THREAD_CPU, 0, 0)); return f64(load64(0))
    [10, 19, 1, 17, 0, 0x41, CLOCK_THREAD_CPU, 0x42, 0, 0x41, 0, 0x10, 0],
    [0x1a, 0x41, 0, 0x29, 3, 0, 0xba, 0x0b],
  ].flat(),
);

/** What is used of WebAssembly, of which Node's types have the namespace alone. */
interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { exports: { now(): number } };
}

/** Returns the clock of the calling thread: milliseconds of processor time since its start. */
export function threadClock(): () => number {
  const wasi = new WASI({ version: "preview1" });
  const wasm = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;
  const instance = new wasm.Instance(new wasm.Module(MODULE), wasi.getImportObject());
  wasi.initialize(instance);
  const { now } = instance.exports;
  return () => now() / 1e6;
}
