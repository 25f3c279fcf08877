/** Clusters whose membership changes, and requests about it. */

import type { Member } from "@quorate/member";
import {
  ClusterService,
  MemberListRequest,
  MemberListResponse,
  MemberRemoveRequest,
} from "@quorate/proto";
import { call, World } from "./world.ts";

const { MemberList, MemberRemove } = ClusterService.methods;

/** Links are healthy once they have been up for so long. */
export const HEALTHY_MS = 5001;

/** A cluster that allows changes. */
export async function healthyWorld(size: number, flags: readonly string[] = []): Promise<World> {
  const world = new World(size, flags);
  await world.startAll();
  await world.run(HEALTHY_MS);
  return world;
}

/** Removes a member, as `member` is asked to. */
export const remove = (world: World, member: Member, id: bigint) =>
  world.settled(call(member, MemberRemove.path, MemberRemoveRequest.encode({ ID: id })));

/** The members, by the list of one. */
export const list = async (world: World, member: Member, linearizable = true) =>
  MemberListResponse.decode(
    await world.settled(call(member, MemberList.path, MemberListRequest.encode({ linearizable }))),
  ).members;
