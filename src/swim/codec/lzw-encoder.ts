/**
 * LZW as Go's compress/lzw writes it with LSB order and 8-bit literals (the GIF variant), byte for
 * byte. The dictionary and the scratch output live as long as the module: a call cleans up only
 * what it used.
 */

export const clearCode = 256
export const endCode = 257
export const codeMax = 4095
export const codeBitsMin = 9

const tableSize = 16_384
const tableMask = tableSize - 1

/**
 * Open addressing: `prefix code << 20 | byte << 12 | code`; 0 is free, codes stored here being >=
 * 258.
 */
const table = new Uint32Array(tableSize)
const usedSlots = new Uint16Array(codeMax)

const scratch = new Uint8Array(16_384)

/** The compressed form, or null as soon as it is sure to be longer than `outputBytesMax`. */
export function lzwEncode(input: Uint8Array, outputBytesMax: number): Uint8Array | null {
  // 12 bits for each byte and for each clear code is the worst case, and a few bytes for the ends.
  const worstBytes = Math.ceil(input.length * 1.51) + 16
  const output = worstBytes <= scratch.length ? scratch : new Uint8Array(worstBytes)
  let slotsUsed = 0
  let width = codeBitsMin
  let limit = 512
  let counter = endCode
  let bits = clearCode
  let bitCount = codeBitsMin
  let written = 0
  let code = -1
  for (let index = 0; index < input.length; index++) {
    const byte = input[index] as number
    if (code < 0) {
      code = byte
      continue
    }
    const key = (code << 8) | byte
    let slot = ((key >>> 12) ^ key) & tableMask
    let entry = table[slot] as number
    while (entry !== 0 && entry >>> 12 !== key) {
      slot = (slot + 1) & tableMask
      entry = table[slot] as number
    }
    if (entry !== 0) {
      code = entry & 0xfff
      continue
    }
    bits |= code << bitCount
    bitCount += width
    while (bitCount >= 8) {
      output[written++] = bits
      bits >>>= 8
      bitCount -= 8
    }
    code = byte
    counter += 1
    if (counter === limit) {
      width += 1
      limit *= 2
    }
    if (counter === codeMax) {
      bits |= clearCode << bitCount
      bitCount += width
      slotsUsed = forget(slotsUsed)
      width = codeBitsMin
      limit = 512
      counter = endCode
      if (written > outputBytesMax) return null
    } else {
      table[slot] = (key << 12) | counter
      usedSlots[slotsUsed++] = slot
      if (written > outputBytesMax) {
        forget(slotsUsed)
        return null
      }
    }
  }
  forget(slotsUsed)
  return finish({ output, written, bits, bitCount, width, counter, limit, code }, outputBytesMax)
}

interface Tail {
  readonly output: Uint8Array
  written: number
  bits: number
  bitCount: number
  width: number
  counter: number
  readonly limit: number
  readonly code: number
}

/** The last string's code, the end code and the padding bits. */
function finish(tail: Tail, outputBytesMax: number): Uint8Array | null {
  if (tail.code >= 0) {
    put(tail, tail.code)
    tail.counter += 1
    if (tail.counter === tail.limit) tail.width += 1
    if (tail.counter === codeMax) {
      put(tail, clearCode)
      tail.width = codeBitsMin
    }
  }
  put(tail, endCode)
  if (tail.bitCount > 0) tail.output[tail.written++] = tail.bits
  return tail.written > outputBytesMax ? null : tail.output.slice(0, tail.written)
}

function put(tail: Tail, code: number): void {
  tail.bits |= code << tail.bitCount
  tail.bitCount += tail.width
  while (tail.bitCount >= 8) {
    tail.output[tail.written++] = tail.bits
    tail.bits >>>= 8
    tail.bitCount -= 8
  }
}

function forget(slotsUsed: number): 0 {
  for (let index = 0; index < slotsUsed; index++) table[usedSlots[index] as number] = 0
  return 0
}
