import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { bearerToken, type JwtOptions, JwtVerifier } from '../../../src/http/jwt-verifier.js'
import { FakeClock } from '../../helpers/fake-core.js'

const secret = 'a shared secret of more than thirty-two bytes'
const url = { kind: 'url', url: 'https://issuer.test/jwks.json' } as const

let privateKey: CryptoKey
let otherKey: CryptoKey
let jwks: { keys: object[] }
let otherJwks: { keys: object[] }

beforeAll(async () => {
  const first = await generateKeyPair('ES256')
  const second = await generateKeyPair('ES256')
  privateKey = first.privateKey
  otherKey = second.privateKey
  jwks = { keys: [{ ...(await exportJWK(first.publicKey)), kid: 'one', alg: 'ES256' }] }
  otherJwks = { keys: [{ ...(await exportJWK(second.publicKey)), kid: 'two', alg: 'ES256' }] }
})

interface Setup {
  readonly verifier: JwtVerifier
  readonly clock: FakeClock
  readonly warnings: string[]
  /** What the next load of the key set yields; an Error makes it fail. */
  source: { keys: object[] } | Error
  loads: number
}

function setup(options: Partial<JwtOptions> = {}): Setup {
  const clock = new FakeClock()
  clock.epochMs = Date.now()
  const warnings: string[] = []
  const state = { source: jwks as { keys: object[] } | Error, loads: 0 }
  const verifier = new JwtVerifier(
    { jwks: url, secret: null, issuer: null, audience: null, ...options },
    {
      clock,
      warn: message => warnings.push(message),
      load: async () => {
        state.loads++
        if (state.source instanceof Error) throw state.source
        return JSON.stringify(state.source)
      },
    },
  )
  return Object.assign(state, { verifier, clock, warnings })
}

const token = (claims: JWTPayload = { sub: 'alice' }, key = privateKey, kid = 'one') =>
  new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(key)

const hmac = (claims: JWTPayload = { sub: 'alice' }, text = secret) =>
  new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(text))

const bearer = (text: string): string => `Bearer ${text}`

