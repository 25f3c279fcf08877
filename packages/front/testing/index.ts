/** Both ends of the rings in one thread, for tests and the simulator. */
export { FrontTwin, type FrontTwinDeps } from "./front-twin.ts";
