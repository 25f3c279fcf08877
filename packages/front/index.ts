/** The door: clients' connections on threads of their own, and rings to the member's thread. */
export type { LinkDeps, LinkRings } from "./src/link.ts";
export {
  MemberServices,
  type MemberServicesDeps,
  type MemberServicesOptions,
} from "./src/member-services.ts";
export { type RecordHead, RingReader, RingWriter, ringMemory } from "./src/ring.ts";
export {
  methodPaths,
  ServedFront,
  type ServedFrontDeps,
  type ServedFrontOptions,
} from "./src/served-front.ts";
