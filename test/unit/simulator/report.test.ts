import { describe, expect, it } from 'vitest'
import { reportHtml } from '../../../src/simulator/report.js'
import { resultJson, runScenario } from '../../../src/simulator/run-scenario.js'
import { niceCeiling } from '../../../src/simulator/svg-chart.js'
import { scenarioOf } from '../../sim/fleet.js'
import { fakeFleet } from './fake-node.js'

function simulated(pods: number) {
  const scenario = scenarioOf(`
pods: ${pods}
duration: 3s
rule: { limit: 100/1s }
traffic: [{ pods: all, rate: 10 }]
`)
  const { makeNode } = fakeFleet(pods)
  return { scenario, result: runScenario(scenario, { seed: 9, makeNode }) }
}

describe('reportHtml', () => {
  it('is one page that asks for nothing else: no script, no link, no address', () => {
    const { scenario, result } = simulated(3)
    const html = reportHtml(scenario, result, 'three pods')
    expect(html).toMatch(/^<!doctype html>/)
    expect(html).not.toMatch(/<script|<link|<img|https?:|url\(/)
    expect(html).toContain('prefers-color-scheme: dark')
    expect(html.match(/<svg /g)).toHaveLength(5)
    expect(html).toContain(`Seed ${result.seed}.`)
  })

  it('draws few pods as areas and many as rows of a heat map', () => {
    const few = simulated(3)
    expect(reportHtml(few.scenario, few.result, 'few')).toContain('class="area s3"')
    const many = simulated(12)
    const html = reportHtml(many.scenario, many.result, 'many')
    expect(html).toContain('class="cell"')
    expect(html).not.toContain('class="area')
  })

  it('shows a hostile title as text', () => {
    const { scenario, result } = simulated(3)
    const html = reportHtml(scenario, result, '<b>"x"&')
    expect(html).toContain('&lt;b&gt;&quot;x&quot;&amp;')
    expect(html).not.toContain('<b>')
  })
})

describe('resultJson', () => {
  it('has exactly the fields of the contract, in its order', () => {
    const { result } = simulated(3)
    const json = JSON.parse(resultJson(result)) as Record<string, unknown>
    expect(Object.keys(json)).toEqual([
      'offered',
      'admitted',
      'ideal',
      'ratio',
      'worstSecondAbove',
      'worstSecondBelow',
      'excessOverBurst',
      'jain',
      'falseDenials',
      'settleMs',
      'bytesPerPodPerSecond',
      'packetsPerPodPerSecond',
      'seed',
      'perPod',
    ])
    const perPod = json.perPod as { offered: number; admitted: number }[]
    expect(perPod).toHaveLength(3)
    expect(perPod.reduce((sum, pod) => sum + pod.offered, 0)).toBe(json.offered)
  })
})

describe('niceCeiling', () => {
  it('is the next 1, 2, 2.5 or 5 times a power of ten', () => {
    expect([1, 1.1, 2.2, 3, 7, 10, 140, 0.3].map(niceCeiling)).toEqual([
      1, 2, 2.5, 5, 10, 10, 200, 0.5,
    ])
  })
})
