/**
 * Bundles programs before all tests (./dev test): a start of the bundle takes half the processor
 * time of a start of the sources, and tests start hundreds of members. They are the bundles of a
 * release, so the tests cover those as well. A test file that runs alone starts the sources.
 */
import { bundlePrograms, NATIVE_MODULE } from "../../scripts/release/bundle.ts";
import { nativeModule, ownPlatform } from "../../scripts/release/platform.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";
import { BUNDLED_PROGRAMS, replaceFiles } from "./bundled.ts";

if (ownPlatform === undefined) {
  console.error(`no bundle for ${process.platform} ${process.arch}: tests start the sources`);
} else {
  const bundled = new Set<string>(BUNDLED_PROGRAMS);
  const { files } = await bundlePrograms(releasePrograms().filter(({ name }) => bundled.has(name)));
  replaceFiles(new Map([...files, [NATIVE_MODULE, nativeModule(ownPlatform)]]));
}
