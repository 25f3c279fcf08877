/** The entry point of embed. */
export { startMember } from "./start-member.ts";
