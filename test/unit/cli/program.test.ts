import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { runCommandLine } from '../../../src/cli/program.js'
import { version } from '../../../src/version.js'
import { recordingHost } from '../../helpers/recording-host.js'

const commands = [
  'run',
  'check',
  'demo',
  'simulate',
  'keygen',
  'top',
  'members',
  'explain',
  'drain',
  'inject',
  'injector',
]

async function grapevine(args: readonly string[], env: Record<string, string> = {}) {
  const host = recordingHost(args, env)
  const status = await runCommandLine(host)
  return { status, out: host.out(), err: host.err() }
}

describe('help', () => {
  test('names every command on stdout and ends with 0', async () => {
    const { status, out, err } = await grapevine(['--help'])
    expect({ status, err }).toEqual({ status: 0, err: '' })
    for (const name of [...commands, 'version'])
      expect(out).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
  })

  test.each([...commands, 'version'])('of %s exists', async name => {
    const { status, out } = await grapevine([name, '--help'])
    expect(status).toBe(0)
    expect(out).toContain(`Usage: grapevine ${name}`)
  })

  test('without a command goes to stderr and is a usage error', async () => {
    const { status, out, err } = await grapevine([])
    expect({ status, out }).toEqual({ status: 2, out: '' })
    expect(err).toContain('Usage: grapevine')
  })
})

describe('usage errors end with 2 and one message on stderr', () => {
  test.each([
    [['rnu'], "unknown command 'rnu'"],
    [['run'], '--config FILE is required'],
    [['run', '--confg', 'x'], "unknown option '--confg'"],
    [['check'], "missing required argument 'file'"],
    [['demo', '--pods', '0'], 'whole number from 1 to 20'],
    [['demo', '--duration', 'soon'], 'expected a duration'],
    [['top', '--by', 'luck'], 'Allowed choices are denied, hits'],
    [['members', '-o', 'yaml'], 'Allowed choices are text, json'],
    [['members', '--admin', 'ftp://x'], 'expected http://HOST:PORT'],
    [['explain'], "missing required argument 'path'"],
    [['explain', '/', '-H', 'nothing'], 'expected "name: value"'],
    [['keygen', 'extra'], 'too many arguments'],
    [['inject'], '-f FILE or -f - is required'],
    [['injector'], '--config FILE is required'],
  ])('%j', async (args, message) => {
    const { status, out, err } = await grapevine(args)
    expect({ status, out }).toEqual({ status: 2, out: '' })
    expect(err).toContain(message)
  })
})

test('version is the one of package.json', async () => {
  const manifest = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  expect(version).toBe(manifest.version)
  expect(await grapevine(['version'])).toMatchObject({ status: 0, out: `grapevine ${version}\n` })
  expect(await grapevine(['--version'])).toMatchObject({ status: 0, out: `grapevine ${version}\n` })
})

test('keygen prints 32 fresh bytes in base64', async () => {
  const one = await grapevine(['keygen'])
  const two = await grapevine(['keygen'])
  expect(one).toMatchObject({ status: 0, err: '' })
  expect(one.out).toMatch(/^[A-Za-z0-9+/]{43}=\n$/)
  expect(Buffer.from(one.out, 'base64')).toHaveLength(32)
  expect(two.out).not.toBe(one.out)
})

describe('check', () => {
  let directory = ''

  afterEach(() => rm(directory, { recursive: true, force: true }))

  async function file(text: string): Promise<string> {
    directory = await mkdtemp(join(tmpdir(), 'grapevine-check-'))
    const path = join(directory, 'rules.yaml')
    await writeFile(path, text)
    return path
  }

  test('a valid file ends with 0', async () => {
    const path = await file('version: 1\nrules: [{ name: api, key: [ip], limit: 100/1s }]\n')
    const { status, out } = await grapevine(['check', path])
    expect({ status, out }).toEqual({ status: 0, out: `${path}: valid\n` })
  })

  test('an invalid file ends with 1 and says where and what', async () => {
    const path = await file('version: 1\nrules:\n  - name: api\n    key: [ip]\n    limitt: 5/1s\n')
    const { status, out, err } = await grapevine(['check', path])
    expect({ status, out }).toEqual({ status: 1, out: '' })
    expect(err).toContain(`${path}:5:5: error:`)
    expect(err).toContain('did you mean "limit"')
  })

  test('a missing file ends with 1', async () => {
    const { status, err } = await grapevine(['check', '/nowhere/rules.yaml'])
    expect(status).toBe(1)
    expect(err).toContain('/nowhere/rules.yaml')
  })
})

describe('run', () => {
  test('an invalid sidecar file ends with 1 and the findings', async () => {
    const { status, err } = await grapevine(['run', '--config', '/nowhere/sidecar.yaml'])
    expect(status).toBe(1)
    expect(err).toContain('/nowhere/sidecar.yaml')
  })

  test('the file may be named by the environment', async () => {
    const { status, err } = await grapevine(['run'], { GRAPEVINE_CONFIG: '/nowhere/from-env.yaml' })
    expect(status).toBe(1)
    expect(err).toContain('/nowhere/from-env.yaml')
  })
})

