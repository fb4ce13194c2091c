/**
 * Invariants in words. A failing one is a bug in this program, never a reaction to outside input.
 */

/** Throws when `condition` does not hold; `invariant` says what should have held. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${invariant}`)
}
