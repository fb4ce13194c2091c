/**
 * Counter messages: a header and a row of records, read front to back. Absolute totals only, so any
 * part of any message may be lost, doubled or overtaken.
 *
 *   message   'g' 'v'  version u8  kind u8  flags u8 (1 = hand on to your neighbours)
 *   shape     01  family u8  calendar u8  capacity f64  periodMs f64  for counters that follow
 *   counter   02  id u64
 *   counter   03  id u64  used f64  the sender's own balance
 *   clock     04  wallMs f64  when a checkpoint was written
 *   entry     1HDLTRSF  origin  epoch  [H hold]  [S span]  consumed  [R returned]  offered
 *             [D demand f32]  mark  [T tail]  [L slices]
 *
 * Bits of an entry's first byte: F amounts are f64 rather than whole numbers, S span, R returned, T
 * tail, L slices, D demand, H hold. Times are whole eighths of a millisecond. An origin is a number
 * into the origins named so far; the next unused number is followed by the 8 bytes of a new one.
 * Sources: counters.md §2; LEB128 as in DWARF.
 */
import { logFamily } from './family.js'
import { WireReader, WireWriter } from './wire-numbers.js'

export const messageVersion = 1
export const newsKind = 1
export const snapshotKind = 2
export const checkpointKind = 3
/** Several messages in one, see `state-bundle.ts`. */
export const bundleKind = 4
export const forwardFlag = 1

export const magicFirst = 0x67
export const magicSecond = 0x76
const shapeTag = 1
const counterTag = 2
const balanceTag = 3
const clockTag = 4
const entryTag = 0x80
const fractionBit = 1
const spanBit = 2
const returnedBit = 4
const tailBit = 8
const slicesBit = 16
const demandBit = 32
const holdBit = 64
/** A log's slices in one entry; a window has 64 and one that is leaving. */
export const entrySlicesMax = 130

/** An origin's totals for one counter, as they travel. Reused by reader and writer. */
export interface WireEntry {
  originHi: number
  originLo: number
  epoch: number
  /** Since these totals were true at their origin, milliseconds (relays add their own holding). */
  holdMs: number
  /** How long the unpublished consumption in them took, milliseconds. */
  spanMs: number
  consumed: number
  returned: number
  offered: number
  /** Units per second that the origin is asked for; -1 when it does not say. */
  demand: number
  /** Bucket: milliseconds from its last untouched moment to publication. Windows: window number. */
  mark: number
  /** Bucket: usage since then. Windows: usage of the window before. */
  tail: number
  sliceCount: number
  readonly sliceTime: Float64Array
  readonly sliceAdded: Float64Array
  readonly sliceReturned: Float64Array
}

export function createWireEntry(): WireEntry {
  return {
    originHi: 0,
    originLo: 0,
    epoch: 0,
    holdMs: 0,
    spanMs: 0,
    consumed: 0,
    returned: 0,
    offered: 0,
    demand: -1,
    mark: 0,
    tail: 0,
    sliceCount: 0,
    sliceTime: new Float64Array(entrySlicesMax),
    sliceAdded: new Float64Array(entrySlicesMax),
    sliceReturned: new Float64Array(entrySlicesMax),
  }
}

export interface WireShape {
  readonly family: number
  readonly calendar: number
  readonly capacity: number
  readonly periodMs: number
}

export class MessageWriter {
  readonly #out: WireWriter
  readonly #bytesMax: number
  readonly #origins = new Map<number, Map<number, number>>()
  #originCount = 0

  /**
   * `bytesMax`: the message never gets longer; a record that does not fit is left out whole.
   * `buffer`: room that nobody else uses until the message is taken.
   */
  constructor(kind: number, flags: number, bytesMax: number, buffer?: Uint8Array) {
    this.#out = new WireWriter(Math.min(bytesMax, 2048), buffer)
    this.#bytesMax = bytesMax
    for (const byte of [magicFirst, magicSecond, messageVersion, kind, flags]) this.#out.u8(byte)
  }

  get length(): number {
    return this.#out.length
  }

  take(): Uint8Array {
    return this.#out.take()
  }

  clock(wallMs: number): boolean {
    const start = this.#out.length
    this.#out.u8(clockTag)
    this.#out.f64(wallMs)
    return this.#keep(start)
  }

  shape(shape: WireShape): boolean {
    const start = this.#out.length
    this.#out.u8(shapeTag)
    this.#out.u8(shape.family)
    this.#out.u8(shape.calendar)
    this.#out.f64(shape.capacity)
    this.#out.f64(shape.periodMs)
    return this.#keep(start)
  }

