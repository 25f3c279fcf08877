/** The program `npm create quorate`. The npm package `create-quorate` exports this file. */
export { createProgram, type Output } from "./node/create.ts";
