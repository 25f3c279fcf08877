/** What controllers' tests find in KUBEBUILDER_ASSETS: this checkout as kube-apiserver and etcd. */
import { join } from "node:path";
import { envtestDirectory } from "@quorate/quorate/node";

const root = join(import.meta.dirname, "../../..");

export function envtestAssets(home = join(root, "node_modules/.cache/quorate")): string {
  return envtestDirectory(home, [process.execPath, join(root, "bin/quorate.js")]);
}
