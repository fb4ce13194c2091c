/** Who used how much of a counter, as this pod has heard; for people who look. */
import type { OriginId } from '../vocabulary.js'
import type { CounterTable } from './counter-table.js'

export interface CounterPart {
  readonly origin: OriginId
  readonly node: string | null
  readonly consumed: number
  readonly returned: number
  readonly offered: number
  /** Since this was published, milliseconds; 0 for the own part. */
  readonly ageMs: number
}

/** Own part first, then the others in the order of their origins. */
export function counterParts(
  table: CounterTable,
  slot: number,
  monotonicMs: number,
): CounterPart[] {
  const { slots, entries, origins, self } = table
  const others: CounterPart[] = []
  let entry = slots.firstEntry[slot] as number
  for (; entry >= 0; entry = entries.next[entry] as number) {
    const origin = origins.text(entries.origin[entry] as number)
    others.push({
      origin,
      node: table.nodeOf(origin),
      consumed: entries.consumed[entry] as number,
      returned: entries.returned[entry] as number,
      offered: entries.offered[entry] as number,
      ageMs: Math.max(0, monotonicMs - (entries.publishedAt[entry] as number)),
    })
  }
  others.sort((one, other) => (one.origin < other.origin ? -1 : 1))
  if (self < 0) return others
  const origin = origins.text(self)
  const own = {
    origin,
    node: table.nodeOf(origin),
    consumed: slots.consumed[slot] as number,
    returned: slots.returned[slot] as number,
    offered: slots.offered[slot] as number,
    ageMs: 0,
  }
  return [own, ...others]
}
