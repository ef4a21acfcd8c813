import {
  decodeKittyPrintable,
  matchesKey,
  Editor,
  truncateToWidth,
  visibleWidth,
  type Component,
  type TUI,
} from '@earendil-works/pi-tui'
import { counted } from '../../text/amounts.ts'
import { harmless } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import type { Completion } from './completion.ts'
import { selectionOf, vimKey, vimStart, type VimEffect, type VimState } from './vim-keys.ts'

export interface ComposerOptions {
  tui: TUI
  theme: Theme
  completion: Completion
  vim: boolean
  onChange: (text: string) => void
  /** Returns the placeholder of an image; undefined if the paste is only text. */
  attachImage: (pasted: string) => Promise<string | undefined>
}

/** The input field for messages. */
export class Composer implements Component {
  readonly #options: ComposerOptions
  readonly #editor: ComposerEditor
  /** Called by Enter with the full text; the composer is already empty. */
  onSubmit: (text: string) => void = () => undefined
  #isVim: boolean
  #vim: VimState = vimStart
  #label = ''

  constructor(options: ComposerOptions) {
    this.#options = options
    this.#isVim = options.vim
    this.#editor = new ComposerEditor(options.tui, options.theme)
    this.#editor.setAutocompleteProvider(options.completion)
    this.#editor.onSubmit = (text) => this.onSubmit(text)
    this.#editor.onChange = (text) => options.onChange(text)
  }

  /** The full text, including pasted parts. */
  get text(): string {
    return this.#editor.getExpandedText()
  }

  set text(text: string) {
    this.#editor.setText(harmless(text))
  }

  get isEmpty(): boolean {
    return this.#editor.getText() === ''
  }

  get isCompleting(): boolean {
    return this.#editor.isShowingAutocomplete()
  }

  get isVim(): boolean {
    return this.#isVim
  }

