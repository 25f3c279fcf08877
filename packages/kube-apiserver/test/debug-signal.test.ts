/** `quorate apiserver` opens no inspector at SIGUSR1; see test/e2e/debug-signal.test.ts. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startCluster } from "../../../test/support/cluster.ts";
import { isUnmoved, says, start, WAYS } from "../../../test/support/debug-signal.ts";
import { freePorts } from "../../../test/support/ports.ts";

const scratch = mkdtempSync(join(tmpdir(), "quorate-signal-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

const cluster = await startCluster({ size: 1 });
after(() => cluster.destroy());

for (const [way, command] of WAYS) {
  test(`started ${way}, the API server opens no inspector`, async (t) => {
    const [port] = await freePorts(1);
    const running = start(t, scratch, [
      ...command("quorate.js"),
      "apiserver",
      `--data-dir=${join(scratch, `api ${way}`)}`,
      `--etcd-servers=${cluster.endpoints.join(",")}`,
      `--secure-port=${port}`,
    ]);
    await says(running, /export KUBECONFIG/);
    await isUnmoved(running);
  });
}
