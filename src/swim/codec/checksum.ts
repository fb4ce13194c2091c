/**
 * CRC-32 as zlib and IEEE 802.3 have it (reflected polynomial 0xEDB88320), four bytes a step
 * ("slicing by 4").
 */

const polynomial = 0xedb8_8320

/** Four tables of 256: table k gives the effect of a byte that stands k places before the last. */
const tables = buildTables()

function buildTables(): Uint32Array {
  const built = new Uint32Array(4 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let value = byte
    for (let bit = 0; bit < 8; bit++)
      value = (value & 1) === 1 ? (value >>> 1) ^ polynomial : value >>> 1
    built[byte] = value
  }
  for (let index = 256; index < built.length; index++) {
    const previous = built[index - 256] as number
    built[index] = (previous >>> 8) ^ (built[previous & 0xff] as number)
  }
  return built
}

/** The checksum of `bytes[start, end)`, 0..2^32-1. */
export function crc32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = 0xffff_ffff
  let index = start
  for (; index + 4 <= end; index += 4) {
    crc ^=
      (bytes[index] as number) |
      ((bytes[index + 1] as number) << 8) |
      ((bytes[index + 2] as number) << 16) |
      ((bytes[index + 3] as number) << 24)
    crc =
      (tables[768 + (crc & 0xff)] as number) ^
      (tables[512 + ((crc >>> 8) & 0xff)] as number) ^
      (tables[256 + ((crc >>> 16) & 0xff)] as number) ^
      (tables[crc >>> 24] as number)
  }
  for (; index < end; index++)
    crc = (crc >>> 8) ^ (tables[(crc ^ (bytes[index] as number)) & 0xff] as number)
  return ~crc >>> 0
}
