/** The call of etcdserverpb.Maintenance that moves leadership. */
import { MaintenanceService, MoveLeaderRequest, MoveLeaderResponse } from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import type { Member } from "../member/member.ts";

/** The handler, by path. */
export function leadershipService(member: Member): ReadonlyMap<string, UnaryHandler> {
  return new Map<string, UnaryHandler>([
    [
      MaintenanceService.methods.MoveLeader.path,
      async (bytes) => {
        await member.leadership.move(MoveLeaderRequest.decode(bytes).targetID);
        return MoveLeaderResponse.encode({ header: undefined });
      },
    ],
  ]);
}
