/** The spans of a streamed range: one of the call, and one of the request within it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { fromUtf8, KVService, RangeRequest } from "@quorate/proto";
import type { StreamCall } from "@quorate/rpc";
import { TracedServices } from "../node/tracing/traced-services.ts";
import { type Span, Tracer } from "../src/tracing/span.ts";
import { ClientCall } from "./support/client-call.ts";

test("a streamed range has etcd's span, which lasts as long as the call", () => {
  const { path } = KVService.methods.RangeStream;
  const clock = new ManualClock();
  const ended: Span[] = [];
  const deps = { clock, random: new SeededRandom(1n), ended: (span: Span) => ended.push(span) };
  const services = new TracedServices(new Tracer(1_000_000, deps), () => clock.monotonicMs());
  let served: StreamCall | undefined;
  const handler = (call: StreamCall) => {
    served = call;
    return { message: () => {} };
  };
  const table = services.around({ unary: new Map(), stream: new Map([[path, handler]]) });
  const listener = table.stream.get(path)!(new ClientCall(path));
  listener.message!(RangeRequest.encode(RangeRequest.create({ key: fromUtf8("k"), limit: 3 })));
  assert.equal(ended.length, 0);
  served!.end();
  const [inner, outer] = ended;
  assert.deepEqual([inner.name, outer.name], ["range_streaming", path.slice(1)]);
  assert.deepEqual(inner.attributes.slice(0, 4), [
    ["range_begin", "k"],
    ["range_end", ""],
    ["rev", 0],
    ["limit", 3],
  ]);
});
