/**
 * QuorateBackup: a pod that records all changes, or pods that each save a snapshot; and pods that
 * test now and then whether it can be restored.
 */
import { type Clock, parseDuration } from "@quorate/host";
import { recordEvent } from "./base/events.ts";
import {
  type BackupStatus,
  type Finding,
  type QuorateBackup,
  type QuorateCluster,
  timeText,
  withFindings,
} from "./base/kinds.ts";
import { createOnce, type Key, type Kube, type KubeObject, keyOf } from "./base/kube.ts";
import type { OperatorMetrics } from "./base/metrics.ts";
import { TEMPLATE } from "./cluster/objects.ts";
import { podView } from "./cluster/observe.ts";
import type { PodView } from "./cluster/observed.ts";
import {
  backupMount,
  clientVariables,
  mirrorMounts,
  mirrorVariables,
  placeOf,
  podBeside,
  restoreTestPod,
  SET_MIRROR_FLAGS,
} from "./cluster/pods-beside.ts";

/** Reasons of Ready with which there is something to be restored. */
const HAS_BACKUP = new Set(["Recording", "Saved"]);
const LATER_MS = 10_000;
const SOON_MS = 1000;

export interface BackupDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly metrics: OperatorMetrics;
}

const RECORD = `mkdir -p "$1"
${SET_MIRROR_FLAGS}
exec "$QUORATE_BIN/quoratectl" backup run --to "$1" --interval "$2" --retain "$3" \\
  --mirror "$MIRROR" $MIRROR_FLAGS`;

// The new one has its name only when it is whole; then the old ones go.
const SAVE = `mkdir -p "$1"
"$QUORATE_BIN/quoratectl" snapshot save "$1/$2.db"
ls "$1" | grep '\\.db$' | sort -r | tail -n +$(($3 + 1)) | while read -r old; do rm -f "$1/$old"; done`;

/** The pod of a continuous backup, or of a snapshot that is begun now. */
function podOf(backup: QuorateBackup, cluster: QuorateCluster, nowMs: number): KubeObject {
  const { claim, continuous, scheduled } = backup.spec!;
  const { path, mirror } = placeOf(backup);
  const dir = `/backup/${path}`;
  const env = clientVariables(cluster);
  const name = `${backup.metadata.name}-backup`;
  if (continuous !== undefined) {
    const { baseInterval, retain } = continuous;
    return podBeside(cluster, "backup", name, {
      owner: backup,
      env: [...env, ...mirrorVariables(mirror)],
      mounts: [backupMount(claim), ...mirrorMounts(mirror)],
      command: ["/bin/sh", "-euc", RECORD, "record"],
      args: [dir, baseInterval, retain],
      annotations: { [TEMPLATE]: path },
      ready: ["/bin/sh", "-c", `ls ${dir}/base-*.db`],
    });
  }
  const stamp = timeText(nowMs).replace(/[-:]/g, "");
  return podBeside(cluster, "backup", name, {
    owner: backup,
    env,
    mounts: [backupMount(claim)],
    command: ["/bin/sh", "-euc", SAVE, "save"],
    args: [dir, stamp, String(scheduled!.keep)],
  });
}

/** How far the pod of a continuous backup is. */
function recordingOf(pod: PodView | undefined): [reason: string, why: string] {
  if (pod?.isReady) return ["Recording", "every change is recorded"];
  const why = pod?.lastWords.split("\n").at(-1);
  if (why) return ["Failing", `the pod ${pod!.name} ended: ${why}`];
  return ["Starting", "the first snapshot is being taken"];
}

export class BackupReconciler {
  readonly #deps: BackupDeps;

  constructor(deps: BackupDeps) {
    this.#deps = deps;
  }

