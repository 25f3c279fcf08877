/**
 * Patroni's whole story, with its log lines: npm run story:patroni [-- etcd3|etcd]. Ends with 1
 * where a row is lost or a health check fails.
 */
import { withCluster } from "../../support/cluster.ts";
import { skipWithoutPatroni } from "./installed.ts";
import { type Protocol, Story } from "./story.ts";

const protocol = (process.argv[2] ?? "etcd3") as Protocol;
const missing = skipWithoutPatroni();
if (missing !== false) {
  console.error(missing);
  process.exit(2);
}
const flags = protocol === "etcd" ? ["--enable-v2"] : [];
await withCluster({ size: 3, flags }, async (cluster) => {
  const story = await Story.prepare({ cluster, protocol, say: (line) => console.log(line) });
  try {
    await story.initialise();
    await story.loseThePrimary();
    await story.loseOurLeader();
    await story.loseBoth();
    await story.stopThePrimary();
    await story.verdict();
    console.log(
      `\nPatroni's log lines, without its regular rounds:\n${story.logLines().join("\n")}`,
    );
  } catch (error) {
    console.error(story.logTails());
    throw error;
  } finally {
    await story.destroy();
  }
});
