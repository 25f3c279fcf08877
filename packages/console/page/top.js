/** Placeholder. */
export function show() {}