  /** As the reconciler of clusters. */
  async reconcile({ namespace, name }: Key): Promise<number | undefined> {
    const { kube, clock, metrics } = this.#deps;
    const backup = await kube.get<QuorateBackup>("QuorateBackup", namespace, name);
    if (backup === undefined || backup.metadata.deletionTimestamp !== undefined) {
      for (const gauge of [metrics.backupTimes, metrics.restorable]) gauge.remove(namespace, name);
      return undefined;
    }
    const cluster = await kube.get<QuorateCluster>(
      "QuorateCluster",
      namespace,
      backup.spec!.cluster,
    );
    if (!cluster?.status?.clusterID) {
      await this.#report(backup, {}, "NoCluster", "the cluster is not there or has not begun");
      return LATER_MS;
    }
    const pod = await this.#podOf(namespace, `${name}-backup`);
    if (pod?.isTerminating) return SOON_MS;
    if (cluster.spec!.size === 0) {
      if (pod !== undefined) await kube.remove("Pod", namespace, pod.name, pod.uid);
      await this.#report(backup, {}, "Asleep", "no member of the cluster runs");
      return LATER_MS;
    }
    const afterMs = await (backup.spec!.continuous === undefined
      ? this.#save(backup, cluster, pod, clock.wallMs())
      : this.#record(backup, cluster, pod));
    if (backup.spec!.restoreTest === undefined) return afterMs;
    return Math.min(afterMs, await this.#test({ namespace, name }, cluster));
  }

  async #podOf(namespace: string, name: string): Promise<PodView | undefined> {
    const found = await this.#deps.kube.get("Pod", namespace, name);
    return found === undefined ? undefined : podView(found);
  }

  /** Tests whether a backup can be restored, when it is time. */
  async #test({ namespace, name }: Key, cluster: QuorateCluster): Promise<number> {
    const { kube, clock, metrics } = this.#deps;
    const backup = await kube.get<QuorateBackup>("QuorateBackup", namespace, name);
    const pod = await this.#podOf(namespace, `${name}-test`);
    if (backup === undefined || pod?.isTerminating) return SOON_MS;
    const { lastTest = "", conditions = [] } = backup.status ?? {};
    const nowMs = clock.wallMs();
    const everyMs = Number(parseDuration(backup.spec!.restoreTest!.every));
    const dueMs = (Date.parse(lastTest) || 0) + everyMs;
    const before = conditions.find(({ type }) => type === "Restorable")?.status;
    if (before !== undefined)
      metrics.restorable.with(namespace, name).value = Number(before === "True");
    if (pod === undefined) {
      const isThere = conditions.some((one) => one.type === "Ready" && HAS_BACKUP.has(one.reason));
      if (!isThere || nowMs < dueMs) return LATER_MS;
      await createOnce(kube, restoreTestPod(cluster, backup));
      await report(this.#deps, backup, { lastTest: timeText(nowMs) }, []);
      return SOON_MS;
    }
    if (pod.phase !== "Succeeded" && pod.phase !== "Failed") return SOON_MS;
    const isGood = pod.phase === "Succeeded";
    const message = pod.lastWords || `the pod ${pod.name} failed: its log says why`;
    const [status, reason, type] = isGood
      ? (["True", "Tested", "Normal"] as const)
      : (["False", "TestFailed", "Warning"] as const);
    await report(this.#deps, backup, {}, [{ type: "Restorable", status, reason, message }]);
    metrics.restorable.with(namespace, name).value = Number(isGood);
    // Of one that failed the log stays until the next one is due.
    if (!isGood && nowMs < dueMs) return LATER_MS;
    await kube.remove("Pod", namespace, pod.name, pod.uid);
    await recordEvent(kube, clock, backup, type, reason, message);
    return SOON_MS;
  }

  async #record(
    backup: QuorateBackup,
    cluster: QuorateCluster,
    pod: PodView | undefined,
  ): Promise<number> {
    const { kube, clock } = this.#deps;
    const { path: directory } = placeOf(backup);
    const history = cluster.status?.history ?? 0;
    if (history !== (backup.status?.history ?? history)) {
      // A continuous backup follows one history; of the one before this one nothing is overwritten.
      const next = { directory: `${backup.spec!.path}-${history}`, history };
      const why = `the keys went back to an older state: recording goes on in ${next.directory}`;
      await this.#report(backup, next, "Starting", why);
      await recordEvent(kube, clock, backup, "Normal", "NewDirectory", why);
      return SOON_MS;
    }
    if (pod !== undefined && pod.template !== directory) {
      await kube.remove("Pod", backup.metadata.namespace ?? "", pod.name, pod.uid);
      return SOON_MS;
    }
    if (pod === undefined) await createOnce(kube, podOf(backup, cluster, clock.wallMs()));
    const [reason, why] = recordingOf(pod);
    await this.#report(backup, { directory, history }, reason, why);
    return reason === "Recording" ? LATER_MS : SOON_MS;
  }

  async #save(
    backup: QuorateBackup,
    cluster: QuorateCluster,
    pod: PodView | undefined,
    nowMs: number,
  ): Promise<number> {
    const { kube, clock, metrics } = this.#deps;
    const { namespace, name } = keyOf(backup);
    // The schema has seen to it that it is a duration.
    const everyMs = Number(parseDuration(backup.spec!.scheduled!.every));
    const started = Date.parse(backup.status?.lastStart ?? "") || 0;
    const isDue = nowMs - started >= everyMs;
    if (pod === undefined) {
      if (!isDue) return Math.min(LATER_MS, everyMs - (nowMs - started));
      await createOnce(kube, podOf(backup, cluster, nowMs));
      const lastStart = timeText(nowMs);
      await this.#report(backup, { lastStart }, "Saving", "a snapshot is being saved");
      return SOON_MS;
    }
    if (pod.phase === "Succeeded") {
      const lastSuccess = timeText(nowMs);
      metrics.backupTimes.with(namespace, name).value = Math.floor(nowMs / 1000);
      await this.#report(backup, { lastSuccess }, "Saved", "the last snapshot is complete");
      await kube.remove("Pod", namespace, pod.name, pod.uid);
      await recordEvent(kube, clock, backup, "Normal", "Saved", "a snapshot is complete");
      return SOON_MS;
    }
    if (pod.phase !== "Failed") return SOON_MS;
    const why = `the pod ${pod.name} failed: its log says why; the next one is tried in time`;
    await this.#report(backup, {}, "Failed", why);
    if (!isDue) return LATER_MS;
    await kube.remove("Pod", namespace, pod.name, pod.uid);
    return SOON_MS;
  }

