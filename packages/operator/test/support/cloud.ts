/**
 * What the operator does not do itself, in memory: disks, pods that start, and members of a model
 * of a cluster. A write is acknowledged once a majority of the voters has it; the model notices
 * when such a write is lost, when two changes of the membership overlap, and when a change takes
 * the quorum away.
 */
import type { Random } from "@quorate/host";
import {
  type Certifier,
  DATA_LOST_CODE,
  type KubeObject,
  type Members,
  type Membership,
  type MemberView,
  MODE,
  type Pair,
} from "../../index.ts";
import type { MemoryKube } from "./memory-kube.ts";

/** What a disk holds of a member. */
interface Data {
  readonly id: string;
  /** Entries of the log that it has. */
  index: number;
}

interface Member extends MemberView {
  isLearner: boolean;
  hasStarted: boolean;
}

export const fakeCertifier: Certifier = {
  async authority(commonName, fromMs, untilMs): Promise<Pair> {
    return { certPem: `${commonName}|${fromMs}|${untilMs}|self\n`, keyPem: "key" };
  },
  async issue(authority, { commonName }, fromMs, untilMs): Promise<Pair> {
    const signer = authority.certPem.split("|")[0];
    return { certPem: `${commonName}|${fromMs}|${untilMs}|${signer}\n`, keyPem: "key" };
  },
  validity(certPem) {
    const [, from, until] = certPem.split("|");
    return { fromMs: Number(from), untilMs: Number(until) };
  },
  isSignedBy: (certPem, authorityPem) =>
    certPem.trimEnd().split("|")[3] === authorityPem.split("|")[0],
};

export class Cloud {
  readonly violations: string[] = [];
  readonly #kube: MemoryKube;
  readonly #random: Random;
  readonly #nowMs: () => number;
  /** By the uid of the claim. */
  readonly #disks = new Map<string, Data | undefined>();
  /** Pods whose container runs, by uid, with the claim's uid. */
  readonly #running = new Map<string, { readonly name: string; readonly disk: string }>();
  #members: Member[] = [];
  #clusterId = "";
  #length = 0;
  #term = 1;
  #leader = "0";
  #ids = 0;
  #asksForUsers = false;
  /** Names of pods that do not become ready with this template or image. */
  badImage = "";
  acknowledged = 0;

  constructor(kube: MemoryKube, random: Random, nowMs: () => number) {
    this.#kube = kube;
    this.#random = random;
    this.#nowMs = nowMs;
  }

  get clusterId(): string {
    return this.#clusterId;
  }

  /** Members by role, such as "db-0 db-2 +db-3", learners with a plus sign. */
  get membership(): string {
    return this.#members.map(({ pod, isLearner }) => `${isLearner ? "+" : ""}${pod}`).join(" ");
  }

  get leader(): string | undefined {
    return this.#members.find(({ id }) => id === this.#leader)?.pod;
  }

  /** Has the disk of a claim vanish, with the claim, and its pod end. */
  loseDisk(name: string): void {
    const claim = this.#kube.find("PersistentVolumeClaim", name);
    if (claim === undefined) return;
    this.#disks.delete(claim.metadata.uid!);
    this.#kube.drop(claim);
    const pod = this.#kube.find("Pod", name);
    if (pod !== undefined) this.#end(pod);
  }

  /** Has the disk of a claim come back empty, and the container start again. */
  wipeDisk(name: string): void {
    const claim = this.#kube.find("PersistentVolumeClaim", name);
    const pod = this.#kube.find("Pod", name);
    if (claim === undefined || pod === undefined) return;
    this.#disks.set(claim.metadata.uid!, undefined);
    this.#end(pod);
  }

  /** As when a node dies: the pod is gone. */
  killPod(name: string): void {
    const pod = this.#kube.find("Pod", name);
    if (pod !== undefined) this.#end(pod);
  }

