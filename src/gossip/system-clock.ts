/** The operating system's clocks, chance and entropy: what production hands to the core. */
import { randomBytes } from 'node:crypto'
import type { Clock, Entropy, Random } from '../ports.js'

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
}

export const systemRandom: Random = () => Math.random()

export const systemEntropy: Entropy = length => new Uint8Array(randomBytes(length))