  async #report(
    backup: QuorateBackup,
    more: BackupStatus,
    reason: string,
    message: string,
  ): Promise<void> {
    const good = new Set(["Recording", "Saved", "Saving"]);
    const status = good.has(reason) ? "True" : "False";
    const finding: Finding = { type: "Ready", status, reason, message };
    await report(this.#deps, backup, more, [finding]);
  }
}

/** Writes a status with these findings beside those before, if it says something new. */
export async function report(
  { kube, clock }: Pick<BackupDeps, "kube" | "clock">,
  object: KubeObject<unknown, BackupStatus>,
  more: object,
  findings: readonly Finding[],
): Promise<void> {
  const { namespace, name } = keyOf(object);
  const generation = object.metadata.generation ?? 0;
  const before = object.status?.conditions ?? [];
  const kept = before.filter((one) => !findings.some(({ type }) => type === one.type));
  const found = withFindings(before, findings, generation, clock.wallMs());
  const status = {
    ...object.status,
    observedGeneration: generation,
    ...more,
    conditions: [...kept, ...found].sort((a, b) => (a.type < b.type ? -1 : 1)),
  };
  if (JSON.stringify(status) === JSON.stringify(object.status)) return;
  await kube.patch(object.kind as "QuorateBackup", namespace, name, { status }, "status");
}
