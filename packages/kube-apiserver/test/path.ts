/** The request of `./dev path create`. */
import { join } from "node:path";
import { INSPECTED } from "../../../scripts/dev/path/inspector.ts";
import type { Kind } from "../../../scripts/dev/path/kinds.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { ApiClient } from "./robustness/api-client.ts";
import { ApiProcess, TOKEN } from "./robustness/api-process.ts";

export const kinds: Readonly<Record<string, Kind>> = {
  create: {
    about: "a create of a ConfigMap, in the API server",
    async open(cluster, stack) {
      const [port] = await freePorts(1);
      const client = new ApiClient(port, TOKEN);
      const server = new ApiProcess(join(cluster.dir, "api"), cluster.endpoints, client);
      server.start(INSPECTED);
      stack.defer(() => server.kill());
      await server.waitReady();
      let created = 0;
      const create = async (): Promise<void> => {
        const { code } = await client.call("POST", "/api/v1/namespaces/default/configmaps", {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: `path-${created++}` },
          data: { key: "value" },
        });
        if (code !== 201) throw new Error(`the API server responded ${code}`);
      };
      return { log: server.log(), request: create, baseline: async () => {} };
    },
  },
};
