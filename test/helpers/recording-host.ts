/** A process that a test can look into: what was written, which signals are listened to. */
import type { Host, HostSignal } from '../../src/cli/host.js'

export interface RecordingHost extends Host {
  readonly out: () => string
  readonly err: () => string
  readonly signals: Map<HostSignal, () => void>
  readonly exits: number[]
}

export function recordingHost(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): RecordingHost {
  let out = ''
  let err = ''
  const signals = new Map<HostSignal, () => void>()
  const exits: number[] = []
  return {
    args,
    env,
    self: { command: 'node', args: [] },
    stdout: { write: text => (out += text), isTty: false, columns: 100 },
    stderr: { write: text => (err += text), isTty: false, columns: 100 },
    readStdin: async () => '',
    onStdinEnd: () => {},
    onSignal: (signal, listener) => signals.set(signal, listener),
    exit: status => exits.push(status),
    out: () => out,
    err: () => err,
    signals,
    exits,
  }
}