describe('JwtVerifier', () => {
  it('verifies a token once and then answers without waiting', async () => {
    const { verifier } = setup()
    const header = bearer(await token())
    const first = verifier.claims(header, '192.0.2.1')
    expect(first).toBeInstanceOf(Promise)
    expect(await first).toMatchObject({ sub: 'alice' })
    expect(verifier.claims(header, '192.0.2.1')).toMatchObject({ sub: 'alice' })
    expect(verifier.stats()).toMatchObject({ verified: 1, cacheHits: 1 })
  })

  it('two requests with one new token verify it once', async () => {
    const { verifier } = setup()
    const header = bearer(await token())
    await Promise.all([verifier.claims(header, 'a'), verifier.claims(header, 'b')])
    expect(verifier.stats().verified).toBe(1)
  })

  it.each([
    ['no header', undefined],
    ['another scheme', 'Basic YTpi'],
    ['no token', 'Bearer '],
    ['no JWS', 'Bearer abc'],
    ['an encrypted token', 'Bearer a.b.c.d.e'],
    ['a token too long to be kept', `Bearer a.b.${'c'.repeat(9_000)}`],
  ])('%s is no token at all', (_what, header) => {
    expect(bearerToken(header)).toBeNull()
    expect(setup().verifier.claims(header, 'a')).toBeNull()
  })

  it('refuses alg none', async () => {
    const { verifier } = setup()
    const unsigned = new UnsecuredJWT({ sub: 'root' }).encode()
    expect(await verifier.claims(bearer(`${unsigned}x`), 'a')).toBeNull()
    expect(await verifier.claims(bearer(unsigned), 'a')).toBeNull()
  })

  it('refuses HS256 made with the public key where keys are asymmetric', async () => {
    const { verifier } = setup()
    expect(await verifier.claims(bearer(await hmac({}, JSON.stringify(jwks))), 'a')).toBeNull()
  })

  it('ignores symmetric keys in a key set', async () => {
    const state = setup()
    const k = Buffer.from(secret).toString('base64url')
    state.source = { keys: [...jwks.keys, { kty: 'oct', k, kid: 'one', alg: 'HS256' }] }
    expect(await state.verifier.claims(bearer(await hmac()), 'a')).toBeNull()
  })

  it('a shared secret verifies HS256 and nothing else', async () => {
    const { verifier } = setup({ jwks: null, secret })
    expect(await verifier.claims(bearer(await hmac()), 'a')).toMatchObject({ sub: 'alice' })
    expect(await verifier.claims(bearer(await hmac({}, `${secret}!`)), 'a')).toBeNull()
    expect(await verifier.claims(bearer(await token()), 'a')).toBeNull()
  })

  it.each([
    ['the issuer', { issuer: 'https://issuer.test' }],
    ['the audience', { audience: 'shop' }],
  ])('holds %s to what is configured', async (_what, options) => {
    const { verifier } = setup(options)
    const claims = { iss: 'https://issuer.test', aud: 'shop' }
    expect(await verifier.claims(bearer(await token(claims)), 'a')).toMatchObject(claims)
    expect(await verifier.claims(bearer(await token({ iss: 'x', aud: 'y' })), 'a')).toBeNull()
  })

  it('a remembered token expires when it says so', async () => {
    const { verifier, clock } = setup({ jwks: null, secret })
    const header = bearer(
      await new SignJWT({ sub: 'alice' })
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime(Math.floor(clock.wallMs() / 1000) + 60)
        .sign(new TextEncoder().encode(secret)),
    )
    await verifier.claims(header, 'a')
    clock.nowMs += 59_000
    expect(verifier.claims(header, 'a')).toMatchObject({ sub: 'alice' })
    clock.nowMs += 10_000
    expect(await verifier.claims(header, 'a')).toBeNull()
  })

  it('remembers a bad token for a while, then looks again', async () => {
    const { verifier, clock } = setup()
    const header = bearer(`${await token()}x`)
    expect(await verifier.claims(header, 'a')).toBeNull()
    expect(verifier.claims(header, 'a')).toBeNull()
    expect(verifier.stats()).toMatchObject({ rejected: 1, cacheHits: 1 })
    clock.nowMs += 10_001
    await verifier.claims(header, 'a')
    expect(verifier.stats().rejected).toBe(2)
  })

  it('bounds verifications per address, and other addresses do not pay for it', async () => {
    const { verifier, clock } = setup()
    const good = bearer(await token())
    const forged = (index: number): string => bearer(`a.b.${index}`)
    for (let index = 0; index < 80; index++) await verifier.claims(forged(index), 'attacker')
    expect(verifier.stats()).toMatchObject({ rejected: 50, throttled: 30 })
    expect(verifier.claims(good, 'attacker')).toBeNull()
    expect(await verifier.claims(good, 'neighbour')).toMatchObject({ sub: 'alice' })
    clock.nowMs += 1_000
    await verifier.claims(forged(999), 'attacker')
    expect(verifier.stats().rejected).toBe(51)
  })

  it('goes on with the last known keys while the issuer cannot be reached', async () => {
    const state = setup()
    await state.verifier.claims(bearer(await token()), 'a')
    state.source = new Error('connection refused')
    state.clock.nowMs += 3_600_000
    state.clock.epochMs -= 3_600_000
    expect(await state.verifier.claims(bearer(await token({ sub: 'bob' })), 'a')).toMatchObject({
      sub: 'bob',
    })
    await expect.poll(() => state.warnings.length).toBe(1)
    expect(state.warnings[0]).toContain('the last known keys stay')
    expect(state.verifier.stats().keySetFailures).toBe(1)
  })

  it('without any keys a token is absent, and verifies once there are some', async () => {
    const state = setup()
    const header = bearer(await token())
    state.source = new Error('connection refused')
    expect(await state.verifier.claims(header, 'a')).toBeNull()
    expect(state.warnings[0]).toContain('tokens count as absent')
    state.source = jwks
    state.clock.nowMs += 10_001
    expect(await state.verifier.claims(header, 'a')).toMatchObject({ sub: 'alice' })
  })

  it('an unknown key id makes it look again, but not at every forged token', async () => {
    const state = setup()
    await state.verifier.claims(bearer(await token()), 'a')
    state.source = otherJwks
    state.clock.nowMs += 10_001
    const rotated = bearer(await token({ sub: 'carol' }, otherKey, 'two'))
    expect(await state.verifier.claims(rotated, 'a')).toMatchObject({ sub: 'carol' })
    expect(state.loads).toBe(2)
    for (let index = 0; index < 20; index++) {
      await state.verifier.claims(bearer(await token({}, otherKey, `forged-${index}`)), 'b')
    }
    expect(state.loads).toBe(2)
  })

  it.each([
    ['no JSON', 'load yields text', '{'],
    ['no keys', 'load yields an object', '{}'],
  ])('a source with %s is a warning, not a crash', async (_what, _how, text) => {
    const clock = new FakeClock()
    const warnings: string[] = []
    const verifier = new JwtVerifier(
      { jwks: url, secret: null, issuer: null, audience: null },
      { clock, warn: message => warnings.push(message), load: async () => text },
    )
    expect(await verifier.claims(bearer(await token()), 'a')).toBeNull()
    expect(warnings).toHaveLength(1)
  })
})
