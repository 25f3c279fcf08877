/**
 * The next step of replacing all members of a cluster by others, from its present members alone:
 *
 *     voters     others                step
 *     N          -                     add the first wanted member that is missing, as a learner
 *     N          a wanted learner      start it; when it has caught up, promote it
 *     N + 1      -                     remove an unwanted voter, one that does not lead first
 *     N + 1      only the leader is    hand leadership to a wanted voter
 *     N wanted   -                     done
 *
 * There are never fewer than N voters, and never two changes under way. To turn back is to want the
 * members that the cluster had before.
 */

/** A member as it is to be. */
export interface Wanted {
  readonly name: string;
  readonly peerUrl: string;
}

/** A member as it is. */
export interface Present {
  readonly id: bigint;
  /** Empty before its first start. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly isLearner: boolean;
  readonly isLeader: boolean;
}

export type Step =
  | { readonly kind: "add"; readonly wanted: Wanted }
  | { readonly kind: "start"; readonly wanted: Wanted; readonly member: Present }
  | { readonly kind: "promote"; readonly wanted: Wanted; readonly member: Present }
  | { readonly kind: "move-leader"; readonly from: Present; readonly to: Present }
  | { readonly kind: "remove"; readonly member: Present }
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly why: string };

/** How a member is named in texts. */
export const labelOf = ({ name, peerUrls, id }: Present): string =>
  name || peerUrls[0] || id.toString(16);

export function nextStep(members: readonly Present[], all: readonly Wanted[]): Step {
  const wantedOf = ({ peerUrls }: Present): Wanted | undefined =>
    all.find(({ peerUrl }) => peerUrls.includes(peerUrl));
  const learners = members.filter(({ isLearner }) => isLearner);
  const strange = learners.find((one) => wantedOf(one) === undefined);
  if (strange !== undefined) {
    const why = `${labelOf(strange)} is a learner that was not asked for: promote or remove it first`;
    return { kind: "refused", why };
  }
  const clash = members.find((one) =>
    all.some(({ name, peerUrl }) => name === one.name && !one.peerUrls.includes(peerUrl)),
  );
  if (clash !== undefined) {
    const why = `a member is named ${clash.name} already, with other peer URLs: choose another name`;
    return { kind: "refused", why };
  }
  const [learner] = learners;
  if (learner !== undefined) {
    const wanted = wantedOf(learner)!;
    return { kind: learner.name === "" ? "start" : "promote", wanted, member: learner };
  }
  const old = members.filter((one) => wantedOf(one) === undefined);
  const missing = all.find(({ peerUrl }) =>
    members.every(({ peerUrls }) => !peerUrls.includes(peerUrl)),
  );
  if (members.length < all.length || members.length > all.length + 1) {
    const why =
      `the cluster has ${members.length} members, and ${all.length} are given: ` +
      "give one for each, and change their number before or after";
    return { kind: "refused", why };
  }
  if (members.length === all.length)
    return missing === undefined ? { kind: "done" } : { kind: "add", wanted: missing };
  const follower = old.find(({ isLeader }) => !isLeader);
  if (follower !== undefined) return { kind: "remove", member: follower };
  const [from] = old;
  const to = members.find((one) => wantedOf(one) !== undefined && one.name !== "");
  if (from === undefined || to === undefined)
    return { kind: "refused", why: "more members are given than the cluster has" };
  return { kind: "move-leader", from, to };
}

/** The members after a step, where it succeeds and nothing else happens. */
function after(members: readonly Present[], step: Step): readonly Present[] {
  switch (step.kind) {
    case "add": {
      const { name: _, peerUrl } = step.wanted;
      const id = -BigInt(members.length);
      return [...members, { id, name: "", peerUrls: [peerUrl], isLearner: true, isLeader: false }];
    }
    case "start":
      return members.map((one) => (one === step.member ? { ...one, name: step.wanted.name } : one));
    case "promote":
      return members.map((one) => (one === step.member ? { ...one, isLearner: false } : one));
    case "move-leader":
      return members.map((one) => ({ ...one, isLeader: one === step.to }));
    case "remove":
      return members.filter((one) => one !== step.member);
    default:
      return members;
  }
}

/** All steps to the end, "done" or "refused" as the last. */
export function planOf(members: readonly Present[], all: readonly Wanted[]): Step[] {
  const steps: Step[] = [];
  for (let now = members; ; ) {
    const step = nextStep(now, all);
    steps.push(step);
    if (step.kind === "done" || step.kind === "refused") return steps;
    now = after(now, step);
  }
}

/** A step in words. */
export function describe(step: Step): string {
  switch (step.kind) {
    case "add":
      return `add ${step.wanted.name} (${step.wanted.peerUrl}) as a learner`;
    case "start":
      return `start ${step.wanted.name}`;
    case "promote":
      return `promote ${step.wanted.name} when it has caught up`;
    case "move-leader":
      return `hand leadership from ${labelOf(step.from)} to ${labelOf(step.to)}`;
    case "remove":
      return `remove ${labelOf(step.member)}`;
    case "done":
      return "done";
    case "refused":
      return step.why;
  }
}
