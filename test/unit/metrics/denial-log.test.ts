import { describe, expect, it } from 'vitest'
import { DenialLog } from '../../../src/metrics/denial-log.js'
import { denied } from '../../helpers/fake-core.js'

function setup(): { log: DenialLog; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const log = new DenialLog({
    info: (fields: object, message?: string) => lines.push({ ...fields, message }),
  } as never)
  return { log, lines }
}

const hash = (index: number): string => index.toString(16).padStart(16, '0')

describe('DenialLog', () => {
  it('logs rule and key hash, and nothing that names the client', () => {
    const { log, lines } = setup()
    log.denied(denied(), 'proxy', 0)
    expect(lines).toEqual([
      {
        rule: 'api',
        keyHash: '00112233445566ff',
        reason: 'limited',
        interface: 'proxy',
        limit: 100,
        windowMs: 1000,
        retryAfterMs: 1200,
        unloggedSince: 0,
        message: 'client hit its limit',
      },
    ])
  })

  it('logs a key once per window and counts the rest', () => {
    const { log, lines } = setup()
    for (let ms = 0; ms < 1000; ms += 100) log.denied(denied(), 'proxy', ms)
    expect([lines.length, log.unlogged]).toEqual([1, 9])
    log.denied(denied(), 'proxy', 1000)
    expect(lines[1]).toMatchObject({ unloggedSince: 9 })
  })

  it('a quota of a month gets a line an hour', () => {
    const { log, lines } = setup()
    const quota = denied({ windowMs: 30 * 86_400_000 })
    log.denied(quota, 'proxy', 0)
    log.denied(quota, 'proxy', 3_599_999)
    log.denied(quota, 'proxy', 3_600_000)
    expect(lines).toHaveLength(2)
  })

  it('a flood of keys costs ten lines a second', () => {
    const { log, lines } = setup()
    for (let index = 0; index < 50_000; index++) {
      log.denied(denied({ keyHash: hash(index) }), 'proxy', Math.floor(index / 25_000) * 1000)
    }
    expect(lines).toHaveLength(20)
    expect(log.unlogged).toBe(50_000 - 20)
  })

  it('denials without a key are one per rule and reason', () => {
    const { log, lines } = setup()
    const keyless = denied({ reason: 'missing-key', keyHash: null })
    log.denied(keyless, 'auth', 0)
    log.denied(keyless, 'auth', 1)
    log.denied(denied({ reason: 'blocked', rule: null, keyHash: null }), 'auth', 2)
    expect(lines.map(line => line.reason)).toEqual(['missing-key', 'blocked'])
  })

  it('a wall clock set back by a day silences nobody', () => {
    const { log, lines } = setup()
    log.denied(denied(), 'proxy', 86_400_000)
    log.denied(denied(), 'proxy', 0)
    expect(lines).toHaveLength(2)
  })
})
