/** Bugs in a member's loop, leases, watches, membership and services. */
import type { CatalogueBug } from "../source-edit.ts";
import { MEMBERSHIP, REMOVALS, SABOTAGE, STREAMS, TIGHT_QUOTA } from "./conditions.ts";

export const MEMBER_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "watch-skips-an-event": {
    at: "member/src/watch/change-feed.ts#ChangeFeed.#changed",
    find: "!$watcher.wants($event)",
    put: "$event.main % 50 === 7 || !$watcher.wants($event)",
    seed: 2,
  },
  "watch-repeats-after-resume": {
    at: "member/src/watch/change-feed.ts#ChangeFeed.add",
    find: "this.#enqueue($watcher);",
    put: `
      {
        $watcher.nextRevision = Math.max(1, $watcher.nextRevision - 1);
        this.#enqueue($watcher);
      }`,
    seed: 2,
  },
  "lease-expires-early": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#refresh",
    find: "$lease.ttlSeconds * 1000",
    put: "$lease.ttlSeconds * 700",
    seed: 2,
  },
  "lease-revoked-twice": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#revokeNow",
    find: "$due.map",
    put: "[...$due, ...$due].map",
    seed: 1,
  },
  "difference-unnoticed": {
    at: "member/src/corruption/checker.ts#CorruptionChecker.#judge",
    find: "$groups.size === 1",
    put: "true",
    sim: SABOTAGE,
    seed: 9,
  },
  "names-another-member": {
    at: "member/src/corruption/checker.ts#CorruptionChecker.#judge",
    find: "if ($value !== $majority) for (const $id of $ids) await this.#raise($id);",
    put: "if ($value === $majority) for (const $id of $ids.slice(0, 1)) await this.#raise($id);",
    sim: SABOTAGE,
    seed: 5,
  },
  "serves-while-named": {
    at: "member/src/corruption/corruption.ts#Corruption.alarmsChanged",
    find: "this.#healer?.look();",
    put: "",
    // Half a second, in which a client has to read what was altered.
    sim: {
      ...SABOTAGE,
      sabotageEveryMs: 400,
      faultPhaseMs: 4000,
      corruptCheckMs: 300,
      faultEveryMs: 100_000,
      selfHeal: true,
      keys: 1,
      reads: 20,
      puts: 1,
      deletes: 0,
      txns: 0,
      compactions: 0,
      serializableShare: 0.5,
      clients: 8,
      thinkMs: 50,
      latencyMs: 1,
      jitterMs: 1,
    },
    seed: 17,
  },
  "heals-by-word-alone": {
    at: "member/src/corruption/healer.ts#Healer.#attempt",
    find: `
      this.isUnsure = true;
      await $replaceStore($stopped);`,
    put: "if ($replaceStore !== undefined) return this.#endAlarm();",
    sim: { ...SABOTAGE, selfHeal: true },
    seed: 9,
  },
  "update-not-followed": {
    at: "member/src/apply/configuration.ts#Configuration.#connect",
    find: "$transport.updatePeer($id, $urls);",
    put: "",
    sim: { ...MEMBERSHIP, moves: true },
    seed: 6,
  },
  "learner-never-asks": {
    at: "member/src/membership/auto-promotion.ts#AutoPromotion.#ask",
    find: "this.#isAsking || !$isLearner",
    put: "this.#isAsking || $isLearner",
    sim: { ...MEMBERSHIP, autoPromote: true },
    seed: 3,
  },
  "survivor-drops-its-tail": {
    at: "member/src/bootstrap.ts#removeOtherMembers",
    find: "const { entries: $entries, hardState: $hardState } = $found;",
    put: `
      const { hardState: $hardState } = $found;
      const known = Math.max($hardState.commit, store.position.index);
      const $entries = $found.entries.filter(({ index }) => index <= known);
      $found = { ...$found, entries: $entries };`,
    sim: { losesMajority: true, faultPhaseMs: 3000 },
    seed: 3,
  },
  "proposes-unchecked": {
    at: "member/src/member.ts#Member.proposeFor",
    find: `
      try {
        $message = $decoded ?? decodeRequest($kind, $request, this.#parts.limits);
        const $refusal = this.spaceRefusal($kind, $message);
        if ($refusal !== undefined) {
          $refusal.catch(($why) => $proposer.refused($why));
          return;
        }
      } catch ($error) {
        this.#parts.deliveries.refused($proposer, $error as Error);
        return;
      }
      this.#proposeFitting($proposer, $caller, $kind, $request, $message);`,
    put: `
      const $refusal = $decoded && this.spaceRefusal($kind, $decoded);
      if ($refusal !== undefined) {
        $refusal.catch(($error) => $proposer.refused($error));
        return;
      }
      Promise.resolve()
        .then(() => this.auth.authority.identify($caller))
        .then((identity) => this.#enqueue($proposer, $caller, identity, $kind, $request));`,
    sim: { hostileEveryMs: 100, faultPhaseMs: 3000 },
    seed: 1,
  },
  "takes-proposals-unchecked": {
    at: "member/src/loop/peer-messages.ts#PeerMessages.#proposable",
    find: "this.#problem($entry, $from)",
    put: "undefined",
    sim: { poisonEveryMs: 100, members: 3, faultPhaseMs: 3000 },
    seed: 1,
  },
  "refused-write-goes-on": {
    at: "member/src/member.ts#Member.proposeFor",
    find: "$refusal.catch(($why) => $proposer.refused($why));",
    put: `
      $refusal.catch(($why) => $proposer.refused($why));
      this.#enqueue({ applied() {}, refused() {} }, caller, undefined, kind, request);`,
    sim: TIGHT_QUOTA,
    seed: 78,
  },
  "proposes-again": {
    at: "member/src/loop/proposals.ts#Proposals.takeQueue",
    find: "this.#handedIn($term, this.#takenIds);",
    put: `
      this.handed ??= [];
      for (const one of this.handed) {
        if (one.term === $term || !this.#waiting.has(one.id)) continue;
        taken.push(one.payload);
        this.#takenIds.push(one.id);
      }
      this.#handedIn($term, this.#takenIds);
      this.handed = taken
        .map((payload, i) => ({ payload, id: this.#takenIds[i], term: $term }))
        .concat(this.handed.filter((one) => one.term === $term && this.#waiting.has(one.id)));`,
    seed: 15,
  },
  "quota-unchecked": {
    at: "member/src/space/space-keeper.ts#SpaceKeeper.hasSpace",
    find: "this.#parts.store.current.quotaBytes + $costBytes < $quotaBytes",
    put: "this.#parts.store.current.quotaBytes < 2 * $quotaBytes",
    sim: TIGHT_QUOTA,
    seed: 60,
  },
  "quota-counted-twice": {
    at: "member/src/space/space-keeper.ts#SpaceKeeper.hasSpace",
    find: "const { quotaBytes: $quotaBytes } = this.#options;",
    put: `
      const { quotaBytes: $quotaBytes } = this.#options;
      const usedBytes = 2 * this.#parts.store.current.quotaBytes;
      const isFull = $quotaBytes !== undefined && usedBytes + costBytes >= $quotaBytes;
      if (costBytes > 0 && isFull) throw errorOf("NoSpace");`,
    sim: TIGHT_QUOTA,
    seed: 8,
  },
  "promotes-by-what-was-sent": {
    at: "member/src/membership/reconfiguration.ts#Reconfiguration.#checkReady",
    find: "$learner.match >= $own.match * READY_SHARE",
    put: "$learner.next >= $own.match * READY_SHARE",
    tests: [
      "packages/server/test/reconfiguration*.test.ts",
      "packages/server/test/member*.test.ts",
      "packages/server/test/promot*.test.ts",
    ],
    // Learners are promoted as soon as they are added.
    sim: {
      membershipEveryMs: 50,
      faultPhaseMs: 2000,
      strictReconfiguration: false,
      members: 3,
      maxMembers: 7,
      maxLearners: 3,
    },
    seed: 4,
  },
  "new-leader-keeps-lease-times": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#countAll",
    find: "$clock.monotonicMs() + this.#options.extendMs",
    put: "$clock.monotonicMs()",
    tests: ["packages/server/test/lease*.test.ts"],
    sim: { theme: "handovers" },
    seed: 31,
  },
  "last-voter-forgets": {
    at: "member/src/loop/loop.ts#MemberLoop.#process",
    find: "$ready.hardState !== undefined && this.#mustSaveFirst($ready.hardState)",
    put: "$ready.number < 0 && $ready.hardState !== undefined",
    sim: REMOVALS,
    seed: 31,
  },
  "log-goes-while-a-snapshot-arrives": {
    at: "member/src/apply/sent-snapshots.ts#SentSnapshots.least",
    find: "[...this.#byMember.values()].map",
    put: "[...this.#byMember.values()].filter((one) => !one.isOver).map",
    tests: ["packages/member/test/marks.test.ts"],
    seed: 4,
  },
  "confirmed-from-the-answer": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#confirmed",
    find: "$epoch.confirmedMs = $askedMs",
    put: "$epoch.confirmedMs = Math.max($askedMs, this.#deps.clock.monotonicMs())",
    tests: ["packages/member/test/lease-keeper.test.ts"],
    seed: 106,
  },
  "parts-of-several-revisions": {
    at: "services/src/v3/range-stream.ts#chunkSteps",
    find: "$at > 0 ? $at : $headerRevision",
    put: "$at",
    sim: STREAMS,
    seed: 2,
  },
  "part-repeats-a-key": {
    at: "services/src/v3/range-stream.ts#chunkSteps",
    find: `{ ...($keys as KeyRange & { single: false }), key: \`\${$last}\\0\` }`,
    put: "{ ...($keys as KeyRange & { single: false }), key: $last }",
    sim: STREAMS,
    seed: 2,
  },
  "parts-beyond-the-limit": {
    at: "services/src/v3/range-stream.ts#chunkSteps",
    find: "Math.min($progress.chunkKeys, $left)",
    put: "$left > 0 ? $progress.chunkKeys : 0",
    sim: STREAMS,
    seed: 3,
  },
  "a checkpoint is forgotten by a second change of the leader": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#count",
    find: "$lease.remainingSeconds > 0 ? 1 : 0",
    put: "0",
    tests: ["packages/server/test/lease*.test.ts"],
  },
  "request ids repeat after a restart": {
    at: "member/src/loop/proposals.ts#RequestIds.constructor",
    find: "Math.trunc($startWallMs)",
    put: "0",
    tests: ["packages/member/test/request-ids.test.ts"],
    sim: "no",
  },
  "a watch that lags is notified of progress": {
    at: "member/src/watch/watch-stream.ts#WatchStream.requestProgress",
    find: "!$watcher.isSynced || $revision < $watcher.startRevision",
    put: "$revision < $watcher.startRevision",
    tests: ["packages/server/test/watch*.test.ts"],
  },
  "a caller's work runs within the loop": {
    at: "member/src/loop/deliveries.ts#Deliveries.#add",
    find: "NOW.then(this.#deliver)",
    put: "this.#deliver()",
    tests: ["packages/member/test/deliveries.test.ts"],
    sim: "no",
  },
  "a result that comes before its receiver is lost": {
    at: "rpc/src/service.ts#Later.deliver",
    find: "this.#early($receiver)",
    put: "this.#receiver = $receiver",
    tests: ["packages/rpc/test/later.test.ts"],
    sim: "no",
  },
  "a read joins a round of reads that was asked before it": {
    at: "member/src/loop/reads.ts#Reads.#join",
    find: "const $waiting = (this.#arrived ??= this.#begin());",
    put: `
      const asked = [...this.#rounds.values()].at(-1);
      const isOpen = asked !== undefined && asked.index === undefined;
      const $waiting = isOpen ? asked.waiting : (this.#arrived ??= this.#begin());`,
    tests: ["packages/member/test/read-rounds.test.ts"],
  },
  "a snapshot that is not ahead is refused without a response of Raft's": {
    at: "member/src/apply/snapshot-receiver.ts#SnapshotReceiver.receive",
    find: `
      $messages.step([$message]);
      throw $error;`,
    put: "throw $error;",
    tests: ["packages/member/test/marks.test.ts"],
    sim: "no",
  },
  "a member that joins takes part before its log is begun": {
    at: "member/src/bootstrap.ts#writeFirstEntries",
    find: "$wal.append($hardState, $entries);",
    put: "if ($entries.length > 0) $wal.append($hardState, $entries);",
    tests: ["packages/server/test/membership-starts.test.ts"],
    sim: "no",
  },
  "reads are released before a snapshot is installed": {
    at: "member/src/loop/loop.ts#MemberLoop.#install",
    find: "$reads.answered($read.context, $read.index);",
    put: `
      $reads.answered($read.context, $read.index);
      $reads.release(snapshot.metadata.index);`,
    tests: ["packages/server/test/reads-at-install.test.ts"],
  },
  "a full member waits for compactions for ever": {
    at: "member/src/space/space-keeper.ts#SpaceKeeper.#isLeftToCompaction",
    find: "$nowMs - this.#scarceSinceMs < COMPACTION_WAITS_MS",
    put: "$nowMs > 0",
    tests: ["packages/server/test/space.test.ts"],
    sim: "no",
  },
  "a round of reads that was asked again is asked at each tick from then on": {
    at: "member/src/loop/reads.ts#Reads.expire",
    find: "$round.askedMs = $now;",
    put: "",
    tests: ["packages/member/test/read-rounds.test.ts"],
    sim: "no",
  },
  "a request that Raft did not take counts as handed in": {
    at: "member/src/loop/proposals.ts#Proposals.putBack",
    find: "this.#handedIn(undefined, $ids);",
    put: "",
    tests: ["packages/member/test/waiting.test.ts"],
    sim: "no",
  },
  "the time between compactions begins with the end of the last one": {
    at: "member/src/space/auto-compactor.ts#AutoCompactor.#compact",
    find: "this.#sinceMs = $start;",
    put: "this.#sinceMs = this.#parts.clock.monotonicMs();",
    tests: ["packages/member/test/auto-compactor.test.ts"],
    sim: "no",
  },
  "a link is healthy a millisecond late": {
    at: "member/src/membership/quorum-checks.ts#connectedCount",
    find: "$active <= $since",
    put: "$active < $since",
    tests: ["packages/member/test/quorum-checks.test.ts"],
    sim: "no",
  },
  "leadership is handed to the member that is furthest behind": {
    at: "member/src/membership/leadership.ts#Leadership.handOver",
    find: "$b.match - $a.match",
    put: "$a.match - $b.match",
    tests: ["packages/member/test/leadership.test.ts"],
    sim: "no",
  },
};
