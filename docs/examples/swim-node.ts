/**
 * A complete memberlist node on loopback, in one file: sockets and one timer around `Swim`.
 *
 *     npx tsx docs/examples/swim-node.ts alpha 7946
 *     npx tsx docs/examples/swim-node.ts beta 7947 7946      # joins alpha; greets whoever joins
 *
 * It prints one line per event. SIGTERM leaves the cluster and ends. Port 0 takes any free one.
 */
import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Delegate } from '../../src/swim/delegate.js'
import type { Effect, StreamId } from '../../src/swim/effects.js'
import { localDefaults } from '../../src/swim/options.js'
import { Swim } from '../../src/swim/protocol.js'
import type { Address, MemberName } from '../../src/vocabulary.js'

const [name = 'alpha', portText = '7946', seedPort] = process.argv.slice(2)
const host = '127.0.0.1'
const now = () => performance.now()
const print = (line: string) => process.stdout.write(`${line}\n`)

const delegate: Delegate = {
  nodeMeta: () => Buffer.from(`pid ${process.pid}`),
  notifyMessage: message => print(`message ${Buffer.from(message).toString()}`),
  getBroadcasts: () => [],
  localState: () => Buffer.from(`state of ${name}`),
  mergeRemoteState: state => print(`merged ${Buffer.from(state).toString()}`),
}

const udp = createSocket('udp4')
// The dialler may close its side while we still write: do not close with it.
const tcp = createServer({ allowHalfOpen: true })
const streams = new Map<StreamId, Socket>()
let timer: NodeJS.Timeout | undefined
let swim: Swim

/**
 * Every call goes through here: afterwards the effects are carried out and the timer is set anew.
 */
function act(call: () => void): void {
  call()
  for (const effect of swim.takeEffects()) carryOut(effect)
  clearTimeout(timer)
  const waitMs = Math.ceil(Math.max(0, swim.nextDeadlineMs() - now()))
  timer = setTimeout(() => act(() => swim.advance(now())), waitMs)
}

function carryOut(effect: Effect): void {
  switch (effect.kind) {
    case 'sendPacket':
      udp.send(effect.bytes, effect.to.port, effect.to.host)
      break
    case 'openStream': {
      const socket = connect({ ...effect.to, allowHalfOpen: true })
      attach(socket, effect.stream)
      socket.setTimeout(effect.timeoutMs, () => socket.destroy(new Error('timed out')))
      socket.write(effect.bytes)
      break
    }
    case 'writeStream':
      streams.get(effect.stream)?.write(effect.bytes)
      break
    case 'closeStream':
      streams.get(effect.stream)?.end()
      streams.delete(effect.stream)
      break
    case 'memberChanged': {
      const member = effect.member.name
      print(`${effect.change} ${member}`)
      const greeting = Buffer.from(`hello ${member}, ${name} here`)
      if (effect.change === 'join' && member !== name) {
        setImmediate(() => act(() => swim.sendUserMessage(member, greeting, 'bestEffort', now())))
      }
      break
    }
    case 'exchangeSettled':
      print(`exchange with ${effect.to.port}: ${effect.error ?? 'done'}`)
      break
    case 'leaveSettled':
      // Answer pings for a moment more, so that nobody takes the leave for a failure.
      setTimeout(() => process.exit(0), 300)
      break
    case 'memberConflict':
    case 'notice':
      break
  }
}

function attach(socket: Socket, stream: StreamId): void {
  streams.set(stream, socket)
  socket.on('data', bytes => act(() => swim.handleStreamData(stream, bytes, now())))
  socket.on('end', () => act(() => swim.handleStreamEnd(stream, null, now())))
  socket.on('error', ({ message }) => act(() => swim.handleStreamEnd(stream, message, now())))
}

function start(port: number): void {
  const ports = { random: Math.random, entropy: (length: number) => randomBytes(length), delegate }
  const identity = { name: name as MemberName, advertise: { host, port } }
  swim = new Swim({ ...localDefaults, label: 'example', ...identity }, ports)
  udp.on('message', (bytes, from) =>
    act(() => swim.handlePacket(bytes, { host: from.address, port: from.port }, now())),
  )
  tcp.on('connection', socket => {
    const from: Address = { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    const stream = swim.acceptStream(from, now())
    if (stream === null) socket.destroy()
    else attach(socket, stream)
  })
  print(`listening ${port}`)
  act(() => swim.start(now()))
  if (seedPort !== undefined) act(() => swim.join([{ host, port: Number(seedPort) }], now()))
  process.on('SIGTERM', () => act(() => swim.leave(now())))
}

// One port for both: TCP chooses, UDP follows.
tcp.listen(Number(portText), host, () => {
  const { port } = tcp.address() as AddressInfo
  udp.bind(port, host, () => start(port))
})
