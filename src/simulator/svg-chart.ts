/**
 * Charts as inline SVG text: lines over time, stacked areas, bars. Pure; colours are CSS classes.
 */

export interface Line {
  readonly label: string
  /** Class that gives the colour: `s1` .. `s8`, or a named one. */
  readonly className: string
  readonly values: readonly number[]
}

export interface TimeChart {
  readonly title: string
  /** Unit of the values, for the axis and for readers of the description. */
  readonly unit: string
  /** Seconds between two values. */
  readonly stepSeconds: number
  readonly lines: readonly Line[]
  readonly stacked?: boolean
}

const width = 860
const height = 260
const left = 64
const right = 12
const top = 12
const bottom = 34
const plotWidth = width - left - right
const plotHeight = height - top - bottom

/** Lines (or areas on top of each other) over time, with axes and a legend. */
export function timeChart(chart: TimeChart): string {
  const lines = chart.stacked === true ? stack(chart.lines) : chart.lines
  const points = Math.max(1, ...lines.map(line => line.values.length))
  const highest = niceCeiling(Math.max(1, ...lines.flatMap(line => line.values)))
  const x = (i: number) => left + (points === 1 ? 0 : (i / (points - 1)) * plotWidth)
  const y = (value: number) => top + plotHeight - (value / highest) * plotHeight
  const paths = lines.map((line, index) => {
    const trace = line.values.map((value, i) => `${coordinate(x(i))},${coordinate(y(value))}`)
    if (chart.stacked !== true) {
      return `<polyline class="line ${line.className}" points="${trace.join(' ')}"/>`
    }
    const below = index === 0 ? undefined : lines[index - 1]!.values
    const floor = line.values.map((_, i) => `${coordinate(x(i))},${coordinate(y(below?.[i] ?? 0))}`)
    return `<polygon class="area ${line.className}" points="${[...trace, ...floor.reverse()].join(' ')}"/>`
  })
  const body = [valueAxis(highest, y), timeAxis(points, chart.stepSeconds, x), ...paths].join('\n')
  return figure(chart.title, chart.unit, body, legend(chart.lines, chart.stacked === true))
}

/** One pair of bars per entry: what was asked for behind what was given. */
export function pairBars(
  title: string,
  unit: string,
  pairs: readonly { readonly outer: number; readonly inner: number }[],
  labels: readonly [outer: string, inner: string],
): string {
  const highest = niceCeiling(Math.max(1, ...pairs.map(pair => pair.outer)))
  const slot = plotWidth / Math.max(1, pairs.length)
  const y = (value: number) => top + plotHeight - (value / highest) * plotHeight
  const bar = (i: number, value: number, share: number, className: string) => {
    const barWidth = slot * share
    const from = left + i * slot + (slot - barWidth) / 2
    const size = `width="${coordinate(barWidth)}" height="${coordinate((value / highest) * plotHeight)}"`
    return `<rect class="${className}" x="${coordinate(from)}" y="${coordinate(y(value))}" ${size}/>`
  }
  const bars = pairs.flatMap((pair, i) => [
    `<g><title>pod ${i}: ${labels[0]} ${pair.outer}, ${labels[1]} ${pair.inner}</title>`,
    bar(i, pair.outer, 0.8, 'bar offered'),
    bar(i, pair.inner, 0.8, 'bar admitted'),
    '</g>',
  ])
  const every = Math.max(1, Math.ceil(pairs.length / 25))
  const names = pairs.map((_, i) =>
    i % every === 0
      ? `<text x="${coordinate(left + (i + 0.5) * slot)}" y="${height - 16}" class="tick mid">${i}</text>`
      : '',
  )
  const entries = [
    { label: labels[0], className: 'offered', values: [] },
    { label: labels[1], className: 'admitted', values: [] },
  ]
  const body = [valueAxis(highest, y), ...bars, ...names].join('\n')
  return figure(title, unit, body, legend(entries, true))
}

