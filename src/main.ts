#!/usr/bin/env node
/** Where the process begins: arguments, environment, streams and signals, and nothing else. */
import './tune-v8.js'
import type { WriteStream } from 'node:tty'
import type { Host, OutputStream } from './cli/host.js'
import { runCommandLine } from './cli/program.js'

const host: Host = {
  args: process.argv.slice(2),
  env: process.env,
  self: { command: process.execPath, args: [...process.execArgv, process.argv[1] ?? ''] },
  stdout: outputStream(process.stdout),
  stderr: outputStream(process.stderr),
  readStdin,
  onStdinEnd(listener) {
    process.stdin.once('end', listener)
    process.stdin.once('error', listener)
    process.stdin.resume()
  },
  onSignal(signal, listener) {
    process.on(signal, listener)
  },
  exit(status) {
    process.exit(status)
  },
}

// A reader that goes away (`grapevine top | head`) ends the program quietly.
process.stdout.on('error', error => {
  process.exit((error as NodeJS.ErrnoException).code === 'EPIPE' ? 0 : 1)
})

// Writes to files, pipes and terminals are done by now; what still listens must not keep us.
process.exit(await runCommandLine(host))

function outputStream(stream: WriteStream): OutputStream {
  return {
    write(text) {
      stream.write(text)
    },
    get isTty() {
      return stream.isTTY === true
    },
    get columns() {
      return stream.columns ?? 80
    },
  }
}

async function readStdin(): Promise<string> {
  process.stdin.setEncoding('utf8')
  let text = ''
  for await (const chunk of process.stdin) text += chunk
  return text
}
