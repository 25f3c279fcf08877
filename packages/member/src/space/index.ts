/** The space that a member's store takes. */
export { alarmName, alarmText } from "./alarm-text.ts";
export { Space } from "./space.ts";
export type { SpaceKeeper } from "./space-keeper.ts";
