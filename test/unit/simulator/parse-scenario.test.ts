import { describe, expect, it } from 'vitest'
import { formatProblem, parseScenario } from '../../../src/simulator/parse-scenario.js'
import { changesMs, podsEver } from '../../../src/simulator/scenario.js'
import { parseDurationMs, parseLimit } from '../../../src/simulator/scenario-values.js'

const contract = `
pods: 10
duration: 20s
rule: { limit: 1000/1s, burst: 1000, algorithm: token-bucket, onPartition: share }
traffic:
  - { pods: all, rate: 200 }
  - { pods: [0], rate: 1500, from: 5s, to: 10s }
  - { pods: all, rate: 500, period: 4s, on: 1s }
network: { latency: 2ms, jitter: 1ms, loss: 0.05, duplicate: 0, reorder: 0 }
events:
  - { at: 5s, partition: [[0, 1, 2], [3, 4]], until: 8s }
  - { at: 9s, pause: [1], until: 12s }
  - { at: 10s, join: 3 }
  - { at: 12s, kill: [0] }
  - { at: 13s, leave: [2] }
`

function problems(text: string): string[] {
  const parsed = parseScenario(text)
  return parsed.ok ? [] : parsed.problems.map(problem => formatProblem('s.yaml', problem))
}

const valid = 'pods: 3\nduration: 5s\nrule: { limit: 10/1s }\ntraffic: [{ pods: all, rate: 1 }]\n'

describe('parseScenario', () => {
  it('reads the contract example', () => {
    const parsed = parseScenario(contract)
    expect(parsed).toEqual({
      ok: true,
      scenario: {
        pods: 10,
        durationMs: 20_000,
        rule: {
          limit: { count: 1000, windowMs: 1000, calendar: null },
          burst: 1000,
          algorithm: 'token-bucket',
          onPartition: 'share',
          key: [[{ kind: 'global' }]],
          queue: null,
          maxWaitMs: null,
        },
        traffic: [
          entry({ ratePerSecond: 200 }),
          entry({ pods: [0], ratePerSecond: 1500, fromMs: 5000, toMs: 10_000 }),
          entry({ ratePerSecond: 500, periodMs: 4000, onMs: 1000 }),
        ],
        network: {
          latencyMs: 2,
          jitterMs: 1,
          loss: 0.05,
          duplicate: 0,
          reorder: 0,
          mtuBytes: 1472,
        },
        events: [
          {
            kind: 'partition',
            atMs: 5000,
            untilMs: 8000,
            groups: [
              [0, 1, 2],
              [3, 4],
            ],
          },
          { kind: 'pause', atMs: 9000, untilMs: 12_000, pods: [1] },
          { kind: 'join', atMs: 10_000, count: 3 },
          { kind: 'kill', atMs: 12_000, pods: [0] },
          { kind: 'leave', atMs: 13_000, pods: [2] },
        ],
      },
    })
    if (!parsed.ok) return
    expect(podsEver(parsed.scenario)).toBe(13)
    expect(changesMs(parsed.scenario).map(time => time / 1000)).toEqual([
      0, 1, 4, 5, 8, 9, 10, 12, 13, 16, 17,
    ])
  })

  it('fills in what is left out', () => {
    expect(parseScenario(valid)).toMatchObject({
      ok: true,
      scenario: {
        rule: { burst: null, algorithm: 'token-bucket', onPartition: 'share' },
        traffic: [{ fromMs: 0, toMs: 5000, periodMs: null, keys: 1 }],
        network: { latencyMs: 2, jitterMs: 1, loss: 0, duplicate: 0, reorder: 0 },
        events: [],
      },
    })
  })

  it('sorts events by time', () => {
    const text = `${valid}events: [{ at: 3s, kill: [1] }, { at: 1s, join: 1 }]`
    const parsed = parseScenario(text)
    expect(parsed.ok && parsed.scenario.events.map(event => event.kind)).toEqual(['join', 'kill'])
  })

  it('bounds a leaky bucket that names no bound by its count', () => {
    const text = valid.replace('10/1s', '10/1s, algorithm: leaky-bucket')
    expect(parseScenario(text)).toMatchObject({ ok: true, scenario: { rule: { queue: 10 } } })
  })
})

