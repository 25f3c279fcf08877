/** The part of embed that needs Node. */
export { startMember } from "./start-member.ts";
