/** The call of etcdserverpb.Maintenance that moves leadership. */

import type { Member } from "@quorate/member";
import { callerOf } from "@quorate/member";
import { MaintenanceService, MoveLeaderRequest, MoveLeaderResponse } from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";

/** The handler, by path. */
export function leadershipService(member: Member): ReadonlyMap<string, UnaryHandler> {
  return new Map<string, UnaryHandler>([
    [
      MaintenanceService.methods.MoveLeader.path,
      (bytes, context) => {
        const { targetID } = MoveLeaderRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "moveLeader" }, async () => {
          await member.leadership.move(targetID);
          return MoveLeaderResponse.encode({ header: undefined });
        });
      },
    ],
  ]);
}
