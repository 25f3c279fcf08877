/**
 * Loaded before each test file of npm run mutants: what was compiled and translated from TypeScript
 * once serves all test files and their workers, which load the same modules. npm test has the same
 * directory in NODE_COMPILE_CACHE, for the programs that its tests start as well.
 */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

enableCompileCache(join(import.meta.dirname, "../../node_modules/.cache/quorate-tests"));
