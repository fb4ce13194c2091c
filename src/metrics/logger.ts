/** The process's log: pino, JSON lines. Secrets and keys are kept out by not passing them in. */
import { type DestinationStream, type Logger, pino } from 'pino'
import { type LogLevel, logLevels } from '../config/sidecar-config.js'
import { version } from '../version.js'

export interface LoggerOptions {
  readonly level: LogLevel
  /** The configured node name; stands in every line. */
  readonly node: string
  /** Defaults to standard output, written at once: a line must survive a crash. */
  readonly destination?: DestinationStream
}

export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level,
      base: { node: options.node, version },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      redact: {
        paths: ['authorization', 'cookie', '*.authorization', '*.cookie'],
        censor: '[redacted]',
      },
    },
    options.destination ?? pino.destination({ fd: 1, sync: true }),
  )
}

/** Changes the level while the process runs; false: no such level. */
export function setLogLevel(log: Logger, level: string): boolean {
  if (!(logLevels as readonly string[]).includes(level)) return false
  log.level = level
  return true
}
