/**
 * Changes of who belongs to the cluster, while it runs: members are added as voters or learners, started, promoted and removed, and those
 * whose disks are damaged are replaced; leadership is moved. What was asked for and not answered is found out from the list of members.
 */
import type { Random } from "@quorate/host";
import {
  ClusterService,
  MaintenanceService,
  MemberAddRequest,
  MemberListRequest,
  MemberListResponse,
  MemberPromoteRequest,
  MemberRemoveRequest,
  MoveLeaderRequest,
  type Member as WireMember,
} from "@quorate/proto";
import type { ClientNetwork } from "./client-network.ts";
import type { Node } from "./node.ts";
import type { SimOptions } from "./options.ts";
import type { Story } from "./report/story.ts";
import type { Scheduler } from "./scheduler.ts";

const { MemberAdd, MemberList, MemberPromote, MemberRemove } = ClusterService.methods;

const CALL_TIMEOUT_MS = 8000;
/** A removed member that nobody tells is ended after this long. */
const MAX_FAREWELL_MS = 5000;
const FIRST_PORT = 12_380;

/** The peer URL of the machine with this number. */
export function urlOf(number: number): string {
  return `http://127.0.0.1:${FIRST_PORT + 10 * number}`;
}

/** The name of the machine at a peer URL. */
function nameAt(url: string): string {
  return `m${(Number(url.slice(url.lastIndexOf(":") + 1)) - FIRST_PORT) / 10}`;
}

export interface RegistrarDeps {
  /** Everybody's list of machines: changed in place. */
  readonly nodes: Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly random: Random;
  readonly network: ClientNetwork;
  /** Makes a machine for a member that was added; `cluster` is what its --initial-cluster is to be. */
  makeNode(name: string, url: string, cluster: string): Promise<Node>;
  /** Gives a machine whose member never ran another --initial-cluster. */
  reconfigure(node: Node, cluster: string): Promise<void>;
  /** Something is wrong. */
  fail(error: unknown): void;
}

export class Registrar {
  readonly #options: SimOptions;
  readonly #deps: RegistrarDeps;
  readonly #random: Random;
  #next: number;
  /** The peer URLs of those that vote, by the last list. */
  #voters: ReadonlySet<string>;
  #isSettling = false;
  #stopped = false;
  /** After `settle`: all that belong to the cluster run, and nobody else does. */
  isSettled = false;
  readonly counts = { added: 0, promoted: 0, removed: 0, moved: 0 };

  constructor(options: SimOptions, deps: RegistrarDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#random = deps.random;
    this.#next = options.members;
    this.#voters = new Set(Array.from({ length: options.members }, (_, i) => urlOf(i)));
    this.isSettled = options.membershipEveryMs === 0;
  }

  start(): void {
    if (this.#options.membershipEveryMs > 0) this.#work().catch((error: unknown) => this.#deps.fail(error));
  }

  /** No more changes; what was begun is finished. */
  settle(): void {
    this.#isSettling = true;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Whether one more member can do without its disk and leave a quorum, even if a voter is being added. */
  mayDamage(): boolean {
    const sound = this.#deps.nodes.filter((node) => !node.damaged && !node.isAltered && this.#voters.has(node.url)).length;
    const voters = this.#voters.size + (this.#options.membershipEveryMs === 0 ? 0 : 1);
    return 2 * (sound - 1) > voters;
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      const waitMs = this.#isSettling ? 300 : 2 * this.#random.unit() * this.#options.membershipEveryMs;
      await this.#deps.scheduler.delay(waitMs);
      const members = this.#stopped ? undefined : await this.#list();
      if (members === undefined) continue;
      this.#voters = new Set(members.flatMap(({ peerURLs, isLearner }) => (isLearner ? [] : peerURLs)));
      this.#leave(members);
      await this.#join(members);
      if (this.#isSettling) this.isSettled = this.#isEverybodyThere(members);
      else await this.#change(members);
    }
  }

  #anyNode(): Node {
    const { nodes } = this.#deps;
    return nodes[this.#random.below(nodes.length)];
  }

  async #call(what: string, path: string, bytes: Uint8Array): Promise<Uint8Array | undefined> {
    const node = this.#anyNode();
    this.#deps.story.tell("registrar", `asks ${node.name}: ${what}`);
    const reply = await this.#deps.network.exchange(node, path, bytes, CALL_TIMEOUT_MS);
    this.#deps.story.tell("registrar", `${what}: ${reply.error ?? "done"}`);
    return reply.bytes;
  }

  async #list(): Promise<readonly WireMember[] | undefined> {
    const bytes = await this.#call("list", MemberList.path, MemberListRequest.encode({ linearizable: true }));
    return bytes === undefined ? undefined : MemberListResponse.decode(bytes).members;
  }

