/**
 * The client's calls on Node's diagnostics channels, where OpenTelemetry, Sentry and others find
 * them without a patch: tracingChannel("quorate:call") and tracingChannel("quorate:watch"), with a
 * CallTrace as context.
 */
import { tracingChannel } from "node:diagnostics_channel";
import type { Tracer } from "../src/tracing.ts";

const calls = tracingChannel("quorate:call");
const watches = tracingChannel("quorate:watch");

export const tracer: Tracer = {
  call: (trace, run) => calls.tracePromise(run, trace),
  watch: (trace, run) => watches.tracePromise(run, trace),
};
