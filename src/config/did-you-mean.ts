/** Suggestions for words that are not known but close to one that is. */

/** Longer words are not compared: they are no slips of the pen. */
const wordLengthMax = 64

/** `; did you mean "X"?`, or '' when nothing is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === null ? '' : `; did you mean "${near}"?`
}

/**
 * The known word nearest to `word`: the same but for case and separators, or at most a third of its
 * letters, and never more than three, mistyped. Null when there is none.
 */
export function nearest(word: string, known: readonly string[]): string | null {
  if (word.length > wordLengthMax) return null
  const plain = squeeze(word)
  let best: string | null = null
  let bestDistance = Math.min(3, Math.floor(Math.max(3, plain.length) / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(plain, squeeze(candidate), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function squeeze(word: string): string {
  return word.toLowerCase().replace(/[-_ ]/g, '')
}

/**
 * Insertions, deletions, replacements and swaps of neighbours between two words (optimal string
 * alignment), or `limit` once it is sure to reach that.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let cost = Math.min(current[column - 1]! + 1, last[column]! + 1)
      cost = Math.min(cost, last[column - 1]! + (same ? 0 : 1))
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (row > 1 && column > 1 && swapped) cost = Math.min(cost, beforeLast[column - 2]! + 1)
      current.push(cost)
    }
    beforeLast = last
    last = current
  }
  return Math.min(limit, last[b.length]!)
}
