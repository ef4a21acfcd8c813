/**
 * The same pattern for incomplete text: it also matches if the text ends before the pattern does. A match that reaches
 * the end of the text is undecided; one that ends before it is final, whatever follows.
 *
 * Every atom `a` becomes `(?:a|$)`: after the end of the text, the rest of the pattern matches it. Negative lookarounds
 * and lookbehinds are unchanged.
 */
export function partialPattern(pattern: RegExp): RegExp {
  const { source } = pattern
  let partial = ''
  let index = 0
  while (index < source.length) {
    const look = /\(\?(?:!|<!|<=)/y
    look.lastIndex = index
    const atom = atomAt(source, index)
    if (look.test(source)) {
      const end = closingOf(source, index) + 1
      partial += source.slice(index, end)
      index = end
    } else if (atom !== undefined) {
      partial += `(?:${atom}|$)`
      index += atom.length
    } else {
      const [syntax] = /^(?:\(\?[:=]|\{[\d,]+\}\??|[()|?$])/.exec(source.slice(index)) ?? []
      if (syntax === undefined) throw new Error(`No partial pattern for ${source} at ${index}`)
      partial += syntax
      index += syntax.length
    }
  }
  return new RegExp(partial, pattern.flags)
}

/** One character, escape or class. */
function atomAt(source: string, index: number): string | undefined {
  const atom = /\[(?:[^\]\\]|\\[^])+\]|\\(?:x[\da-f]{2}|u[\da-f]{4}|[^])|[^\\[\](){}|?*+^$]/iy
  atom.lastIndex = index
  return atom.exec(source)?.[0]
}

function closingOf(source: string, open: number): number {
  let depth = 0
  for (let index = open; index < source.length;) {
    const atom = atomAt(source, index)
    if (atom === undefined && source[index] === '(') depth++
    if (atom === undefined && source[index] === ')' && --depth === 0) return index
    index += atom?.length ?? 1
  }
  throw new Error(`A group is open in ${source}`)
}
