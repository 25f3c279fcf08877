/** The table of pods, and how long their deletion takes (kubernetes: registry/core/pod). */

import type { KubeObject } from "@quorate/kube-storage";
import { AGE, ageSince, nameColumn, tableOf, textColumn } from "@quorate/kube-storage";
import { type Condition, type Container, fieldOf, hasCondition } from "./workload-fields.ts";

interface ContainerState {
  readonly waiting?: { readonly reason?: string };
  readonly running?: object;
  readonly terminated?: {
    readonly reason?: string;
    readonly exitCode?: number;
    readonly signal?: number;
    readonly finishedAt?: string;
  };
}

interface ContainerStatus {
  readonly name?: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly restartCount?: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

/** What the status column says, and what goes with it. */
interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly reason: string;
  readonly restarts: number;
  readonly lastRestart: string;
}

function terminationText({
  reason = "",
  signal = 0,
  exitCode = 0,
}: NonNullable<ContainerState["terminated"]>): string {
  if (reason !== "") return reason;
  return signal !== 0 ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

function latest(a: string, status: ContainerStatus): string {
  const finished = status.lastState?.terminated?.finishedAt ?? "";
  return finished > a ? finished : a;
}

/** The first init container that is not done; undefined where all are. */
function initReason(
  statuses: readonly ContainerStatus[],
  sidecars: ReadonlySet<string>,
  total: number,
): string | undefined {
  for (const [index, status] of statuses.entries()) {
    const { terminated, waiting } = status.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (sidecars.has(status.name ?? "") && status.started === true) continue;
    if (terminated !== undefined) return `Init:${terminationText(terminated)}`;
    const reason = waiting?.reason ?? "";
    return reason !== "" && reason !== "PodInitializing"
      ? `Init:${reason}`
      : `Init:${index}/${total}`;
  }
  return undefined;
}

function basicReason(pod: KubeObject): string {
  const conditions = fieldOf<readonly Condition[]>(pod, "status", "conditions", []);
  const isGated = ({ type, reason }: Condition): boolean =>
    type === "PodScheduled" && reason === "SchedulingGated";
  if (conditions.some(isGated)) return "SchedulingGated";
  return (
    fieldOf<string>(pod, "status", "reason", "") || fieldOf<string>(pod, "status", "phase", "")
  );
}

/** The reason that the running containers lead to. */
function containerReason(
  pod: KubeObject,
  statuses: readonly ContainerStatus[],
  first: string,
): string {
  let reason = first;
  let failure = "";
  let running = false;
  for (const { state = {}, ready } of statuses.toReversed()) {
    const waiting = state.waiting?.reason ?? "";
    if (waiting !== "") reason = waiting;
    else if (state.terminated !== undefined) {
      reason = terminationText(state.terminated);
      if ((state.terminated.exitCode ?? 0) !== 0) failure = reason;
    } else if (ready === true && state.running !== undefined) running = true;
  }
  if (reason !== "Completed") return reason;
  if (running && hasCondition(pod, "Ready")) return "Running";
  return failure !== "" ? failure : running ? "NotReady" : reason;
}

function withDeletion(pod: KubeObject, reason: string): string {
  if (pod.metadata.deletionTimestamp === undefined) return reason;
  if (fieldOf<string>(pod, "status", "reason", "") === "NodeLost") return "Unknown";
  const phase = fieldOf<string>(pod, "status", "phase", "");
  return phase === "Failed" || phase === "Succeeded" ? reason : "Terminating";
}

function summaryOf(pod: KubeObject): PodSummary {
  const initial = fieldOf<readonly Container[]>(pod, "spec", "initContainers", []);
  const always = initial.filter(({ restartPolicy }) => restartPolicy === "Always");
  const sidecars = new Set(always.map(({ name = "" }) => name));
  const initStatuses = fieldOf<readonly ContainerStatus[]>(
    pod,
    "status",
    "initContainerStatuses",
    [],
  );
  const statuses = fieldOf<readonly ContainerStatus[]>(pod, "status", "containerStatuses", []);
  const containers = fieldOf<readonly Container[]>(pod, "spec", "containers", []);
  const waits = initReason(initStatuses, sidecars, initial.length);
  const started = waits === undefined || hasCondition(pod, "Initialized");
  const isSidecar = ({ name = "" }: ContainerStatus): boolean => sidecars.has(name);
  const running = initStatuses.filter(isSidecar);
  const counted = started ? [...running, ...statuses] : initStatuses;
  const isReady = ({ ready, state }: ContainerStatus): boolean =>
    ready === true && state?.running !== undefined;
  const readySidecars = running.filter(({ ready, started: up }) => ready === true && up === true);
  const first = basicReason(pod);
  return {
    ready: readySidecars.length + (started ? statuses.filter(isReady).length : 0),
    total: containers.length + sidecars.size,
    reason: withDeletion(pod, started ? containerReason(pod, statuses, waits ?? first) : waits),
    restarts: counted.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    lastRestart: counted.reduce(latest, ""),
  };
}

export const podTable = tableOf(
  nameColumn(),
  textColumn("Ready", "Containers that are ready, of all.", (pod) => {
    const { ready, total } = summaryOf(pod);
    return `${ready}/${total}`;
  }),
  textColumn("Status", "What the pod does.", (pod) => summaryOf(pod).reason),
  textColumn("Restarts", "How often containers were restarted.", (pod, nowMs) => {
    const { restarts, lastRestart } = summaryOf(pod);
    if (restarts === 0 || lastRestart === "") return String(restarts);
    return `${restarts} (${ageSince(lastRestart, nowMs)} ago)`;
  }),
  AGE,
  textColumn(
    "IP",
    "Its address.",
    (pod) => {
      const addresses = fieldOf<readonly { ip?: string }[]>(pod, "status", "podIPs", []);
      return addresses[0]?.ip || "<none>";
    },
    1,
  ),
  textColumn("Node", "Where it runs.", (pod) => fieldOf(pod, "spec", "nodeName", "<none>"), 1),
  textColumn(
    "Nominated Node",
    "Where it will run once others have gone.",
    (pod) => fieldOf(pod, "status", "nominatedNodeName", "<none>"),
    1,
  ),
  textColumn("Readiness Gates", "Conditions that are met, of those wanted.", readinessText, 1),
);

function readinessText(pod: KubeObject): string {
  const gates = fieldOf<readonly { conditionType?: string }[]>(pod, "spec", "readinessGates", []);
  if (gates.length === 0) return "<none>";
  const met = gates.filter(({ conditionType = "" }) => hasCondition(pod, conditionType));
  return `${met.length}/${gates.length}`;
}

/** Of pods that say nothing else. */
const GRACE_SECONDS = 30;

/** Seconds that a pod has to end: none where it is on no node, or has ended. */
export function podGraceSeconds(pod: KubeObject, requested: number | undefined): number {
  const phase = fieldOf<string>(pod, "status", "phase", "");
  if (fieldOf<string>(pod, "spec", "nodeName", "") === "") return 0;
  if (phase === "Failed" || phase === "Succeeded") return 0;
  const seconds = requested ?? fieldOf(pod, "spec", "terminationGracePeriodSeconds", GRACE_SECONDS);
  return seconds < 0 ? 1 : seconds;
}
