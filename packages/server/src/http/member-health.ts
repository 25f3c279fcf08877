/**
 * A member's report of its health. One that rebuilds its store, because it differs from the others,
 * serves no reads: it reports so as a member with the alarm CORRUPT does, also while the alarm is
 * not raised yet.
 */

import type { Member } from "@quorate/member";
import { alarmName, MEMBER_CALLER } from "@quorate/member";
import { errorOf, RangeRequest } from "@quorate/proto";
import { applyRange } from "@quorate/store";
import type { HealthSource } from "./health.ts";

const ONE_KEY = { key: new Uint8Array(1), limit: 1, keysOnly: true };

export function memberHealth(member: Member): HealthSource {
  return {
    alarms() {
      const names = member.store.alarms.list().map(({ type }) => alarmName(type));
      return member.corruption.isHealing && !names.includes("CORRUPT")
        ? ["CORRUPT", ...names]
        : names;
    },
    hasLeader: () => member.leader !== 0n,
    isLearner: () => member.isLearner,
    async read({ serializable }) {
      if (member.isLearner && !serializable) throw errorOf("NotSupportedForLearner");
      // Not to wait until it is like the others, which may take many minutes.
      if (member.corruption.isHealing) throw errorOf("Corrupt");
      await member.read(MEMBER_CALLER, {
        access: { kind: "health" },
        linearizable: !serializable,
        run: () => {
          if (member.corruption.isHealing) throw errorOf("Corrupt");
          applyRange(member.store.mvcc, RangeRequest.create(ONE_KEY));
        },
      });
    },
  };
}
