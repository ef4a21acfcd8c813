import { findInLine, kindOf, textObject, type TextSpan } from './vim-objects.ts'

export interface VimState {
  readonly mode: 'insert' | 'normal' | 'visual'
  /** Digits typed before a command. */
  readonly count: string
  /** An operator that waits for its motion. */
  readonly operator: Operator | undefined
  /** A key that waits for another one: `g`, `f`, or `i` of a text object. */
  readonly prefix?: string | undefined
  /** Where the selection of mode `visual` began. */
  readonly anchor?: number | undefined
  /** The selection takes whole lines. */
  readonly takesLines?: boolean | undefined
  /** The last `f`, `F`, `t` or `T`, for `;` and `,`. */
  readonly found?: { key: string; target: string } | undefined
  /** The register: the text last deleted or copied. */
  readonly register: string
}

type Operator = 'd' | 'c' | 'y'

export const vimStart: VimState = { mode: 'insert', count: '', operator: undefined, register: '' }

/** What the composer should do. */
export type VimEffect =
  | { type: 'move'; to: number }
  | { type: 'replace'; text: string; cursor: number }
  | { type: 'vertical'; lines: number }
  | { type: 'undo' }

export interface VimStep {
  state: VimState
  effects: readonly VimEffect[]
}

interface Place {
  text: string
  cursor: number
}

/** One key in normal or visual mode. Undefined if vim does not handle it, such as Enter or a key with Ctrl. */
export function vimKey(state: VimState, key: string, place: Place): VimStep | undefined {
  if (state.prefix !== undefined) return isCharacter(key) ? completed(state, key, place) : undefined
  if (!/^[a-zA-Z0-9$^;,]$/.test(key)) return undefined
  if (/[1-9]/.test(key) || (key === '0' && state.count !== '')) {
    return { state: { ...state, count: (state.count + key).slice(0, 4) }, effects: [] }
  }
  if (isPrefix(state, key)) return { state: { ...state, prefix: key }, effects: [] }
  const count = Math.max(1, Number(state.count))
  const reach = (key === ';' || key === ',') && state.found ? foundAgain(state.found, key, { count, place }) : undefined
  if (reach) return moved(state, reach, place)
  if (state.mode === 'visual') return inSelection(state, { key, count, place })
  const rested: VimState = { ...state, count: '', operator: undefined }
  if (state.operator !== undefined) return operate(rested, state.operator, { key, count, place })
  if (key === 'd' || key === 'c' || key === 'y') return { state: { ...state, operator: key }, effects: [] }
  if (key === 'v' || key === 'V') {
    return { state: { ...rested, mode: 'visual', anchor: place.cursor, takesLines: key === 'V' }, effects: [] }
  }
  const to = motion(key, count, place)
  if (to !== undefined) return { state: rested, effects: [{ type: 'move', to }] }
  return command(rested, { key, count, place }) ?? { state: rested, effects: [] }
}

/** The part of the text that mode `visual` has selected. */
export function selectionOf({ anchor = 0, takesLines }: VimState, { text, cursor }: Place): TextSpan {
  const [from, last] = [Math.min(anchor, cursor), Math.max(anchor, cursor)]
  if (!takesLines) return { from, to: Math.min(text.length, last + 1) }
  return { from: lineStart(text, from), to: Math.min(text.length, lineEnd(text, last) + 1) }
}

interface Keyed {
  key: string
  count: number
  place: Place
}

/** Where a motion leads, and what an operator on it takes. */
interface Reach extends TextSpan {
  cursor: number
  isLines: boolean
}

function isCharacter(key: string): boolean {
  return [...key].length === 1 && key >= ' ' && key !== '\u007f'
}

/** `i` and `a` begin a text object only after an operator, or in a selection. */
function isPrefix({ operator, mode }: VimState, key: string): boolean {
  if ('gfFtT'.includes(key)) return true
  return (key === 'i' || key === 'a') && (operator !== undefined || mode === 'visual')
}

/** The second key of `gg`, `fx` or `iw`. If it means nothing, both are dropped. */
function completed(state: VimState, key: string, place: Place): VimStep {
  const { prefix = '', count: digits } = state
  const next: VimState = { ...state, prefix: undefined }
  const dropped: VimStep = { state: { ...next, count: '', operator: undefined }, effects: [] }
  const { text, cursor } = place
  const count = Math.max(1, Number(digits))
  if (prefix === 'g') {
    if (key !== 'g') return dropped
    const to = repeated(count - 1, 0, (at) => Math.min(lineStart(text, text.length), lineEnd(text, at) + 1))
    const [first, last] = [Math.min(to, cursor), Math.max(to, cursor)]
    const lines = { from: lineStart(text, first), to: Math.min(text.length, lineEnd(text, last) + 1) }
    return moved(next, { ...lines, cursor: to, isLines: true }, place)
  }
  if (prefix === 'i' || prefix === 'a') {
    const span = textObject(prefix, key, text, cursor)
    if (!span) return dropped
    if (state.mode === 'visual') {
      const selected: VimState = { ...next, count: '', anchor: span.from, takesLines: false }
      return { state: selected, effects: [{ type: 'move', to: Math.max(span.from, span.to - 1) }] }
    }
    return moved(next, { ...span, cursor: span.from, isLines: false }, place)
  }
  const reach = found({ key: prefix, target: key }, { count, place })
  return reach ? moved({ ...next, found: { key: prefix, target: key } }, reach, place) : dropped
}

