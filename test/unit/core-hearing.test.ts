import { describe, expect, it } from 'vitest'
import { Hearing } from '../../src/core-hearing.js'
import type { Address } from '../../src/vocabulary.js'

const peer: Address = { host: '10.0.0.2', port: 7946 }
const other: Address = { host: '10.0.0.3', port: 7946 }

/** A pod that was heard every 20 ms for a second; the last packet came at 1000. */
function talker(): Hearing {
  const hearing = new Hearing()
  hearing.watch([peer, other], 0)
  for (let atMs = 20; atMs <= 1000; atMs += 20) hearing.heard(peer, atMs)
  return hearing
}

/** Advances whenever it is due, until `untilMs`; when it asked, and when somebody fell silent. */
function run(hearing: Hearing, untilMs: number, answer?: (atMs: number) => boolean) {
  const asked: number[] = []
  const fell: number[] = []
  for (let atMs = hearing.nextDeadlineMs(); atMs <= untilMs; atMs = hearing.nextDeadlineMs()) {
    const due: Address[] = []
    if (hearing.advance(atMs, address => due.push(address))) fell.push(atMs)
    for (const address of due) {
      asked.push(atMs)
      if (answer?.(atMs)) hearing.heard(address, atMs + 4)
    }
  }
  return { asked, fell }
}

describe('a pod that used to send', () => {
  it('is asked ten times after a quarter of a second, and is silent 600 ms after its last packet', () => {
    const hearing = talker()
    const { asked, fell } = run(hearing, 5000)
    expect(asked.filter(atMs => atMs < 1600)).toHaveLength(10)
    expect(asked[0]).toBe(1250)
    expect(fell[0]).toBeGreaterThanOrEqual(1600)
    expect(fell[0]).toBeLessThanOrEqual(1635)
    expect(hearing.isSilent(peer)).toBe(true)
  })

  it('has the quiet ones asked too when it falls silent, and those that answer are not silent', () => {
    const deaf = talker()
    run(deaf, 5000)
    expect([deaf.isSilent(peer), deaf.isSilent(other)]).toEqual([true, true])
    const hearing = talker()
    hearing.watch([peer, other], 1000)
    for (let atMs = 1250; atMs <= 5000; atMs += 5) {
      hearing.advance(atMs, ({ host }) => host === other.host && hearing.heard(other, atMs))
    }
    expect([hearing.isSilent(peer), hearing.isSilent(other)]).toEqual([true, false])
  })

  it('is heard again with its first packet, and told so once', () => {
    const hearing = talker()
    run(hearing, 5000)
    expect(hearing.heard(peer, 5001)).toBe(true)
    expect(hearing.isSilent(peer)).toBe(false)
    expect(hearing.heard(peer, 5002)).toBe(false)
  })

  it('is not silent as long as it answers, and is not asked for ever', () => {
    const { asked, fell } = run(talker(), 60_000, () => true)
    expect(fell).toEqual([])
    expect(asked.length).toBeGreaterThan(2)
    expect(asked.length).toBeLessThan(12)
  })

  it('is not silent when nine of ten questions or answers are lost', () => {
    let count = 0
    const { fell } = run(talker(), 60_000, () => ++count % 10 === 0)
    expect(fell).toEqual([])
  })

  it('is given its time again after this process stood still', () => {
    const hearing = talker()
    hearing.stalled(6000)
    const { fell } = run(hearing, 6599)
    expect(fell).toEqual([])
  })
})

describe('a silent pod', () => {
  it('is asked on once a second, and its answer ends the silence', () => {
    const hearing = talker()
    run(hearing, 1700)
    const { asked } = run(hearing, 11_700)
    const toPeer = asked.length / 2
    expect(toPeer).toBeGreaterThanOrEqual(9)
    expect(toPeer).toBeLessThanOrEqual(21)
    run(hearing, 20_000, () => true)
    expect(hearing.isSilent(peer)).toBe(false)
  })
})

describe('a suspect', () => {
  /** A pod that was heard every half second, and is suspected at 20 s. */
  function suspected(expected: boolean): Hearing {
    const hearing = new Hearing()
    hearing.watch(expected ? [peer] : [], 0)
    for (let atMs = 500; atMs <= 20_000; atMs += 500) hearing.heard(peer, atMs)
    hearing.doubt([peer], 20_000)
    return hearing
  }

  it.each([true, false])('that answers is not silent, discovery knows it: %s', expected => {
    const { asked, fell } = run(suspected(expected), 30_000, () => true)
    expect(asked.length).toBeGreaterThan(20)
    expect(fell).toEqual([])
  })

  it.each([true, false])('that answers nothing is silent, discovery knows it: %s', expected => {
    const hearing = suspected(expected)
    const { fell } = run(hearing, 22_000)
    expect(fell[0]).toBeLessThanOrEqual(20_700)
    expect(hearing.isSilent(peer)).toBe(true)
  })

  it('is left alone when it is suspected no more', () => {
    const hearing = suspected(true)
    run(hearing, 22_000, () => true)
    hearing.doubt([], 22_000)
    run(hearing, 23_000, () => true)
    expect(hearing.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY)
  })

  it('that discovery does not know is forgotten when it is suspected no more', () => {
    const hearing = suspected(false)
    run(hearing, 22_000)
    hearing.doubt([], 22_000)
    expect([hearing.isSilent(peer), hearing.nextDeadlineMs()]).toEqual([
      false,
      Number.POSITIVE_INFINITY,
    ])
  })
})

describe('a pod that nothing can be read from', () => {
  it('because it was seldom heard is never asked', () => {
    const hearing = new Hearing()
    hearing.watch([peer], 0)
    for (let atMs = 500; atMs <= 20_000; atMs += 500) hearing.heard(peer, atMs)
    expect(hearing.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY)
  })

  it('because it is not expected any more is forgotten', () => {
    const hearing = talker()
    hearing.watch([other], 1100)
    expect(hearing.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY)
    expect(hearing.heard(peer, 1200)).toBe(false)
  })
})
