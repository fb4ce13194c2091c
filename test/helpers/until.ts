/** Waiting for the outside world, in integration tests only. */

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>

/** Polls until `probe` returns something truthy, and returns it; fails with `what` after a while. */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  timeoutMs = 20_000,
  everyMs = 20,
): Promise<Truthy<T>> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const value = await probe()
    if (value) return value as Truthy<T>
    if (performance.now() > deadlineMs) throw new Error(`within ${timeoutMs} ms: ${what}`)
    await sleep(everyMs)
  }
}

export function sleep(durationMs: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, durationMs))
}
