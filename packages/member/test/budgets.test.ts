/** What a member may spend fits its machine, whatever the machine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machineLimits } from "@quorate/host/node";
import { type Budgets, budgetsFor, MAX_BUDGETED_THOUSANDTHS } from "../src/config/budgets.ts";
import { logMemoryFor } from "../src/loop/limits.ts";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** The budgets that stand beside each other; all others are parts of these. */
function totalBytes(budgets: Budgets): number {
  return Object.entries(budgets).reduce(
    (sum, [name, value]) => sum + (name.endsWith("TotalBytes") ? value : 0),
    0,
  );
}

function connections({ clientConnections, httpConnections, peerConnections }: Budgets): number {
  return clientConnections + httpConnections + peerConnections;
}

describe("memory", () => {
  for (const memoryBytes of [256 * MIB, 512 * MIB, 2 * GIB, 8 * GIB, 64 * GIB]) {
    test(`of ${memoryBytes / MIB} MiB: all budgets together leave a quarter`, () => {
      const budgets = budgetsFor({ memoryBytes, openFiles: 65_536 });
      assert.ok(totalBytes(budgets) <= (memoryBytes * MAX_BUDGETED_THOUSANDTHS) / 1000);
      for (const [name, value] of Object.entries(budgets))
        assert.ok(Number.isInteger(value) && value > 0, `${name} is ${value}`);
    });
  }

  test("no client, and no connection, may have more than a part", () => {
    const budgets = budgetsFor({ memoryBytes: 2 * GIB, openFiles: 65_536 });
    assert.ok(budgets.requestsConnectionBytes * 4 <= budgets.requestsTotalBytes);
    assert.ok(budgets.headersConnectionBytes * 4 <= budgets.headersTotalBytes);
    assert.ok(budgets.answersConnectionBytes * 2 <= budgets.answersTotalBytes);
    assert.ok(budgets.builtAnswersClientBytes * 2 <= budgets.builtAnswersTotalBytes);
    assert.ok(budgets.watchesClientBytes * 2 <= budgets.watchesTotalBytes);
    assert.ok(budgets.logCatchUpBytes * 4 <= budgets.logTotalBytes);
  });

  test("a large machine ends at the ceilings; one that is not known is taken for 2 GiB", () => {
    const huge = budgetsFor({ memoryBytes: 1024 * GIB, openFiles: 65_536 });
    assert.ok(totalBytes(huge) <= 5.5 * GIB);
    const known = budgetsFor({ memoryBytes: 2 * GIB, openFiles: 65_536 });
    for (const memoryBytes of [0, -1, Number.NaN])
      assert.deepEqual(budgetsFor({ memoryBytes, openFiles: 65_536 }), known);
  });
});

test("the log of a small machine has its share, and space for two requests", () => {
  const budgets = budgetsFor({ memoryBytes: 512 * MIB, openFiles: 4096 });
  const { logTotalBytes, uncommittedTotalBytes } = budgets;
  assert.ok(logTotalBytes < 64 * MIB && uncommittedTotalBytes < 32 * MIB);
  const log = logMemoryFor(budgets, MIB);
  assert.deepEqual(
    [log.maxLogBytes, log.maxUncommittedBytes],
    [logTotalBytes, uncommittedTotalBytes],
  );
  for (const bytes of Object.values(logMemoryFor(budgets, 100 * MIB)))
    assert.equal(bytes, 200 * MIB);
});

describe("file descriptors", () => {
  for (const openFiles of [1024, 4096, 20_000, 65_536, 1_048_576]) {
    test(`${openFiles}: all ports together leave what the store needs`, () => {
      const budgets = budgetsFor({ memoryBytes: 2 * GIB, openFiles });
      assert.ok(
        connections(budgets) + Math.min(1024, openFiles / 5) <= openFiles,
        JSON.stringify(budgets),
      );
      assert.ok(budgets.clientConnections >= openFiles / 4 || budgets.clientConnections === 16_384);
    });
  }

  test("each port has a few even where there are almost none", () => {
    const { clientConnections, httpConnections, peerConnections } = budgetsFor({
      memoryBytes: 2 * GIB,
      openFiles: 64,
    });
    assert.deepEqual([clientConnections, httpConnections, peerConnections], [16, 16, 16]);
  });
});

test("this process has limits", () => {
  const { memoryBytes, openFiles } = machineLimits();
  assert.ok(memoryBytes > 64 * MIB && Number.isSafeInteger(memoryBytes));
  assert.ok(openFiles > 0 && Number.isSafeInteger(openFiles));
});
