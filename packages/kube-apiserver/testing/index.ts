/** The npm package @quorate/kube-testing: an API server in tests of controllers and webhooks. */
export type { ChaosFault, FaultName } from "../src/chaos/chaos.ts";
export {
  type KubeOptions,
  type KubeTest,
  type LocalWebhooks,
  testKube,
  type Waited,
} from "./kube.ts";
