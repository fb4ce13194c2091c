/** The recipes that no test runs with their program are at least well-formed, and safe by their text. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const folder = fileURLToPath(new URL('../../docs/recipes', import.meta.url))
const read = (file: string): string => readFileSync(join(folder, file), 'utf8')

/** What the decision API believes of a proxy on this machine (src/http/forward-auth.ts). */
const believed = [
  'x-forwarded-method',
  'x-forwarded-uri',
  'x-forwarded-host',
  'x-forwarded-for',
  'x-real-ip',
  'x-original-method',
  'x-original-uri',
  'x-original-url',
  'x-envoy-original-path',
]

/** The first value under `key`, at any depth. */
function find(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  if (key in value) return (value as Record<string, unknown>)[key]
  for (const inner of Object.values(value)) {
    const found = find(inner, key)
    if (found !== undefined) return found
  }
  return undefined
}

it('the list of believed headers is that of the source', () => {
  const source = readFileSync(new URL('../../src/http/forward-auth.ts', import.meta.url), 'utf8')
  const named = [...source.matchAll(/claimed\('([^']+)'\)/g)].map(([, name]) => name)
  expect(new Set(named)).toEqual(new Set(believed))
})

describe('nginx, HAProxy', () => {
  it.each(believed)('nginx sets or clears %s', name => {
    const question = read('nginx.conf').split('location = /.grapevine')[1]?.split('}')[0] ?? ''
    expect(question.toLowerCase()).toContain(`proxy_set_header ${name} `)
  })

  it.each(believed)('HAProxy passes no %s of the client on', name => {
    expect(read('haproxy.lua')).toContain(`["${name}"] = true`)
  })
})

describe('Traefik', () => {
  const config: unknown = parse(read('traefik.yaml'))

  it('asks the decision API and trusts no client', () => {
    expect(find(config, 'forwardAuth')).toMatchObject({
      address: 'http://127.0.0.1:7981/v1/auth',
      trustForwardHeader: false,
    })
  })

  it('clears what it does not set itself, before it asks', () => {
    const cleared = find(config, 'customRequestHeaders') as Record<string, string>
    const own = ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-for']
    expect(Object.values(cleared).every(value => value === '')).toBe(true)
    const names = Object.keys(cleared).map(name => name.toLowerCase())
    expect(names.sort()).toEqual(believed.filter(name => !own.includes(name)).sort())
    expect(find(find(config, 'routers'), 'middlewares')).toEqual(['only-our-word', 'grapevine'])
  })
})

describe.each(['envoy.yaml', 'istio.yaml'])('%s', file => {
  const config: unknown = parse(read(file))

  it('puts the client’s path behind the prefix of the decision API', () => {
    const service = find(config, 'http_service') as Record<string, unknown>
    expect(service).toMatchObject({
      path_prefix: '/v1/auth',
      server_uri: { uri: 'http://127.0.0.1:7981', cluster: 'grapevine' },
    })
  })

  it('hands no header on by which a client could speak for the proxy', () => {
    const allowed = find(config, 'allowed_headers') as { patterns: { exact?: string }[] }
    const names = allowed.patterns.map(({ exact }) => exact)
    // Envoy appends the peer to X-Forwarded-For, and the walk starts from there.
    expect(names.filter(name => believed.includes(name ?? ''))).toEqual(['x-forwarded-for'])
    expect(names).not.toContain(undefined)
  })

  it('has the cluster that it asks', () => {
    expect(JSON.stringify(config)).toContain('"cluster_name":"grapevine"')
    expect(JSON.stringify(config)).toContain('"port_value":7981')
  })
})

it('Envoy’s client is its peer, not what the peer claims', () => {
  expect(find(parse(read('envoy.yaml')), 'use_remote_address')).toBe(true)
})

it('every link of the recipes leads to a file', () => {
  const dead: string[] = []
  for (const file of readdirSync(folder).filter(name => name.endsWith('.md'))) {
    for (const [, target = ''] of read(file).matchAll(/\]\(([^)#\s]+)/g)) {
      if (!target.includes('://') && !existsSync(join(folder, target))) dead.push(target)
    }
  }
  expect(dead).toEqual([])
})
