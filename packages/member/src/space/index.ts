/** The space that a member's store takes. */
export { Space } from "./space.ts";
