/**
 * A pod's whole knowledge for a push/pull or a checkpoint: per counter the balance and all totals
 * that are contained in it. Counters that are back to untouched are left out: there is nothing to
 * know of them.
 */
import { checkpointKind, createWireEntry, MessageWriter, snapshotKind } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily } from './family.js'
import { describeEntry, describeOwn, type OriginNumbers, wireShapeOf } from './publish.js'
import { undividedUsed } from './split.js'

export interface SnapshotRequest {
  readonly table: CounterTable
  readonly self: OriginNumbers
  /** The slots to tell of: from here, so many. */
  readonly from: number
  readonly count: number
  /** Of those, which; all when absent. At most `countersMax`. */
  readonly pick?: (slot: number) => boolean
  readonly countersMax?: number
  readonly bytesMax: number
  readonly monotonicMs: number
  readonly wallMs: number
  readonly isCheckpoint: boolean
}

const wire = createWireEntry()
/** Enough for a part of a state. Parts are written for ever, and buffers would be garbage. */
const buffer = new Uint8Array(64 * 1024)

/** Null when there is nothing to tell; what does not fit is left out. */
export function writeSnapshot(request: SnapshotRequest): Uint8Array | null {
  const { table, bytesMax, wallMs, pick } = request
  const kind = request.isCheckpoint ? checkpointKind : snapshotKind
  const writer = new MessageWriter(kind, 0, bytesMax, buffer)
  if (request.isCheckpoint) writer.clock(wallMs)
  const { slots } = table
  const end = Math.min(slots.slotsMax, request.from + request.count)
  let left = request.countersMax ?? request.count
  let shape = -1
  let isEmpty = true
  for (let slot = request.from; slot < end && left > 0; slot++) {
    if (!slots.isTaken(slot) || (pick !== undefined && !pick(slot))) continue
    const used = usedWhole(request, slot)
    const hasPast = (slots.previous[slot] as number) + (slots.othersPrevious[slot] as number) > 0
    if (used <= 0 && !hasPast) continue
    const number = slots.shape[slot] as number
    if (number !== shape && !writer.shape(wireShapeOf(table, number))) break
    shape = number
    if (!writeCounter(writer, request, slot, used)) break
    isEmpty = false
    left--
  }
  return isEmpty ? null : writer.take()
}

/** A bucket divided by a split is told undivided: whoever asks may well see the whole fleet. */
function usedWhole({ table, monotonicMs, wallMs }: SnapshotRequest, slot: number): number {
  const { slots } = table
  const used = table.levels.published(slot, monotonicMs, wallMs)
  if (slots.family[slot] !== bucketFamily) return used
  const { capacity, periodMs } = table.shapes.at(slots.shape[slot] as number)
  const own = { used, wholeRate: 1 / periodMs, wholeCapacity: capacity }
  return undividedUsed(slots, slot, own, monotonicMs)
}

function writeCounter(
  writer: MessageWriter,
  request: SnapshotRequest,
  slot: number,
  used: number,
): boolean {
  const { table, self, monotonicMs, wallMs } = request
  const { slots, entries } = table
  const balance = slots.family[slot] === bucketFamily ? used : null
  const hi = slots.idHi[slot] as number
  if (!writer.counter(hi, slots.idLo[slot] as number, balance)) return false
  describeOwn(table, slot, self, wire, true, monotonicMs, wallMs)
  if (wire.consumed > 0 || wire.tail !== 0 || wire.returned > 0) {
    if (!writer.entry(wire)) return false
  }
  let entry = slots.firstEntry[slot] as number
  for (; entry >= 0; entry = entries.next[entry] as number) {
    describeEntry(table, slot, entry, wire, monotonicMs)
    if (!writer.entry(wire)) return false
  }
  return true
}
