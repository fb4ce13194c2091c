/** Rows of the accuracy matrix as the Markdown of `docs/accuracy.md`. */
import type { Row } from './accuracy-rows.js'
import { type Bar, checkBars, checkThousandKeys, max, mean } from './bars.js'
import { fleetSizes, injuries, limits, loads } from './matrix.js'
import { onceFiles } from './scenario-files.js'

const onceSays: Readonly<Record<(typeof onceFiles)[number], string>> = {
  'split-open': '3/2 split for 8 s and heal, `onPartition: open`',
  'split-share': 'the same, `share`',
  'split-closed': 'the same, `closed`',
  'split-3s-open': '3/2 split for 3 s and heal, `onPartition: open`',
  'split-3s-share': 'the same, `share`',
  'split-3s-closed': 'the same, `closed`',
  'one-way-link': 'one direction of one link cut for 8 s',
  'paused-pod': 'one of five pods stands still for 5 s',
  'rolling-restart': 'five pods killed and restarted, one every 3 s',
  'scale-5-to-8': 'three pods join an exhausted fleet of five',
  'thousand-keys': '50 pods, a thousand keys at 1.5 times their limit',
}

/**
 * `flags`: how the program was called, so that a page says how to get it again; `commit`: the tree
 * that was measured, null where git cannot tell.
 */
export function accuracyPage(rows: readonly Row[], flags: string, commit: string | null): string {
  const matrix = rows.filter(row => !isOnce(row))
  const sound = matrix.filter(row => row.injury === 'none')
  const thousand = rows.find(row => row.file === 'thousand-keys')
  const bars = [...checkBars(sound), ...(thousand ? checkThousandKeys(thousand) : [])]
  return `# Accuracy

How exactly a fleet holds one limit, measured by \`grapevine simulate\`: the real node code (limiter,
counters, memberlist, codecs) on virtual time, Poisson arrivals, a network of 2 ± 1 ms one way. Every
request is compared with one ideal bucket that sees all of them in order (docs: product contract, §9).

Written by \`npm run accuracy -- ${flags}\`; the scenarios are the files of
[test/sim/scenarios](../test/sim/scenarios), and \`grapevine simulate FILE\` runs any of them.
The same seed gives the same numbers${commit === null ? '' : `; these are of commit ${commit}`}.

## Bars

Over the ${sound.length} runs without injected faults.

${barTable(bars)}

## Without faults

ratio: admitted / ideal. above, below: the worst second, as a share of the ideal's. excess: over the burst,
as a share of it (negative: the burst was never used up). Jain: fairness of admitted / offered between
pods. false: denials beyond the ideal's. settle: longest time after a change until every second is within
5 % (or three requests) of the ideal. kB and packets: sent per pod and second.

${limits.map(({ name }) => limitSection(name, sound)).join('\n')}
## With faults

Runs of ${new Set(matrix.map(row => row.injury)).size} of ${injuries.length} kinds of network are in this page (\`--injury\` picks one). All loads of one line together: mean and worst over the loads.

${injuryTable(matrix)}
## Events

${onceTable(rows)}`
}

function isOnce(row: Row): boolean {
  return (onceFiles as readonly string[]).includes(row.file)
}

function barTable(bars: readonly Bar[]): string {
  const lines = bars.map(
    bar => `| ${bar.says} | ${bar.measured} | ${bar.held ? 'yes' : '**no**'} |`,
  )
  return ['| bar | measured | held |', '| --- | ---: | --- |', ...lines].join('\n')
}

const heading = `ratio | above | below | excess | Jain | false | settle | kB/s | packets/s |`
const rule = `---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |`

function limitSection(name: string, sound: readonly Row[]): string {
  const limit = limits.find(one => one.name === name)!
  const lines = loads.flatMap(load =>
    fleetSizes.flatMap(pods => {
      const file = `n${String(pods).padStart(2, '0')}-${name}-${load.name}`
      const row = sound.find(one => one.file === file)
      return row === undefined ? [] : [`| ${load.name} | ${pods} | ${cells(row)}`]
    }),
  )
  return `### ${limit.limit}, burst ${limit.burst}

| load | N | ${heading}
| --- | ---: | ${rule}
${lines.join('\n')}
`
}

function cells(row: Row): string {
  const percent = (value: number) => `${(value * 100).toFixed(1)} %`
  const values = [
    row.ratio.toFixed(4),
    percent(row.above),
    percent(row.below),
    row.excess.toFixed(3),
    row.jain.toFixed(4),
    row.falseDenials,
    row.settleMs === null ? 'never' : `${row.settleMs / 1000} s`,
    (row.bytes / 1000).toFixed(1),
    row.packets.toFixed(0),
  ]
  return `${values.join(' | ')} |`
}

function injuryTable(matrix: readonly Row[]): string {
  const lines = injuries
    .flatMap(injury =>
      limits.flatMap(limit =>
        fleetSizes.map(pods => {
          const rows = matrix.filter(
            row =>
              row.injury === injury.name &&
              row.pods === pods &&
              row.file.includes(`-${limit.name}-`),
          )
          return rows.length === 0
            ? ''
            : injuryLine(injury.says, limit.limit, limit.burst, pods, rows)
        }),
      ),
    )
    .filter(line => line !== '')
  return [
    '| faults | limit | burst | N | mean error | worst error | mean excess | worst excess | ' +
      'mean Jain | worst Jain | kB/s | packets/s |',
    `| --- | --- | ---: | ---: | ${'---: | '.repeat(8).trim()}`,
    ...lines,
    '',
  ].join('\n')
}

function injuryLine(
  says: string,
  limit: string,
  burst: number,
  pods: number,
  rows: readonly Row[],
): string {
  const errors = rows.map(row => Math.abs(1 - row.ratio))
  const excesses = rows.map(row => Math.max(0, row.excess))
  const jains = rows.map(row => row.jain)
  const values = [
    `${(mean(errors) * 100).toFixed(2)} %`,
    `${(max(errors) * 100).toFixed(2)} %`,
    mean(excesses).toFixed(3),
    max(excesses).toFixed(3),
    mean(jains).toFixed(4),
    Math.min(...jains).toFixed(4),
    (max(rows.map(row => row.bytes)) / 1000).toFixed(1),
    max(rows.map(row => row.packets)).toFixed(0),
  ]
  return `| ${says} | ${limit} | ${burst} | ${pods} | ${values.join(' | ')} |`
}

function onceTable(rows: readonly Row[]): string {
  const lines = onceFiles.flatMap(file => {
    const row = rows.find(one => one.file === file)
    return row === undefined
      ? []
      : [`| [${file}](../test/sim/scenarios/${file}.yaml) | ${onceSays[file]} | ${cells(row)}`]
  })
  return [`| scenario | what happens | ${heading}`, `| --- | --- | ${rule}`, ...lines, ''].join(
    '\n',
  )
}
