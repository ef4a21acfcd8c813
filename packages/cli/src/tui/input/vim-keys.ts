export interface VimState {
  readonly mode: 'insert' | 'normal'
  /** Digits typed before a command. */
  readonly count: string
  /** An operator that waits for its motion. */
  readonly operator: 'd' | 'c' | 'y' | undefined
  /** The register: the text last deleted or copied. */
  readonly register: string
}

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

/** One key in normal mode. Undefined if vim does not handle it, such as Enter or a key with Ctrl. */
export function vimKey(state: VimState, key: string, place: Place): VimStep | undefined {
  if (!/^[a-zA-Z0-9$^]$/.test(key)) return undefined
  if (/[1-9]/.test(key) || (key === '0' && state.count !== '')) {
    return { state: { ...state, count: (state.count + key).slice(0, 4) }, effects: [] }
  }
  const count = Math.max(1, Number(state.count))
  const rested: VimState = { ...state, count: '', operator: undefined }
  if (state.operator !== undefined) return operate(rested, state.operator, { key, count, place })
  if (key === 'd' || key === 'c' || key === 'y') return { state: { ...state, operator: key }, effects: [] }
  const to = motion(key, count, place)
  if (to !== undefined) return { state: rested, effects: [{ type: 'move', to }] }
  return command(rested, { key, count, place }) ?? { state: rested, effects: [] }
}

interface Keyed {
  key: string
  count: number
  place: Place
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

function operate(state: VimState, operator: 'd' | 'c' | 'y', { key, count, place }: Keyed): VimStep {
  const reach = key === operator ? wholeLines(place, count) : spanOf(key, count, place)
  if (!reach) return { state, effects: [] }
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
  const kind = kindAt(text, at)
  let place = at
  if (kind !== 'blank') while (place < text.length && kindAt(text, place) === kind) place++
  while (place < text.length && kindAt(text, place) === 'blank') place++
  return place
}

function wordBack(text: string, at: number): number {
  let place = at
  while (place > 0 && kindAt(text, place - 1) === 'blank') place--
  const kind = kindAt(text, place - 1)
  while (place > 0 && kindAt(text, place - 1) === kind) place--
  return place
}

/** On the last character of the word. */
function wordEnd(text: string, at: number): number {
  let place = at + 1
  while (place < text.length && kindAt(text, place) === 'blank') place++
  const kind = kindAt(text, place)
  while (place + 1 < text.length && kindAt(text, place + 1) === kind) place++
  return Math.min(place, Math.max(0, text.length - 1))
}

function kindAt(text: string, at: number): 'blank' | 'word' | 'sign' {
  const character = text[at] ?? ' '
  if (/\s/.test(character)) return 'blank'
  return /[\p{L}\p{N}_\ud800-\udfff]/u.test(character) ? 'word' : 'sign'
}
