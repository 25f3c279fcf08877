/** check datascale: the memory that a member needs for a number of keys. */

import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode, Progress, stoppedBy } from "@quorate/cli";
import { parseEndpoint } from "@quorate/client";
import { tlsOf } from "../connect/globals.ts";
import { httpGet } from "../observe/http.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import { randomKey, runLoad } from "./load.ts";
import type { ScaleModel } from "./models.ts";
import { CheckTarget } from "./target.ts";

const KEY_BYTES = 512;
const VALUE_BYTES = 512;
const BYTES_PER_MB = 1024 * 1024;
const METRIC = "process_resident_memory_bytes";
const METRICS_MS = 10_000;

/**
 * A member's resident memory in bytes, from its metrics. Where they lack it, prints the reason and
 * returns undefined.
 */
async function residentBytes(
  { flags, io }: Invocation,
  endpoint: string,
): Promise<number | undefined> {
  const tls = tlsOf(flags, io);
  try {
    const { body } = await httpGet(
      parseEndpoint(endpoint, tls !== undefined && tls.plainByDefault !== true),
      "/metrics",
      tls,
      METRICS_MS,
    );
    const bytes = new MetricsText(body).value(METRIC);
    if (bytes !== undefined) return bytes;
    io.stdout(`could not find: ${METRIC}\n`);
  } catch (error) {
    io.stdout(`fetch error: ${(error as Error).message}\n`);
  }
  return undefined;
}

/** Throws Exit where the memory is unknown. */
async function requireResidentBytes(
  invocation: Invocation,
  endpoint: string,
  when: string,
): Promise<number> {
  const bytes = await residentBytes(invocation, endpoint);
  if (bytes !== undefined && bytes > 0) return bytes;
  invocation.io.stdout(`FAIL: Could not read ${METRIC} ${when} the put operations.\n`);
  throw new Exit(ExitCode.error, "");
}

/** Runs the check. Throws Exit if puts fail. */
export async function checkDatascale(
  invocation: Invocation,
  prefix: string,
  model: ScaleModel,
): Promise<void> {
  const { io } = invocation;
  const target = await CheckTarget.open(invocation, prefix);
  const stop = new AbortController();
  const forget = io.onStop(() => stop.abort());
  const progress = new Progress(io, "putting keys");
  try {
    await target.requireEmpty((text) => text);
    const before = await requireResidentBytes(invocation, target.firstEndpoint, "before");
    io.stdout(
      `Start data scale check for work load [${model.keys} key-value pairs, ${KEY_BYTES + VALUE_BYTES} bytes per key-value, ` +
        `${model.clients} concurrent clients].\n`,
    );
    const value = new Uint8Array(VALUE_BYTES);
    const plan = {
      concurrency: model.clients,
      perSecond: undefined,
      seconds: undefined,
      calls: model.keys,
    };
    const { errors } = await runLoad(
      io,
      plan,
      stop.signal,
      () => target.put(randomKey(KEY_BYTES), value),
      (calls) => progress.update(calls, model.keys, `${model.keys} keys`),
    );
    progress.end();
    const after = await requireResidentBytes(invocation, target.firstEndpoint, "after");
    await target.tidy(await target.deleteAll());
    // The keys are deleted again, but a partial load has no meaningful result.
    if (stop.signal.aborted) throw stoppedBy("SIGINT");
    if (errors.size > 0) {
      io.stdout("FAIL: too many errors\n");
      for (const [text, count] of errors) io.stdout(`FAIL: ERROR(${text}) -> ${count}\n`);
      throw new Exit(ExitCode.error, "");
    }
    io.stdout(
      `PASS: Approximate system memory used : ${((after - before) / BYTES_PER_MB).toFixed(2)} MB.\n`,
    );
  } finally {
    progress.end();
    forget();
    target.close();
  }
}
