/**
 * The formulas that fit the protocol's times and counts to the size of the cluster. Sources:
 * memberlist util.go and suspicion.go; SWIM section 4.1 (each update is passed on O(log n) times);
 * Lifeguard section IV-B (the decay of a suspicion's time-out). `nodes` always counts self and the
 * dead not yet forgotten.
 */

/** Above this size push/pulls become rarer, so that the fleet's total stays in check. */
const pushPullNodesUnscaled = 32

/** How many times one broadcast is sent: `mult * ceil(log10(nodes + 1))`. */
export function retransmitLimit(mult: number, nodes: number): number {
  return mult * Math.ceil(Math.log10(nodes + 1))
}

/** The shortest time a suspicion runs; the logarithm is cut to thousandths as Go does. */
export function suspicionTimeoutMs(mult: number, nodes: number, probeIntervalMs: number): number {
  const scale = Math.max(1, Math.log10(Math.max(1, nodes)))
  return (mult * Math.floor(scale * 1000) * probeIntervalMs) / 1000
}

/** How many independent confirmations shorten a suspicion to its minimum; 0 if too few can come. */
export function confirmationsExpected(mult: number, nodes: number): number {
  const wanted = mult - 2
  // Self and the suspect cannot confirm.
  return nodes - 2 < wanted ? 0 : wanted
}

/**
 * Time left of a suspicion after `confirmations` of `expected` (k > 0), negative when it is past.
 * It falls with the logarithm, so the first confirmation takes off the most.
 */
export function remainingSuspicionMs(
  confirmations: number,
  expected: number,
  elapsedMs: number,
  minMs: number,
  maxMs: number,
): number {
  const share = Math.log(confirmations + 1) / Math.log(expected + 1)
  // Go computes in seconds; the same order of operations gives the same last bit before the floor.
  const seconds = maxMs / 1000 - share * (maxMs / 1000 - minMs / 1000)
  return Math.max(minMs, Math.floor(1000 * seconds)) - elapsedMs
}

/** The wait between two push/pulls. */
export function pushPullScaleMs(intervalMs: number, nodes: number): number {
  if (nodes <= pushPullNodesUnscaled) return intervalMs
  const multiplier = Math.ceil(Math.log2(nodes) - Math.log2(pushPullNodesUnscaled)) + 1
  return intervalMs * multiplier
}
