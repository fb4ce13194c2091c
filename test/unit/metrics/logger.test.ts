import { describe, expect, it } from 'vitest'
import { createLogger, setLogLevel } from '../../../src/metrics/logger.js'

function setup(level: 'info' | 'warn' = 'info') {
  const lines: Record<string, unknown>[] = []
  const log = createLogger({
    level,
    node: 'pod-a',
    destination: { write: line => void lines.push(JSON.parse(line)) },
  })
  return { log, lines }
}

describe('createLogger', () => {
  it('writes JSON lines with level as text, ISO time, node and version', () => {
    const { log, lines } = setup()
    log.info({ rule: 'api' }, 'hello')
    expect(lines).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        node: 'pod-a',
        version: expect.any(String),
        rule: 'api',
        msg: 'hello',
      },
    ])
  })

  it('changes its level while it runs', () => {
    const { log, lines } = setup('warn')
    log.info('no')
    expect(setLogLevel(log, 'debug')).toBe(true)
    log.debug('yes')
    expect(setLogLevel(log, 'loud')).toBe(false)
    expect(lines.map(line => line.msg)).toEqual(['yes'])
  })

  it('keeps credentials out', () => {
    const { log, lines } = setup()
    log.info({ headers: { authorization: 'Bearer x', cookie: 'a=b', accept: '*/*' } }, 'request')
    expect(lines[0]?.headers).toEqual({
      authorization: '[redacted]',
      cookie: '[redacted]',
      accept: '*/*',
    })
  })
})
