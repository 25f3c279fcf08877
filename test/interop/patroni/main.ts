/**
 * Patroni's whole story, with its log lines: ./dev clients patroni. Ends with 1
 * where a row is lost or a health check fails.
 */
import { readArguments } from "../../../scripts/dev/command-line.ts";
import { withCluster } from "../../support/cluster.ts";
import { skipWithoutPatroni } from "./installed.ts";
import { type Protocol, Story } from "./story.ts";

const { values } = readArguments(
  "./dev clients patroni [OPTIONS]: Patroni on three members, through failures of both",
  {
    protocol: {
      choices: ["etcd3", "etcd"] as const satisfies readonly Protocol[],
      default: "etcd3" as const,
      describe: "how Patroni calls the members",
    },
  },
);
const { protocol } = values;
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