  /** `used` null: no balance. */
  counter(idHi: number, idLo: number, used: number | null): boolean {
    const start = this.#out.length
    this.#out.u8(used === null ? counterTag : balanceTag)
    this.#out.u32(idHi)
    this.#out.u32(idLo)
    if (used !== null) this.#out.f64(used)
    return this.#keep(start)
  }

  entry(entry: WireEntry): boolean {
    const out = this.#out
    const start = out.length
    const fraction = hasFractions(entry) ? fractionBit : 0
    const impliedTail = entry.consumed - entry.returned
    const bits =
      fraction |
      (entry.spanMs > 0 ? spanBit : 0) |
      (entry.returned !== 0 ? returnedBit : 0) |
      (entry.tail !== impliedTail ? tailBit : 0) |
      (entry.sliceCount > 0 ? slicesBit : 0) |
      (entry.demand >= 0 ? demandBit : 0) |
      (entry.holdMs > 0 ? holdBit : 0)
    out.u8(entryTag | bits)
    const isNew = this.#origin(entry.originHi, entry.originLo)
    out.whole(entry.epoch)
    if (bits & holdBit) out.whole(entry.holdMs * 8)
    if (bits & spanBit) out.whole(entry.spanMs * 8)
    this.#amount(entry.consumed, fraction)
    if (bits & returnedBit) this.#amount(entry.returned, fraction)
    this.#amount(entry.offered, fraction)
    if (bits & demandBit) out.f32(entry.demand)
    out.whole(entry.mark)
    if (bits & tailBit) this.#amount(entry.tail, fraction)
    if (bits & slicesBit) this.#slices(entry, bits)
    if (this.#keep(start)) return true
    if (isNew) this.#forgetOrigin(entry.originHi, entry.originLo)
    return false
  }

  #slices(entry: WireEntry, bits: number): void {
    const out = this.#out
    out.whole(entry.sliceCount)
    for (let index = 0; index < entry.sliceCount; index++) {
      out.f64(entry.sliceTime[index] as number)
      this.#amount(entry.sliceAdded[index] as number, bits & fractionBit)
      if (bits & returnedBit) {
        this.#amount(entry.sliceReturned[index] as number, bits & fractionBit)
      }
    }
  }

  #amount(value: number, fraction: number): void {
    if (fraction) this.#out.f64(value)
    else this.#out.whole(value)
  }

  /** True when the origin is named here for the first time. */
  #origin(hi: number, lo: number): boolean {
    let row = this.#origins.get(hi)
    const known = row?.get(lo)
    if (known !== undefined) {
      this.#out.whole(known)
      return false
    }
    if (row === undefined) {
      row = new Map()
      this.#origins.set(hi, row)
    }
    row.set(lo, this.#originCount)
    this.#out.whole(this.#originCount++)
    this.#out.u32(hi)
    this.#out.u32(lo)
    return true
  }

  #forgetOrigin(hi: number, lo: number): void {
    this.#origins.get(hi)?.delete(lo)
    this.#originCount--
  }

  /** Takes the record back when it made the message too long. */
  #keep(start: number): boolean {
    if (this.#out.length <= this.#bytesMax) return true
    this.#out.length = start
    return false
  }
}

function hasFractions(entry: WireEntry): boolean {
  const whole = Number.isSafeInteger
  if (!whole(entry.consumed) || !whole(entry.returned) || !whole(entry.offered)) return true
  if (!whole(entry.tail) || entry.tail < 0) return true
  for (let index = 0; index < entry.sliceCount; index++) {
    if (!whole(entry.sliceAdded[index]) || !whole(entry.sliceReturned[index])) return true
  }
  return false
}

/** What a message tells its reader, record by record. */
export interface MessageVisitor {
  header(kind: number, flags: number): void
  clock(wallMs: number): void
  /** False: the counters of this shape are to be passed over. */
  shape(shape: WireShape): boolean
  counter(idHi: number, idLo: number, used: number | null): void
  /** Valid during the call only. */
  entry(entry: WireEntry): void
  /** After the last entry of each counter. */
  counterEnd(): void
}

export type ReadResult = 'ok' | 'foreign' | 'version' | 'malformed'

const scratchEntry = createWireEntry()

/**
 * Reads a message; what stood before a malformed place has been told. Never throws on any bytes.
 */
