/** Events: what the operator did, where `kubectl describe` shows it. */
import type { Clock } from "@quorate/host";
import { timeText } from "./kinds.ts";
import { type Kube, KubeError, type KubeObject, keyOf } from "./kube.ts";

const MAX_MESSAGE = 1000;

/** Records an event of an object. One that cannot be recorded is left out. */
export async function recordEvent(
  kube: Kube,
  clock: Clock,
  about: KubeObject,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): Promise<void> {
  const { namespace, name } = keyOf(about);
  const nowMs = clock.wallMs();
  const { apiVersion, kind, metadata } = about;
  const { uid, resourceVersion } = metadata;
  const event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name}.${(nowMs * 1000 + (eventCount++ % 1000)).toString(16)}`, namespace },
    involvedObject: { apiVersion, kind, name, namespace, uid, resourceVersion },
    type,
    reason,
    message: message.slice(0, MAX_MESSAGE),
    firstTimestamp: timeText(nowMs),
    lastTimestamp: timeText(nowMs),
    count: 1,
    source: { component: "quorate-operator" },
  };
  try {
    await kube.create(event);
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
  }
}

let eventCount = 0;
