/** The plan that replaces all members: its order, its safety at every step, and the way back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endAdvice, removedAdvice, startAdvice } from "../src/migrate/advice.ts";
import { describe, nextStep, type Present, planOf, type Wanted } from "../src/migrate/plan.ts";

test("who may not touch units and manifests says what to do with them, at each step", () => {
  const started = startAdvice("q1", "quorate");
  for (const part of [
    "give q1 an empty --data-dir, --listen-peer-urls, --listen-client-urls,",
    "--advertise-client-urls, and certificates",
    "run quorate with them",
    "EnvironmentFile of its unit, then: systemctl enable --now UNIT",
    "/etc/kubernetes/manifests, with other ports and another hostPath",
  ])
    assert.ok(started.includes(part), part);
  const removed = removedAdvice("m1");
  for (const part of [
    "m1 ends by itself",
    "systemctl disable UNIT",
    "move its manifest out of /etc/kubernetes/manifests",
  ])
    assert.ok(removed.includes(part), part);
  const end = endAdvice(["https://a:2379", "https://b:2379"]);
  for (const flag of ["--endpoints=", "--etcd-servers="])
    assert.ok(end.includes(`${flag}https://a:2379,https://b:2379\n`), flag);
});

const url = (name: string): string => `http://${name}:2380`;
const wantedAll = (...names: readonly string[]): Wanted[] =>
  names.map((name) => ({ name, peerUrl: url(name) }));

function present(name: string, more: Partial<Present> = {}): Present {
  const id = BigInt(name.charCodeAt(0));
  return { id, name, peerUrls: [url(name)], isLearner: false, isLeader: false, ...more };
}

const old = [present("a"), present("b", { isLeader: true }), present("c")];
const wanted = wantedAll("x", "y", "z");

test("each member is added, promoted, and an old one removed, the leader last", () => {
  assert.deepEqual(
    planOf(old, wanted).map((step) => describe(step)),
    [
      "add x (http://x:2380) as a learner",
      "start x",
      "promote x when it has caught up",
      "remove a",
      "add y (http://y:2380) as a learner",
      "start y",
      "promote y when it has caught up",
      "remove c",
      "add z (http://z:2380) as a learner",
      "start z",
      "promote z when it has caught up",
      "hand leadership from b to x",
      "remove b",
      "done",
    ],
  );
});

test("a plan goes on from any of its steps, and turns back from there", () => {
  const back = wantedAll("a", "b", "c");
  // What the cluster is after each number of steps of the plan.
  const stages: Present[][] = [old];
  for (let now = old; ; ) {
    const step = nextStep(now, wanted);
    if (step.kind === "done") break;
    const next = now.map((one) => ({ ...one }));
    const at = (id: bigint): number => now.findIndex((one) => one.id === id);
    if (step.kind === "add") next.push(present(step.wanted.name, { name: "", isLearner: true }));
    else if (step.kind === "start") next[at(step.member.id)]!.name = step.wanted.name;
    else if (step.kind === "promote")
      next[at(step.member.id)] = { ...step.member, isLearner: false };
    else if (step.kind === "remove") next.splice(at(step.member.id), 1);
    else if (step.kind === "move-leader") {
      for (const [k, one] of next.entries()) next[k] = { ...one, isLeader: one.id === step.to.id };
    } else assert.fail(describe(step));
    const voters = next.filter(({ isLearner }) => !isLearner).length;
    assert.ok(voters === 3 || voters === 4, `${voters} voters after ${describe(step)}`);
    stages.push(next);
    now = next;
  }
  assert.equal(stages.length, 14);
  for (const [i, stage] of stages.entries()) {
    assert.equal(planOf(stage, wanted).length, 14 - i, `the rest after ${i} steps`);
    const turned = planOf(stage, back);
    // A learner that is not wanted any more is the operator's to remove.
    const isLearning = stage.some(({ isLearner }) => isLearner);
    assert.equal(turned.at(-1)!.kind, isLearning ? "refused" : "done", `back after ${i} steps`);
  }
});

test("what is not its own is refused", () => {
  const why = (members: readonly Present[], all = wanted): string => {
    const step = nextStep(members, all);
    return step.kind === "refused" ? step.why : step.kind;
  };
  assert.match(why([...old, present("l", { isLearner: true })]), /^l is a learner that was not/);
  assert.match(why(old, wantedAll("x", "y")), /has 3 members, and 2 are given|add|remove/);
  assert.match(why([...old, present("d"), present("e")]), /has 5 members, and 3 are given/);
  assert.match(why(old.slice(1)), /has 2 members, and 3 are given/);
  const taken = [{ name: "a", peerUrl: url("x") }, ...wantedAll("y", "z")];
  assert.match(why(old, taken), /a member is named a already, with other peer URLs/);
});
