/** The door: clients' connections on threads of their own, and rings to the member's thread. */
export type { LinkRings } from "./src/link.ts";
export { MemberServices, type MemberServicesOptions } from "./src/member-services.ts";
export { RingReader, RingWriter, ringMemory } from "./src/ring.ts";
export { methodPaths, ServedFront, type ServedFrontOptions } from "./src/served-front.ts";
