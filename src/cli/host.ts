/**
 * The process as commands see it. `main.ts` gives the real one, tests a recording one; nothing else
 * in the program touches `process`.
 */

export type HostSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

export interface Host {
  /** Arguments after the program's name. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** What started this program, for a command that starts it again. */
  readonly self: { readonly command: string; readonly args: readonly string[] }
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  /** All of standard input, as text. */
  readStdin(): Promise<string>
  /** Calls back when standard input ends: whoever started this process is gone. */
  onStdinEnd(listener: () => void): void
  onSignal(signal: HostSignal, listener: () => void): void
  /** Ends the process at once. For second signals and for the end of `run`. */
  exit(status: number): void
}

export interface OutputStream {
  write(text: string): void
  readonly isTty: boolean
  /** Columns of the terminal; 80 when it is none. */
  readonly columns: number
}

/** What a command ends with (product.md §1). */
export const exitStatus = {
  ok: 0,
  /** The thing asked for failed: a file is invalid, a limit did not hold, nobody answered. */
  failed: 1,
  /** The command line itself is wrong. */
  usage: 2,
} as const

/** A message for the user that ends the command; the text goes to stderr as it is. */
export class CommandError extends Error {
  readonly status: number

  constructor(text: string, status: number = exitStatus.failed) {
    super(text)
    this.status = status
  }
}
