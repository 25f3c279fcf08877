/**
 * Bundles the member before all tests (./dev test): a start of the bundle takes half the processor
 * time of a start of the sources, and tests start hundreds of members. It is the bundle of a
 * release, so the tests cover that as well. A test file that runs alone starts the sources.
 */
import { bundlePrograms, NATIVE_MODULE } from "../../scripts/release/bundle.ts";
import { nativeModule, ownPlatform } from "../../scripts/release/platform.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";
import { replaceFiles } from "./bundled.ts";

if (ownPlatform === undefined) {
  console.error(`no bundle for ${process.platform} ${process.arch}: tests start the sources`);
} else {
  const { files } = await bundlePrograms(
    releasePrograms().filter(({ name }) => name === "quorate"),
  );
  replaceFiles(new Map([...files, [NATIVE_MODULE, nativeModule(ownPlatform)]]));
}