describe('commands that ask a running sidecar', () => {
  let server: Server | null = null
  const asked: { method: string; url: string; body: string }[] = []

  afterEach(() => {
    server?.close()
    server?.closeAllConnections()
    asked.length = 0
  })

  async function admin(status: number, answer: unknown): Promise<string> {
    const listening = createServer(async (request, response) => {
      asked.push({ method: request.method!, url: request.url!, body: await bodyOf(request) })
      response.statusCode = status
      response.end(JSON.stringify(answer))
    })
    server = listening
    await new Promise<void>(resolve => listening.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
  }

  const members = {
    members: [
      {
        name: 'pod-1',
        address: '10.0.0.1:7946',
        state: 'alive',
        self: true,
        meta: { version: '1' },
      },
      {
        ...{ name: 'pod-2', address: '10.0.0.3:7946', state: 'alive', self: false },
        meta: { version: '1', draining: true },
      },
      { name: 'go\u001b[2J', address: '10.0.0.2:7946', state: 'dead', self: false, meta: null },
    ],
  }

  test('members prints a table, and control characters of names as dots', async () => {
    const address = await admin(200, members)
    const { status, out } = await grapevine(['members', '--admin', address])
    expect(status).toBe(0)
    expect(out).toBe(
      [
        'NAME     ADDRESS        STATE            VERSION  STARTED',
        'pod-1 *  10.0.0.1:7946  alive            1        -',
        'pod-2    10.0.0.3:7946  alive, draining  1        -',
        'go·[2J   10.0.0.2:7946  dead             -        -',
        '',
      ].join('\n'),
    )
    expect(asked).toEqual([{ method: 'GET', url: '/members', body: '' }])
  })

  test('-o json hands the answer through, and the address may come from the environment', async () => {
    const address = await admin(200, members)
    const { out } = await grapevine(['members', '-o', 'json'], { GRAPEVINE_ADMIN: address })
    expect(JSON.parse(out)).toEqual(members)
  })

  test('top asks by rule, order and number', async () => {
    const key = {
      ...{ rule: 'api', hash: '00112233aabbccdd', limit: 100, windowMs: 1000, remaining: 4 },
      ...{ scarce: true, hits: 12, denied: 3, own: {}, peers: [{}] },
    }
    const address = await admin(200, { by: 'hits', keys: [key] })
    const args = ['top', '--admin', address, '--rule', 'api', '--by', 'hits', '-n', '5']
    const { status, out } = await grapevine(args)
    expect(status).toBe(0)
    expect(out).toContain('api   00112233aabbccdd  100/1s          4    12       3  yes        2')
    expect(asked[0]!.url).toBe('/limits/top?by=hits&n=5&rule=api')
  })

  test('explain sends the described request and tells the verdict', async () => {
    const address = await admin(200, {
      allowed: false,
      reason: 'limited',
      rules: [
        {
          ...{ rule: 'api', matched: true, because: 'key ip' },
          key: { hash: '00112233aabbccdd', own: part('self', 0), peers: [part('pod-2', 40)] },
          verdict: { allowed: false, limit: 5, remaining: 0, retryAfterMs: 900 },
        },
        { rule: 'login', matched: false, because: 'path', key: null, verdict: null },
      ],
    })
    const args = ['explain', '/api?x=1', '-X', 'post', '-H', 'X-Api-Key: k', '--ip', '192.0.2.7']
    const { status, out } = await grapevine([...args, '--admin', address])
    expect(status).toBe(0)
    expect(JSON.parse(asked[0]!.body)).toEqual({
      method: 'POST',
      path: '/api?x=1',
      headers: { 'x-api-key': 'k' },
      ip: '192.0.2.7',
    })
    expect(out.split('\n')).toEqual([
      'would be denied (limited)',
      '+ api: key ip',
      '    denies: 0 of 5 left, retry after 900 ms',
      '    key: 00112233aabbccdd',
      '    this pod: used 3, offered 4',
      '    pod-2: used 3, offered 4, heard of 40 ms ago',
      '- login: path',
      '',
    ])
  })

  test('explain names no limit as a whole that a bucket exceeds, and long waits in seconds', async () => {
    const verdict = (allowed: boolean, remaining: number, retryAfterMs: number) => ({
      ...{ rule: 'api', matched: true, because: 'global', key: null },
      verdict: { allowed, limit: 100, remaining, retryAfterMs },
    })
    const rules = [verdict(true, 200, 0), verdict(false, 0, 898_289)]
    const address = await admin(200, { allowed: false, reason: 'limited', rules })
    const { out } = await grapevine(['explain', '/', '--admin', address])
    expect(out).toContain('    allows: 200 left, limit 100\n')
    expect(out).toContain('    denies: 0 of 100 left, retry after 899 s\n')
  })

  test('drain posts, and waits only when told to', async () => {
    const address = await admin(200, { draining: true })
    const startedMs = performance.now()
    expect(await grapevine(['drain', '--admin', address])).toMatchObject({ status: 0 })
    expect(performance.now() - startedMs).toBeLessThan(3_000)
    await grapevine(['drain', '--admin', address, '--wait', '100ms'])
    expect(performance.now() - startedMs).toBeGreaterThan(100)
    expect(asked.map(({ method, url }) => [method, url])).toEqual([
      ['POST', '/drain'],
      ['POST', '/drain'],
    ])
  })

  test('a refusal is told with its reason and ends with 1', async () => {
    const address = await admin(404, { title: 'Not Found', detail: 'there is no rule "x"' })
    const { status, err } = await grapevine(['top', '--admin', address, '--rule', 'x'])
    expect(status).toBe(1)
    expect(err).toContain('404 there is no rule "x"')
  })

  test('nobody there is told in one line and ends with 1', async () => {
    const address = await admin(200, {})
    await new Promise(resolve => server!.close(resolve))
    const { status, err } = await grapevine(['members', '--admin', address])
    expect(status).toBe(1)
    expect(err).toBe(`grapevine: cannot reach the admin listener at ${address}: ECONNREFUSED\n`)
  })
})

function part(node: string, ageMs: number) {
  return { origin: '0011223344556677', node, consumed: 4, returned: 1, offered: 4, ageMs }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
