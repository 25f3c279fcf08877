/** The space that a member's store takes. */
export { alarmName, alarmText, Space } from "./space.ts";
export type { SpaceKeeper } from "./space-keeper.ts";
