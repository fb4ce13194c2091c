import { describe, expect, it } from 'vitest'
import { ByteWriter } from '../../../src/lib/byte-writer.js'

describe('the byte writer', () => {
  it('writes numbers big-endian and keeps their order while it grows', () => {
    const out = new ByteWriter(1)
    out.u8(0x01)
    out.u16(0x0203)
    out.u32(0xfffefdfc)
    out.ascii('az')
    out.bytes(Uint8Array.of(9, 8))
    out.bytes(new Uint8Array(100).fill(7))

    const written = out.finish()

    const head = [1, 2, 3, 0xff, 0xfe, 0xfd, 0xfc, 0x61, 0x7a, 9, 8]
    expect([...written]).toEqual([...head, ...new Array(100).fill(7)])
  })

  it('starts over after finish and after clear, and what it gave away stays', () => {
    const out = new ByteWriter()
    out.u8(1)
    const first = out.finish()
    out.u8(2)
    expect(out.length).toBe(1)
    out.clear()
    out.u8(3)

    expect([[...first], [...out.finish()], out.length]).toEqual([[1], [3], 0])
  })
})