function found(
  { key, target }: { key: string; target: string },
  { count, place }: Pick<Keyed, 'count' | 'place'>,
): Reach | undefined {
  const { text, cursor } = place
  const to = findInLine({ key, target, count }, text, cursor)
  if (to === undefined) return undefined
  const isBack = to < cursor
  return { from: Math.min(to, cursor), to: isBack ? cursor : to + 1, cursor: to, isLines: false }
}

/** `;` goes on, `,` goes back. After `t`, the character beside the cursor is not found again. */
function foundAgain(
  { key, target }: { key: string; target: string },
  pressed: string,
  { count, place }: Pick<Keyed, 'count' | 'place'>,
): Reach | undefined {
  const turned = key === key.toLowerCase() ? key.toUpperCase() : key.toLowerCase()
  const way = pressed === ';' ? key : turned
  const { text, cursor } = place
  const isBeside = (way === 't' && text.startsWith(target, cursor + 1)) || (way === 'T' && text[cursor - 1] === target)
  return found({ key: way, target }, { count: isBeside ? count + 1 : count, place })
}

/** Moves, or lets the waiting operator take what is in between. */
function moved(state: VimState, reach: Reach, place: Place): VimStep {
  const rested: VimState = { ...state, count: '', operator: undefined }
  if (state.operator !== undefined && state.mode === 'normal') return operateOn(rested, state.operator, reach, place)
  return { state: rested, effects: [{ type: 'move', to: reach.cursor }] }
}

/** A key while text is selected: motions extend the selection, operators take it. */
function inSelection(state: VimState, { key, count, place }: Keyed): VimStep {
  const rested: VimState = { ...state, count: '' }
  const normal: VimState = { ...rested, mode: 'normal', anchor: undefined, takesLines: undefined }
  const operator = ({ d: 'd', x: 'd', c: 'c', s: 'c', y: 'y' } as const)[key]
  if (operator !== undefined) {
    const span = selectionOf(state, place)
    const step = operateOn(normal, operator, { ...span, cursor: span.from, isLines: state.takesLines === true }, place)
    return operator === 'y' ? { ...step, effects: [{ type: 'move', to: span.from }] } : step
  }
  if (key === 'v' || key === 'V') {
    const isSame = (key === 'V') === (state.takesLines === true)
    return { state: isSame ? normal : { ...rested, takesLines: key === 'V' }, effects: [] }
  }
  if (key === 'o') {
    return { state: { ...rested, anchor: place.cursor }, effects: [{ type: 'move', to: state.anchor ?? place.cursor }] }
  }
  if (key === 'j' || key === 'k') {
    return { state: rested, effects: [{ type: 'vertical', lines: key === 'j' ? count : -count }] }
  }
  const to = motion(key, count, place)
  return { state: rested, effects: to === undefined ? [] : [{ type: 'move', to }] }
}

function motion(key: string, count: number, { text, cursor }: Place): number | undefined {
  switch (key) {
    case 'h':
      return Math.max(lineStart(text, cursor), cursor - count)
    case 'l':
      return Math.min(lineEnd(text, cursor), cursor + count)
    case 'w':
      return repeated(count, cursor, (at) => wordForward(text, at))
    case 'b':
      return repeated(count, cursor, (at) => wordBack(text, at))
    case 'e':
      return repeated(count, cursor, (at) => wordEnd(text, at))
    case '0':
      return lineStart(text, cursor)
    case '^':
      return lineStart(text, cursor) + (/^\s*/.exec(text.slice(lineStart(text, cursor)))?.[0].length ?? 0)
    case '$':
      return lineEnd(text, cursor)
    case 'G':
      return lineStart(text, text.length)
    default:
      return undefined
  }
}

function command(state: VimState, { key, count, place }: Keyed): VimStep | undefined {
  const { text, cursor } = place
  switch (key) {
    case 'j':
      return { state, effects: [{ type: 'vertical', lines: count }] }
    case 'k':
      return { state, effects: [{ type: 'vertical', lines: -count }] }
    case 'i':
      return insert(state, place)
    case 'I':
      return insert(state, { text, cursor: lineStart(text, cursor) })
    case 'a':
      return insert(state, { text, cursor: Math.min(lineEnd(text, cursor), cursor + 1) })
    case 'A':
      return insert(state, { text, cursor: lineEnd(text, cursor) })
    case 'o': {
      const end = lineEnd(text, cursor)
      return replaceAndInsert(state, { text: `${text.slice(0, end)}\n${text.slice(end)}`, cursor: end + 1 })
    }
    case 'O': {
      const start = lineStart(text, cursor)
      return replaceAndInsert(state, { text: `${text.slice(0, start)}\n${text.slice(start)}`, cursor: start })
    }
    case 'x':
      return cut(state, { ...place, from: cursor, to: Math.min(lineEnd(text, cursor), cursor + count) })
    case 'D':
      return cut(state, { ...place, from: cursor, to: lineEnd(text, cursor) })
    case 'u':
      return { state, effects: Array.from({ length: count }, () => ({ type: 'undo' as const })) }
    case 'p':
      return put(state, place, count)
    default:
      return undefined
  }
}

