/** YAML without aliases and merge keys: a change in one place of it stays in that place. */
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
} from 'yaml'

/**
 * Writes out every alias and merge key (`<<`, yaml.org/type/merge) of `document`, and takes the
 * anchors away; a document without any is left as it is. Every alias must have its anchor.
 */
export function expandAliases(document: Document): void {
  let found = false
  // In the order of the text, so that what an alias stands for is itself written out already.
  visit(document, {
    Alias: (_, alias) => {
      found = true
      const copy = alias.resolve(document)!.clone() as Node
      visit(copy, { Node: dropAnchor })
      return copy
    },
    Pair: (_, pair) => {
      found ||= isMerge(pair)
    },
  })
  if (found) visit(document, { Node: dropAnchor, Map: (_, map) => expandMerges(map) })
}

function dropAnchor(_: unknown, node: Node): void {
  if ('anchor' in node) delete node.anchor
}

/** Keys of the map itself go before those merged in, and those merged in first before the rest. */
function expandMerges(map: YAMLMap): void {
  dropAnchor(null, map)
  for (let at = map.items.findIndex(isMerge); at >= 0; at = map.items.findIndex(isMerge)) {
    const [{ value }] = map.items.splice(at, 1) as [Pair]
    for (const source of isSeq(value) ? value.items : [value]) {
      if (!isMap(source)) continue
      map.items.push(...source.items.filter(({ key }) => !map.has(key)))
    }
  }
}

function isMerge({ key }: Pair): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN'
}
