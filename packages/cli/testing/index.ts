/** Parts of cli that the tests of other packages look at. */
export { FakeIo } from "./fake-io.ts";
