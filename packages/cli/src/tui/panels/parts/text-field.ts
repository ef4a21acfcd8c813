import { CURSOR_MARKER, matchesKey, decodeKittyPrintable } from '@earendil-works/pi-tui'
import { harmless } from '../../../text/harmless.ts'
import type { Theme } from '../../theme.ts'
import { hardWrapped } from './text-wrap.ts'

interface TextFieldOptions {
  theme: Theme
  text?: string
  /** Shift-Enter, Alt-Enter and Ctrl-J insert a new line; otherwise pasted lines are joined. */
  isMultiline?: boolean
}

const pasteStart = '\u001b[200~'
const pasteEnd = '\u001b[201~'
const bar = '▏'
const segments = new Intl.Segmenter()
const words = new Intl.Segmenter(undefined, { granularity: 'word' })

/**
 * A text input in a panel. Sanitizes all input, including pastes, and marks the cursor with a symbol that needs no color. Enter and Escape
 * are left to the panel.
 */
export class TextField {
  readonly #options: TextFieldOptions
  #text: string
  #at: number
  #paste: string | undefined

  constructor(options: TextFieldOptions) {
    this.#options = options
    this.#text = this.#clean(options.text ?? '')
    this.#at = this.#text.length
  }

  get text(): string {
    return this.#text
  }

  set text(text: string) {
    this.#text = this.#clean(text)
    this.#at = this.#text.length
  }

  /** False if the key is not handled here. */
  handleInput(data: string): boolean {
    if (this.#takePaste(data)) return true
    if (this.#options.isMultiline && newLineKeys.some((key) => matchesKey(data, key))) return this.#insert('\n')
    const edit = keys.find(({ on }) => on.some((key) => matchesKey(data, key)))
    if (edit) return this.#change(edit.to(this.#text, this.#at), edit.isRemoving)
    if (this.#options.isMultiline && matchesKey(data, 'up')) return this.#change(lineAbove(this.#text, this.#at))
    if (this.#options.isMultiline && matchesKey(data, 'down')) return this.#change(lineBelow(this.#text, this.#at))
    const typed = typedText(data)
    return typed !== undefined && this.#insert(typed)
  }

  /** The visible lines around the cursor. */
  render({ width, rows, focused }: { width: number; rows: number; focused: boolean }): string[] {
    const before = hardWrapped(this.#text.slice(0, this.#at) + bar, width)
    const lines = hardWrapped(`${this.#text.slice(0, this.#at)}${bar}${this.#text.slice(this.#at)}`, width)
    const row = before.length - 1
    const head = (before[row] ?? '').slice(0, -bar.length)
    const rest = (lines[row] ?? '').slice(head.length + bar.length)
    lines[row] = `${head}${focused ? CURSOR_MARKER : ''}${this.#options.theme.accent(bar)}${rest}`
    const top = Math.max(0, Math.min(row - rows + 1, lines.length - rows))
    return lines.slice(top, top + Math.max(1, rows))
  }

  #takePaste(data: string): boolean {
    if (this.#paste === undefined && !data.startsWith(pasteStart)) return false
    this.#paste = (this.#paste ?? '') + data
    const end = this.#paste.indexOf(pasteEnd)
    if (end === -1) return true
    const pasted = this.#paste.slice(pasteStart.length, end)
    this.#paste = undefined
    return this.#insert(pasted)
  }

  #insert(text: string): true {
    const added = this.#clean(text)
    this.#text = this.#text.slice(0, this.#at) + added + this.#text.slice(this.#at)
    this.#at += added.length
    return true
  }

  #change(to: number, isRemoving = false): true {
    if (isRemoving) {
      const [from, until] = to < this.#at ? [to, this.#at] : [this.#at, to]
      this.#text = this.#text.slice(0, from) + this.#text.slice(until)
      this.#at = from
    } else this.#at = to
    return true
  }

  #clean(text: string): string {
    const clean = harmless(text.replaceAll(/\r\n?/g, '\n')).replaceAll('\t', '    ')
    return this.#options.isMultiline ? clean : clean.replaceAll('\n', ' ')
  }
}

type KeyName = Parameters<typeof matchesKey>[1]

const newLineKeys: KeyName[] = ['shift+enter', 'alt+enter', 'ctrl+j']

/** The new cursor position; deleting keys remove the text in between. */
const keys: { on: KeyName[]; to: (text: string, at: number) => number; isRemoving?: true }[] = [
  { on: ['left', 'ctrl+b'], to: letterBefore },
  { on: ['right'], to: letterAfter },
  { on: ['alt+left', 'ctrl+left', 'alt+b'], to: wordBefore },
  { on: ['alt+right', 'ctrl+right', 'alt+f'], to: wordAfter },
  { on: ['home', 'ctrl+a'], to: lineStart },
  { on: ['end', 'ctrl+e'], to: lineEnd },
  { on: ['backspace'], to: letterBefore, isRemoving: true },
  { on: ['delete'], to: letterAfter, isRemoving: true },
  { on: ['ctrl+w', 'alt+backspace'], to: wordBefore, isRemoving: true },
  { on: ['alt+d', 'alt+delete'], to: wordAfter, isRemoving: true },
  { on: ['ctrl+u'], to: lineStart, isRemoving: true },
  { on: ['ctrl+k'], to: lineEnd, isRemoving: true },
]

function letterBefore(text: string, at: number): number {
  return at === 0 ? 0 : (segments.segment(text).containing(at - 1)?.index ?? 0)
}

function letterAfter(text: string, at: number): number {
  return at + (segments.segment(text).containing(at)?.segment.length ?? 0)
}

function wordBefore(text: string, at: number): number {
  const before = [...words.segment(text.slice(0, at))]
  return before.findLast(({ isWordLike }) => isWordLike)?.index ?? 0
}

function wordAfter(text: string, at: number): number {
  for (const { index, segment, isWordLike } of words.segment(text.slice(at))) {
    if (isWordLike) return at + index + segment.length
  }
  return text.length
}

function lineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}

function lineAbove(text: string, at: number): number {
  const start = lineStart(text, at)
  if (start === 0) return 0
  const above = lineStart(text, start - 1)
  return letterAt(text, Math.min(above + at - start, start - 1))
}

function lineBelow(text: string, at: number): number {
  const below = lineEnd(text, at) + 1
  if (below > text.length) return text.length
  return letterAt(text, Math.min(below + at - lineStart(text, at), lineEnd(text, below)))
}

/** Never in the middle of a grapheme. */
function letterAt(text: string, at: number): number {
  return segments.segment(text).containing(at)?.index ?? text.length
}

/** The text that a key press inserts; undefined for a command key. */
export function typedText(data: string): string | undefined {
  const text = decodeKittyPrintable(data) ?? data
  return text !== '' && !/[\u0000-\u001f\u007f-\u009f]/.test(text) ? text : undefined
}
