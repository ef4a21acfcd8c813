/** A part of a text, as offsets in code units; `to` is after its last character. */
export interface TextSpan {
  from: number
  to: number
}

const pairs: readonly (readonly [open: string, close: string, names: string])[] = [
  ['(', ')', '()b'],
  ['[', ']', '[]'],
  ['{', '}', '{}B'],
  ['<', '>', '<>'],
]
const quotes = '"\'`'

/** The text object at a place: a word, a quotation, what is in brackets, or a paragraph. `a` includes what is around it. */
export function textObject(kind: 'i' | 'a', name: string, text: string, at: number): TextSpan | undefined {
  if (name === 'w') return wordAt(text, at, kind)
  if (name === 'p') return paragraphAt(text, at, kind)
  if (quotes.includes(name)) return quotedAt(text, at, { kind, quote: name })
  const pair = pairs.find(([, , names]) => names.includes(name))
  return pair && bracketsAt(text, at, { kind, open: pair[0], close: pair[1] })
}

/** Where `f`, `F`, `t` or `T` with this character leads, within the line. Undefined if it is not there. */
export function findInLine(
  { key, target, count }: { key: string; target: string; count: number },
  text: string,
  cursor: number,
): number | undefined {
  const isBack = key === 'F' || key === 'T'
  const isTill = key === 't' || key === 'T'
  let at = cursor
  for (let found = 0; found < count; found++) {
    at = isBack ? (at === 0 ? -1 : text.lastIndexOf(target, at - 1)) : text.indexOf(target, at + 1)
    if (at === -1) return undefined
  }
  const [from, to] = isBack ? [at, cursor] : [cursor, at]
  if (text.slice(from, to).includes('\n')) return undefined
  return isTill ? at + (isBack ? target.length : -1) : at
}

function wordAt(text: string, at: number, kind: 'i' | 'a'): TextSpan | undefined {
  if (at >= text.length) return undefined
  const same = kindOf(text, at)
  let [from, to] = [at, at + 1]
  while (from > 0 && kindOf(text, from - 1) === same && text[from - 1] !== '\n') from--
  while (to < text.length && kindOf(text, to) === same && text[to] !== '\n') to++
  if (kind === 'i') return { from, to }
  const [after = ''] = /^[ \t]+/.exec(text.slice(to)) ?? []
  if (after !== '') return { from, to: to + after.length }
  const [before = ''] = /[ \t]+$/.exec(text.slice(0, from)) ?? []
  return { from: from - before.length, to }
}

function paragraphAt(text: string, at: number, kind: 'i' | 'a'): TextSpan {
  const before = text.lastIndexOf('\n\n', Math.max(0, at - 1))
  const from = before === -1 ? 0 : before + 2
  const after = text.indexOf('\n\n', at)
  const to = after === -1 ? text.length : after + 1
  const [blank = ''] = kind === 'a' ? (/^\n+/.exec(text.slice(to)) ?? []) : []
  return { from, to: to + blank.length }
}

/** Quotations are counted from the start of the line, so that text between two of them is not one. */
function quotedAt(text: string, at: number, { kind, quote }: { kind: 'i' | 'a'; quote: string }): TextSpan | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const lineEnd = text.indexOf('\n', at)
  const end = lineEnd === -1 ? text.length : lineEnd
  for (let open = text.indexOf(quote, start); open !== -1 && open < end;) {
    const close = text.indexOf(quote, open + 1)
    if (close === -1 || close >= end) return undefined
    if (at <= close) return kind === 'i' ? { from: open + 1, to: close } : { from: open, to: close + 1 }
    open = text.indexOf(quote, close + 1)
  }
  return undefined
}

function bracketsAt(
  text: string,
  at: number,
  { kind, open, close }: { kind: 'i' | 'a'; open: string; close: string },
): TextSpan | undefined {
  let depth = text[at] === close ? -1 : 0
  let from = at
  for (; from >= 0; from--) {
    if (text[from] === close) depth++
    if (text[from] === open && depth-- === 0) break
  }
  if (from < 0) return undefined
  let inner = 0
  for (let to = from + 1; to < text.length; to++) {
    if (text[to] === open) inner++
    if (text[to] === close && inner-- === 0) return kind === 'i' ? { from: from + 1, to } : { from, to: to + 1 }
  }
  return undefined
}

export function kindOf(text: string, at: number): 'blank' | 'word' | 'sign' {
  const character = text[at] ?? ' '
  if (/\s/.test(character)) return 'blank'
  return /[\p{L}\p{N}_\ud800-\udfff]/u.test(character) ? 'word' : 'sign'
}
