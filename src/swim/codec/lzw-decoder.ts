/**
 * Reads what `lzwEncode` and Go's compress/lzw write. Every dictionary entry is the previous string
 * plus one byte, and both stand side by side in the output already, so an entry is just a place and
 * a length there.
 */
import { clearCode, codeBitsMin, endCode } from './lzw-encoder.js'
import { type Decoded, refused } from './wire-error.js'

const codeBitsMax = 12
const entryStart = new Uint32Array(1 << codeBitsMax)
const entryLength = new Uint32Array(1 << codeBitsMax)
const scratch = new Uint8Array(16_384)

/**
 * The plain bytes; `tooLarge` once they would exceed `outputBytesMax`. Memory follows the output
 * actually produced, at most doubled. Bytes after the end code are ignored.
 */
export function lzwDecode(input: Uint8Array, outputBytesMax: number): Decoded<Uint8Array> {
  let output: Uint8Array = scratch
  let produced = 0
  let width = codeBitsMin
  let limit = 512
  let counter = endCode
  // The previous string: its place and length in the output; length 0 stands for none.
  let lastStart = 0
  let lastLength = 0
  let bits = 0
  let bitCount = 0
  let offset = 0
  for (;;) {
    while (bitCount < width) {
      if (offset >= input.length) return refused('compressionMalformed')
      bits |= (input[offset++] as number) << bitCount
      bitCount += 8
    }
    const code = bits & ((1 << width) - 1)
    bits >>>= width
    bitCount -= width
    if (code === clearCode) {
      width = codeBitsMin
      limit = 512
      counter = endCode
      lastLength = 0
      continue
    }
    if (code === endCode) return { ok: true, value: output.slice(0, produced) }
    if (code > counter) return refused('compressionMalformed')
    // "The last string and its own first byte" lies in the output too, overlapping what is being
    // written.
    const isNext = code === counter && lastLength > 0
    const from = isNext ? lastStart : (entryStart[code] as number)
    const length = code < clearCode ? 1 : isNext ? lastLength + 1 : (entryLength[code] as number)
    const end = produced + length
    if (end > outputBytesMax) return refused('tooLarge')
    if (end > output.length) output = grow(output, produced, end, outputBytesMax)
    if (code < clearCode) output[produced] = code
    else copyForward(output, from, produced, length)
    if (lastLength > 0) {
      entryStart[counter] = lastStart
      entryLength[counter] = lastLength + 1
    }
    lastStart = produced
    lastLength = length
    produced = end
    counter += 1
    if (counter < limit) continue
    if (width === codeBitsMax) {
      // The dictionary is full: it stays as it is until a clear code.
      lastLength = 0
      counter -= 1
    } else {
      width += 1
      limit = 1 << width
    }
  }
}

/** Front to back, one byte at a time, so that an overlapping source repeats. */
function copyForward(output: Uint8Array, from: number, to: number, length: number): void {
  for (let index = 0; index < length; index++) output[to + index] = output[from + index] as number
}

function grow(output: Uint8Array, used: number, needed: number, bytesMax: number): Uint8Array {
  const grown = new Uint8Array(Math.min(bytesMax, Math.max(needed, output.length * 2)))
  grown.set(output.subarray(0, used))
  return grown
}