  #nodeOf(member: WireMember): Node | undefined {
    return this.#deps.nodes.find(({ url }) => member.peerURLs.includes(url));
  }

  /** Machines whose members do not belong to the cluster any more are let go. */
  #leave(members: readonly WireMember[]): void {
    const { nodes, scheduler } = this.#deps;
    const urls = new Set(members.flatMap(({ peerURLs }) => peerURLs));
    for (const node of [...nodes]) {
      if (urls.has(node.url)) continue;
      const letGo = () => {
        node.retire();
        if (nodes.includes(node)) nodes.splice(nodes.indexOf(node), 1);
      };
      // It is told by the others, or has applied it; one that is cut off from all of them would not know.
      if (node.gone || this.#isSettling) letGo();
      else scheduler.after(MAX_FAREWELL_MS, letGo);
    }
  }

  /** Those that were added get machines; those that could not join try again with the list of now. */
  async #join(members: readonly WireMember[]): Promise<void> {
    const cluster = members.map(({ peerURLs: [url] }) => `${nameAt(url)}=${url}`).join(",");
    for (const member of members) {
      const [url] = member.peerURLs;
      let node = this.#nodeOf(member);
      if (node === undefined) {
        node = await this.#deps.makeNode(nameAt(url), url, cluster);
        this.#deps.nodes.push(node);
        node.start();
      } else if (node.down && node.hasNotJoined && !node.gone) {
        await this.#deps.reconfigure(node, cluster);
        if (node.down) node.start();
      }
    }
  }

  #isEverybodyThere(members: readonly WireMember[]): boolean {
    const { nodes } = this.#deps;
    return nodes.length === members.length && members.every((member) => this.#nodeOf(member)?.isSettled === true);
  }

  async #change(members: readonly WireMember[]): Promise<void> {
    const learners = members.filter(({ isLearner }) => isLearner);
    const voters = members.filter(({ isLearner }) => !isLearner);
    const sound = (list: readonly WireMember[]) => list.filter((member) => this.#isSound(member)).length;
    const way = this.#random.below(10);
    const broken = members.find((member) => this.#nodeOf(member)?.refused === true);
    if (broken !== undefined && way < 5) await this.#remove(broken, voters);
    else if (learners.length > 0 && way < 4) {
      const [learner] = learners;
      const done = await this.#call(`promote ${learner.ID}`, MemberPromote.path, MemberPromoteRequest.encode({ ID: learner.ID }));
      if (done !== undefined) this.counts.promoted++;
    } else if (members.length < this.#options.maxMembers && way < 7) {
      const isLearner = this.#random.below(3) > 0;
      // A voter counts from when it is added, and may not come up for long.
      if (isLearner || 2 * sound(voters) > voters.length + 1) await this.#add(isLearner);
    } else if (way < 9) await this.#remove(members[this.#random.below(members.length)], voters);
    else await this.#moveLeader(voters);
  }

  #isSound(member: WireMember): boolean {
    const node = this.#nodeOf(member);
    return node !== undefined && !node.damaged && !node.isAltered && node.hasRun;
  }

  async #add(isLearner: boolean): Promise<void> {
    const url = urlOf(this.#next++);
    const request = MemberAddRequest.encode({ peerURLs: [url], isLearner });
    if ((await this.#call(`add ${nameAt(url)}${isLearner ? " as learner" : ""}`, MemberAdd.path, request)) !== undefined)
      this.counts.added++;
  }

  async #remove(member: WireMember, voters: readonly WireMember[]): Promise<void> {
    const others = voters.filter(({ ID }) => ID !== member.ID);
    const sound = others.filter((other) => this.#isSound(other)).length;
    if (others.length === 0 || 2 * sound <= others.length) return;
    const request = MemberRemoveRequest.encode({ ID: member.ID });
    if ((await this.#call(`remove ${nameAt(member.peerURLs[0])}`, MemberRemove.path, request)) !== undefined) this.counts.removed++;
  }

  async #moveLeader(voters: readonly WireMember[]): Promise<void> {
    const leader = this.#deps.nodes.find((node) => node.member?.isLeader === true);
    const { ID } = voters[this.#random.below(voters.length)];
    if (leader === undefined) return;
    const { path } = MaintenanceService.methods.MoveLeader;
    this.#deps.story.tell("registrar", `asks ${leader.name} to move leadership to ${ID}`);
    const reply = await this.#deps.network.exchange(leader, path, MoveLeaderRequest.encode({ targetID: ID }), CALL_TIMEOUT_MS);
    if (reply.bytes !== undefined) this.counts.moved++;
  }
}