  /** Lets a second pass. */
  tick(): void {
    for (const claim of this.#kube.all("PersistentVolumeClaim")) {
      const uid = claim.metadata.uid!;
      if (!this.#disks.has(uid)) this.#disks.set(uid, undefined);
      this.#bind(claim);
    }
    for (const pod of this.#kube.all("Pod")) {
      if (pod.metadata.deletionTimestamp !== undefined) {
        if (this.#random.below(2) === 0) this.#end(pod);
      } else if (!this.#running.has(pod.metadata.uid!)) this.#start(pod);
    }
    this.#kube.release();
    this.#elect();
    this.#replicate();
    for (const pod of this.#kube.all("Pod")) this.#probe(pod);
  }

  /** A client writes; whether that is acknowledged. */
  write(): boolean {
    if (!this.#hasQuorum()) return false;
    this.#append();
    this.acknowledged++;
    return true;
  }

  readonly members: Members = {
    membership: async (): Promise<Membership | undefined> => {
      this.#kube.around("membership", "before");
      if (!this.#hasQuorum()) return undefined;
      const members = this.#members.map((one) => ({ ...one }));
      return { members, clusterId: this.#clusterId, asksForUsers: this.#asksForUsers };
    },
    reach: async (_target, pod) => {
      const member = this.#memberOf(pod);
      const data = member && this.#dataOf(pod);
      if (data === undefined) return undefined;
      return {
        id: data.id,
        leader: this.#hasQuorum() ? this.#leader : "0",
        term: this.#term,
        index: data.index,
        version: "3.7.0",
        isLearner: member?.isLearner === true,
      };
    },
    addLearner: async (_target, peerUrl) => {
      this.#change("add", () => {
        const pod = new URL(peerUrl).hostname.split(".")[0];
        if (this.#members.some(({ isLearner }) => isLearner))
          this.violations.push("a second change of the membership is begun");
        if (this.#live().length < this.#members.length)
          this.violations.push("a member is added while another one is away");
        if (this.#members.some((one) => one.pod === pod))
          throw new Error("Peer URLs already exists");
        const id = `m${++this.#ids}`;
        this.#members.push({ id, pod, isLearner: true, hasStarted: false });
      });
    },
    promote: async (_target, id) => {
      const member = this.#members.find((one) => one.id === id);
      const data = member && this.#dataOf(member.pod);
      if (member === undefined || data === undefined || data.index < this.#length - 3) return false;
      this.#change("promote", () => {
        member.isLearner = false;
      });
      return true;
    },
    remove: async (_target, id) => {
      this.#change("remove", () => {
        if (!this.#members.some((one) => one.id === id)) throw new Error("member not found");
        const rest = this.#members.filter((one) => one.id !== id);
        if (rest.some(({ isLearner }) => isLearner))
          this.violations.push(`${id} is removed while another member joins`);
        if (!this.#hasQuorum(rest)) this.violations.push(`removing ${id} takes the quorum away`);
        this.#members = rest;
      });
    },
    moveLeader: async (_target, _from, to) => {
      this.#change("move", () => {
        this.#leader = to;
        this.#term++;
      });
    },
    askForUsers: async (_target, isWanted) => {
      this.#change("users", () => {
        this.#asksForUsers = isWanted;
      });
    },
    keepUser: async () => {},
    dropUser: async () => {},
  };

  #change(call: string, task: () => void): void {
    this.#kube.around(call, "before");
    if (!this.#hasQuorum()) throw new Error("no quorum");
    task();
    this.#append();
    this.#kube.around(call, "after");
  }

  /** Has an entry reach a majority, the leader among it. */
  #append(): void {
    this.#elect();
    this.#length++;
    const voters = this.#live().filter(({ isLearner }) => !isLearner);
    const count = Math.floor(this.#members.filter(({ isLearner }) => !isLearner).length / 2) + 1;
    const ordered = voters.sort(
      (a, b) => Number(b.id === this.#leader) - Number(a.id === this.#leader),
    );
    for (const { pod } of ordered.slice(0, count)) this.#dataOf(pod)!.index = this.#length;
  }

  #live(members: readonly Member[] = this.#members): Member[] {
    return members.filter(({ pod, id }) => this.#dataOf(pod)?.id === id);
  }

  #hasQuorum(members: readonly Member[] = this.#members): boolean {
    const voters = members.filter(({ isLearner }) => !isLearner);
    const live = this.#live(voters).length;
    return voters.length > 0 && live >= Math.floor(voters.length / 2) + 1;
  }

  #elect(): void {
    if (!this.#hasQuorum()) return;
    const live = this.#live().filter(({ isLearner }) => !isLearner);
    const indexOf = ({ pod }: Member): number => this.#dataOf(pod)!.index;
    const best = live.sort((a, b) => indexOf(b) - indexOf(a))[0];
    if (indexOf(best) < this.#length) {
      this.violations.push(`acknowledged entries are lost: ${indexOf(best)} of ${this.#length}`);
      this.#length = indexOf(best);
    }
    const present = live.find(({ id }) => id === this.#leader);
    if (present !== undefined && indexOf(present) === this.#length) return;
    this.#leader = best.id;
    this.#term++;
  }

  #replicate(): void {
    if (!this.#hasQuorum()) return;
    for (const { pod } of this.#live())
      if (this.#random.below(3) > 0) this.#dataOf(pod)!.index = this.#length;
  }

  /** Gives a claim a volume, and lets that grow. */
  #bind(claim: KubeObject): void {
    const { resources } = claim.spec as { resources: { requests: { storage: string } } };
    const status = { phase: "Bound", capacity: resources.requests };
    if (JSON.stringify(claim.status) !== JSON.stringify(status))
      this.#kube.put({
        ...claim,
        spec: { ...(claim.spec as object), storageClassName: "disks" },
        status,
      });
  }

  #memberOf(pod: string): Member | undefined {
    return this.#members.find((one) => one.pod === pod);
  }

  /** Of a pod that runs. */
  #dataOf(pod: string): Data | undefined {
    for (const running of this.#running.values())
      if (running.name === pod) return this.#disks.get(running.disk);
    return undefined;
  }

  #start(pod: KubeObject): void {
    const { name, uid = "", annotations = {} } = pod.metadata;
    const claim = this.#kube.find("PersistentVolumeClaim", name);
    if (claim === undefined) return;
    const disk = claim.metadata.uid!;
    const mode = annotations[MODE];
    let data = this.#disks.get(disk);
    if (data === undefined) {
      if (mode === "run" || mode === "force") {
        this.#say(pod, false, { terminated: { exitCode: DATA_LOST_CODE } });
        return;
      }
      if (mode === "new") {
        if (this.#clusterId !== "") this.violations.push(`a second cluster begins with ${name}`);
        this.#clusterId = `c${++this.#ids}`;
        data = { id: `m${++this.#ids}`, index: 0 };
        this.#members = [{ id: data.id, pod: name, isLearner: false, hasStarted: true }];
      } else {
        const member = this.#memberOf(name);
        if (member === undefined) return;
        if (member.hasStarted)
          this.violations.push(`${name} starts again, without the data that it had`);
        data = { id: member.id, index: 0 };
      }
      this.#disks.set(disk, data);
    }
    this.#running.set(uid, { name, disk });
    if (mode === "force") {
      this.#members = [{ id: data.id, pod: name, isLearner: false, hasStarted: true }];
      this.#length = data.index;
      this.#leader = data.id;
      this.#term++;
    }
    const member = this.#memberOf(name);
    if (member !== undefined && member.id === data.id) member.hasStarted = true;
  }

  #end(pod: KubeObject): void {
    this.#running.delete(pod.metadata.uid!);
    this.#kube.drop(pod);
  }

  #probe(pod: KubeObject): void {
    const { name, uid = "" } = pod.metadata;
    if (!this.#running.has(uid)) return;
    const { containers } = pod.spec as { containers: { image: string }[] };
    const isBad = containers[0].image === this.badImage;
    const id = this.#dataOf(name)?.id;
    const isMember = this.#members.some((one) => one.id === id);
    this.#say(pod, !isBad && isMember && this.#hasQuorum(), {});
  }

  #say(pod: KubeObject, isReady: boolean, lastState: object): void {
    const status = (pod.status ?? {}) as { conditions?: { status: string }[] };
    const word = isReady ? "True" : "False";
    if (status.conditions?.[0]?.status === word) return;
    const lastTransitionTime = new Date(this.#nowMs()).toISOString();
    const conditions = [{ type: "Ready", status: word, lastTransitionTime }];
    this.#kube.put({
      ...pod,
      status: { phase: "Running", conditions, containerStatuses: [{ state: {}, lastState }] },
    });
  }
}