/** Rows (pods) by columns (time), darker for more. */
export function heatMap(
  title: string,
  unit: string,
  rows: readonly (readonly number[])[],
  stepSeconds: number,
): string {
  const columns = Math.max(1, ...rows.map(row => row.length))
  const highest = Math.max(1, ...rows.flat())
  const cellWidth = plotWidth / columns
  const cellHeight = plotHeight / Math.max(1, rows.length)
  const cells = rows.flatMap((row, i) =>
    row.map((value, j) => {
      if (value === 0) return ''
      const at = `x="${coordinate(left + j * cellWidth)}" y="${coordinate(top + i * cellHeight)}"`
      const size = `width="${coordinate(cellWidth)}" height="${coordinate(cellHeight)}"`
      return `<rect class="cell" ${at} ${size} fill-opacity="${(value / highest).toFixed(2)}"/>`
    }),
  )
  const every = Math.max(1, Math.ceil(rows.length / 10))
  const names = rows.map((_, i) =>
    i % every === 0
      ? `<text x="${left - 8}" y="${coordinate(top + (i + 0.8) * cellHeight)}" class="tick end">pod ${i}</text>`
      : '',
  )
  const x = (i: number) => left + (i / columns) * plotWidth
  const body = [...cells, ...names, timeAxis(columns + 1, stepSeconds, x)].join('\n')
  return figure(title, unit, body, `<p class="legend">Darkest: ${number(highest)} ${unit}.</p>`)
}

/** Each line lifted onto the ones before it. */
function stack(lines: readonly Line[]): Line[] {
  const sums: number[] = []
  return lines.map(line => ({
    ...line,
    values: line.values.map((value, i) => {
      sums[i] = (sums[i] ?? 0) + value
      return sums[i]
    }),
  }))
}

/** The next 1, 2, 2.5 or 5 times a power of ten. */
export function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 2.5, 5, 10].find(candidate => candidate * power >= value) ?? 10
  return step * power
}

function valueAxis(highest: number, y: (value: number) => number): string {
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(share => share * highest)
  return ticks
    .map(tick => {
      const at = coordinate(y(tick))
      const grid = `<line class="grid" x1="${left}" x2="${width - right}" y1="${at}" y2="${at}"/>`
      return `${grid}<text class="tick end" x="${left - 8}" y="${at}" dy="0.32em">${number(tick)}</text>`
    })
    .join('\n')
}

function timeAxis(points: number, stepSeconds: number, x: (i: number) => number): string {
  const total = (points - 1) * stepSeconds
  const step = niceCeiling(Math.max(1, total / 10))
  const ticks = Array.from({ length: Math.floor(total / step) + 1 }, (_, i) => i * step)
  return ticks
    .map(second => {
      const at = coordinate(x(second / stepSeconds))
      return `<text class="tick mid" x="${at}" y="${height - 16}">${number(second)} s</text>`
    })
    .join('\n')
}

function legend(lines: readonly Line[], filled: boolean): string {
  const entries = lines.map(
    line =>
      `<span class="entry"><i class="key ${line.className}${filled ? ' filled' : ''}"></i>` +
      `${escapeHtml(line.label)}</span>`,
  )
  return `<p class="legend">${entries.join('')}</p>`
}

function figure(title: string, unit: string, body: string, caption: string): string {
  const name = escapeHtml(`${title} (${unit})`)
  return `<figure>
<figcaption>${escapeHtml(title)} <small>${escapeHtml(unit)}</small></figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${name}">
<title>${name}</title>
${body}
</svg>
${caption}
</figure>`
}

/** At most two decimals: a tenth of a pixel is not seen. */
function coordinate(value: number): string {
  return String(Math.round(value * 100) / 100)
}

function number(value: number): string {
  return value >= 10_000
    ? `${Math.round(value / 100) / 10}k`
    : String(Math.round(value * 100) / 100)
}

export function escapeHtml(text: string): string {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;')
}