export function readMessage(bytes: Uint8Array, visitor: MessageVisitor): ReadResult {
  const input = new WireReader(bytes)
  if (input.u8() !== magicFirst || input.u8() !== magicSecond) return 'foreign'
  if (input.u8() !== messageVersion) return input.failed ? 'malformed' : 'version'
  const kind = input.u8()
  const flags = input.u8()
  if (input.failed) return 'malformed'
  visitor.header(kind, flags)
  return new RecordReader(input, visitor).run()
}

class RecordReader {
  readonly #input: WireReader
  readonly #visitor: MessageVisitor
  readonly #originHi: number[] = []
  readonly #originLo: number[] = []
  #family = -1
  #wanted = false
  #inCounter = false

  constructor(input: WireReader, visitor: MessageVisitor) {
    this.#input = input
    this.#visitor = visitor
  }

  run(): ReadResult {
    const input = this.#input
    let valid = true
    while (valid && !input.done) {
      const tag = input.u8()
      valid = tag >= entryTag ? this.#entry(tag) : this.#other(tag)
    }
    if (this.#inCounter) this.#visitor.counterEnd()
    return valid && !input.failed ? 'ok' : 'malformed'
  }

  #other(tag: number): boolean {
    const input = this.#input
    if (tag === shapeTag) {
      this.#endCounter()
      const shape = {
        family: input.u8(),
        calendar: input.u8(),
        capacity: input.f64(),
        periodMs: input.f64(),
      }
      if (input.failed) return false
      this.#family = shape.family
      this.#wanted = this.#visitor.shape(shape)
      return true
    }
    if (tag === counterTag || tag === balanceTag) return this.#counter(tag === balanceTag)
    if (tag !== clockTag) return false
    const wallMs = input.f64()
    if (!input.failed) this.#visitor.clock(wallMs)
    return !input.failed
  }

  #counter(hasBalance: boolean): boolean {
    const input = this.#input
    this.#endCounter()
    const hi = input.u32()
    const lo = input.u32()
    const used = hasBalance ? input.f64() : null
    if (input.failed || this.#family < 0 || (used !== null && used < 0)) return false
    if (this.#wanted) {
      this.#inCounter = true
      this.#visitor.counter(hi, lo, used)
    }
    return true
  }

  #endCounter(): void {
    if (this.#inCounter) this.#visitor.counterEnd()
    this.#inCounter = false
  }

  #entry(bits: number): boolean {
    const input = this.#input
    const entry = scratchEntry
    const fraction = (bits & fractionBit) !== 0
    const amount = () => (fraction ? input.f64() : input.whole())
    const origin = input.whole()
    if (origin === this.#originHi.length) {
      this.#originHi.push(input.u32())
      this.#originLo.push(input.u32())
    }
    if (origin >= this.#originHi.length || this.#family < 0) return false
    entry.originHi = this.#originHi[origin] as number
    entry.originLo = this.#originLo[origin] as number
    entry.epoch = input.whole()
    entry.holdMs = bits & holdBit ? input.whole() / 8 : 0
    entry.spanMs = bits & spanBit ? input.whole() / 8 : 0
    entry.consumed = amount()
    entry.returned = bits & returnedBit ? amount() : 0
    entry.offered = amount()
    entry.demand = bits & demandBit ? input.f32() : -1
    entry.mark = input.whole()
    entry.tail = bits & tailBit ? amount() : entry.consumed - entry.returned
    if (!this.#slices(entry, bits, amount) || input.failed || !isSane(entry)) return false
    if (this.#inCounter) this.#visitor.entry(entry)
    return true
  }

  #slices(entry: WireEntry, bits: number, amount: () => number): boolean {
    entry.sliceCount = 0
    if (!(bits & slicesBit)) return true
    const input = this.#input
    const count = input.whole()
    if (count > entrySlicesMax || this.#family !== logFamily) return false
    for (let index = 0; index < count && !input.failed; index++) {
      entry.sliceTime[index] = input.f64()
      entry.sliceAdded[index] = amount()
      entry.sliceReturned[index] = bits & returnedBit ? amount() : 0
      if ((entry.sliceAdded[index] as number) < 0) return false
      if ((entry.sliceReturned[index] as number) < 0) return false
    }
    entry.sliceCount = count
    return true
  }
}

function isSane(entry: WireEntry): boolean {
  const { consumed, returned, offered, epoch } = entry
  return consumed >= 0 && returned >= 0 && offered >= 0 && epoch >= 1 && epoch <= 0xffffffff
}