function operate(state: VimState, operator: Operator, { key, count, place }: Keyed): VimStep {
  const reach = key === operator ? wholeLines(place, count) : spanOf(key, count, place)
  return reach ? operateOn(state, operator, { ...reach, cursor: reach.from }, place) : { state, effects: [] }
}

function operateOn(state: VimState, operator: Operator, reach: Reach, place: Place): VimStep {
  const register = place.text.slice(reach.from, reach.to)
  if (operator === 'y')
    return { state: { ...state, register: reach.isLines ? asLines(register) : register }, effects: [] }
  const keepsLine = operator === 'c' && reach.isLines && register.endsWith('\n')
  const cutOut = cut(state, { ...place, from: reach.from, to: keepsLine ? reach.to - 1 : reach.to })
  const kept = { ...cutOut.state, ...(reach.isLines && { register: asLines(register) }) }
  return { state: operator === 'c' ? { ...kept, mode: 'insert' } : kept, effects: cutOut.effects }
}

function spanOf(key: string, count: number, place: Place): { from: number; to: number; isLines: boolean } | undefined {
  const to = motion(key, count, place)
  if (to === undefined) return undefined
  const end = key === 'e' ? to + 1 : to
  return { from: Math.min(place.cursor, end), to: Math.max(place.cursor, end), isLines: false }
}

function wholeLines({ text, cursor }: Place, count: number): { from: number; to: number; isLines: boolean } {
  const from = lineStart(text, cursor)
  const to = repeated(count, from, (at) => Math.min(text.length, lineEnd(text, at) + 1))
  // The last line has no newline: removes the one before it.
  return { from: to === text.length && !text.endsWith('\n') && from > 0 ? from - 1 : from, to, isLines: true }
}

function asLines(register: string): string {
  return `${register.replace(/^\n/, '').replace(/\n$/, '')}\n`
}

function cut(state: VimState, { text, from, to }: { text: string; from: number; to: number }): VimStep {
  if (to <= from) return { state, effects: [] }
  return {
    state: { ...state, register: text.slice(from, to) },
    effects: [{ type: 'replace', text: text.slice(0, from) + text.slice(to), cursor: from }],
  }
}

/** Whole lines go below, anything else after the cursor. */
function put(state: VimState, { text, cursor }: Place, count: number): VimStep {
  const words = state.register.repeat(count)
  if (words === '') return { state, effects: [] }
  if (!words.endsWith('\n')) {
    const at = Math.min(lineEnd(text, cursor), cursor + 1)
    const changed = text.slice(0, at) + words + text.slice(at)
    return { state, effects: [{ type: 'replace', text: changed, cursor: at + words.length - 1 }] }
  }
  const end = lineEnd(text, cursor)
  const changed = `${text.slice(0, end)}\n${words.slice(0, -1)}${text.slice(end)}`
  return { state, effects: [{ type: 'replace', text: changed, cursor: end + 1 }] }
}

function insert(state: VimState, { cursor }: Place): VimStep {
  return { state: { ...state, mode: 'insert' }, effects: [{ type: 'move', to: cursor }] }
}

function replaceAndInsert(state: VimState, { text, cursor }: Place): VimStep {
  return { state: { ...state, mode: 'insert' }, effects: [{ type: 'replace', text, cursor }] }
}

function repeated(count: number, start: number, step: (at: number) => number): number {
  let at = start
  for (let done = 0; done < count; done++) at = step(at)
  return at
}

/** Where vim motions lead in a text. Positions are offsets in code units. */

function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1
}

/** After its last character. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}

function wordForward(text: string, at: number): number {
  const kind = kindOf(text, at)
  let place = at
  if (kind !== 'blank') while (place < text.length && kindOf(text, place) === kind) place++
  while (place < text.length && kindOf(text, place) === 'blank') place++
  return place
}

function wordBack(text: string, at: number): number {
  let place = at
  while (place > 0 && kindOf(text, place - 1) === 'blank') place--
  const kind = kindOf(text, place - 1)
  while (place > 0 && kindOf(text, place - 1) === kind) place--
  return place
}

/** On the last character of the word. */
function wordEnd(text: string, at: number): number {
  let place = at + 1
  while (place < text.length && kindOf(text, place) === 'blank') place++
  const kind = kindOf(text, place)
  while (place + 1 < text.length && kindOf(text, place + 1) === kind) place++
  return Math.min(place, Math.max(0, text.length - 1))
}
