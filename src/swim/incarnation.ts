/** Arithmetic of incarnation numbers: 32 bits, owned by their member, never wrapping. */

const incarnationLimit = 0xffff_ffff

/**
 * No member reaches this by refuting; only a forged message can ask for more. Go's counter wraps to
 * 0 behind the limit and its owner can never refute again, so such claims are kept out of the
 * cluster.
 */
const incarnationSaneMax = incarnationLimit - 0x10_0000

/** How far above what we last heard an honest claim beyond the sane maximum can be. */
const incarnationStepMax = 1024

/** The next own incarnation that beats `accused`; stays at the limit instead of wrapping. */
export function refutingIncarnation(own: number, accused: number): number {
  return Math.min(incarnationLimit, Math.max(own, accused) + 1)
}

/**
 * True for a claim that only a forger makes; `known` is what was last heard of the member, 0 for
 * nothing.
 */
export function isImplausible(claimed: number, known: number): boolean {
  return claimed > incarnationSaneMax && claimed > known + incarnationStepMax
}
