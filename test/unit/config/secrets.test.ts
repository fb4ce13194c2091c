import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readCounterSecret, readKeyring, readSecretText } from '../../../src/config/secrets.js'
import type { SecretRef } from '../../../src/config/sidecar-config.js'

const key = (byte: number, length = 32) => Buffer.alloc(length, byte).toString('base64')
const text = (value: string): SecretRef => ({ kind: 'text', text: value })

describe('secrets', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'grapevine-secrets-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const file = (name: string, content: string): SecretRef => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return { kind: 'file', path }
  }

  it('make a ring of inline keys and files, in order, each key once', () => {
    const refs = [
      text(key(1)),
      file('ring', `# newest first\n${key(2, 16)}\r\n\n${key(1)}\n`),
      file('more', `${key(3, 24)}\n`),
    ]
    const ring = readKeyring(refs)
    expect(ring.ok && ring.value.map(bytes => [bytes[0], bytes.length])).toEqual([
      [1, 32],
      [2, 16],
      [3, 24],
    ])
    expect(readKeyring([])).toEqual({ ok: true, value: [] })
  })

  it.each([
    ['a key of another length', () => [file('bad', key(1, 20))], '16, 24 or 32 bytes'],
    ['a key that is no base64', () => [file('bad', 'not base64!')], '16, 24 or 32 bytes'],
    ['a file without keys', () => [file('none', '# later\n')], 'hold no key'],
    ['an empty file', () => [file('empty', '\n')], 'is empty'],
    ['a missing file', (): SecretRef[] => [{ kind: 'file', path: '/nowhere/key' }], 'ENOENT'],
    ['a folder', (): SecretRef[] => [{ kind: 'file', path: folder }], 'EISDIR'],
    ['a huge file', () => [file('huge', 'A'.repeat(100_000))], 'larger than'],
    [
      'too many keys',
      () => [file('many', Array.from({ length: 17 }, (_, byte) => key(byte)).join('\n'))],
      'more than 16',
    ],
  ] as const)('are refused in words for %s', (_what, refs, words) => {
    const result = readKeyring(refs())
    expect(result).toEqual({ ok: false, error: expect.stringContaining(words) })
  })

  it('are read without the white space around them', () => {
    expect(readSecretText(file('padded', '  hush hush \n'))).toEqual({
      ok: true,
      value: 'hush hush',
    })
  })

  it('of counters have at least 16 bytes', () => {
    const long = readCounterSecret(text('sixteen bytes or more'))
    expect(long.ok && Buffer.from(long.value).toString()).toBe('sixteen bytes or more')
    expect(readCounterSecret(file('short', 'short'))).toEqual({
      ok: false,
      error: expect.stringContaining('at least 16 bytes'),
    })
  })
})
