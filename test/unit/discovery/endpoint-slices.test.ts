import { describe, expect, it } from 'vitest'
import { peersOfSlices } from '../../../src/discovery/endpoint-slices.js'

const options = { port: 7946, family: 4 } as const

const endpoint = (address: string, conditions: object = { ready: true }) => ({
  addresses: [address],
  conditions,
})

const slice = (endpoints: unknown, ports: unknown = []) => ({
  metadata: { name: 'gossip-1' },
  addressType: 'IPv4',
  endpoints,
  ports,
})

const hosts = (addresses: readonly { readonly host: string }[]) => addresses.map(({ host }) => host)

describe('peers of EndpointSlices', () => {
  it('are Ready by "serving", which a Service that publishes all pods leaves alone', () => {
    const { ready, all } = peersOfSlices(
      [
        slice([
          endpoint('10.0.0.1', { ready: true, serving: true, terminating: false }),
          endpoint('10.0.0.2', { ready: true, serving: false, terminating: false }),
          endpoint('10.0.0.3', { ready: false }),
          endpoint('10.0.0.4', {}),
        ]),
      ],
      options,
    )
    expect(hosts(ready)).toEqual(['10.0.0.1', '10.0.0.4'])
    expect(hosts(all)).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'])
  })

  it('leave out pods on their way out, serving or not', () => {
    const gone = endpoint('10.0.0.1', { ready: true, serving: true, terminating: true })
    expect(peersOfSlices([slice([gone])], options)).toEqual({ ready: [], all: [], dropped: 0 })
  })

  it('are one for one address, Ready when any slice knows it Ready', () => {
    const { ready, all } = peersOfSlices(
      [
        slice([endpoint('10.0.0.1', { ready: false })]),
        slice([endpoint('10.0.0.1', { ready: true })]),
        slice([endpoint('10.0.0.1', { ready: false })]),
      ],
      options,
    )
    expect([hosts(ready), hosts(all)]).toEqual([['10.0.0.1'], ['10.0.0.1']])
  })

  it('are of the family that pods gossip with, or the other one would be missed for ever', () => {
    const slices = [slice([endpoint('10.0.0.1')]), slice([endpoint('fd00::1')])]
    expect(hosts(peersOfSlices(slices, options).ready)).toEqual(['10.0.0.1'])
    expect(hosts(peersOfSlices(slices, { ...options, family: 6 }).ready)).toEqual(['fd00::1'])
  })

  it.each([
    [
      'named for gossip',
      [
        { name: 'http', port: 80 },
        { name: 'rl-gossip', port: 9000 },
      ],
      9000,
    ],
    ['the only one there is, TCP and UDP', [{ port: 9001 }, { name: 'x', port: 9001 }], 9001],
    ['the own one when two are unnamed', [{ port: 1 }, { port: 2 }], 7946],
    ['the own one when none is given', undefined, 7946],
    ['the own one when it is no number', [{ name: 'gossip', port: null }], 7946],
  ])('have the port that is %s', (_, ports, port) => {
    expect(peersOfSlices([slice([endpoint('10.0.0.1')], ports)], options).all).toEqual([
      { host: '10.0.0.1', port },
    ])
  })

  it('are no more than five thousand, the rest counted', () => {
    const many = Array.from({ length: 5_010 }, (_, index) =>
      endpoint(`10.1.${index >> 8}.${index & 255}`),
    )
    const { all, ready, dropped } = peersOfSlices([slice(many)], options)
    expect([all.length, ready.length, dropped]).toEqual([5_000, 5_000, 10])
  })

  it.each([
    [null],
    [17],
    [slice('text')],
    [slice([null, 3, {}, { addresses: 'text' }, { addresses: [] }, { addresses: [7] }])],
    [slice([endpoint('shop.example')])],
    [slice([endpoint('10.0.0.1/24')], 'ports')],
  ])('are none where a slice makes no sense: %j', broken => {
    expect(peersOfSlices([broken], options)).toEqual({ ready: [], all: [], dropped: 0 })
  })
})
