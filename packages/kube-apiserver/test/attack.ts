/** The API server under `./dev attack linear`: asked by an administrator and by nobody. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Attacked } from "../../../test/fuzz/linear/servers.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { apiShapes, widgetDefinition } from "./attack/shapes.ts";

const PORT = "API server";
const ADMIN_PORT = "API server as admin";
const ADMIN_TOKEN = "attack-token";
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

export const attacked: Attacked = {
  shapes: [...apiShapes(PORT, {}), ...apiShapes(ADMIN_PORT, ADMIN)],
  async start({ dir, caller, start }) {
    const [port] = await freePorts(1);
    const tokens = join(dir, "tokens.csv");
    writeFileSync(tokens, `${ADMIN_TOKEN},admin,1,"system:masters"\n`);
    const { pid } = start("api", [
      "apiserver",
      `--data-dir=${join(dir, "api")}`,
      `--secure-port=${port}`,
      `--token-auth-file=${tokens}`,
    ]);
    const base = `https://127.0.0.1:${port}`;
    await caller.ready(`${base}/readyz`, ADMIN);
    const definitions = `${base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`;
    const made = await caller.call(definitions, widgetDefinition(), ADMIN);
    if (made.status !== 201) throw new Error(`the definition: ${made.text}`);
    await caller.ready(`${base}/apis/attack.org/v1/namespaces/default/widgets`, ADMIN);
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { a: "b" } };
    await caller.call(`${base}/api/v1/namespaces/default/configmaps`, map, ADMIN);
    const target = { where: { port, tls: true }, pids: [pid] };
    return new Map([
      [PORT, target],
      [ADMIN_PORT, target],
    ]);
  },
};
