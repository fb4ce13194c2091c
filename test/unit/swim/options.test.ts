import { describe, expect, it } from 'vitest'
import {
  lanDefaults,
  localDefaults,
  optionErrors,
  type SwimSettings,
  wanDefaults,
} from '../../../src/swim/options.js'
import { memberlistVectors } from '../../helpers/memberlist-vectors.js'
import { swimOptions } from '../../helpers/swim-node.js'

/** Go's duration strings as far as the table uses them. */
function durationMs(text: string): number {
  const match = /^(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(text)
  if (match === null) throw new Error(`no duration: ${text}`)
  const [, minutes = '0', seconds = '0', millis = '0'] = match
  return Number(minutes) * 60_000 + Number(seconds) * 1000 + Number(millis)
}

type GoConfig = Readonly<Record<string, string | number | boolean>>

function fromGo(config: GoConfig): Partial<SwimSettings> {
  const ms = (name: string) => durationMs(String(config[name]))
  return {
    label: String(config.Label),
    skipInboundLabelCheck: Boolean(config.SkipInboundLabelCheck),
    gossipVerifyIncoming: Boolean(config.GossipVerifyIncoming),
    gossipVerifyOutgoing: Boolean(config.GossipVerifyOutgoing),
    protocolVersion: Number(config.ProtocolVersion),
    delegateProtocolMin: Number(config.DelegateProtocolMin),
    delegateProtocolMax: Number(config.DelegateProtocolMax),
    delegateProtocolVersion: Number(config.DelegateProtocolVersion),
    enableCompression: Boolean(config.EnableCompression),
    probeIntervalMs: ms('ProbeInterval'),
    probeTimeoutMs: ms('ProbeTimeout'),
    indirectChecks: Number(config.IndirectChecks),
    disableTcpPings: Boolean(config.DisableTcpPings),
    awarenessMaxMultiplier: Number(config.AwarenessMaxMultiplier),
    suspicionMult: Number(config.SuspicionMult),
    suspicionMaxTimeoutMult: Number(config.SuspicionMaxTimeoutMult),
    deadNodeReclaimTimeMs: ms('DeadNodeReclaimTime'),
    gossipIntervalMs: ms('GossipInterval'),
    gossipNodes: Number(config.GossipNodes),
    gossipToTheDeadTimeMs: ms('GossipToTheDeadTime'),
    retransmitMult: Number(config.RetransmitMult),
    pushPullIntervalMs: ms('PushPullInterval'),
    tcpTimeoutMs: ms('TCPTimeout'),
    udpBufferSizeBytes: Number(config.UDPBufferSize),
  }
}

describe('presets', () => {
  const { data } = memberlistVectors.tables.defaultConfigs

  it.each([
    ['lan', lanDefaults],
    ['wan', wanDefaults],
    ['local', localDefaults],
  ] as const)('%s has the values of the Go library', (preset, settings) => {
    expect(settings).toMatchObject(fromGo(data[preset]))
  })
})

describe('option errors', () => {
  it('a preset with a name and an address has none', () => {
    expect(optionErrors(swimOptions('pod-1'))).toEqual([])
  })

  it.each([
    ['name', { name: 'a/b' as never }],
    ['name', { name: '' as never }],
    ['advertise', { advertise: { host: '10.0.0.1', port: 0 } }],
    ['label', { label: 'x'.repeat(256) }],
    ['keys', { keys: [new Uint8Array(15)] }],
    ['protocolVersion', { protocolVersion: 6 }],
    ['delegateProtocolMax', { delegateProtocolMax: 256 }],
    ['probeIntervalMs', { probeIntervalMs: 500, probeTimeoutMs: 500 }],
    ['awarenessMaxMultiplier', { awarenessMaxMultiplier: 0 }],
    ['gossipIntervalMs', { gossipIntervalMs: 0 }],
    ['udpBufferSizeBytes', { udpBufferSizeBytes: 100 }],
  ])('a bad %s is named: %o', (option, change) => {
    const errors = optionErrors({ ...swimOptions('pod-1'), ...change })
    expect(errors.map(error => error.split(':')[0])).toEqual([option])
  })
})
