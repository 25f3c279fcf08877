/** See launch.js. */
export declare function freshBundle(name: string): string | undefined;
