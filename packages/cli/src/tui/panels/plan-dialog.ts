import { matchesKey } from '@earendil-works/pi-tui'
import type { RequestAnswer, OpenQuestion } from '@tapetree/client'
import { harmlessLine } from '../../text/harmless.ts'
import { markdownLines } from '../markdown/markdown-lines.ts'
import { shownText } from '../markdown/shown-text.ts'
import type { Theme } from '../theme.ts'
import { OptionBlock, QuietKeys } from './parts/option-block.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { ScrollText } from './parts/scroll-text.ts'
import { TextField, typedText } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

interface PlanDialogOptions {
  theme: Theme
  /** Its title is the plan, as Markdown. */
  request: OpenQuestion
  now?: () => number
  onAnswer: (requestId: string, answer: RequestAnswer) => void
  /** The user postpones the answer, or another client answered. */
  onClose: () => void
}

const choices = ['Carry it out', 'Change it: say what should be different …', 'Do not do this'] as const

/** Whether a request is a plan with the answers that this dialog knows. */
export function isPlan({ tool, options }: OpenQuestion): boolean {
  return tool === 'exit_plan' && options.length === choices.length
}

/** The plan of the agent: the user accepts it, says what to change, or refuses it. */
export class PlanDialog extends FramedPanel {
  isFullScreen = false
  readonly #options: PlanDialogOptions
  readonly #keys: QuietKeys
  readonly #scroll = new ScrollText()
  readonly #block = new OptionBlock(choices)
  readonly #field: TextField
  #isWriting = false
  #dismissed = ''
  #drawn: { width: number; lines: string[] } | undefined

  constructor(options: PlanDialogOptions) {
    super(options.theme)
    this.#options = options
    this.#keys = new QuietKeys(options.now ?? Date.now)
    this.#field = new TextField({ theme: options.theme, isMultiline: true })
  }

  /** Another client answered: says so, and any key closes it. */
  dismiss(reason: string): void {
    this.#dismissed = harmlessLine(reason)
    this.isFullScreen = false
  }

  override render(width: number): string[] {
    this.#keys.seen()
    return super.render(width)
  }

  override invalidate(): void {
    this.#drawn = undefined
  }

  handleInput(data: string): void {
    if (!this.#keys.admits()) return
    if (this.#dismissed !== '') this.#options.onClose()
    else if (this.#isWriting) this.#write(data)
    else if (matchesKey(data, 'escape')) {
      if (this.isFullScreen) this.isFullScreen = false
      else this.#options.onClose()
    } else if (typedText(data) === 'f') this.isFullScreen = !this.isFullScreen
    else if (!this.#scroll.handleInput(data)) this.#choose(this.#block.handleInput(data))
  }

  protected content(): FrameContent {
    if (this.#dismissed !== '') {
      return { title: 'Plan', hints: ['any key closes'], body: ({ width }) => wordWrapped(this.#dismissed, width) }
    }
    return {
      title: this.#isWriting ? 'What should be different?' : 'The agent has a plan',
      hints: this.#isWriting
        ? ['Enter send', 'Shift-Enter new line', 'Esc back']
        : [
            '↑↓ choose',
            'Enter or 1–3 answer',
            'PgUp PgDn read',
            this.isFullScreen ? 'f smaller' : 'f full screen',
            'Esc later',
          ],
      body: (room) => this.#body(room),
    }
  }

  #body({ width, rows }: Room): string[] {
    const { theme } = this
    const below = this.#isWriting
      ? ['', ...this.#field.render({ width, rows: Math.max(1, Math.min(6, rows - 3)), focused: this.focused })]
      : ['', ...this.#block.render({ theme, width, rows: Math.max(1, rows - (rows < 10 ? 2 : 4)) })]
    const shown = this.#scroll.render(this.#plan(width), { theme, width, rows: Math.max(1, rows - below.length) })
    return [...shown, ...below]
  }

  #plan(width: number): readonly string[] {
    if (this.#drawn?.width !== width) {
      const text = shownText(this.#options.request.title)
      this.#drawn = { width, lines: markdownLines(text, { theme: this.theme, width }) }
    }
    return this.#drawn.lines
  }

  #choose(index: number | undefined): void {
    if (index === undefined) return
    if (index === 1) {
      this.#isWriting = true
      return
    }
    const { request, onAnswer } = this.#options
    const optionId = request.options[index]?.optionId
    if (optionId !== undefined) onAnswer(request.requestId, { optionId })
  }

  #write(data: string): void {
    const { request, onAnswer } = this.#options
    const text = this.#field.text.trim()
    if (matchesKey(data, 'escape')) this.#isWriting = false
    else if (!matchesKey(data, 'enter')) this.#field.handleInput(data)
    else if (text !== '') onAnswer(request.requestId, { outcome: 'allowed', text })
  }
}
