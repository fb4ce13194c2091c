/**
 * Chance for a simulation: every consumer draws from its own fork, named after what it decides, so
 * that one more draw in one place (a packet, an arrival) does not shift what another place sees.
 * Generator: sfc32 (Chris Doty-Humphrey, PractRand), 128 bits of state, period at least 2^32.
 */
import type { Entropy, Random } from '../ports.js'

/** Rounds that mix a seed into all of the state before the first number is drawn. */
const warmUpRounds = 15

export class SeededRandom {
  private readonly words: readonly [number, number, number]

  /** `seed`: any integer of at most 2^53; `path`: the names that lead here. */
  constructor(
    readonly seed: number,
    private readonly path = '',
  ) {
    this.words = [
      hashText(`${seed}|${path}`, 0x9e3779b9),
      hashText(`${seed}|${path}`, 0x85ebca6b),
      hashText(`${seed}|${path}`, 0xc2b2ae35),
    ]
  }

  fork(name: string): SeededRandom {
    return new SeededRandom(this.seed, `${this.path}/${name}`)
  }

  /** A stream of uniform numbers in [0, 1), from the beginning of this fork's sequence. */
  stream(): Random {
    let [a, b, c] = this.words
    let counter = 1
    const next = (): number => {
      const sum = (a + b + counter) | 0
      counter = (counter + 1) | 0
      a = b ^ (b >>> 9)
      b = (c + (c << 3)) | 0
      c = ((c << 21) | (c >>> 11)) + sum
      c |= 0
      return (sum >>> 0) / 0x1_0000_0000
    }
    for (let round = 0; round < warmUpRounds; round++) next()
    return next
  }

  /** Bytes for ids and nonces. Not secret: a simulation has nothing to hide. */
  entropy(): Entropy {
    const next = this.stream()
    return length => {
      const bytes = new Uint8Array(length)
      for (let i = 0; i < length; i++) bytes[i] = Math.floor(next() * 256)
      return bytes
    }
  }
}

/** Time to the next arrival of a Poisson process of `perMs` > 0 events per millisecond. */
export function exponentialMs(random: Random, perMs: number): number {
  return -Math.log(1 - random()) / perMs
}

/** 32-bit FNV-1a with a final avalanche (murmur3's), over UTF-16 code units. */
function hashText(text: string, salt: number): number {
  let hash = (0x811c9dc5 ^ salt) | 0
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) | 0
}
