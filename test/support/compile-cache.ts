/**
 * Loaded before each test file (npm test): code that is compiled once, and TypeScript that is translated once, serve all test files and their
 * workers, which load the same modules. Members and tools that tests start have caches of their own, so nothing goes into the environment.
 */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

enableCompileCache(join(import.meta.dirname, "../../node_modules/.cache/quorate-tests"));
