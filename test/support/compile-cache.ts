/**
 * Loaded before each test file (npm test): what was compiled and translated from TypeScript once
 * serves all test files and their workers, which load the same modules. Members and tools that
 * tests start have caches of their own, so nothing goes into the environment.
 */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

enableCompileCache(join(import.meta.dirname, "../../node_modules/.cache/quorate-tests"));
