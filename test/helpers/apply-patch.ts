/** Applies a JSON patch as an API server does; for tests, in as few lines as the RFC allows. */
import { type PatchOperation, pointerSteps } from '../../src/injector/json-patch.js'

export function applyPatch(value: unknown, operations: readonly PatchOperation[]): unknown {
  let root = structuredClone(value)
  for (const operation of operations) {
    const steps = pointerSteps(operation.path)
    const last = steps.pop()
    if (last === undefined) {
      if (operation.op !== 'remove') root = operation.value
      continue
    }
    const parent = steps.reduce<unknown>((part, step) => {
      const found = (part as Record<string, unknown>)[step]
      if (found === undefined) throw new Error(`nothing at ${operation.path}`)
      return found
    }, root) as Record<string, unknown> | unknown[]
    if (Array.isArray(parent)) {
      const index = last === '-' ? parent.length : Number(last)
      if (operation.op === 'remove') parent.splice(index, 1)
      else parent.splice(index, operation.op === 'add' ? 0 : 1, operation.value)
    } else if (operation.op === 'remove') {
      delete parent[last]
    } else {
      Object.defineProperty(parent, last, {
        value: operation.value,
        writable: true,
        enumerable: true,
        configurable: true,
      })
    }
  }
  return root
}
