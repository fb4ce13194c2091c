import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { check, ensureBuilt, Fleet, membersOf, post, runProgram } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'

const rules = `version: 1
rules:
  - { name: api, key: [global], limit: 100/1h }
`

let fleet: Fleet
let pod: SidecarProcess
let peer: SidecarProcess

beforeAll(async () => {
  ensureBuilt()
  fleet = await Fleet.create(rules)
  ;[pod, peer] = (await fleet.startMany(2)) as [SidecarProcess, SidecarProcess]
})

afterAll(() => fleet.stop())

describe('the decision API', () => {
  test.each([
    ['malformed JSON', '{"rule":"api",', 400],
    ['an empty body', '', 400],
    ['a body that is no object', '7', 400],
    ['an unknown rule', '{"rule":"nope"}', 404],
    ['a cost that is text', '{"rule":"api","cost":"1"}', 400],
    ['a cost beyond every bound', '{"rule":"api","cost":1e999}', 400],
    ['a cost of more than a billion', '{"rule":"api","cost":1000000001}', 400],
    ['a cost of less than minus a billion', '{"rule":"api","cost":-1000000001}', 400],
    ['an unknown member', '{"rule":"api","costs":1}', 400],
  ])('answers %s with a problem', async (_, body, status) => {
    const response = await post(pod, body)
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toContain('application/problem+json')
    expect(await response.json()).toMatchObject({ status })
  })

  test('bad requests consume nothing', async () => {
    expect(await check(pod, { rule: 'api', cost: 0 })).toMatchObject({ remaining: 100 })
  })
})

test.each(['proxy', 'api', 'telemetry', 'admin'] as const)(
  'a header of a megabyte is refused by the %s listener, and only that request',
  async listener => {
    const [host, port] = pod.addresses[listener]!.split(':')
    const status = await new Promise<string>(resolve => {
      const socket = connect(Number(port), host)
      let answer = ''
      socket.on('data', bytes => {
        answer += bytes.toString('latin1')
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve(answer.slice(0, 12)))
      socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\nx-big: ${'a'.repeat(1 << 20)}\r\n\r\n`)
    })
    expect(status).toBe('HTTP/1.1 431')
    const after = await fetch(`http://${pod.addresses.telemetry}/livez`)
    expect(after.status).toBe(200)
  },
)

describe('the gossip port', () => {
  /** Wire prefixes worth cutting short: ping, push/pull header, compress, CRC, label, encrypted. */
  const openings = [
    [0],
    [6, 0x83],
    [7, 255],
    [9, 0x82],
    [10, 255, 255, 255, 255],
    [12, 1],
    [244, 9],
  ]

  test('garbage and truncated packets change nothing', async () => {
    const socket = createSocket('udp4')
    const port = Number(pod.addresses.gossip.split(':')[1])
    const packets = [
      Buffer.alloc(0),
      ...openings.map(opening => Buffer.from(opening)),
      ...openings.map(opening => Buffer.from([...opening, ...noise(200, opening[0]!)])),
      ...Array.from({ length: 100 }, (_, seed) => Buffer.from(noise(seed * 13, seed))),
    ]
    for (const packet of packets) {
      await new Promise(resolve => socket.send(packet, port, '127.0.0.1', resolve))
    }
    socket.close()
    await stillWell()
  })

  test('garbage and truncated streams change nothing', async () => {
    const port = Number(pod.addresses.gossip.split(':')[1])
    await Promise.all(
      [...openings, noise(5_000, 1), noise(100_000, 2)].map(
        bytes =>
          new Promise<void>(resolve => {
            const socket = connect(port, '127.0.0.1')
            socket.on('error', () => {})
            socket.on('close', () => resolve())
            socket.resume()
            socket.end(Buffer.from(bytes))
          }),
      ),
    )
    await stillWell()
  })

  async function stillWell(): Promise<void> {
    // On a busy machine a pod may be suspected for a moment, garbage or not.
    const states = async () =>
      (await membersOf(pod)).map(member => `${member.name} ${member.state}`).join()
    await until('both are alive', async () => (await states()) === 'pod-1 alive,pod-2 alive')
    const live = await fetch(`http://${pod.addresses.telemetry}/livez`)
    expect(live.status).toBe(200)
    expect(await check(peer, { rule: 'api', cost: 0 })).toMatchObject({ limit: 100 })
  }
})

describe('a port in use', () => {
  test.each(['proxy', 'api', 'telemetry', 'admin', 'gossip'] as const)(
    'of the %s listener ends the process at once, with the reason',
    async listener => {
      const taken = pod.addresses[listener]!
      const options =
        listener === 'gossip'
          ? { name: 'late', gossipPort: Number(taken.split(':')[1]) }
          : {
              name: 'late',
              listeners: {
                [listener]:
                  listener === 'proxy'
                    ? `{ listen: "${taken}", upstream: "${fleet.upstream.url}" }`
                    : `{ listen: "${taken}" }`,
              },
            }
      const result = await runProgram(['run', ...fleet.runArgs(options)])
      expect(result.status).toBe(1)
      expect(result.stderr).toContain(`${listener}: ${taken} is already in use`)
    },
  )
})

/** Deterministic bytes that look like nothing. */
function noise(length: number, seed: number): number[] {
  let state = seed + 1
  return Array.from({ length }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return (state >>> 16) & 255
  })
}
