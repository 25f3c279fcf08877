/** The entry point of cli. */
export { FakeIo } from "./fake-io.ts";
