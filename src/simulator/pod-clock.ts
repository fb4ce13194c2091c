/**
 * A pod's two clocks on virtual time: the monotonic one starts anywhere and runs a little fast or
 * slow, the wall clock is off by what NTP leaves. No two pods agree on either.
 */
import type { Random } from '../ports.js'

/** 2026-01-05T00:00:00Z, a Monday: virtual time 0, where days, weeks and seconds begin. */
export const epochWallMs = 1_767_571_200_000

/** Crystals are good to some 50 parts per million. */
const driftMax = 50e-6

/** What NTP leaves within a cluster, milliseconds either way. */
const wallSkewMaxMs = 5

/** A monotonic clock is at most this old at virtual time 0: some 12 days. */
const uptimeMaxMs = 1e9
const uptimeMinMs = 1e7

export class PodClock {
  private readonly offsetMs: number
  private readonly pace: number
  private readonly skewMs: number

  constructor(random: Random) {
    this.offsetMs = Math.floor(uptimeMinMs + random() * (uptimeMaxMs - uptimeMinMs))
    this.pace = 1 + (2 * random() - 1) * driftMax
    this.skewMs = (2 * random() - 1) * wallSkewMaxMs
  }

  monotonicMs(nowMs: number): number {
    return this.offsetMs + nowMs * this.pace
  }

  wallMs(nowMs: number): number {
    return epochWallMs + nowMs + this.skewMs
  }

  /**
   * How long from `nowMs` until the monotonic clock shows `deadlineMs`, in virtual milliseconds.
   */
  waitMs(deadlineMs: number, nowMs: number): number {
    return (deadlineMs - this.monotonicMs(nowMs)) / this.pace
  }
}
