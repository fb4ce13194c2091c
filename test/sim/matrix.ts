/**
 * The accuracy matrix (counters.md §7): fleets x limits x loads, each combined with injuries of the
 * network. The scenarios are files in `scenarios/`, so that anybody can run one with
 * `grapevine simulate`; this module writes them, and a test keeps file and generator equal.
 */

export interface FleetLimit {
  readonly name: string
  /** As written in the rule. */
  readonly limit: string
  readonly burst: number
  /** Units per second. */
  readonly rate: number
  /** How much slower things happen than with a limit per second: all times are multiplied. */
  readonly pace: number
}

export const fleetSizes = [5, 20, 50] as const

export const limits: readonly FleetLimit[] = [
  { name: 'r1000-b1000', limit: '1000/1s', burst: 1000, rate: 1000, pace: 1 },
  { name: 'r1000-b100', limit: '1000/1s', burst: 100, rate: 1000, pace: 1 },
  { name: 'r100-b10', limit: '100/1s', burst: 10, rate: 100, pace: 1 },
  { name: '100-per-minute', limit: '100/1m', burst: 100, rate: 100 / 60, pace: 15 },
]

export interface Load {
  readonly name: string
  readonly says: string
  /** Flow-style entries of `traffic:`. */
  entries(pods: number, limit: FleetLimit): string[]
}

/** Seconds a run takes before it is slowed down by the limit's pace. */
const secondsBase = 20

export const loads: readonly Load[] = [
  {
    name: 'even-2x',
    says: 'every pod alike, twice the limit in all',
    entries: (pods, { rate }) => [always('all', (2 * rate) / pods)],
  },
  {
    name: 'even-0.8x',
    says: 'every pod alike, 0.8 of the limit in all',
    entries: (pods, { rate }) => [always('all', (0.8 * rate) / pods)],
  },
  {
    name: 'skewed-0.8x',
    says: 'Zipf(1) over the pods, 0.8 of the limit in all',
    entries: (pods, { rate }) => zipf(pods, 1, 0.8 * rate),
  },
  {
    name: 'skewed-3x',
    says: 'Zipf(1.2) over the pods, three times the limit in all',
    entries: (pods, { rate }) => zipf(pods, 1.2, 3 * rate),
  },
  {
    name: 'hot-pod',
    says: 'one pod at 1.5 times the limit, the others idle',
    entries: (_pods, { rate }) => [always('[0]', 1.5 * rate)],
  },
  {
    name: 'moving-hot-pod',
    says: '1.5 times the limit at one pod, another one every two seconds',
    entries: (pods, { rate, pace }) =>
      Array.from({ length: secondsBase / 2 }, (_, i) => {
        const from = seconds(2 * i * pace)
        const to = seconds(2 * (i + 1) * pace)
        return `{ pods: [${(i * 3) % pods}], rate: ${number(1.5 * rate)}, from: ${from}, to: ${to} }`
      }),
  },
  {
    name: 'bursts',
    says: 'all pods at once five times the limit for one second in four, 0.1 between',
    entries: (pods, { rate, pace }) => [
      always('all', (0.1 * rate) / pods),
      `{ pods: all, rate: ${number((4.9 * rate) / pods)}, period: ${seconds(4 * pace)}, ` +
        `on: ${seconds(pace)} }`,
    ],
  },
  {
    name: 'late-comers',
    says: 'one pod at 1.5 times the limit, the others at 0.05 each from t = 5 s',
    entries: (pods, { rate, pace }) => [
      always('[0]', 1.5 * rate),
      `{ pods: ${others(pods)}, rate: ${number(0.05 * rate)}, from: ${seconds(5 * pace)} }`,
    ],
  },
  {
    name: 'trickle',
    says: 'one pod at 1.5 times the limit, the others at 0.5 requests per second each',
    entries: (pods, { rate }) => [always('[0]', 1.5 * rate), always(others(pods), 0.5)],
  },
]

export interface Injury {
  readonly name: string
  readonly says: string
  readonly loss: number
  readonly duplicate: number
  readonly reorder: number
}

export const injuries: readonly Injury[] = [
  { name: 'none', says: 'no faults', loss: 0, duplicate: 0, reorder: 0 },
  { name: 'loss-5', says: '5 % loss', loss: 0.05, duplicate: 0, reorder: 0 },
  { name: 'loss-30', says: '30 % loss', loss: 0.3, duplicate: 0, reorder: 0 },
  {
    name: 'disorder',
    says: '20 % duplicates, 20 % reordered',
    loss: 0,
    duplicate: 0.2,
    reorder: 0.2,
  },
]

export interface MatrixCell {
  readonly pods: number
  readonly limit: FleetLimit
  readonly load: Load
  /** Name of the scenario file, without `.yaml`. */
  readonly file: string
}

export function matrixCells(): MatrixCell[] {
  return fleetSizes.flatMap(pods =>
    limits.flatMap(limit =>
      loads.map(load => ({ pods, limit, load, file: cellFile(pods, limit, load) })),
    ),
  )
}

/** Text of a cell's scenario file. */
export function cellYaml({ pods, limit, load }: MatrixCell): string {
  const entries = load.entries(pods, limit).map(entry => `  - ${entry}\n`)
  return (
    `# ${load.says}\n` +
    `pods: ${pods}\n` +
    `duration: ${secondsBase * limit.pace}s\n` +
    `rule: { limit: ${limit.limit}, burst: ${limit.burst} }\n` +
    `traffic:\n${entries.join('')}` +
    'network: { latency: 2ms, jitter: 1ms }\n'
  )
}

function cellFile(pods: number, limit: FleetLimit, load: Load): string {
  return `n${String(pods).padStart(2, '0')}-${limit.name}-${load.name}`
}

function always(pods: string, rate: number): string {
  return `{ pods: ${pods}, rate: ${number(rate)} }`
}

/** Pod i gets a share of `total` in proportion to 1 / (i + 1)^exponent. */
function zipf(pods: number, exponent: number, total: number): string[] {
  const weights = Array.from({ length: pods }, (_, i) => 1 / (i + 1) ** exponent)
  const sum = weights.reduce((all, weight) => all + weight, 0)
  return weights.map((weight, i) => always(`[${i}]`, (total * weight) / sum))
}

function others(pods: number): string {
  return `[${Array.from({ length: pods - 1 }, (_, i) => i + 1).join(', ')}]`
}

function seconds(value: number): string {
  return `${number(value)}s`
}

function number(value: number): string {
  return String(Math.round(value * 10_000) / 10_000)
}