describe('errors of a scenario', () => {
  it.each([
    [
      'pods: 0',
      's.yaml:1:1: pods must be a number of pods, 1 to 1000, not 0',
      ['pods: 3', 'pods: 0'],
    ],
    [
      'a duration without a unit',
      's.yaml:2:1: duration must be a duration such as 500ms, 20s or 1.5m, not 20',
      ['duration: 5s', 'duration: 20'],
    ],
    [
      'an unknown key, with the one that was meant',
      's.yaml:3:23: rule.bursts is not a known key; did you mean burst?',
      ['10/1s', '10/1s, bursts: 3'],
    ],
    [
      'an unknown algorithm',
      's.yaml:3:23: rule.algorithm must be one of token-bucket, leaky-bucket, fixed-window, ' +
        'sliding-window, sliding-log, not "bucket"',
      ['10/1s', '10/1s, algorithm: bucket'],
    ],
    [
      'a limit that is none',
      's.yaml:3:9: rule.limit must be COUNT/DURATION such as 1000/1s, not "10/s1"',
      ['10/1s', '10/s1'],
    ],
    [
      'a missing rate',
      's.yaml:4:11: traffic[0].rate is missing; it must be requests per second of each pod, ' +
        'above 0 and at most 1000000',
      [', rate: 1', ''],
    ],
    [
      'pods that are neither all nor a list',
      's.yaml:4:13: traffic[0].pods must be all or a list of pod numbers such as [0, 1], not "some"',
      ['pods: all', 'pods: some'],
    ],
    [
      'a pod that does not exist',
      's.yaml:4:23: traffic[0].pods[1] names pod 3; there are pods 0 to 2',
      ['pods: all', 'pods: [0, 3]'],
    ],
    [
      'an end before the beginning',
      's.yaml:4:43: traffic[0].to ends before it begins',
      ['rate: 1', 'rate: 1, from: 4s, to: 2s'],
    ],
    [
      'a period without on',
      's.yaml:4:33: traffic[0].period needs on beside it, as in { period: 4s, on: 1s }',
      ['rate: 1', 'rate: 1, period: 4s'],
    ],
  ])('%s', (_name, expected, [from, to]) => {
    expect(problems(valid.replace(from!, to!))).toEqual([expected])
  })

  it.each([
    [
      '{ at: 1s }',
      'events[0] must have exactly one of partition, block, pause, join, kill, leave, restart; ' +
        'it has none',
    ],
    [
      '{ at: 1s, kill: [0], join: 1 }',
      'events[0] must have exactly one of partition, block, pause, join, kill, leave, restart; ' +
        'it has join and kill',
    ],
    [
      '{ at: 1s, kill: [0], until: 2s }',
      'events[0].until does not go with kill, which happens at once: leave it out',
    ],
    ['{ at: 2s, pause: [0], until: 1s }', 'events[0].until ends before it begins'],
    [
      '{ at: 1s, partition: [[0, 1], [1]] }',
      'events[0].partition has pod 1 in two groups; put it in one',
    ],
    ['{ at: 1s, leave: [7] }', 'events[0].leave[0] names pod 7; there are pods 0 to 2'],
  ])('%s', (event, expected) => {
    const found = problems(`${valid}events: [${event}]`)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(`: ${expected}`)
  })

  it('reports every mistake at once', () => {
    expect(problems('pods: 0\nduration: x\nrule: {}\ntraffic: []\n')).toHaveLength(4)
  })

  it('says where the YAML itself is broken', () => {
    expect(problems('pods: [1\n')[0]).toMatch(/^s\.yaml:2:1: not valid YAML: /)
  })

  it('refuses a file that holds no mapping', () => {
    expect(problems('just text')[0]).toBe(
      's.yaml:1:1: must be a mapping with pods, duration, rule and traffic, not "just text"',
    )
  })
})

describe('notations', () => {
  it('reads durations with their unit only', () => {
    expect(['5ms', '2s', '1.5m', '1min', '1h', '1d'].map(parseDurationMs)).toEqual([
      5, 2000, 90_000, 60_000, 3_600_000, 86_400_000,
    ])
    expect(['5', 's', '-1s', '1 s', '1e3s', ''].map(parseDurationMs)).toEqual(Array(6).fill(null))
  })

  it('reads limits with an implied 1 and with calendar units', () => {
    expect(parseLimit('100/h')).toEqual({ count: 100, windowMs: 3_600_000, calendar: null })
    expect(parseLimit('0.5/30s')).toEqual({ count: 0.5, windowMs: 30_000, calendar: null })
    expect(parseLimit('10/month')).toMatchObject({ calendar: 'month' })
    expect(['100', '/1s', '0/1s', '1/0s', 'x/1s', '1/'].map(parseLimit)).toEqual(
      Array(6).fill(null),
    )
  })
})

function entry(parts: object): object {
  return {
    pods: 'all',
    fromMs: 0,
    toMs: 20_000,
    periodMs: null,
    onMs: 0,
    keys: 1,
    ...parts,
  }
}
