/** A simulation as one HTML page that needs nothing else: numbers, and charts as inline SVG. */
import type { SimResult } from './run-scenario.js'
import type { Scenario } from './scenario.js'
import { escapeHtml, heatMap, type Line, pairBars, timeChart } from './svg-chart.js'

/** Up to so many pods are drawn as areas of their own; more become rows of a heat map. */
const areasMax = 8

/** Columns of a heat map: as many as a reader can tell apart. */
const columnsMax = 60

export function reportHtml(scenario: Scenario, result: SimResult, title: string): string {
  const heading = escapeHtml(title)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${heading} - grapevine simulation</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${heading}</h1>
<p>${escapeHtml(summary(scenario))} Seed ${result.seed}.</p>
${numbers(result)}
${admittedChart(scenario, result)}
${shares(result)}
${pairBars(
  'Asked for and admitted per pod',
  'requests in all',
  result.perPod.map(pod => ({ outer: pod.offered, inner: pod.admitted })),
  ['offered', 'admitted'],
)}
${gossipCharts(result)}
</main>
</body>
</html>
`
}

function summary(scenario: Scenario): string {
  const { limit, algorithm, burst, onPartition } = scenario.rule
  const size = burst === null ? '' : `, burst ${burst}`
  const window = limit.calendar ?? `${limit.windowMs / 1000} s`
  return (
    `${scenario.pods} pods for ${scenario.durationMs / 1000} s; one limit of ${limit.count} per ` +
    `${window}${size}, ${algorithm}, on a partition: ${onPartition}.`
  )
}

function numbers(result: SimResult): string {
  const percent = (value: number) => `${(value * 100).toFixed(2)} %`
  const rows: readonly (readonly [string, string])[] = [
    ['offered', String(result.offered)],
    ['admitted', String(result.admitted)],
    ['one ideal limiter admits', String(result.ideal)],
    ['admitted / ideal', result.ratio.toFixed(4)],
    ['worst second above the ideal', percent(result.worstSecondAbove)],
    ['worst second below the ideal', percent(result.worstSecondBelow)],
    ['largest excess over the burst', percent(result.excessOverBurst)],
    ['fairness between pods (Jain)', result.jain.toFixed(4)],
    ['denied although the ideal admits', String(result.falseDenials)],
    ['settled after a change', result.settleMs === null ? 'never' : `${result.settleMs} ms`],
    ['gossip per pod', `${result.packetsPerPodPerSecond} packets/s`],
    ['', `${(result.bytesPerPodPerSecond / 1000).toFixed(1)} kB/s`],
  ]
  const cells = rows.map(
    ([name, value]) => `<tr><th scope="row">${name}</th><td>${value}</td></tr>`,
  )
  return `<table>${cells.join('\n')}</table>`
}

function admittedChart(scenario: Scenario, result: SimResult): string {
  const { series } = result
  const seconds = series.sliceMs / 1000
  const perSecond = (values: readonly number[]) => values.map(value => value / seconds)
  const limit = (scenario.rule.limit.count / scenario.rule.limit.windowMs) * 1000
  return timeChart({
    title: 'Admitted against the limit',
    unit: 'requests/s',
    stepSeconds: seconds,
    lines: [
      { label: 'offered', className: 'offered', values: perSecond(series.offered) },
      { label: 'limit', className: 'limit', values: series.offered.map(() => limit) },
      { label: 'ideal', className: 'ideal', values: perSecond(series.ideal) },
      { label: 'admitted', className: 'admitted', values: perSecond(series.admitted) },
    ],
  })
}

function shares(result: SimResult): string {
  const { podAdmitted, sliceMs } = result.series
  const seconds = sliceMs / 1000
  const title = 'Admitted by each pod'
  if (podAdmitted.length > areasMax) {
    const merged = Math.max(1, Math.ceil((podAdmitted[0]?.length ?? 1) / columnsMax))
    const rows = podAdmitted.map(values => averaged(values, merged, seconds))
    return heatMap(title, 'requests/s', rows, seconds * merged)
  }
  const lines: Line[] = podAdmitted.map((values, pod) => ({
    label: `pod ${pod}`,
    className: `s${pod + 1}`,
    values: values.map(value => value / seconds),
  }))
  return timeChart({ title, unit: 'requests/s', stepSeconds: seconds, lines, stacked: true })
}

/** Mean per second over every `merged` values. */
function averaged(values: readonly number[], merged: number, seconds: number): number[] {
  const columns = Math.ceil(values.length / merged)
  return Array.from({ length: columns }, (_, i) => {
    const part = values.slice(i * merged, (i + 1) * merged)
    return part.reduce((sum, value) => sum + value, 0) / (part.length * seconds)
  })
}

function gossipCharts(result: SimResult): string {
  const stepSeconds = result.series.sliceMs / 1000
  const packets = timeChart({
    title: 'Gossip packets sent per pod',
    unit: 'packets/s',
    stepSeconds,
    lines: [{ label: 'packets', className: 's1', values: result.gossip.packetsPerPod }],
  })
  const bytes = timeChart({
    title: 'Gossip bytes sent per pod',
    unit: 'kB/s',
    stepSeconds,
    lines: [
      {
        label: 'kB',
        className: 's2',
        values: result.gossip.bytesPerPod.map(value => value / 1000),
      },
    ],
  })
  return `${packets}\n${bytes}`
}

const style = `
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2024; --quiet: #60666e;
  --rule: #d9dde2;
  --c1: #0b6fb8; --c2: #c2571a; --c3: #1a8560; --c4: #a3479a; --c5: #8a6d00; --c6: #4757c4;
  --c7: #b3304f; --c8: #5b6670; --offered: #a9b1ba; --limit: #c0262d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e8eaed; --quiet: #9aa2ab;
  --rule: #32383f; --c1: #5ab0f0; --c2: #f0935a; --c3: #4fc79a; --c4: #dd8ad4; --c5: #d9b93b;
  --c6: #96a3ff; --c7: #f27a96; --c8: #a7b1bb; --offered: #5c646d; --limit: #ff6b6b; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 900px; margin: 0 auto; padding: 24px 16px; }
h1 { font-size: 22px; margin: 0 0 8px; }
table { border-collapse: collapse; margin: 16px 0; }
th { text-align: left; font-weight: normal; color: var(--quiet); padding: 2px 24px 2px 0; }
td { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 28px 0; }
figcaption { font-weight: 600; }
small { font-weight: normal; color: var(--quiet); }
svg { width: 100%; height: auto; display: block; }
.grid { stroke: var(--rule); }
.tick { fill: var(--quiet); font-size: 11px; } .mid { text-anchor: middle; }
.end { text-anchor: end; }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.area { fill: var(--c); fill-opacity: 0.75; stroke: var(--paper); stroke-width: 0.5; }
.bar, .cell { fill: var(--c); } .cell { --c: var(--c1); }
.legend { margin: 4px 0; color: var(--quiet); } .entry { margin-right: 18px; white-space: nowrap; }
.key { display: inline-block; width: 18px; border-top: 3px solid var(--c); margin-right: 6px;
  vertical-align: middle; }
.key.filled { height: 10px; border: 0; background: var(--c); width: 12px; }
.s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); } .s4 { --c: var(--c4); }
.s5 { --c: var(--c5); } .s6 { --c: var(--c6); } .s7 { --c: var(--c7); } .s8 { --c: var(--c8); }
.offered { --c: var(--offered); } .admitted { --c: var(--c1); } .ideal { --c: var(--c3); }
.limit { --c: var(--limit); } .line.limit { stroke-dasharray: 6 4; } .line.ideal { stroke-width: 4;
  stroke-opacity: 0.6; }
`
