/**
 * Longest header of a request, its name included: in HTTP/1.1 a line, or the joined values of a
 * name; in HTTP/2 one field. Longer ones get 431.
 */
export const MAX_FIELD_BYTES: number = 16 << 10;