  /** In vim's insert mode, Escape only leaves the mode. */
  get takesEscape(): boolean {
    const { mode, prefix, operator } = this.#vim
    const isResting = mode === 'normal' && prefix === undefined && operator === undefined
    return this.isCompleting || (this.#isVim && !isResting)
  }

  set isSubmitDisabled(isDisabled: boolean) {
    this.#editor.disableSubmit = isDisabled
  }

  set label(label: string) {
    this.#label = label
  }

  setVim(isVim: boolean): void {
    this.#isVim = isVim
    this.#vim = vimStart
  }

  /** Takes the text out of the composer. */
  take(): string {
    const { text } = this
    this.#editor.setText('')
    return text.trim()
  }

  insert(text: string): void {
    this.#editor.insertTextAtCursor(harmless(text))
  }

  /** Newest last: Up begins there. */
  remember(entries: readonly string[]): void {
    for (const entry of entries) this.#editor.addToHistory(harmless(entry))
  }

  invalidate(): void {
    this.#editor.invalidate()
  }

  render(width: number): string[] {
    const mode = this.#vimLabel()
    this.#editor.label = [mode, this.#label].filter((each) => each !== '').join(' · ')
    return this.#editor.render(width)
  }

  handleInput(data: string): void {
    if (data.startsWith(pasteStart)) return this.#paste(data)
    if (this.#isVim && this.#takesVim(data)) return
    this.#editor.handleInput(data)
  }

  #paste(data: string): void {
    const pasted = data.slice(pasteStart.length).replace(pasteEnd, '')
    if (!/\.(?:png|jpe?g|gif|webp)['"]?\s*$/i.test(pasted)) return this.#pasteText(pasted)
    // The caller reports the failure; the text stays.
    void this.#options
      .attachImage(pasted)
      .catch(() => undefined)
      .then((mark) => {
        if (mark === undefined) this.#pasteText(pasted)
        else this.insert(`${mark} `)
        this.#options.tui.requestRender()
      })
  }

  #pasteText(pasted: string): void {
    this.#editor.handleInput(
      `${pasteStart}${harmless(pasted.replaceAll('\r\n', '\n').replaceAll('\r', '\n'))}${pasteEnd}`,
    )
  }

  #takesVim(data: string): boolean {
    if (matchesKey(data, 'escape')) {
      if (this.#vim.mode === 'normal' && this.#vim.prefix === undefined && this.#vim.operator === undefined)
        return false
      if (this.isCompleting) return false
      if (this.#vim.mode !== 'insert') {
        this.#vim = { ...vimStart, mode: 'normal', register: this.#vim.register, found: this.#vim.found }
        return true
      }
      this.#enterNormal()
      return true
    }
    // Escape followed at once by a key arrives as Alt plus the key.
    const [, joined] = /^\u001b([\x20-\x7e])$/.exec(data) ?? []
    if (joined !== undefined && this.#vim.mode === 'insert' && !this.isCompleting) {
      this.#enterNormal()
      return this.#takesVim(joined)
    }
    if (this.#vim.mode === 'insert') return false
    const key = decodeKittyPrintable(data) ?? data
    const step = vimKey(this.#vim, key, { text: this.#editor.getText(), cursor: this.#editor.offset })
    if (!step) return /^[\x20-\x7e]$/.test(key)
    this.#vim = step.state
    for (const effect of step.effects) this.#apply(effect)
    return true
  }

  #vimLabel(): string {
    if (!this.#isVim || this.#vim.mode === 'insert') return ''
    if (this.#vim.mode === 'normal') return 'NORMAL'
    const { from, to } = selectionOf(this.#vim, { text: this.#editor.getText(), cursor: this.#editor.offset })
    return `VISUAL: ${counted(to - from, 'character')}`
  }

  /** Expands pasted parts, so that vim commands work on the whole text. */
  #enterNormal(): void {
    this.#vim = { ...this.#vim, mode: 'normal', count: '', operator: undefined }
    const whole = this.#editor.getExpandedText()
    if (whole !== this.#editor.getText()) this.#editor.setText(whole)
    if (this.#editor.getCursor().col > 0) this.#editor.handleInput('\u001b[D')
  }

  #apply(effect: VimEffect): void {
    switch (effect.type) {
      case 'move':
        return this.#editor.moveTo(effect.to)
      case 'replace':
        this.#editor.setText(effect.text)
        return this.#editor.moveTo(effect.cursor)
      case 'vertical':
        for (let done = 0; done < Math.abs(effect.lines); done++) {
          this.#editor.handleInput(effect.lines < 0 ? '\u001b[A' : '\u001b[B')
        }
        return
      case 'undo':
        return this.#editor.handleInput('\u001f')
      default:
        return effect satisfies never
    }
  }
}

const pasteStart = '\u001b[200~'
const pasteEnd = '\u001b[201~'

const start = '\u001b[7m'
const end = '\u001b[0m'

/** The editor of the library with a title in its upper border, and the terminal's own cursor instead of a drawn one. */
class ComposerEditor extends Editor {
  /** Harmless and without color. */
  label = ''

  constructor(tui: TUI, theme: Theme) {
    super(
      tui,
      {
        borderColor: (text) => theme.border(text),
        selectList: {
          selectedPrefix: (text) => theme.accent(text),
          selectedText: (text) => theme.selected(text),
          description: (text) => theme.muted(text),
          scrollInfo: (text) => theme.muted(text),
          noMatch: (text) => theme.muted(text),
        },
      },
      { paddingX: 1, autocompleteMaxVisible: 8 },
    )
    this.focused = true
  }

  /** The offset in the whole text, in code units. */
  get offset(): number {
    const { line, col } = this.getCursor()
    return this.getLines()
      .slice(0, line)
      .reduce((sum, each) => sum + each.length + 1, col)
  }

  /** Moves there with arrow keys: the editor has no other way. */
  moveTo(offset: number): void {
    for (let at = this.offset; at !== offset;) {
      const isBefore = at < offset
      this.handleInput(isBefore ? '\u001b[C' : '\u001b[D')
      const now = this.offset
      // The cursor stops at an end, and skips a grapheme of several units at once.
      if (now === at || now < offset !== isBefore) return
      at = now
    }
  }

  override render(width: number): string[] {
    return super.render(width).map((line) => {
      const from = line.indexOf(start)
      if (from === -1) return line
      return line.slice(0, from) + line.slice(from + start.length).replace(end, '')
    })
  }

  protected override renderTopBorder(width: number, hiddenLineCount: number): string {
    if (this.label === '' || hiddenLineCount > 0) return super.renderTopBorder(width, hiddenLineCount)
    const label = truncateToWidth(` ${this.label} `, Math.max(0, width - 4), '… ')
    return this.borderColor(`──${label}${'─'.repeat(Math.max(0, width - 2 - visibleWidth(label)))}`)
  }
}
