/**
 * Sends the model's requests to a cluster whose members come and go. A request that was with a
 * leader when that was killed is lost without an answer; another may be done although its answer
 * was lost. Which it is, a later read shows: the revisions are the model's own.
 */
import assert from "node:assert/strict";
import { GrpcCode, LeaseService } from "@quorate/proto";
import { CallError, type TestClient } from "./client.ts";
import type { KvModel, ModelStep } from "./kv-model.ts";
import { revisionOf } from "./snapshots.ts";
import { until } from "./until.ts";

/**
 * Longer than a member waits for the result of a request, so that the member has given it up when
 * the client does.
 */
const CALL_LIMIT_MS = 15_000;

/**
 * Sends so many requests, each when the one before is done, and holds the revisions that the
 * cluster returns against the model's.
 */
export async function sendModel(client: TestClient, model: KvModel, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const before = model.revision;
    await sendStep(client, model.step(), before);
  }
}

async function sendStep(client: TestClient, step: ModelStep, before: number): Promise<void> {
  const { method, request, revision } = step;
  const what = `${method.name} ${JSON.stringify(request, (_, value) => (typeof value === "bigint" ? `${value}` : value))}`;
  for (let isRepeated = false; ; isRepeated = true) {
    try {
      const { header } = (await client.call(method, request, CALL_LIMIT_MS)) as {
        header: { revision: number };
      };
      assert.equal(header.revision, revision, what);
      return;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (isRepeated && wasDone(step, error)) return;
      if (error.code !== GrpcCode.Unavailable && error.code !== GrpcCode.DeadlineExceeded)
        throw error;
    }
    const now = await revisionWhenAnswered(client);
    assert.ok(
      now === before || now === revision,
      `${what} at revision ${before} took the cluster to ${now} instead of ${revision}`,
    );
    if (now !== before) return;
  }
}

/** Whether a refusal says that the request had been done before: leases change no revision. */
function wasDone({ method }: ModelStep, { code }: CallError): boolean {
  if (method === LeaseService.methods.LeaseGrant) return code === GrpcCode.FailedPrecondition;
  return method === LeaseService.methods.LeaseRevoke && code === GrpcCode.NotFound;
}

async function revisionWhenAnswered(client: TestClient): Promise<number> {
  let revision = 0;
  await until("the cluster answers a linearizable read", async () => {
    try {
      revision = await revisionOf(client);
      return true;
    } catch (error) {
      if (error instanceof CallError) return false;
      throw error;
    }
  });
  return revision;
}
