/** Why reading from a client is paused; bits, since several reasons may hold at a time. */
export const pause = {
  /** The upstream takes no more of the body for now. */
  upstream: 1,
  /** The request is not admitted yet, or waits for a connection, and its body is under way. */
  hold: 2,
  /** The next request is here already. */
  pipeline: 4,
} as const
